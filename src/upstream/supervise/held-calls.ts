// Calls that one connection of a server holds back: those that wait for it to come up, and those that a dying one did
// not take. It decides nothing; the driver does.

import type { UpstreamCall } from "../../contracts/upstream.js";
import { Fault } from "../../protocol/errors.js";
import { faultReply } from "../../protocol/reply.js";
import { mayTake } from "../link/fair-line.js";

/**
 * So many calls may wait for a server to come up. More would hardly be served before they time out. One principal has
 * three quarters of them at most, as it has of places.
 */
const MAX_WAITING = 1_000;
/** While so few wait, nobody can have more than its part. */
const UNCOUNTED = MAX_WAITING / 4;

export class HeldCalls {
  readonly #server: string;
  /** With when the time of each is over; that of those that wait for a start is the start's own. */
  readonly #waiting = new Map<UpstreamCall, number>();
  /** Calls that a dying child did not take: they wait for its end, and then for the next. */
  readonly #stranded = new Set<UpstreamCall>();
  /**
   * Calls that came back once, unsent or lost; they do not come back twice. The fault is what a lost one is told in the
   * end.
   */
  readonly #returned = new WeakMap<UpstreamCall, Fault | undefined>();

  constructor(server: string) {
    this.#server = server;
  }

  get size(): number {
    return this.#waiting.size + this.#stranded.size;
  }

  /** Who is served by a start: the first of those that wait. */
  get first(): UpstreamCall | undefined {
    const [first] = this.#waiting.keys();
    return first;
  }

  wait(call: UpstreamCall, dueMs = Number.POSITIVE_INFINITY): void {
    this.#waiting.set(call, dueMs);
  }

  /** Those that waited for a start wait for something else from now on. */
  waitUntil(dueMs: number): void {
    for (const call of this.#waiting.keys()) this.#waiting.set(call, dueMs);
  }

  /** Those whose time is over. */
  takeLate(nowMs: number): UpstreamCall[] {
    const late: UpstreamCall[] = [];
    for (const [call, dueMs] of this.#waiting) if (nowMs >= dueMs) late.push(call);
    for (const call of late) this.#waiting.delete(call);
    return late;
  }

  strand(call: UpstreamCall): void {
    this.#stranded.add(call);
  }

  unstrand(call: UpstreamCall): boolean {
    return this.#stranded.delete(call);
  }

  takeStranded(): UpstreamCall[] {
    const calls = [...this.#stranded];
    this.#stranded.clear();
    return calls;
  }

  /** Those that wait and never left: somebody else may send them. */
  takeFresh(): UpstreamCall[] {
    const calls = [...this.#waiting.keys()].filter((call) => !this.#returned.has(call));
    for (const call of calls) this.#waiting.delete(call);
    return calls;
  }

  /** Those that wait, or of them those that a connection whose tools have not been read may have. */
  takeWaiting(isRead: boolean): UpstreamCall[] {
    const calls = [...this.#waiting.keys()].filter((call) => isRead || call.isOfTool !== true);
    for (const call of calls) this.#waiting.delete(call);
    return calls;
  }

  delete(call: UpstreamCall): boolean {
    return this.#waiting.delete(call) || this.#stranded.delete(call);
  }

  returned(call: UpstreamCall, fault: Fault): void {
    this.#returned.set(call, fault);
  }

  hasReturned(call: UpstreamCall): boolean {
    return this.#returned.has(call);
  }

  /** Whether a call that never left waits for the next connection: once, and each time that its server moves. */
  mayReturn(call: UpstreamCall, { reason }: Fault): boolean {
    if (reason === "moved") return true;
    if (this.#returned.has(call)) return false;
    this.#returned.set(call, undefined);
    return true;
  }

  refusedAsFull(call: UpstreamCall): boolean {
    const free = MAX_WAITING - this.#waiting.size;
    const own = this.#waiting.size < UNCOUNTED ? 0 : this.#waitingOf(call);
    if (free > 0 && mayTake(own, free)) return false;
    const whose = free > 0 ? ` of ${JSON.stringify(principalOf(call))}` : "";
    const count = free > 0 ? own : MAX_WAITING;
    const message = `Server "${this.#server}" is not up, and ${count} calls${whose} wait for it already.`;
    this.refuse(call, new Fault("limit", message));
    return true;
  }

  /** It walks through all: only while a server is down, and many wait for it. What the gateway asks is nobody's. */
  #waitingOf(call: UpstreamCall): number {
    const principal = principalOf(call);
    if (principal === undefined) return 0;
    let count = 0;
    for (const one of this.#waiting.keys()) if (principalOf(one) === principal) count++;
    return count;
  }

  /** A call that was sent once may have taken effect: it is not told that it never left. */
  refuse(call: UpstreamCall, fault: Fault): void {
    call.reply(faultReply(this.#returned.get(call) ?? fault));
  }

  refuseAll(fault: Fault): void {
    const calls = [...this.takeWaiting(true), ...this.takeStranded()];
    for (const call of calls) this.refuse(call, fault);
  }
}

/** Its server moved, and another gateway passed it on, which passes it to where the server is now. */
export function goesBack({ caller }: UpstreamCall, { reason }: Fault): boolean {
  return reason === "moved" && caller?.passesOn === true;
}

function principalOf({ caller }: UpstreamCall): string | undefined {
  return caller?.principal.id;
}
