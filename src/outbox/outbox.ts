// The driver of the outbox: takes calls from the pipeline, writes down what the state machine wants written, sends what it wants
// sent, and answers agents with a result or a receipt. What is to be done when is decided in lanes.ts.

import type { OwnToolName } from "../contracts/names.js";
import type { OutboxIntake, Receipt } from "../contracts/outbox.js";
import type { AgentCall } from "../contracts/service.js";
import { shared } from "../protocol/arrived.js";
import { Fault, toRpcError } from "../protocol/errors.js";
import type { RequestMessage } from "../protocol/message.js";
import { faultReply, type Reply } from "../protocol/reply.js";
import type { Clock } from "../runtime/clock.js";
import { resultWithin } from "../runtime/wait.js";
import { randomId } from "../runtime/words/random-id.js";
import { asFault, foundIn, isAnswer, keptReply, questionAbout, readResult, sizeOf } from "./answers.js";
import {
  AbsentCaller,
  DeliveryCall,
  type Flight,
  messageFor,
  messageKeyOf,
  newFlight,
  Waiter,
  WaitingCaller,
} from "./delivery.js";
import { type Forgotten, type KeptResult, OutboxJournal } from "./journal.js";
import { KEY_USED, keyedCall, laneOf, placedText, refuseLonger } from "./key.js";
import { classify } from "./lanes/classify.js";
import type { KeptWrite } from "./lanes/lane.js";
import { Lanes } from "./lanes/lanes.js";
import { FORGOTTEN_AT_ONCE, LONGEST_SLEEP_MS, MAX_WAITERS, REWRITE_MS } from "./lanes/limits.js";
import type { Result, Step } from "./lanes/step.js";
import { readRecord, type StrangeRecord, strangeRecord, type WriteFacts, type WriteRecord } from "./lanes/write.js";
import type { ChangeListener, OutboxParts, PassedOn } from "./parts.js";
import { receiptOf } from "./receipt-text.js";
import { isMeant, otherTarget, verdictOn } from "./target.js";
import { commitMs, endReply, lateFault, logWrite, NOT_ON_DISK, NOT_QUEUED_YET, notTakenFault } from "./texts.js";
import { WallJumps } from "./wall-jumps.js";

const TAKEN_BACK = "taken back by its agent";

