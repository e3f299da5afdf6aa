// Waiting with an end of one's own, by time or by signal, for something that others may wait for too; and for a turn of the event loop.

import { KIB, MIB } from "./sizes.js";

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

/** What has fewer bytes is done at once, whatever waits: hundreds of such fit into the time of a turn. */
export const SMALL_WORK_BYTES = 64 * KIB;

/** Of one turn: to read, judge and pass on so much takes some 20 to 40 ms of a slow machine's time. */
const TURN_BYTES = 1 * MIB;

interface Waiting {
  readonly bytes: number;
  readonly act: () => void;
}

/**
 * Large work of one process, some of it in each turn of the event loop and the rest in the next ones, in the order in which it was asked
 * for. Small work never waits: so what is small and urgent, such as the renewal of a lease, comes before all that is large.
 */
export class Turns {
  readonly #soon: (turn: () => void) => void;
  /** Of this turn. The last may take more than there is, so that what is larger than a turn has one to itself. */
  #left = TURN_BYTES;
  #waiting: Waiting[] = [];
  #isDue = false;

  constructor(soon: (turn: () => void) => void = setImmediate) {
    this.#soon = soon;
  }

  /** True: now. False: in one of the next turns, when `later` is called. */
  take(bytes: number, later: () => void): boolean {
    if (bytes < SMALL_WORK_BYTES) return true;
    this.#call();
    if (this.#left <= 0 || this.#waiting.length > 0) {
      this.#waiting.push({ bytes, act: later });
      return false;
    }
    this.#left -= bytes;
    return true;
  }

  /** Resolves when there is time for it. */
  async wait(bytes: number): Promise<void> {
    await new Promise<void>((resolve) => {
      if (this.take(bytes, resolve)) resolve();
    });
  }

  #call(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#soon(this.#next);
  }

  /** One function for all turns. */
  readonly #next = (): void => {
    this.#isDue = false;
    this.#left = TURN_BYTES;
    let done = 0;
    for (const { bytes, act } of this.#waiting) {
      if (this.#left <= 0) break;
      this.#left -= bytes;
      done++;
      act();
    }
    this.#waiting.splice(0, done);
    if (done > 0) this.#call();
  };
}

/** All large work of a process shares its one event loop. */
export const turns = new Turns();
