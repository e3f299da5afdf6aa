// Waiting with an end of one's own, by time or by signal, for something that others may wait for too.

// AbortSignal.any() holds its sources weakly, so that on Node 20 a bare AbortSignal.timeout() in it is collected and
// never fires; a timer of our own is not.
/** Aborts after `ms`, or with `signal`. Keeps no process alive. */
export function within(ms: number, signal: AbortSignal): AbortSignal {
  const limit = new AbortController();
  setTimeout(() => limit.abort(new DOMException("It took too long.", "TimeoutError")), ms).unref();
  return AbortSignal.any([signal, limit.signal]);
}

/** Undefined where the time was over first; the work goes on. */
export async function resultWithin<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** False where the time was over first. */
export async function doneWithin(work: Promise<void>, ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  const done = abortable(
    work.then(() => true),
    signal,
  );
  return (await resultWithin(done, ms)) ?? false;
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

/** Until the time is over, or the signal fires: whoever asks looks which. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
  });
}

// The event loop is one for the whole process, and so is the row in which its turns are waited for.
const waiting: (() => void)[] = [];
let isHandedOut = false;

/**
 * Resolves in a turn of the event loop in which nobody else goes on who waited here: where several have long work, which each
 * does piece by piece, no two pieces are done in the same turn. Whoever came first goes first.
 */
export function ownTurn(): Promise<void> {
  return new Promise((go) => {
    waiting.push(go);
    if (isHandedOut) return;
    isHandedOut = true;
    setImmediate(handOut);
  });
}

function handOut(): void {
  waiting.shift()?.();
  isHandedOut = waiting.length > 0;
  // What is set here runs in the turn after this one.
  if (isHandedOut) setImmediate(handOut);
}