export class Outbox implements OutboxIntake {
  readonly lanes: Lanes;
  readonly journal: OutboxJournal;
  /** Records that this program cannot read, by their ids: they are shown, and stay where they are. */
  readonly strange = new Map<string, StrangeRecord>();
  readonly #parts: OutboxParts;
  readonly #clock: Clock;
  readonly #flights = new Map<KeptWrite, Flight>();
  /** What is to be written down again, since the disk refused it. */
  readonly #unwritten = new Map<KeptWrite, KeptResult | undefined>();
  /** What was answered, and whose answer is not on disk yet: until then nobody is told of it. */
  readonly #ending = new Map<KeptWrite, Promise<void>>();
  /** What is to be taken from the disk: some at a time. What a kill leaves there is forgotten by the next start. */
  readonly #forgotten: Forgotten[] = [];
  readonly #listeners = new Set<ChangeListener>();
  /** Commits that are under way, so that the end can wait for them. */
  readonly #commits = new Set<Promise<void>>();
  readonly #jumps: WallJumps;
  /** Another gateway may have by now what was written here. */
  readonly #mayMove: boolean;
  #timer: NodeJS.Timeout | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;
  #isStopped = false;
  #onIdle: (() => void) | undefined;
  #isClosed = false;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#mayMove = parts.passOn !== undefined;
    this.journal = new OutboxJournal(parts.store);
    this.lanes = new Lanes({
      random: parts.random,
      hasWaiters: (write) => (this.#flights.get(write)?.waiters.length ?? 0) > 0,
      limits: parts.limits,
      credentialOf: parts.credentialOf,
      pace: parts.pace,
    });
    this.#jumps = new WallJumps(parts.clock, this, (write) => this.#written(write));
    const [nowMs, wallMs] = [this.#clock.now(), this.#clock.wall()];
    for (const [sequence, value] of this.journal.records()) {
      const record = readRecord(value);
      if (record !== undefined) this.lanes.restore(sequence, record, nowMs, wallMs);
      else {
        const strange = strangeRecord(sequence, value);
        this.strange.set(strange.id, strange);
        this.lanes.skip(sequence);
      }
    }
    for (const { server, lane } of this.journal.holds()) this.lanes.hold(server, lane);
  }

  /** Deliveries begin. */
  start(): void {
    this.run(this.lanes.start(this.#clock.now(), this.#clock.wall()));
  }

  /** Deliveries end. Calls whose agents wait go on; those that wait for others get their receipts. */
  stop(): void {
    this.#isStopped = true;
    for (const { write } of [...this.#flights.values()]) this.#tell(write);
  }

  /** Resolves when nothing is on its way to a server any more, or after so long. */
  async drained(ms: number): Promise<void> {
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
    this.#tellIdle();
    await resultWithin(idle, ms);
  }

  #tellIdle(): void {
    if (this.#onIdle === undefined) return;
    for (const { delivery } of this.#flights.values()) if (delivery !== undefined) return;
    this.#onIdle();
  }

  /** Resolves when all that was to be written is on disk, or was refused by it. */
  async close(): Promise<void> {
    this.stop();
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#forget();
    await this.#jumps.look();
    while (this.#commits.size > 0) await Promise.allSettled(this.#commits);
  }

  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The server, or what it is asked for, may be as it was not before. Without a name any of them may be. */
  poke(server?: string): void {
    if (!this.#isStopped) this.run(this.lanes.poke(server, this.#clock.now(), this.#clock.wall()));
  }

  /** The server answers others, and did not before. */
  answers(server: string): void {
    if (!this.#isStopped) this.run(this.lanes.answers(server, this.#clock.now(), this.#clock.wall()));
  }

  /**
   * False where the call is none of ours and goes its way. `passed`: of one that came to another gateway. Where its name means another
   * server there, or the tool has no outbox here, it joins a write of its key, and is not taken anew. Throws a Fault where it is refused.
   */
  take(call: AgentCall, server: string, tool: OwnToolName, passed: PassedOn = {}): boolean {
    const own = this.#parts.terms(server, tool);
    const said = own ?? passed.terms;
    if (said === undefined || call.caller.beforeSend !== undefined || isAnswer(call.message)) return false;
    const { principal, era, version } = call.caller;
    const to = { server, tool, principal: principal.id };
    // Before it is read: what comes of a longer one would hold up everybody else.
    refuseLonger(call.message.text.length);
    const { message, isMinted, ...keyed } = keyedCall(call.message, to, said.key, passed.minted);
    if ((own === undefined || passed.isOther === true) && !this.lanes.hasKey(keyed.keyHash)) return false;
    // A key that never left finds nothing at the server, whatever was done there: nothing follows from asking for it.
    const isKeyKept = isMinted && (said.key === undefined || said.key.in === "message");
    const terms = isKeyKept && said.confirm !== undefined ? { ...said, confirm: undefined } : said;
    const bytes = Buffer.byteLength(message.text);
    refuseLonger(bytes);
    const nowMs = this.#clock.now();
    const facts: WriteFacts = {
      id: (this.#parts.idPrefix ?? "") + randomId(16),
      server,
      tool,
      principal: { id: principal.id, role: principal.role },
      byToken: this.#parts.hasToken(principal.id) || undefined,
      lane: laneOf(message, principal.id, terms.lane),
      ...keyed,
      terms,
      era,
      version,
      target: this.#parts.targetOf?.(server),
      takenMs: this.#clock.wall(),
      bytes,
    };
    const accepted = this.lanes.accept(facts, nowMs);
    switch (accepted.kind) {
      case "conflict":
        throw new Fault("invalid", KEY_USED);
      case "full":
        throw new Fault("limit", `Not sent, and not queued: ${accepted.why}. Try again when some are delivered.`);
      case "known":
        this.#parts.giveBack?.(call, server);
        this.#join(call, accepted.write);
        return true;
      case "taken":
        this.#begin(call, accepted.write, message, facts, nowMs);
        return true;
    }
  }

  /** `withResult` false: for a list, whose results nobody reads, and which are read from disk one by one. */
  receipt(write: KeptWrite, withResult = true): Receipt {
    const isEnding = this.#ending.has(write);
    const kept =
      withResult && write.hasResult && !isEnding
        ? (this.journal.result(write.sequence) ?? this.#unwritten.get(write))
        : undefined;
    return receiptOf(write, this.lanes.position(write), isEnding, kept);
  }

  /** Takes back a write by its receipt. One on its way that another call waits for is that call's to take back. */
  async cancel(write: KeptWrite): Promise<void> {
    const flight = this.#flights.get(write);
    if (write.state === "queued" || (flight?.waiters.length ?? 0) === 0) this.#takeBack(write, flight, undefined);
    await this.settled(write);
  }

  /** Resolves when what is being written now is on disk. Rejects where the disk refused what became of `write`. */
  async settled(write?: KeptWrite): Promise<void> {
    this.#forget();
    await Promise.allSettled([...this.#commits]);
    if (write !== undefined && this.#unwritten.has(write)) throw new Fault("unavailable", NOT_ON_DISK);
  }

  /** Does what the state machine says. */
  run(steps: readonly Step[]): void {
    for (const step of steps) {
      const { write } = step;
      if (step.do === "send") void this.#send(write, step.mark);
      else if (step.do === "confirm") this.#confirm(write);
      else if (step.do === "save") void this.#save(write);
      else if (step.do === "tell") this.#tell(write);
      else if (step.do === "thin") this.#thin(write);
      else {
        const hasText = this.#unwritten.delete(write) || write.state !== "done";
        this.#forgotten.push({ sequence: write.sequence, hasText });
        this.#parts.forgot?.(write.facts.id);
      }
    }
    if (this.#forgotten.length >= FORGOTTEN_AT_ONCE) this.#forget();
    this.#setTimer();
  }

  #thin(write: KeptWrite): void {
    if (this.#unwritten.has(write)) this.#unwritten.set(write, undefined);
    this.#track(this.journal.save(write.sequence, this.#record(write), undefined));
  }

  #forget(): void {
    if (this.#forgotten.length > 0) this.#track(this.journal.forget(this.#forgotten.splice(0)));
  }

  // ---- calls

  #begin(call: AgentCall, write: KeptWrite, message: RequestMessage, facts: WriteFacts, nowMs: number): void {
    const flight = this.#flightOf(write);
    flight.message = message;
    flight.facts = facts;
    flight.commitByMs = nowMs + commitMs(this.#mayMove);
    this.#wait(call, flight);
    this.#address(write, nowMs);
    const commit = this.journal.take(write.sequence, this.#record(write), placedText(message, call));
    this.#track(
      commit.then(
        () => this.#taken(flight),
        (error: unknown) => this.#notTaken(flight, error),
      ),
    );
    this.#setTimer();
  }

  #taken(flight: Flight): void {
    const { write } = flight;
    flight.commitByMs = undefined;
    for (const waiter of flight.waiters) waiter.renew();
    this.run(this.lanes.committed(write, this.#clock.now(), this.#clock.wall()));
    if (write.state === "queued" && !write.isOver) this.#tell(write);
  }

  #notTaken(flight: Flight, error: unknown): void {
    const { write } = flight;
    const fault = notTakenFault(error);
    const isWanted = !write.isOver && !write.takenBack;
    const isPassed = ({ call }: Waiter) => isWanted && this.#parts.passOn?.(call, write.facts, error) === true;
    const left = flight.waiters.splice(0).filter((waiter) => !isPassed(waiter));
    this.#refuse(flight, left, fault);
    this.#flights.delete(write);
    this.run(this.lanes.uncommitted(write, this.#clock.now(), this.#clock.wall()));
  }

  /** What may be kept all the same has cost what it cost. Else one that its agent took back meanwhile has its own answer. */
  #refuse({ write, reply }: Flight, waiters: readonly Waiter[], fault: Fault): void {
    const mayBeKept = fault.code === "outcome-unknown";
    if (waiters[0] !== undefined && !mayBeKept) this.#parts.giveBack?.(waiters[0].call, write.facts.server);
    const told = (mayBeKept ? undefined : reply) ?? faultReply(fault);
    for (const waiter of waiters) waiter.reply(told);
  }

  /** The same call under the same key: the same result, or the same receipt. */
  #join(call: AgentCall, write: KeptWrite): void {
    const flight = this.#flights.get(write);
    if (flight !== undefined && !write.isOver && flight.waiters.length > 0 && flight.waiters.length < MAX_WAITERS) {
      this.#wait(call, flight);
      return;
    }
    // Nothing is said of what may never come to be on disk.
    const isOnDisk = flight?.commitByMs === undefined;
    const hasEnd = write.isOver && write.hasResult && !this.#ending.has(write);
    const kept = isOnDisk && hasEnd ? this.journal.result(write.sequence) : undefined;
    if (!isOnDisk) call.reply(faultReply(new Fault("unavailable", NOT_QUEUED_YET)));
    else if (kept?.result !== undefined) call.reply(keptReply(kept.result));
    else if (kept?.error !== undefined) call.reply({ kind: "error", error: JSON.parse(kept.error) });
    else call.reply(this.#parts.receiptReply(call, this.receipt(write)));
  }

  #wait(call: AgentCall, flight: Flight): void {
    const waiter = new Waiter(call, this.#clock.now);
    flight.waiters.push(waiter);
    call.onCancel = (reason) => this.#cancelled(flight, waiter, reason);
  }

  #cancelled(flight: Flight, waiter: Waiter, reason: string | undefined): void {
    const others = flight.waiters.filter((one) => one !== waiter);
    if (others.length > 0) {
      flight.waiters.splice(0, flight.waiters.length, ...others);
      waiter.reply(faultReply(new Fault("cancelled", reason ?? TAKEN_BACK)));
    } else this.#takeBack(flight.write, flight, reason);
  }

  #takeBack(write: KeptWrite, flight: Flight | undefined, reason: string | undefined): void {
    const why = reason ?? TAKEN_BACK;
    const { kind, steps } = this.lanes.cancel(write, why, this.#clock.now(), this.#clock.wall());
    if (flight !== undefined && (kind === "over" || !write.isCommitted)) {
      flight.reply = faultReply(new Fault("cancelled", `${why}. It was not sent.`));
    }
    if (kind === "sending") flight?.delivery?.takeBack(reason);
    this.run(steps);
  }

  /** Whoever waits is told how the write stands, unless it goes on in the next moments. */
  #tell(write: KeptWrite): void {
    const flight = this.#flights.get(write);
    if (flight === undefined || flight.commitByMs !== undefined) return;
    const { waiters, reply } = flight;
    if (write.isOver) {
      // A stream is read once.
      const isOnce = reply?.kind === "stream";
      for (const [index, waiter] of waiters.splice(0).entries()) {
        if (reply === undefined || (isOnce && index > 0)) this.#giveReceipt(waiter, write);
        else waiter.reply(this.#parts.resultReply?.(waiter.call, reply) ?? reply);
      }
    } else if (this.lanes.isStuck(write) || (this.#isStopped && flight.delivery === undefined)) {
      for (const waiter of waiters.splice(0)) this.#giveReceipt(waiter, write);
    }
    this.#tidy(flight);
  }

  #giveReceipt(waiter: Waiter, write: KeptWrite): void {
    if (write.state === "queued") logWrite(write, this.#parts.log);
    write.isTold = true;
    const { tally } = waiter.call.caller.principal;
    if (tally !== undefined) tally.queued++;
    waiter.reply(this.#parts.receiptReply(waiter.call, this.receipt(write)));
  }

  #tidy(flight: Flight): void {
    const { waiters, delivery, commitByMs, isMarking } = flight;
    if (waiters.length > 0 || delivery !== undefined || commitByMs !== undefined || isMarking) return;
    this.#flights.delete(flight.write);
  }

  // ---- deliveries

  async #send(write: KeptWrite, mark: boolean): Promise<void> {
    if (this.#isStopped && !this.#flights.has(write)) return;
    const flight = this.#flightOf(write);
    if (mark && !(await this.#marked(write, flight))) {
      this.#came(flight, { kind: "unmarked", why: "that it is being sent could not be written down" });
      return;
    }
    if (this.#isStopped && flight.waiters.length === 0) {
      // The disk may say by now that it is being sent, and it is not.
      this.#came(flight, { kind: "not-sent", why: "the gateway was stopped" });
      return;
    }
    if (write.takenBack) {
      flight.reply = faultReply(new Fault("cancelled", "It was taken back, and was not sent."));
      this.#came(flight, { kind: "withdrawn", why: TAKEN_BACK });
      return;
    }
    const verdict = verdictOn(write, this.#parts);
    if (verdict !== undefined) {
      if (verdict.kind === "denied") flight.reply = faultReply(new Fault("denied", verdict.why));
      this.#came(flight, verdict);
      return;
    }
    const { facts } = write;
    const [waiter] = flight.waiters;
    const message = waiter === undefined ? this.journal.message(write.sequence) : flight.message;
    if (message === undefined) {
      this.#came(flight, { kind: "refused", why: "its text is no longer in the store" });
      return;
    }
    const caller = waiter === undefined ? new AbsentCaller(facts) : new WaitingCaller(waiter);
    const key = messageKeyOf(write, this.#clock.now());
    const delivery = new DeliveryCall(caller, message, waiter?.call.notes, key, write.isKeyed, (reply) =>
      this.#replied(flight, reply),
    );
    flight.delivery = delivery;
    this.#hand(delivery, facts.server, facts.tool);
  }

  #hand(delivery: DeliveryCall, server: string, tool: OwnToolName): void {
    try {
      this.#parts.send(delivery, server, tool);
    } catch (error) {
      delivery.reply({ kind: "error", error: toRpcError(error), fault: asFault(error) });
    }
  }

  #flightOf(write: KeptWrite): Flight {
    let flight = this.#flights.get(write);
    if (flight === undefined) {
      flight = newFlight(write);
      this.#flights.set(write, flight);
    }
    return flight;
  }

  /** Whom it is for is on disk before it leaves. */
  #address(write: KeptWrite, nowMs: number): void {
    write.message = messageFor(write, this.#parts.journalOf?.(write.facts.server), nowMs);
  }

  async #marked(write: KeptWrite, flight: Flight): Promise<boolean> {
    flight.isMarking = true;
    this.#address(write, this.#clock.now());
    try {
      await this.#written(write);
      this.#changed(write);
      return true;
    } catch {
      return false;
    } finally {
      flight.isMarking = false;
    }
  }

  #replied(flight: Flight, reply: Reply): void {
    const outcome = classify(reply);
    flight.reply = shared(reply);
    if (outcome.kind === "answered") {
      const { kept, lostBytes } = readResult(reply, this.#parts.maxResultBytes);
      flight.kept = kept;
      flight.write.lostBytes = lostBytes;
    }
    // Nobody reads it: what it comes through is given back.
    if (reply.kind === "stream" && flight.waiters.length === 0) reply.open("0").destroy();
    this.#came(flight, outcome);
  }

  #came(flight: Flight, result: Result): void {
    const { write } = flight;
    flight.delivery = undefined;
    write.resultBytes = sizeOf(flight.kept);
    const steps = this.lanes.result(write, result, this.#clock.now(), this.#clock.wall());
    flight.reply = write.isOver ? endReply(write, result, flight.reply) : undefined;
    if (write.isOver) write.hasResult = flight.kept !== undefined;
    logWrite(write, this.#parts.log);
    this.run(steps);
    this.#tidy(flight);
    this.#tellIdle();
  }

  #confirm(write: KeptWrite): void {
    const { facts } = write;
    const { confirm } = facts.terms;
    if (this.#isStopped || confirm === undefined) return;
    const flight = this.#flightOf(write);
    const message = questionAbout(confirm, facts.sentKey ?? facts.key);
    const { principal, id, version } = facts;
    const caller = new AbsentCaller({ principal, id, version, era: "legacy" });
    const delivery = new DeliveryCall(caller, message, undefined, undefined, true, (reply) => {
      flight.delivery = undefined;
      const found = foundIn(reply, confirm.found);
      this.run(this.lanes.confirmed(write, found, this.#clock.now(), this.#clock.wall()));
      logWrite(write, this.#parts.log);
      this.#tidy(flight);
      this.#tellIdle();
    });
    flight.delivery = delivery;
    if (isMeant(facts, this.#parts.targetOf)) this.#hand(delivery, facts.server, confirm.tool);
    else delivery.reply(faultReply(new Fault("unavailable", otherTarget(facts.server))));
  }

  // ---- the disk

  #record(write: KeptWrite): WriteRecord {
    return write.record(this.#clock.now(), this.#clock.wall(), this.#flights.get(write)?.facts);
  }

  #written(write: KeptWrite, kept?: KeptResult): Promise<void> {
    const commit = this.journal.save(write.sequence, this.#record(write), kept);
    this.#track(commit);
    return commit;
  }

  /** Writes it down as it is now; then whoever waits is told. */
  async #save(write: KeptWrite): Promise<void> {
    const kept = write.isOver ? this.#flights.get(write)?.kept : undefined;
    const commit = this.#written(write, kept);
    if (write.isOver && write.hasResult) this.#ending.set(write, commit);
    try {
      await commit;
      this.#unwritten.delete(write);
    } catch {
      // What happened has happened, and the agent is told so. On disk is less than we know: it is written again.
      this.#unwritten.set(write, kept);
      this.#wakeBy(this.#clock.now() + REWRITE_MS);
      if (!write.isOver) return;
    } finally {
      if (this.#ending.get(write) === commit) this.#ending.delete(write);
    }
    if (this.#ending.has(write)) return;
    if (write.isOver) this.#parts.ended?.(write);
    this.#changed(write);
    this.#tell(write);
  }

  #rewrite(): void {
    for (const [write, kept] of [...this.#unwritten]) {
      this.#unwritten.delete(write);
      const refused = () => {
        this.#unwritten.set(write, kept);
        this.#wakeBy(this.#clock.now() + REWRITE_MS);
      };
      const commit = this.journal.save(write.sequence, this.#record(write), kept);
      this.#track(commit.then(() => this.#tell(write), refused));
    }
  }

  #track(commit: Promise<void>): void {
    const over = () => void this.#commits.delete(one);
    const one: Promise<void> = commit.then(over, over);
    this.#commits.add(one);
  }

  /** Its result is read from disk by whoever asks for the receipt. */
  #changed(write: KeptWrite): void {
    if (this.#listeners.size === 0) return;
    const receipt = this.receipt(write, false);
    for (const listener of this.#listeners) listener(write.facts.principal.id, receipt);
  }

  // ---- time

  #setTimer(): void {
    const dueMs = this.#flights.size > 0 ? this.#clock.now() + LONGEST_SLEEP_MS : Number.POSITIVE_INFINITY;
    this.#wakeBy(Math.min(this.lanes.nextWakeMs, dueMs));
  }

  #wakeBy(ms: number): void {
    if (this.#isClosed || ms >= this.#timerDueMs || !Number.isFinite(ms)) return;
    clearTimeout(this.#timer);
    const nowMs = this.#clock.now();
    // A machine that slept is noticed soon after.
    this.#timerDueMs = Math.min(ms, nowMs + LONGEST_SLEEP_MS);
    this.#timer = setTimeout(() => this.tick(), Math.max(0, Math.ceil(this.#timerDueMs - nowMs)));
    this.#timer.unref();
  }

  /** The time has come for whatever waits for it. */
  tick(): void {
    this.#timerDueMs = Number.POSITIVE_INFINITY;
    if (this.#isClosed) return;
    const nowMs = this.#clock.now();
    void this.#jumps.look();
    for (const flight of this.#flights.values()) this.#look(flight, nowMs);
    if (this.#unwritten.size > 0) this.#rewrite();
    this.run(nowMs >= this.lanes.nextWakeMs ? this.lanes.wake(nowMs, this.#clock.wall()) : []);
  }

  #look(flight: Flight, nowMs: number): void {
    const { write, waiters } = flight;
    if (flight.commitByMs !== undefined) {
      if (nowMs < flight.commitByMs) return;
      this.#refuse(flight, waiters.splice(0), lateFault(this.#mayMove));
      flight.commitByMs = Number.POSITIVE_INFINITY;
      this.run(this.lanes.cancel(write, "the disk was too slow", nowMs, this.#clock.wall()).steps);
      return;
    }
    if (waiters.length === 0) return;
    const due = waiters.filter((waiter) => waiter.isDue(nowMs));
    if (due.length === 0) return;
    const left = waiters.filter((waiter) => !due.includes(waiter));
    waiters.splice(0, waiters.length, ...left);
    for (const waiter of due) this.#giveReceipt(waiter, write);
    // An answer came while the disk was slow, and nobody is left to read it.
    if (left.length === 0 && flight.reply?.kind === "stream") flight.reply.open("0").destroy();
    this.#tidy(flight);
  }
}
