// Tells whoever watches a map. One that throws is not told apart from a bug: it is shown, and ends neither the process nor the
// telling of the others, which would miss what is never told again.

export function tellListener(map: string, tell: () => void): void {
  try {
    tell();
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.emitWarning(`Somebody who watches "${map}" failed: ${text}`);
  }
}
