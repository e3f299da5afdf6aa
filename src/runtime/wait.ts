// A deadline beside another signal. AbortSignal.any() holds its sources weakly, so that on Node 20 a bare
// AbortSignal.timeout() in it is collected and never fires; a timer of our own is not.

/** Aborts after `ms`, or with `signal`. Keeps no process alive. */
export function within(ms: number, signal: AbortSignal): AbortSignal {
  const limit = new AbortController();
  setTimeout(() => limit.abort(new DOMException("It took too long.", "TimeoutError")), ms).unref();
  return AbortSignal.any([signal, limit.signal]);
}
