// The calls in flight on one connection: how many there may be, how long each may take, how each ends other than by its
// answer, and which of them nobody waits for any more. Sending them and reading answers is the connection's.

import type { OwnName } from "../../contracts/names.js";
import type { ServerSpec } from "../../contracts/server-spec.js";
import type { WayNotes } from "../../contracts/service.js";
import type { MessageKey, UpstreamCall } from "../../contracts/upstream.js";
import { Fault, OUTCOME_UNKNOWN } from "../../protocol/errors.js";
import { faultReply } from "../../protocol/reply.js";
import { Table } from "../../runtime/containers/table.js";
import { mayTake } from "../link/fair-line.js";
import type { Link, Ticket } from "../link/link.js";
import { callToRepeat } from "../modern/rounds.js";
import { type Breaker, countsAsFault, isUnreached, type LateCall, OverdueFault } from "../supervise/breaker.js";

/**
 * So many calls may be in flight on one connection. Agents make far fewer; a hung server must not eat the memory. One
 * principal has three quarters of them at most, as it has of places.
 */
const MAX_IN_FLIGHT = 10_000;

/** So many principals that have nothing in flight are remembered, so that each call of one does not make its entry anew. */
const MAX_IDLE_SHARES = 64;

/** What one principal has in flight. */
interface Share {
  readonly principal: string;
  calls: number;
}

/**
 * A call that was cancelled or timed out may still make the server ask something, and on a pipe nothing tells that
 * it is about that call. For so long, nobody else is asked in its place.
 */
const ABANDONED_MS = 30_000;
/** So many such calls are remembered; the oldest are forgotten first. */
const MAX_ABANDONED = 1_000;

/** What a call waited for that was not sent, as its agent is told. */
const WAITED_FOR: Record<NonNullable<Ticket["waitsFor"]>, { was?: string; awaited: string; remedy?: string }> = {
  place: {
    was: " was busy",
    awaited: "other calls to end",
    remedy: "One principal gets three quarters of its places at most. Make fewer calls at the same time.",
  },
  credential: { awaited: "its credential" },
  handshake: { awaited: "the server to take the end of the handshake" },
};

/** One call in flight: its id on the connection, its deadline, and the link that it went out on. */
export class PendingCall implements Ticket {
  readonly id: number;
  readonly call: UpstreamCall;
  readonly link: Link;
  readonly timeoutMs: number;
  readonly startedMs: number;
  /** Progress moves the deadline on up to this time. */
  readonly ceilingMs: number;
  deadlineMs: number;
  /** Counts the server's questions that it waits for: its time does not run meanwhile. */
  questions = 0;
  /** The server has had nothing of it that it took: it waits for this. */
  waitsFor: Ticket["waitsFor"] = undefined;
  /** Where it is counted while it is in flight; undefined for what the gateway itself asks. */
  share: Share | undefined = undefined;
  /** It is not in flight any more. */
  isOver = false;
  /** Its agent took it back, and the link is asking whether it left: whatever becomes of it, it is not sent again. */
  isTakenBack = false;
  /** An agent was asked for it: its answer is one to more than the request. */
  asked = false;
  /** What a modern server wants beside the body, over HTTP: names and values in turn. */
  headers: readonly string[] | undefined;

  constructor(id: number, call: UpstreamCall, link: Link, timeoutMs: number, longestMs: number, nowMs: number) {
    this.id = id;
    this.call = call;
    this.link = link;
    this.timeoutMs = timeoutMs;
    this.startedMs = nowMs;
    this.ceilingMs = nowMs + longestMs;
    this.deadlineMs = nowMs + timeoutMs;
  }

  /** The server is at work, or has what it asked for: the call has its whole time again, up to its ceiling. */
  extend(nowMs: number): void {
    this.deadlineMs = Math.min(nowMs + this.timeoutMs, this.ceilingMs);
  }

  get method(): string {
    return this.call.method;
  }

  get subject(): OwnName | undefined {
    return this.call.subject;
  }

