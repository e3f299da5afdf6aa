// The lines of a worker: one for each broker and token, shared by all the mailboxes that are used through it.

import { messageOf } from "../../runtime/expected-error.js";
import { type BrokerLine, type LineEvents, openLine } from "../peer/line.js";
import { WORKER_INBOX } from "../wire/address.js";
import { type DialFailure, WorkerLine } from "./worker-line.js";

/** Lines that nobody uses are remembered, with what is known of the machines behind them, up to so many. */
const MAX_IDLE = 64;

/** Who a worker is at brokers. */
export interface WorkerIdentity {
  /** What tells the inbox of this process from others of its token, kept over restarts. */
  addressPart(): string;
  /** The broker of this gateway itself; undefined where it has none. */
  openOwn?(address: string, events: LineEvents, signal: AbortSignal): Promise<BrokerLine>;
}

export interface WorkerLinesOptions extends WorkerIdentity {
  readonly now: () => number;
  readonly random: () => number;
}

export class WorkerLines {
  readonly #options: WorkerLinesOptions;
  readonly #byBroker = new Map<string, WorkerLine>();

  constructor(options: WorkerLinesOptions) {
    this.#options = options;
  }

  /** `broker` is undefined for our own. */
  of(broker: string | undefined, token: string | undefined): WorkerLine {
    const key = JSON.stringify([broker, token]);
    const known = this.#byBroker.get(key);
    if (known !== undefined) return known;
    this.#forgetIdle();
    const { now, random } = this.#options;
    const line = new WorkerLine({
      open: (events, signal) => this.#open(broker, token, events, signal),
      failureOf,
      now,
      random,
    });
    this.#byBroker.set(key, line);
    return line;
  }

  async #open(
    broker: string | undefined,
    token: string | undefined,
    events: LineEvents,
    signal: AbortSignal,
  ): Promise<BrokerLine> {
    const part = `${WORKER_INBOX}${this.#options.addressPart()}`;
    if (broker === undefined) {
      const { openOwn } = this.#options;
      if (openOwn === undefined) throw new Error("this process has no broker of its own");
      return openOwn(part, events, signal);
    }
    // Whose the token is, the broker knows. Without tokens anybody says who he is.
    const address = token === undefined ? `worker${part}` : part;
    return openLine({ url: broker, token, address, kinds: ["mcp_reply"], signal }, events);
  }

  #forgetIdle(): void {
    if (this.#byBroker.size < MAX_IDLE) return;
    for (const [key, line] of this.#byBroker) if (!line.isUsed) this.#byBroker.delete(key);
  }
}

function failureOf(error: unknown): DialFailure {
  return { why: messageOf(error), final: error instanceof Error && "final" in error && error.final === true };
}
