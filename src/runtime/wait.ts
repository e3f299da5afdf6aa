// Waiting with an end of one's own, by time or by signal, for something that others may wait for too.

// AbortSignal.any() holds its sources weakly, so that on Node 20 a bare AbortSignal.timeout() in it is collected and
// never fires; a timer of our own is not.
/** Aborts after `ms`, or with `signal`. Keeps no process alive. */
export function within(ms: number, signal: AbortSignal): AbortSignal {
  const limit = new AbortController();
  setTimeout(() => limit.abort(new DOMException("It took too long.", "TimeoutError")), ms).unref();
  return AbortSignal.any([signal, limit.signal]);
}

/** A promise, and what ends it. */
export function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
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

/** Until what `listen` subscribes to has happened, or the time is over. */
export async function toldWithin(listen: (told: () => void) => () => void, ms: number): Promise<void> {
  let end = () => {};
  await resultWithin(
    new Promise<void>((told) => {
      end = listen(told);
    }),
    ms,
  );
  end();
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

/** Until the signal fires, which it may have done already. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done();
    else signal.addEventListener("abort", () => done(), { once: true });
  });
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

/** Until the time is over, whatever happens. */
export function sleep(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

/** The same, and keeps no process alive: in one that has nothing else to do, it never ends. */
export function sleepUnref(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms).unref());
}
