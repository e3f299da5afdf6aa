// Who may start now, where many want to at once: so many at a time, the others in turn.

/** So many processes of one server start at once: more take longer together than one after another. */
const MAX_AT_ONCE = 16;

export class StartTurns {
  readonly #atOnce: number;
  #starting = 0;
  /** As many as there may be connections, at most. */
  readonly #waiting = new Set<() => void>();

  constructor(atOnce = MAX_AT_ONCE) {
    this.#atOnce = atOnce;
  }

  /** Resolves when it is one's turn, with what is to be called afterwards. Rejects with the signal's reason. */
  async turn(signal: AbortSignal): Promise<() => void> {
    if (this.#starting < this.#atOnce) this.#starting++;
    else await this.#wait(signal);
    return () => this.#next();
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.delete(begin);
        reject(signal.reason as Error);
      };
      const begin = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      if (signal.aborted) onAbort();
      else {
        this.#waiting.add(begin);
        signal.addEventListener("abort", onAbort, { once: true });
      }
    });
  }

  /** The place of one that has started goes to the next. */
  #next(): void {
    const [begin] = this.#waiting;
    if (begin === undefined) {
      this.#starting--;
      return;
    }
    this.#waiting.delete(begin);
    begin();
  }
}