  /** What the breaker is told of it, where its time was over. */
  get late(): LateCall {
    const { method, subject } = this.call;
    return { tool: (method === "tools/call" ? subject : undefined) ?? method, startedMs: this.startedMs };
  }

  get principal(): string | undefined {
    return this.call.caller?.principal.id;
  }

  get notes(): WayNotes | undefined {
    return this.call.notes;
  }

  get sessionKey(): string | undefined {
    return this.call.caller?.sessionKey;
  }

  get messageKey(): MessageKey | undefined {
    return this.call.messageKey;
  }

  get wantsProgress(): boolean {
    return this.call.progressToken !== undefined;
  }

  /** Without progress nothing moves its deadline on. */
  get longestMs(): number | undefined {
    const ms = this.wantsProgress ? this.ceilingMs - this.startedMs : this.timeoutMs;
    return Number.isFinite(ms) ? ms : undefined;
  }
}

/** The table of calls in flight, by our id. */
export class PendingCalls {
  readonly #spec: ServerSpec;
  readonly #byId = new Table<number, PendingCall>();
  readonly #shares = new Map<string, Share>();
  #nextId = 1;

  constructor(spec: ServerSpec) {
    this.#spec = spec;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Says why there is no room for this one; undefined where there is. */
  refusal({ caller }: UpstreamCall): Fault | undefined {
    const free = MAX_IN_FLIGHT - this.#byId.size;
    const { name } = this.#spec;
    if (free <= 0)
      return new Fault("limit", `Server "${name}" has ${MAX_IN_FLIGHT} calls in flight; this one was not sent.`);
    if (caller === undefined) return undefined;
    const { id } = caller.principal;
    const calls = this.#shares.get(id)?.calls ?? 0;
    if (mayTake(calls, free)) return undefined;
    const message = `Server "${name}" has ${calls} calls of ${JSON.stringify(id)} in flight; this one was not sent. One principal gets three quarters of ${MAX_IN_FLIGHT} at most. Make fewer calls at the same time.`;
    return new Fault("limit", message);
  }

  /** A call with an id of its own, not yet in the table: what is sent may still turn out not to be sendable. */
  make(call: UpstreamCall, link: Link, nowMs: number): PendingCall {
    const timeoutMs = this.#timeoutOf(call);
    const longestMs = Math.max(timeoutMs, this.#spec.supervision.callCeilingMs);
    return new PendingCall(call.messageKey?.number ?? this.#nextId++, call, link, timeoutMs, longestMs, nowMs);
  }

  add(pending: PendingCall): void {
    this.#byId.set(pending.id, pending);
    const { principal } = pending;
    if (principal === undefined) return;
    const share = this.#shareOf(principal);
    share.calls++;
    pending.share = share;
  }

  #shareOf(principal: string): Share {
    let share = this.#shares.get(principal);
    if (share === undefined) {
      share = { principal, calls: 0 };
      this.#shares.set(principal, share);
    }
    return share;
  }

  get(id: number): PendingCall | undefined {
    return this.#byId.get(id);
  }

  /** It walks the table: only calls that are cancelled are looked for this way. */
  of(call: UpstreamCall): PendingCall | undefined {
    for (const pending of this.#byId.values()) if (pending.call === call) return pending;
    return undefined;
  }

  delete(pending: PendingCall): void {
    this.#byId.delete(pending.id);
    pending.isOver = true;
    const { share } = pending;
    if (share === undefined) return;
    pending.share = undefined;
    if (--share.calls === 0 && this.#shares.size > MAX_IDLE_SHARES) this.#shares.delete(share.principal);
  }

  /** They come in no order. */
  values(): Iterable<PendingCall> {
    return this.#byId.values();
  }

  /** A copy, in the order in which they were sent: so they end, and so they are sent again. */
  inOrder(): PendingCall[] {
    return [...this.#byId.values()].sort((a, b) => a.id - b.id);
  }

  /** The calls of one session, in no order. It walks the table: only questions ask for them. */
  ofSession(sessionKey: string): PendingCall[] {
    const found: PendingCall[] = [];
    for (const pending of this.#byId.values()) if (pending.call.caller?.sessionKey === sessionKey) found.push(pending);
    return found;
  }

  /** Those whose time is over, each with what it is to be told. */
  *overdue(nowMs: number): Iterable<readonly [PendingCall, Fault]> {
    for (const pending of this.inOrder()) {
      const { method, subject, startedMs, ceilingMs, questions } = pending;
      // The server waits for the agent, and a person may think for minutes; the question has a deadline of its own.
      const dueMs = questions > 0 ? ceilingMs : pending.deadlineMs;
      if (dueMs > nowMs) continue;
      const what = subject === undefined ? method : `${method} ${subject}`;
      if (pending.waitsFor !== undefined) {
        yield [pending, this.#notSent(what, pending.waitsFor, pending)];
        continue;
      }
      const time =
        dueMs < ceilingMs || (questions === 0 && pending.timeoutMs >= ceilingMs - startedMs)
          ? `within ${pending.timeoutMs} ms`
          : `within ${ceilingMs - startedMs} ms, in spite of all ${questions > 0 ? "questions" : "progress"}`;
      const message = `Server "${this.#spec.name}" did not answer ${what} ${time}. It may still be working on it.`;
      yield [pending, new OverdueFault(message)];
    }
  }

  /** It says nothing of the server's health: nothing was sent. An earlier try or round of the call may have been. */
  #notSent(what: string, waitsFor: NonNullable<Ticket["waitsFor"]>, { call, timeoutMs }: PendingCall): Fault {
    const [wasSent, why] = [call.wasSent === true, WAITED_FOR[waitsFor]];
    const end = wasSent ? "and was not sent again" : "and was not sent";
    const message = `Server "${this.#spec.name}"${why.was ?? ""}: ${what} waited ${timeoutMs} ms for ${why.awaited}, ${end}.`;
    return new Fault("limit", message, {
      remedy: why.remedy,
      ...(wasSent ? { outcome: OUTCOME_UNKNOWN, wire: { left: true } } : {}),
    });
  }

  /** What a call is told whose server went away. What the gateway itself asked had no effect to be in doubt of. */
  lost(pending: PendingCall, fault: Fault): Fault {
    if (pending.call.caller === undefined) return fault;
    const what = pending.subject ?? pending.method;
    const message = `Server "${this.#spec.name}" went away before it answered ${what}: ${fault.plain}`;
    return new Fault("outcome-unknown", message, { cause: fault, outcome: OUTCOME_UNKNOWN });
  }

  #timeoutOf(call: UpstreamCall): number {
    if (call.method === "subscriptions/listen") return Number.POSITIVE_INFINITY;
    return call.caller === undefined ? this.#spec.connectTimeoutMs : this.#spec.callTimeoutMs;
  }
}

/** Calls of agents that nobody waits for any more, though the server may still be at them. */
export class AbandonedCalls {
  /** By id, the oldest first. */
  readonly #byId = new Map<number, { readonly sessionKey: string; readonly untilMs: number }>();

  add({ id, call: { caller } }: PendingCall, nowMs: number): void {
    if (caller === undefined) return;
    this.#byId.set(id, { sessionKey: caller.sessionKey, untilMs: nowMs + ABANDONED_MS });
    const oldest = this.#byId.size > MAX_ABANDONED ? this.#byId.keys().next().value : undefined;
    if (oldest !== undefined) this.#byId.delete(oldest);
  }

  /** The server has answered after all: it is done with it. False where it is none of these. */
  answeredLate(id: number): boolean {
    return this.#byId.delete(id);
  }

  expire(nowMs: number): void {
    for (const [id, { untilMs }] of this.#byId) {
      if (untilMs > nowMs) break;
      this.#byId.delete(id);
    }
  }

  hasOtherThan(sessionKey: string | undefined): boolean {
    for (const abandoned of this.#byId.values()) if (abandoned.sessionKey !== sessionKey) return true;
    return false;
  }
}

/** What becomes of calls that did not reach the server, or did and may be made again. */
export interface CallReturns {
  /** The call never reached the server; the connection may be gone as well. */
  onUnsent(call: UpstreamCall, fault: Fault): void;
  /** Whether to make the call twice does no harm. */
  isRepeatable(call: UpstreamCall): boolean;
  /** Such a call was sent, and the way to the server was lost under it; `fault` is what to tell if it ends here. */
  onLost(call: UpstreamCall, fault: Fault): void;
}

/** What all connections of a server have in common. */
export interface CallCount {
  /** Counts the calls of agents that have ended. */
  ended: number;
  /** What counts them with those of all other servers. */
  readonly listEvents?: { count: number } | undefined;
}

/**
 * Ends calls in flight: they are answered, fail, are given back or abandoned. The breaker learns what that says of the
 * server.
 */
export class CallEndings {
  readonly #inFlight: PendingCalls;
  readonly #abandoned: AbandonedCalls;
  readonly #breaker: Breaker;
  readonly #returns: CallReturns;
  readonly #now: () => number;
  readonly #count: CallCount;

  constructor(
    inFlight: PendingCalls,
    abandoned: AbandonedCalls,
    breaker: Breaker,
    returns: CallReturns,
    now: () => number,
    count: CallCount,
  ) {
    this.#inFlight = inFlight;
    this.#abandoned = abandoned;
    this.#breaker = breaker;
    this.#returns = returns;
    this.#now = now;
    this.#count = count;
  }

  /** The answer has come. */
  answered(pending: PendingCall): void {
    this.#settle(pending);
    if (this.#breaker.hasMarks && pending.call.caller !== undefined) this.#breaker.answered();
  }

  /** A reply came that nobody waits for. One to a call of an agent that was given up is an answer all the same. */
  answeredLate(id: number): void {
    if (this.#abandoned.answeredLate(id)) this.#breaker.answered();
  }

  fail(pending: PendingCall, fault: Fault): void {
    this.#settle(pending);
    this.#strike(pending, fault);
    pending.call.reply(faultReply(fault));
  }

  /** It never reached the server. What the gateway itself asks is tried again by whoever asked. */
  unsent(pending: PendingCall, fault: Fault): void {
    if (pending.call.caller === undefined) {
      this.fail(pending, fault);
      return;
    }
    const call = this.#takeBack(pending, fault);
    if (call !== undefined) this.#returns.onUnsent(call, fault);
  }

  /** The way to the server was lost under the call: it is made again where that does no harm. */
  lose(pending: PendingCall, fault: Fault): void {
    if (pending.call.caller === undefined || !this.#returns.isRepeatable(pending.call)) {
      this.fail(pending, fault);
      return;
    }
    const call = this.#takeBack(pending, fault);
    if (call !== undefined) this.#returns.onLost(call, fault);
  }

  /** Nobody waits for it any more. */
  abandon(pending: PendingCall, fault: Fault): void {
    this.#abandoned.add(pending, this.#now());
    this.fail(pending, fault);
  }

  #settle(pending: PendingCall): void {
    this.#inFlight.delete(pending);
    pending.link.forget(pending);
    if (pending.call.caller === undefined) return;
    this.#count.ended++;
    if (this.#count.listEvents !== undefined) this.#count.listEvents.count++;
  }

  /** The call as it may be sent again; undefined where it had to be answered here. */
  #takeBack(pending: PendingCall, fault: Fault): UpstreamCall | undefined {
    this.#settle(pending);
    this.#strike(pending, fault);
    return callToRepeat(pending.call, fault);
  }

  /** Only what agents ask says how a server does: its handshakes and lists may well be all that works. */
  #strike({ call, startedMs }: PendingCall, fault: Fault): void {
    // What is overdue is judged when the server was pinged.
    if (fault instanceof OverdueFault) return;
    if (call.caller === undefined || !countsAsFault(fault.code)) return;
    this.#breaker.faulted(startedMs, this.#now(), isUnreached(fault));
  }
}
