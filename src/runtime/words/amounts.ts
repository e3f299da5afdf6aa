// Amounts as people read them, wherever they read them: in a message, in the terminal, on the page.

/** `1.5 s`. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** Of a hundred: `0 %`, `2.5 %`, `40 %`. What is little is not called none. */
export function percent(share: number): string {
  return `${share.toFixed(share > 0 && share < 10 ? 1 : 0)} %`;
}
