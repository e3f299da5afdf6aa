// A link to an HTTP server of either kind: streamable first; where its initialize is refused as by a server that
// does not know it, the old HTTP+SSE. Nobody else needs to care which it is.

import type { HttpTarget } from "../../contracts/server-spec.js";
import { Fault } from "../../protocol/errors.js";
import { type Holder, ownHolder } from "../../runtime/memory/held-bytes.js";
import { sentence } from "../../runtime/words/sentence.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "../link/link.js";
import { type HttpRefusal, parseRpc } from "./faults.js";
import { openPoolRequester } from "./pool-requester.js";
import type { OpenRequester } from "./requester.js";
import { SseLink } from "./sse.js";
import { type RefusedInitialize, StreamableLink } from "./streamable.js";

/** What a server of the old kind, or the web framework around it, answers to a POST where it expects a GET. */
const OLD_SERVER_STATUSES = new Set([400, 404, 405]);

/** The link for an entry of the config; open() it before use. Throws a Fault `invalid`. */
export function openHttpLink(
  target: HttpTarget,
  events: LinkEvents,
  openRequester: OpenRequester = openPoolRequester,
  newHolder: () => Holder = ownHolder,
): Link {
  return target.kind === "sse"
    ? new SseLink(target, events, openRequester, newHolder)
    : new DetectingLink(target, events, openRequester, newHolder);
}

class DetectingLink implements Link {
  readonly #target: HttpTarget;
  readonly #events: LinkEvents;
  readonly #newHolder: () => Holder;
  readonly #openRequester: OpenRequester;
  #link: Link;
  /** The change to the old kind, while it is made. */
  #change: { abort: AbortController; ticket: Ticket; forgotten: boolean } | undefined;
  #closed: boolean = false;

  constructor(target: HttpTarget, events: LinkEvents, openRequester: OpenRequester, newHolder: () => Holder) {
    this.#target = target;
    this.#events = events;
    this.#newHolder = newHolder;
    this.#openRequester = openRequester;
    const refused: RefusedInitialize = (text, ticket, fault, refusal) => {
      if (!OLD_SERVER_STATUSES.has(refusal.status) || parseRpc(refusal.body) !== undefined) return false;
      void this.#changeOver(text, ticket, fault, refusal);
      return true;
    };
    this.#link = new StreamableLink(target, events, openRequester, refused, newHolder);
  }

  open(signal: AbortSignal): Promise<void> {
    return this.#link.open(signal);
  }

  send(text: string, ticket: Ticket | undefined, headers?: readonly string[]): void {
    if (this.#change === undefined) this.#link.send(text, ticket, headers);
    else if (ticket !== undefined) {
      const message = `${this.#shown} is still being asked which transport it speaks.`;
      this.#events.onFailed(ticket, new Fault("unavailable", message), false);
    }
  }

  established(version: string): void {
    this.#link.established(version);
  }

  forget(ticket: Ticket): void {
    if (this.#change?.ticket === ticket) this.#change.forgotten = true;
    this.#link.forget(ticket);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#change?.abort.abort();
    await this.#link.close();
  }

  get isHeard(): boolean {
    return this.#link.isHeard !== false;
  }

  get gaps(): number {
    return this.#link.gaps ?? 0;
  }

  describe(): LinkDescription {
    return this.#link.describe();
  }

  get #shown(): string {
    return this.#link.describe().url ?? "The server";
  }

  async #changeOver(text: string, ticket: Ticket, fault: Fault, refusal: HttpRefusal): Promise<void> {
    const change = { abort: new AbortController(), ticket, forgotten: false };
    this.#change = change;
    const old = new SseLink(this.#target, this.#events, this.#openRequester, this.#newHolder);
    try {
      await this.#link.close();
      await old.open(change.abort.signal);
    } catch (error) {
      this.#change = undefined;
      if (this.#closed || change.forgotten) return;
      this.#events.onFailed(ticket, neither(fault, refusal, error), false);
      return;
    }
    this.#change = undefined;
    if (this.#closed) {
      await old.close();
      return;
    }
    this.#link = old;
    if (!change.forgotten) old.send(text, ticket);
  }
}

/**
 * The server is of neither kind: what the first said is most likely what is wrong; why it is not the second is added.
 */
function neither(first: Fault, { status }: HttpRefusal, second: unknown): Fault {
  if (second instanceof Fault && second.code === "unauthorized") return second;
  const why = second instanceof Fault ? second : new Fault("unavailable", String(second));
  const both = (one: string, other: string) =>
    `${sentence(one)} As a server of the old HTTP+SSE kind it does not work either${one === other ? "." : `: ${other}`}`;
  const { code, reason, remedy } = first;
  return new Fault(code, both(first.plain, why.plain), {
    cause: second,
    data: { fault: code, status },
    forOperator: both(first.fact, why.fact),
    reason,
    remedy,
  });
}
