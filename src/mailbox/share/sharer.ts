// Shares this machine's tools through a broker: keeps the line to it, takes messages, has them answered, and answers what
// the journal knows already. What a message asks for is the endpoint's to understand.

import type { CallStart, Principal } from "../../contracts/caller.js";
import type { MailboxService } from "../../contracts/mailbox.js";
import type { Log } from "../../observe/log.js";
import { Fault } from "../../protocol/errors.js";
import type { Clock } from "../../runtime/clock.js";
import { pause } from "../../runtime/wait.js";
import { ElapsedClock } from "../elapsed-clock.js";
import { BrokerRefusal } from "../peer/broker-error.js";
import { type BrokerLine, type LineEvents, openLine } from "../peer/line.js";
import { ownerOf } from "../wire/address.js";
import type { ReceivedMessage } from "../wire/broker-frames.js";
import { Journal } from "./journal.js";
import { judge } from "./journal-entry.js";
import {
  CALLS_AT_ONCE,
  DEFAULT_LEFT_MS,
  EXTEND_MS,
  FLUSH_MS,
  FRESH_LEASE_MS,
  SLEPT_MS,
  SWEEP_MS,
  TICK_MS,
} from "./limits.js";
import { LiveRequests } from "./live-requests.js";
import { RedialPace } from "./redial-pace.js";
import { type CallKeeper, failureBody, largeBody, SharedCall, unknownBody } from "./shared-call.js";

export interface SharerOptions {
  readonly broker: string;
  /** The mailbox: the id of the token. */
  readonly as: string;
  readonly token: string | undefined;
  /** So many at once; the usual number without it. */
  readonly calls?: number | undefined;
  readonly service: MailboxService;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * Asks a person, where the operator wants to be asked about this tool. Rejects with a Fault where they say no. `unwanted` gives a
   * signal that nobody waits for the call any more: it is made where somebody is asked, and most calls go without.
   */
  readonly ask?:
    | ((
        principal: Principal,
        start: CallStart,
        leftMs: number,
        unwanted: () => AbortSignal,
      ) => Promise<void> | undefined)
    | undefined;
  readonly onState?: ((state: SharerState) => void) | undefined;
  readonly dial?: typeof openLine;
  readonly random?: () => number;
}

export type SharerState =
  | { readonly state: "dialling" }
  | { readonly state: "connected" }
  | { readonly state: "waiting"; readonly why: string; readonly nextInMs: number }
  /** The broker does not want us: dialling again makes no sense. */
  | { readonly state: "refused"; readonly why: string }
  | { readonly state: "stopped" };

/** What has happened since the start. */
export interface SharerCounts {
  readonly running: number;
  readonly calls: number;
  readonly repeated: number;
  readonly unknown: number;
  /** Replies that came when nobody waited for them any more. */
  readonly late: number;
}

const DEADLINE_PASSED = "The deadline of the call has passed.";

export class Sharer implements CallKeeper {
  readonly journal: Journal;
  readonly #options: SharerOptions;
  readonly #clock: ElapsedClock;
  readonly #redial = new RedialPace();
  readonly #stop = new AbortController();
  /** By the key of the journal. There are as many as credit was given for, and those whose line was lost. */
  readonly #running = new Map<string, SharedCall>();
  readonly #live: LiveRequests;
  readonly #counts = { calls: 0, repeated: 0, unknown: 0, late: 0 };
  #state: SharerState = { state: "dialling" };
  #line: BrokerLine | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sweptMs = 0;
  /** When this process was last seen to be awake. */
  #awakeMs = 0;
  /** Since a sleep, until all has come that was sent meanwhile: what such a message says of its time is not true any more. */
  #catchingUp: Promise<void> | undefined;
  #isExtending: boolean = false;
  #isDraining: boolean = false;
  #ended: Promise<void> | undefined;

