// Waiting for something that others wait for too: with an end of one's own, by time or by signal.

/** False where the time was over first. */
export async function within(work: Promise<void>, ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await abortable(Promise.race([work.then(() => true), late]), signal);
  } finally {
    clearTimeout(timer);
  }
}

export async function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await work;
  signal.throwIfAborted();
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  return await Promise.race([work, aborted]).finally(() => signal.removeEventListener("abort", onAbort));
}
