// What the log says of a server's ups and downs without being asked: that it is up, or down and why. Each is said once.

import type { ServerState, StateFacts } from "../contracts/status.js";

/** A connection of the server, as it is now. */
interface ConnectionNow {
  readonly state: ServerState;
  readonly lastFault:
    | { readonly forOperator: string; readonly reason?: string | undefined; readonly code: string }
    | undefined;
  readonly readyAfterMs: number | undefined;
}

type Tell = (level: "info" | "warn", text: string, facts: StateFacts) => void;

export class StateLog {
  readonly #tell: Tell;
  #told: string | undefined;

  constructor(tell: Tell) {
    this.#tell = tell;
  }

  /** `from`: how it was before. `nextTryInMs` is undefined where nothing is tried by itself. */
  changed({ state, lastFault, readyAfterMs }: ConnectionNow, from: ServerState, nextTryInMs: number | undefined): void {
    const fault = `${state === "ejected" ? "ejected, since it was restarted too often: " : ""}${lastFault?.forOperator ?? ""}`;
    const text = state === "ready" ? `ready after ${readyAfterMs} ms` : fault;
    if (text === "" || text === this.#told || state === "starting" || state === "stopped") return;
    this.#told = text;
    if (state === "ready") this.#tell("info", text, { state, from, readyAfterMs });
    else {
      const reason = lastFault?.reason ?? lastFault?.code;
      this.#tell("warn", text, { state, from, reason, nextTryInMs: nextTryInMs && Math.ceil(nextTryInMs) });
    }
  }
}