  constructor(options: SharerOptions) {
    this.#options = options;
    this.journal = options.journal;
    this.#clock = new ElapsedClock(options.clock);
    this.#live = new LiveRequests({
      service: options.service,
      journal: options.journal,
      keyOf: (from, id) => this.#key(from, id),
      principalOf,
    });
  }

  get state(): SharerState {
    return this.#state;
  }

  get counts(): SharerCounts {
    return { running: this.#running.size, ...this.#counts };
  }

  start(): void {
    this.#awakeMs = this.#clock.now();
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
    this.#ended = this.#keepLine();
  }

  /** Resolves when it has stopped, or was refused. Never rejects. */
  get ended(): Promise<void> {
    return this.#ended ?? Promise.resolve();
  }

  /** Takes nothing new, and waits for what is under way, at most `drainMs`; what was not begun then goes back. */
  async drain(drainMs: number): Promise<void> {
    this.#isDraining = true;
    const until = this.#options.clock.now() + drainMs;
    const { signal } = this.#stop;
    // Once it is stopped, a pause is none.
    while (this.#running.size > 0 && this.#options.clock.now() < until && !signal.aborted)
      await pause(Math.min(20, drainMs), signal);
    for (const call of this.#running.values()) {
      if (call.isStarted || call.isOver) continue;
      call.line?.release(call.name);
      call.drop("The sharer stops.");
    }
  }

  /** Ends the line, also in the middle of a dial or a wait. The last answers have a moment to leave. */
  async stop(): Promise<void> {
    this.#isDraining = true;
    if (this.#line !== undefined) {
      const until = this.#options.clock.now() + FLUSH_MS;
      const { signal } = this.#stop;
      while (this.#over() > 0 && this.#options.clock.now() < until && !signal.aborted) await pause(10, signal);
    }
    this.#stop.abort();
    clearInterval(this.#timer);
    this.#live.close();
    this.#line?.close("the sharer stops");
    await this.#ended;
    this.#be({ state: "stopped" });
  }

  /** Calls whose answers are on their way. */
  #over(): number {
    let over = 0;
    for (const call of this.#running.values()) if (call.isOver) over++;
    return over;
  }

  // ── The line ─────────────────────────────────────────────────────────────────────────────────────────────────────

  async #keepLine(): Promise<void> {
    const { signal } = this.#stop;
    const { log, broker, as, clock, random = Math.random } = this.#options;
    // Why the line is away, as far as it was logged: a broker that stays away for a while is dialled forty times a minute.
    let said: string | undefined;
    while (!signal.aborted) {
      const { why, lastedMs, isFinal } = await this.#holdLine();
      if (signal.aborted) return;
      if (isFinal) {
        log.error("the broker refused this sharer, and it does not come back by itself", { broker, mailbox: as, why });
        this.#be({ state: "refused", why });
        clearInterval(this.#timer);
        return;
      }
      const nextInMs = Math.round(this.#redial.ended(lastedMs ?? 0, clock.now(), random()));
      if (lastedMs !== undefined) log.warn("the line to the broker has ended", { broker, mailbox: as, why, nextInMs });
      else if (why === said) log.debug("the broker was dialled in vain again", { broker, mailbox: as, why, nextInMs });
      else log.warn("the broker was dialled in vain; it goes on", { broker, mailbox: as, why, nextInMs });
      said = lastedMs === undefined ? why : undefined;
      this.#be({ state: "waiting", why, nextInMs });
      const until = clock.now() + nextInMs;
      await pause(Math.max(0, until - clock.now()), signal);
    }
  }

  /** Dials, and resolves when the line has ended. `lastedMs` is undefined where there was none. Never rejects. */
  async #holdLine(): Promise<{ why: string; lastedMs: number | undefined; isFinal: boolean }> {
    const { broker, as, token, clock, log, dial = openLine } = this.#options;
    const { signal } = this.#stop;
    this.#be({ state: "dialling" });
    let end: (ended: { why: string; isFinal: boolean }) => void = () => {};
    const closed = new Promise<{ why: string; isFinal: boolean }>((resolve) => {
      end = resolve;
    });
    let line: BrokerLine;
    try {
      const hello = { address: as, journal: this.journal.id, kinds: ["mcp_request"], signal };
      line = await dial({ url: broker, token, ...hello }, this.#events(end));
    } catch (error) {
      return {
        why: (error as Error).message,
        lastedMs: undefined,
        isFinal: error instanceof BrokerRefusal && error.final,
      };
    }
    const sinceMs = clock.now();
    if (signal.aborted) line.close("the sharer stops");
    else {
      this.#line = line;
      line.credit(this.#options.calls ?? CALLS_AT_ONCE);
      this.#be({ state: "connected" });
      log.info("sharing", { broker, mailbox: as });
    }
    const { why, isFinal } = await closed;
    this.#lost(line);
    return { why, isFinal, lastedMs: clock.now() - sinceMs };
  }

  #events(end: (ended: { why: string; isFinal: boolean }) => void): LineEvents {
    // Nothing but the end comes before the line has credit, which it gets when it is known here.
    return {
      onMessage: (message) => {
        if (this.#line !== undefined) this.#take(this.#line, message);
      },
      onLive: (frame) => {
        if (this.#line !== undefined && !this.#isDraining) this.#live.take(this.#line, frame);
      },
      onCancel: (id, from) => this.#cancelled(id, from),
      onPresence: () => {},
      onDrain: () => {},
      onClose: (why, isFinal) => end({ why, isFinal }),
    };
  }

  #lost(line: BrokerLine): void {
    if (this.#line === line) {
      this.#line = undefined;
      this.#catchingUp = undefined;
    }
    this.#live.close();
    for (const call of this.#running.values()) if (call.line === line) call.line = undefined;
  }

  #be(state: SharerState): void {
    this.#state = state;
    this.#options.onState?.(state);
  }

  // ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #take(line: BrokerLine, message: ReceivedMessage): void {
    const { id, from, body } = message;
    if (this.#isDraining) {
      line.release({ id, from });
      return;
    }
    const { journal } = this;
    const key = this.#key(from, id);
    // No body is so written: it is JSON.
    const digest = Journal.digestOf(message.digest === undefined ? body : `digest ${message.digest}`);
    const running = this.#running.get(key);
    const nowMs = this.#clock.now();
    this.#noticeSleep(nowMs);
    const isLate = this.#catchingUp !== undefined;
    const verdict = judge(journal.get(key), { digest, runningDigest: running?.digest });
    if (verdict.act === "wait" && running !== undefined) {
      this.#counts.repeated++;
      // It was handed out again, so the earlier one is nothing to give back any more.
      if (running.line === line) line.credit(1);
      running.cameAgain(line, { id, from });
      if (!isLate) running.confirmedMs = nowMs;
      return;
    }
    if (verdict.act === "run" && isLate) {
      // It may be over, or another's. It was not begun: the broker hands it out again with the time that it still has.
      line.release({ id, from });
      line.credit(1);
      return;
    }
    const leftMs = message.leftMs ?? DEFAULT_LEFT_MS;
    const deadlineMs = nowMs + leftMs;
    const endMs = journal.now() + leftMs;
    const principal = principalOf(from, message.role);
    const owner = ownerOf(from);
    const call = new SharedCall({ keeper: this, key, owner, digest, principal, message, deadlineMs, endMs }, nowMs);
    call.line = line;
    if (verdict.act === "run") {
      this.#counts.calls++;
      this.#running.set(key, call);
      this.#options.service.serve(call);
      return;
    }
    if (verdict.act === "reply") {
      this.#counts.repeated++;
      call.answerAgain(typeof verdict.reply === "string" ? verdict.reply : largeBody(verdict.reply), "unknown");
    } else if (verdict.act === "unknown") {
      this.#counts.unknown++;
      this.#options.log.warn("a call was started by an earlier sharer and its end is unknown", {
        tool: verdict.what,
        from,
        id,
      });
      call.answerAgain(unknownBody(verdict.what), "unknown");
    } else if (verdict.act === "refuse") call.answerAgain(failureBody(verdict.why, "not run", "invalid"), "not run");
  }

  #key(from: string, id: string): string {
    return Journal.keyOf(this.#options.as, ownerOf(from), id);
  }

  #cancelled(id: string, from: string | undefined): void {
    const call = from === undefined ? undefined : this.#running.get(this.#key(from, id));
    call?.abandon("The call was taken back.", "cancelled");
  }

  // ── For the calls ────────────────────────────────────────────────────────────────────────────────────────────────

  async permit(call: SharedCall, start: CallStart): Promise<void> {
    const leftMs = call.deadlineMs - this.#clock.now();
    const asked = this.#options.ask?.(call.principal, start, leftMs, () => call.unwanted);
    if (asked !== undefined) await asked;
    const nowMs = this.#clock.now();
    if (nowMs >= call.deadlineMs) {
      call.abandon(DEADLINE_PASSED, "timeout");
      return;
    }
    // A machine that slept, or a person who thought about it: the message may be another's by now.
    if (nowMs - call.confirmedMs <= FRESH_LEASE_MS && call.line !== undefined) return;
    if (!(await this.#extend([call])).has(call)) {
      call.drop("The message is no longer with this sharer.");
      throw new Fault("unavailable", "The message is no longer with this sharer. Not run.");
    }
  }

  callEnded(call: SharedCall): void {
    if (this.#running.get(call.key) === call) this.#running.delete(call.key);
    // One more may come for it.
    if (call.line !== undefined && call.line === this.#line && !this.#isDraining) call.line.credit(1);
  }

  refused(call: SharedCall, why: string): void {
    this.#options.log.warn("a reply did not reach its worker as it was", { to: call.name.from, id: call.name.id, why });
  }

  cameLate(call: SharedCall): void {
    this.#counts.late++;
    this.#options.log.debug("a reply came when nobody waited for it any more", {
      to: call.name.from,
      id: call.name.id,
    });
  }

  // ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Messages that were sent while this process stood still are in its socket, and are read as if they came now. */
  #noticeSleep(nowMs: number): void {
    const stoodMs = nowMs - this.#awakeMs;
    this.#awakeMs = nowMs;
    const line = this.#line;
    if (stoodMs < SLEPT_MS || line === undefined) return;
    const caughtUp = line
      .caughtUp()
      // The line has ended, and what was in it is handed out again on the next.
      .catch(() => {})
      .then(() => {
        if (this.#catchingUp === caughtUp) this.#catchingUp = undefined;
      });
    this.#catchingUp = caughtUp;
  }

  #tick(): void {
    const nowMs = this.#clock.now();
    this.#noticeSleep(nowMs);
    let due: SharedCall[] | undefined;
    for (const call of this.#running.values()) {
      if (call.isOver) continue;
      if (nowMs >= call.deadlineMs) call.abandon(DEADLINE_PASSED, "timeout");
      else if (call.line !== undefined && nowMs - call.confirmedMs >= EXTEND_MS) {
        due ??= [];
        due.push(call);
      }
    }
    if (due !== undefined && !this.#isExtending) void this.#extendAll(due);
    if (nowMs - this.#sweptMs < SWEEP_MS) return;
    this.#sweptMs = nowMs;
    this.journal.sweep().then(
      (isMore) => {
        // A busy minute ends more calls than one sweep forgets: the next tick goes on.
        if (isMore) this.#sweptMs = nowMs - SWEEP_MS;
      },
      (error: Error) => {
        this.#options.log.warn("what is over could not be taken out of the journal", { why: error.message });
      },
    );
  }

  async #extendAll(due: readonly SharedCall[]): Promise<void> {
    this.#isExtending = true;
    const kept = await this.#extend(due);
    this.#isExtending = false;
    for (const call of due) {
      // What was started goes on, and its reply is in the journal. A line that was lost brings the message again.
      if (!kept.has(call) && call.line !== undefined && !call.isStarted) {
        call.drop("The message is no longer with this sharer.");
      }
    }
  }

  /** Those of them that are still ours, by what the broker says. Never rejects. */
  async #extend(calls: readonly SharedCall[]): Promise<ReadonlySet<SharedCall>> {
    const askedMs = this.#clock.now();
    const line = this.#line;
    const kept = new Set<SharedCall>();
    if (line === undefined) return kept;
    const ours = calls.filter((call) => call.line === line);
    const names = ours.map(({ name }) => name);
    const still = await line.extend(names).catch(() => undefined);
    for (const call of ours) {
      if (still?.some(({ id, from }) => id === call.name.id && from === call.name.from) !== true) continue;
      call.confirmedMs = askedMs;
      kept.add(call);
    }
    return kept;
  }
}

/** No token's id has a slash: what is private to a principal of this gateway is not the broker's of the same name. */
function principalOf(from: string, role: string | undefined): Principal {
  return { id: `mailbox/${ownerOf(from)}`, role: role ?? "" };
}
