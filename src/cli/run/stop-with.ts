// An agent that has the terminal to itself answers Ctrl-Z by stopping itself alone: the shell waits for us, so we stop
// with it, and continue it when we are continued (SIGCONT is passed on). It decides when to look and when to stop.

/** Two looks so far apart: one that was stopped and continued together with us is running again by the second. */
const LOOK_AGAIN_MS = 100;

export interface Looking {
  /** Whether the agent is stopped now. */
  isStopped(): boolean;
  /** To look starts a program, whose end is a SIGCHLD like the agent's own: it must not be a reason to look. */
  readonly raisesSignal: boolean;
  stopOurselves(): void;
}

export class StopWithAgent {
  readonly #looking: Looking;
  #again: NodeJS.Timeout | undefined;
  /** Signals to come that our own looks have raised. */
  #ownSignals = 0;

  constructor(looking: Looking) {
    this.#looking = looking;
  }

  /** A SIGCHLD came. Where one of the agent's falls together with one of ours, the next Ctrl-Z is seen. */
  signalled(): void {
    if (this.#ownSignals > 0) this.#ownSignals--;
    else if (this.#again === undefined && this.#look()) {
      this.#again = setTimeout(() => {
        this.#again = undefined;
        if (this.#look()) this.#looking.stopOurselves();
      }, LOOK_AGAIN_MS);
    }
  }

  end(): void {
    clearTimeout(this.#again);
  }

  #look(): boolean {
    if (this.#looking.raisesSignal) this.#ownSignals++;
    return this.#looking.isStopped();
  }
}
