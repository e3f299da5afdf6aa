// Amounts as people read them, wherever they read them: in a message, in the terminal, on the page.

/** `1.5 s`. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** A wait that is told, in seconds: one that is over in a moment is no wait of "0.0 s". */
export function waitText(ms: number): string {
  return seconds(Math.max(100, ms));
}

/** Of a hundred: `0 %`, `2.5 %`, `40 %`. What is little is not called none. */
export function percent(share: number): string {
  return `${share.toFixed(share > 0 && share < 10 ? 1 : 0)} %`;
}
