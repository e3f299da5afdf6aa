// Waiting for a condition, for tests that start no gateway.

/** As patient as a busy machine needs; only what hangs takes so long. */
const PATIENCE_MS = 60_000;
const STEP_MS = 5;

/** The first value that is neither undefined nor false. */
export async function until<T>(what: string, look: () => T | undefined | false): Promise<T> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    const seen = look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > end) throw new Error(`Waited in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
}
