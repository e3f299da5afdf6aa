// Whether the sessions that we have at a server put each other out: one that keeps a single session forgets the one before when the
// next is opened. It decides only: no I/O, no clock.

/**
 * So often within WINDOW_MS a session was opened, another after it, and the first was forgotten: then it is that. A server that is
 * restarted forgets all that were opened before, and counts once for that; one that is restarted three times in a minute is
 * served as well by one session. It is less than the restarts after which a server is ejected.
 */
const MAX_EVICTIONS = 3;
const WINDOW_MS = 60_000;

export class Evictions<S extends object> {
  readonly #openedMs = new WeakMap<S, number>();
  #last: S | undefined;
  /** The times of those that count, the oldest first. */
  #times: number[] = [];

  opened(session: S, nowMs: number): void {
    this.#openedMs.set(session, nowMs);
    this.#last = session;
  }

  /** The server has forgotten it. True where the sessions put each other out. */
  gone(session: S, nowMs: number): boolean {
    const openedMs = this.#openedMs.get(session);
    this.#openedMs.delete(session);
    const countedMs = this.#times.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (openedMs === undefined || session === this.#last || openedMs <= countedMs) return false;
    this.#times = [...this.#times.filter((ms) => nowMs - ms < WINDOW_MS), nowMs];
    if (this.#times.length < MAX_EVICTIONS) return false;
    this.#times = [];
    return true;
  }
}
