// A link to a server that one of several gateways runs: a child where it is ours to run, else a stream to whoever has it. What
// it is, is decided anew with each opening. A child is sent nothing once another may run it, by our own clock, and is gone before
// we connect to another's.

import type { PassedServer, ServerPlace } from "../../contracts/engine/placement.js";
import { Fault } from "../../protocol/errors.js";
import type { Era } from "../../protocol/modern.js";
import { resultWithin } from "../../runtime/wait.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "../link/link.js";
import { MOVED } from "./words.js";

/** What is under way at a child that has to move may end in so long: others wait for it. */
const LEAVE_MS = 2_000;

interface PlacedParts {
  readonly place: ServerPlace;
  /** A child of ours. Its end must take less than the three seconds that are left of a handover. */
  readonly own: (events: LinkEvents) => Link;
  readonly passed: (server: PassedServer, events: LinkEvents) => Link & { readonly era: Era };
}

export class PlacedLink implements Link {
  readonly #parts: PlacedParts;
  readonly #events: LinkEvents;
  readonly #tickets = new Set<Ticket>();
  #inner: Link | undefined;
  #era: Era | undefined;
  #isHere = false;
  #isOver = false;
  #leaving: Promise<void> | undefined;
  #rested: (() => void) | undefined;
  #ended: (() => void) | undefined;

  constructor(events: LinkEvents, parts: PlacedParts) {
    this.#events = events;
    this.#parts = parts;
  }

  /** Undefined where it is found out. */
  get era(): Era | undefined {
    return this.#era;
  }

  get serverEra(): Era | undefined {
    return this.#inner?.serverEra;
  }

  get isAsWritten(): boolean {
    return this.#inner?.isAsWritten === true;
  }

  /** It ends soon: another gateway is to run it. */
  get isLeaving(): boolean {
    return this.#leaving !== undefined || this.#inner?.isLeaving === true;
  }

  async open(signal: AbortSignal): Promise<void> {
    const { place, own, passed } = this.#parts;
    const found = await place.find(signal);
    if (this.#isOver) {
      if (found !== "here") found.stream.destroy();
      throw new Fault("closing", "A link is opened once.");
    }
    if (found !== "here") {
      const link = passed(found, this.#heard());
      this.#inner = link;
      this.#era = link.era;
      await link.open(signal);
      return;
    }
    this.#isHere = true;
    this.#inner = own(this.#heard());
    this.#ended = place.runs((isInTime) => this.#leave(isInTime));
    try {
      await this.#inner.open(signal);
    } catch (error) {
      await this.close();
      throw error;
    }
    if (place.mayRun()) return;
    await this.close();
    throw MOVED;
  }

  send(text: string, ticket: Ticket | undefined): void {
    const isLeft = this.#leaving !== undefined || (!this.#isOver && !this.#parts.place.mayRun());
    if (this.#isHere && isLeft) {
      // It waits for the end of this link, and goes out on the next: also while the child takes its time to end.
      if (ticket !== undefined) this.#events.onFailed(ticket, MOVED, false);
      void this.#leave(false);
      return;
    }
    if (this.#isOver) return;
    if (ticket !== undefined && this.#isHere) this.#tickets.add(ticket);
    if (this.#inner !== undefined) this.#inner.send(text, ticket);
    else if (ticket !== undefined) this.#events.onFailed(ticket, new Fault("unavailable", "Not connected."), false);
  }

  established(version: string): void {
    this.#inner?.established(version);
  }

  forget(ticket: Ticket): void {
    this.#inner?.forget(ticket);
    this.#done(ticket);
  }

  async close(): Promise<void> {
    this.#isOver = true;
    this.#rested?.();
    await this.#inner?.close();
    this.#ended?.();
  }

  describe(): LinkDescription {
    return this.#inner?.describe() ?? { kind: "stdio" };
  }

  /** Another is to run it: what is under way may end, then the child does. Resolves when nothing of it runs. */
  #leave(isInTime: boolean): Promise<void> {
    this.#leaving ??= this.#end(isInTime);
    return this.#leaving;
  }

  async #end(isInTime: boolean): Promise<void> {
    if (isInTime && !this.#isOver && this.#tickets.size > 0) {
      const rested = new Promise<void>((resolve) => {
        this.#rested = resolve;
      });
      await resultWithin(rested, LEAVE_MS);
    }
    const wasOver = this.#isOver;
    await this.close();
    const text = "The server was ended here, since another gateway runs it: what became of the call is unknown.";
    if (!wasOver) this.#events.onClosed(new Fault("outcome-unknown", text, { reason: "moved" }));
  }

  #done(ticket: Ticket): void {
    this.#tickets.delete(ticket);
    if (this.#tickets.size === 0) this.#rested?.();
  }

  #heard(): LinkEvents {
    const events = this.#events;
    return {
      onMessage: (bytes, ticket) => events.onMessage(bytes, ticket),
      onPieces: (pieces, ticket) => events.onPieces(pieces, ticket),
      onLargeReply: (ticket, head, rest, length) => events.onLargeReply(ticket, head, rest, length),
      onFailed: (ticket, fault, sent) => {
        this.#done(ticket);
        events.onFailed(ticket, fault, sent);
      },
      onClosed: (fault) => {
        if (this.#isOver) return;
        this.#isOver = true;
        this.#rested?.();
        this.#ended?.();
        events.onClosed(fault);
      },
      onNoise: (sample) => events.onNoise(sample),
    };
  }
}
