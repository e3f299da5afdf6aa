// One message on its way to a server of the old HTTP+SSE: only whether it was taken; the answer comes elsewhere.

import { Fault } from "../../protocol/errors.js";
import { Pieces } from "../../protocol/event-stream.js";
import { NOWHERE } from "../../runtime/bag.js";
import type { Ticket } from "../link/link.js";
import { judge, networkFault } from "./faults.js";
import type { Destination } from "./headers.js";
import type { Exchange, ExchangeHandler, ResponseHeaders, Wire } from "./wire.js";

/** Of an answer that is an error: what is read before it is judged. What comes with a 202 is not read at all. */
const MAX_REFUSAL_BYTES = 64 * 1024;
/** A working server takes a message at once, whatever it then does about it. */
const TAKEN_DEADLINE_MS = 30_000;

export interface SsePostHost {
  readonly destination: Destination;
  onPostFailed(ticket: Ticket | undefined, fault: Fault, sent: boolean): void;
  onPostSessionGone(ticket: Ticket | undefined, fault: Fault): void;
  onPostFinished(post: SsePost): void;
}

export class SsePost implements ExchangeHandler {
  readonly ticket: Ticket | undefined;
  readonly #host: SsePostHost;
  place = NOWHERE;
  readonly #exchange: Exchange;
  readonly #timer: NodeJS.Timeout;
  readonly #body = new Pieces();
  #status = 0;
  #headers: ResponseHeaders = {};
  #finished: boolean = false;
  #settled: boolean = false;

  constructor(host: SsePostHost, wire: Wire, path: string, text: string, ticket: Ticket | undefined) {
    this.#host = host;
    this.ticket = ticket;
    const headers = host.destination.posting(undefined, undefined);
    this.#exchange = wire.dispatch({ method: "POST", lane: "asides", path, headers, body: text }, this);
    this.#timer = setTimeout(() => this.#late(), TAKEN_DEADLINE_MS);
  }

  /**
   * The answer is there or unwanted. The POST may still end in peace, which keeps its socket: the answer on the
   * stream often overtakes the 202.
   */
  settle(): void {
    this.#settled = true;
  }

  abort(): void {
    this.#exchange.abort();
    this.#finish();
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    this.#headers = headers;
  }

  onData(chunk: Buffer): void {
    this.#body.push(chunk);
    if (this.#body.length <= MAX_REFUSAL_BYTES) return;
    this.#exchange.abort();
    this.onEnd();
  }

  onEnd(): void {
    if (!this.#finish() || this.#settled) return;
    if (this.#status >= 200 && this.#status <= 299) return;
    const { shown: url, secrets } = this.#host.destination;
    const verdict = judge({
      status: this.#status,
      headers: this.#headers,
      body: this.#body.take(),
      id: undefined,
      inSession: true,
      url,
      secrets,
    });
    if (verdict.kind === "session-gone") this.#host.onPostSessionGone(this.ticket, verdict.fault);
    else if (verdict.kind === "failed") this.#host.onPostFailed(this.ticket, verdict.fault, verdict.sent);
  }

  onError(error: Error, written: boolean): void {
    if (!this.#finish() || this.#settled) return;
    const { fault, sent } = networkFault(error, written, this.#host.destination.shown);
    // It was taken, and that is all that a POST is for here; the answer may still come.
    if (this.#status >= 200 && this.#status <= 299) return;
    this.#host.onPostFailed(this.ticket, fault, sent);
  }

  #late(): void {
    this.#exchange.abort();
    if (!this.#finish() || this.#settled) return;
    const message = `${this.#host.destination.shown} did not take a message within ${TAKEN_DEADLINE_MS} ms.`;
    this.#host.onPostFailed(this.ticket, new Fault("timeout", message), true);
  }

  /** False where it was finished before. */
  #finish(): boolean {
    if (this.#finished) return false;
    this.#finished = true;
    clearTimeout(this.#timer);
    this.#host.onPostFinished(this);
    return true;
  }
}
