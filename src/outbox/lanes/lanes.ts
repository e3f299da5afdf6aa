// The state machine of the outbox: which write goes to its server when, and what follows from what came of it. It does no I/O and
// has no clock: it is told what happened and the time, and gives back what is to be done. The driver does it.

import type { OutboxLimits, WriteState } from "../../contracts/outbox.js";
import { KnownWrites } from "./known-writes.js";
import { holdOfLane, isHeld, KeptWrite, type LaneServer, unknownHold, WriteLane } from "./lane.js";
import { LaneQuestions } from "./lane-questions.js";
import { type CredentialOf, LaneTable } from "./lane-table.js";
import { ASK_MS, HELD_LOOK_MS, MAX_CONFLICTS, MAX_RETRY_AFTER_MS, SWEEP_MS } from "./limits.js";
import { Room } from "./room.js";
import { missing, nextAway, sendSooner, triedFirst, triedLane } from "./server-waits.js";
import { type Accepted, goesAgain, isFromServer, mayHaveLeft, type Result, type Step } from "./step.js";
import { STATE_WORDS, type WriteFacts, type WriteRecord } from "./write.js";

export interface LanesOptions {
  /** In [0, 1), as Math.random gives it. */
  readonly random: () => number;
  /** Whether somebody waits for this write now. */
  readonly hasWaiters: (write: KeptWrite) => boolean;
  readonly limits: OutboxLimits;
  readonly credentialOf?: CredentialOf | undefined;
  readonly pace?: Pace | undefined;
}

/**
 * How long a write has to wait for its server's budget, 0 where it may go: it is charged to that then. `chargedMs`: it
 * was charged when it was taken.
 */
export type Pace = (server: string, chargedMs: number | undefined, nowMs: number) => number;

const NEVER = Number.POSITIVE_INFINITY;

export class Lanes extends LaneQuestions {
  readonly #hasWaiters: (write: KeptWrite) => boolean;
  readonly #pace: Pace;
  #nextSequence = 1;
  #nextExpiryMs = NEVER;
  #nextSweepMs = NEVER;
  /** The time of what is being told now, and what follows from it so far. */
  #nowMs = 0;
  #wallMs = 0;
  #steps: Step[] = [];
  /** Until then nothing is sent of what was restored: it is not said yet what may have happened. */
  #isStarted = false;

  constructor({ random, hasWaiters, limits, credentialOf = () => undefined, pace = () => 0 }: LanesOptions) {
    super(new LaneTable(random, credentialOf), new KnownWrites(random()), new Room(limits));
    this.#hasWaiters = hasWaiters;
    this.#pace = pace;
  }

  // ---- from disk

  /** One that was kept. What follows from it comes with start(). */
  restore(sequence: number, record: WriteRecord, nowMs: number, wallMs: number): void {
    const ageMs = record.ageMs + Math.max(0, wallMs - record.agedAtMs);
    const write = new KeptWrite(sequence, this.known.common.keep(record), nowMs - Math.max(0, ageMs));
    write.recall(record);
    this.skip(sequence);
    this.known.add(write);
    if (write.isOver) {
      write.endedMs = nowMs - Math.max(0, wallMs - write.sinceMs);
      this.#ended(write);
      if (write.state === "unknown" && record.terms.onUnknown === "hold")
        this.table.lane(write).hold = unknownHold(write);
      this.#nextSweepMs = nowMs;
      return;
    }
    this.room.take(write);
    const lane = this.table.lane(write);
    lane.insert(write);
    lane.server.ready.add(lane);
    lane.server.away ??= triedFirst("the gateway was started", nowMs);
    this.#nextExpiryMs = Math.min(this.#nextExpiryMs, write.expiresMs);
  }

  /** A number that is taken, whatever is kept under it. */
  skip(sequence: number): void {
    this.#nextSequence = Math.max(this.#nextSequence, sequence + 1);
  }

  /** All that was kept is restored. What an earlier life was sending may have happened. */
  start(nowMs: number, wallMs: number): Step[] {
    this.#at(nowMs, wallMs);
    this.#isStarted = true;
    for (const write of [...this.known.all]) {
      if (write.state !== "sending" || this.laneOf(write)?.sending === write) continue;
      this.#move(write, "queued", "the gateway ended while it was being sent");
      write.attempts++;
      this.#doubt(write);
    }
    return this.wake(nowMs, wallMs);
  }

  // ---- calls

  /** Nothing is on disk yet: the driver commits it, and says so. */
  accept(facts: WriteFacts, nowMs: number): Accepted {
    const known = this.known.ofKey(facts.keyHash);
    if (known !== undefined) {
      return known.facts.argumentsHash === facts.argumentsHash ? { kind: "known", write: known } : { kind: "conflict" };
    }
    const why = this.room.refusal(facts.server, facts.principal.id, facts.bytes);
    if (why !== undefined) return { kind: "full", why };
    const write = new KeptWrite(this.#nextSequence++, this.known.common.keep(facts), nowMs);
    this.known.add(write, facts);
    this.room.take(write);
    const lane = this.table.lane(write);
    const waits = lane.writes.length > 0 || holdOfLane(lane) !== undefined || lane.server.delayed.has(lane);
    lane.insert(write);
    if (!waits && lane.server.hasPlace) this.table.takePlace(lane, write);
    else write.isCharged = true;
    this.#expiresBy(write);
    return { kind: "taken", write };
  }

  /** It is on disk: it may be sent when its turn has come. */
  committed(write: KeptWrite, nowMs: number, wallMs: number): Step[] {
    this.#at(nowMs, wallMs);
    write.isCommitted = true;
    const lane = this.laneOf(write);
    if (lane === undefined || write.isOver) return this.#done();
    if (lane.sending === write) this.#steps.push({ do: "send", write, mark: false });
    else this.#goOn(lane);
    return this.#done();
  }

  /** It could not be written down, so that it never was. */
  uncommitted(write: KeptWrite, nowMs: number, wallMs: number): Step[] {
    this.#at(nowMs, wallMs);
    this.known.remove(write);
    if (write.isOver) return this.#done();
    this.room.leave(write);
    const lane = this.table.lane(write);
    if (lane.sending === write) this.table.givePlaceBack(lane, write);
    lane.remove(write);
    this.#goOn(lane);
    this.table.tidy(lane);
    return this.#done();
  }

  /** What came of sending it. */
  result(write: KeptWrite, result: Result, nowMs: number, wallMs: number): Step[] {
    this.#at(nowMs, wallMs);
    const lane = this.laneOf(write);
    if (lane === undefined || lane.sending !== write) return this.#done();
    const wasProbe = this.table.givePlaceBack(lane, write);
    this.#learn(lane.server, write, result, wasProbe);
    triedLane(this.table, lane, result);
    const { isRepeat } = write;
    if (mayHaveLeft(result)) write.attempts++;
    if (result.kind === "not-done") write.wasNotDone(result.isReply);
    // What its agent took back is never sent again by us.
    if (write.takenBack && goesAgain(result)) this.#withdraw(write, "why" in result ? result.why : "taken back");
    else this.#follow(lane, write, result, isRepeat);
    this.#goOn(lane);
    return this.#done();
  }

  #follow(lane: WriteLane, write: KeptWrite, result: Result, isRepeat: boolean): void {
    switch (result.kind) {
      case "answered":
        if (result.failed) this.#end(write, "failed", "the server answered with an error");
        else this.#end(write, "done", undefined);
        break;
      case "refused":
      case "denied":
        // What an earlier try may have done is not undone by a refusal.
        if (write.maybe) this.#unknown(lane, write, result.why);
        else this.#end(write, "failed", result.why);
        break;
      case "withdrawn":
        this.#withdraw(write, result.why);
        break;
      case "not-sent":
      case "login":
        this.#again(lane, write, result.why);
        break;
      case "not-done":
      case "unmarked":
        this.table.delay(lane, this.#nowMs, Math.min(result.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS));
        this.#again(lane, write, result.why);
        break;
      case "forbidden":
      case "quarantine":
        this.table.holdLane(lane, { kind: result.kind, why: result.why }, this.#nowMs);
        this.#again(lane, write, result.why);
        break;
      case "revoked":
        write.held = true;
        this.#again(lane, write, result.why);
        break;
      case "conflict":
        if (!write.isKeyed || !isRepeat) this.#end(write, "failed", result.why);
        else if (write.takenBack || ++write.conflicts > MAX_CONFLICTS) this.#unknown(lane, write, result.why);
        else {
          this.table.delay(lane, this.#nowMs, 0);
          this.#again(lane, write, result.why);
        }
        break;
      case "taken-back":
      case "maybe":
        if (result.kind === "taken-back") write.takenBack = true;
        write.why = result.why;
        this.table.delayForServer(lane, this.#nowMs);
        this.#doubt(write, result.kind === "maybe" && result.isFinal === true && write.message !== undefined);
        break;
    }
  }

  /** What the server said when it was asked whether the write took effect; undefined where it could not be asked. */
  confirmed(write: KeptWrite, found: boolean | undefined, nowMs: number, wallMs: number): Step[] {
    this.#at(nowMs, wallMs);
    const lane = this.laneOf(write);
    if (lane === undefined || lane.sending !== write) return this.#done();
    this.table.givePlaceBack(lane, write);
    const tool = write.facts.terms.confirm?.tool ?? "";
    if (found === true) this.#end(write, "done", `"${tool}" says that it was done`);
    else if (found === undefined) {
      this.table.delayForServer(lane, this.#nowMs);
      this.#again(lane, write, `"${tool}" could not be asked whether it was done`);
    } else if (write.takenBack) this.#end(write, "cancelled", `taken back; "${tool}" says that it was not done`);
    else {
      // A server that is still at it has not done it yet: that goes again under its key.
      write.maybe = write.conflicts > 0;
      write.round++;
      write.askUntilMs = undefined;
      this.#again(lane, write, `"${tool}" says that it was not done`);
    }
    this.#goOn(lane);
    return this.#done();
  }

  /**
   * The agent takes it back. "over": it never goes out; "sending": whoever sends it is to pass that on, and says what
   * came of it; "late": it is over already.
   */
  cancel(
    write: KeptWrite,
    why: string,
    nowMs: number,
    wallMs: number,
  ): { readonly kind: "over" | "sending" | "late"; readonly steps: Step[] } {
    this.#at(nowMs, wallMs);
    if (write.isOver) return { kind: "late", steps: this.#done() };
    const lane = this.table.lane(write);
    if (lane.sending === write) {
      write.takenBack = true;
      // The disk says so too, or the next start would send it again.
      if (write.isCommitted) this.#steps.push({ do: "save", write });
      return { kind: "sending", steps: this.#done() };
    }
    this.#withdraw(write, why);
    this.#goOn(lane);
    return { kind: "over", steps: this.#done() };
  }

  // ---- the operator

  hold(server: string, lane: string | undefined): number {
    const one = this.table.server(server);
    if (lane === undefined) {
      one.isHeld = true;
      return one.lanes.size;
    }
    const held = one.lanes.get(lane) ?? new WriteLane(lane, one);
    one.lanes.set(lane, held);
    held.hold = { kind: "person", why: "an operator holds it" };
    return 1;
  }

  /** Whatever a lane, or all of a server, was held for. */
  release(server: string, lane: string | undefined, nowMs: number, wallMs: number): { count: number; steps: Step[] } {
    this.#at(nowMs, wallMs);
    const one = this.table.servers.get(server);
    if (one === undefined) return { count: 0, steps: this.#done() };
    if (lane === undefined) one.isHeld = false;
    const lanes = [...one.lanes.values()].filter(({ key }) => lane === undefined || key === lane);
    for (const each of lanes) {
      each.hold = undefined;
      each.notBeforeMs = 0;
      one.delayed.delete(each);
      for (const write of each.writes) {
        if (!write.held) continue;
        write.held = false;
        this.#steps.push({ do: "save", write });
      }
      this.table.makeReady(each);
      this.table.tidy(each);
    }
    if (one.away !== undefined) one.away.untilMs = 0;
    this.#pump(one);
    return { count: lanes.length, steps: this.#done() };
  }

  /** It goes back to its place in its lane. The reason where it cannot. */
  retry(write: KeptWrite, nowMs: number, wallMs: number): string | Step[] {
    this.#at(nowMs, wallMs);
    if (write.held) write.held = false;
    else if (write.state === "failed" || write.state === "expired") this.#revive(write);
    else return `it ${STATE_WORDS[write.state]}${write.state === "unknown" ? ": say how it ended with resolve" : ""}`;
    this.#back(write);
    return this.#done();
  }

  /** What became of one that is unknown. The reason where it is not. */
  resolve(write: KeptWrite, as: "done" | "failed" | "again", nowMs: number, wallMs: number): string | Step[] {
    this.#at(nowMs, wallMs);
    if (write.state !== "unknown") return `its outcome is not unknown: it ${STATE_WORDS[write.state]}`;
    const lane = this.table.lane(write);
    if (lane.hold?.kind === "unknown") lane.hold = undefined;
    write.maybe = false;
    write.takenBack = false;
    if (as === "again") {
      this.#revive(write);
      this.#back(write);
      return this.#done();
    }
    this.#move(write, as, "an operator said so");
    this.#steps.push({ do: "save", write });
    this.#goOn(lane);
    this.table.tidy(lane);
    return this.#done();
  }

  /** An operator wants it gone. The reason where it cannot be. */
  drop(write: KeptWrite, nowMs: number, wallMs: number): string | Step[] {
    this.#at(nowMs, wallMs);
    if (write.isOver) {
      this.known.remove(write);
      this.#forget(write);
      return this.#done();
    }
    const lane = this.laneOf(write);
    if (lane?.sending === write) return "it is being sent: wait for what comes of it";
    return this.cancel(write, "an operator dropped it", nowMs, wallMs).steps;
  }

  // ---- time

  /** Something changed by which a server may be there again, or a hold may be over. Without a name any server may be. */
  poke(server: string | undefined, nowMs: number, wallMs: number): Step[] {
    this.#at(nowMs, wallMs);
    for (const one of [...this.table.servers.values()]) {
      if (server !== undefined && one.name !== server) continue;
      if (one.away !== undefined) one.away.untilMs = 0;
      for (const lane of one.delayed) if (lane.hold?.kind === "quarantine") lane.lookMs = 0;
      sendSooner(this.table, one);
      this.table.look(one, this.#nowMs);
      this.#pump(one);
    }
    return this.#done();
  }

  /** The server answers others, and did not before: what waits for that is tried. */
  answers(server: string, nowMs: number, wallMs: number): Step[] {
    this.#at(nowMs, wallMs);
    const one = this.table.servers.get(server);
    if (one !== undefined) {
      sendSooner(this.table, one);
      this.#pump(one);
    }
    return this.#done();
  }

  /** The time has come. To be called at nextWakeMs, or at any time. */
  wake(nowMs: number, wallMs: number): Step[] {
    this.#at(nowMs, wallMs);
    this.table.nextWakeMs = NEVER;
    if (nowMs >= this.#nextExpiryMs) this.#expire();
    if (nowMs >= this.#nextSweepMs) this.#sweep();
    for (const server of [...this.table.servers.values()]) {
      this.table.look(server, this.#nowMs);
      this.#pump(server);
    }
    this.table.soon(this.#nextExpiryMs);
    this.table.soon(this.#nextSweepMs);
    return this.#done();
  }

  // ---- inside: where writes are

  #at(nowMs: number, wallMs: number): void {
    this.#nowMs = nowMs;
    this.#wallMs = wallMs;
  }

  #done(): Step[] {
    const steps = this.#steps;
    this.#steps = [];
    return steps;
  }

  // ---- inside: what becomes of them

  #move(write: KeptWrite, state: WriteState, why: string | undefined): void {
    write.becomes(state, why, this.#wallMs);
    this.known.moved(write, state);
  }

  /** Back to its place, to be sent when its turn comes. */
  #again(lane: WriteLane, write: KeptWrite, why: string): void {
    this.#move(write, "queued", why);
    this.#steps.push({ do: "save", write });
    this.#expiresBy(write);
    // Those behind it wait as long.
    this.#tellWaiting(lane, write);
  }

  /** `but` is told when what became of it is on disk. */
  #tellWaiting(lane: WriteLane, but: KeptWrite): void {
    for (const write of lane.writes) {
      if (write !== but && write.isCommitted && this.#hasWaiters(write)) this.#steps.push({ do: "tell", write });
    }
  }

  /** It may have happened: it goes out again under its key, or the server is asked, or nobody knows. */
  #doubt(write: KeptWrite, isFinal = false): void {
    const lane = this.table.lane(write);
    const why = write.why ?? "";
    write.maybe = true;
    if (write.isKeyed && !write.takenBack && !isFinal) this.#again(lane, write, why);
    else this.#unknown(lane, write, why);
  }

  /** It is not sent any more. What may have happened is not undone by that. */
  #withdraw(write: KeptWrite, why: string): void {
    write.takenBack = true;
    write.why = why;
    if (write.maybe) this.#doubt(write);
    else this.#end(write, "cancelled", why);
  }

  /** The server is asked first where it can be, for as long as it can be asked. */
  #unknown(lane: WriteLane, write: KeptWrite, why: string): void {
    const { confirm } = write.facts.terms;
    if (confirm !== undefined && (write.askUntilMs ?? NEVER) > this.#nowMs) {
      write.maybe = true;
      write.askUntilMs ??= Math.max(write.expiresMs, this.#nowMs + ASK_MS);
      this.#again(lane, write, why);
      return;
    }
    if (write.facts.terms.onUnknown === "hold") this.table.holdLane(lane, unknownHold(write), this.#nowMs);
    this.#end(write, "unknown", why);
  }

  #end(write: KeptWrite, state: WriteState, why: string | undefined): void {
    this.#move(write, state, why);
    write.held = false;
    write.endedMs = this.#nowMs;
    const lane = this.table.lane(write);
    lane.remove(write);
    if (state === "done" || state === "failed") lane.tries = 0;
    this.table.makeReady(lane);
    this.table.tidy(lane);
    this.room.leave(write);
    this.#steps.push({ do: "save", write });
    this.#ended(write);
    this.#nextSweepMs = Math.min(this.#nextSweepMs, this.#nowMs + SWEEP_MS);
    this.table.soon(this.#nextSweepMs);
  }

  #ended(write: KeptWrite): void {
    const { gone, thinned } = this.known.ended(write);
    for (const one of thinned) this.#steps.push({ do: "thin", write: one });
    for (const one of gone) this.#forget(one);
  }

  /** Its lane does not wait to be told what became of it: nobody could say so any more. */
  #forget(write: KeptWrite): void {
    this.#steps.push({ do: "forget", write });
    const lane = write.state === "unknown" ? this.laneOf(write) : undefined;
    if (lane?.hold?.of !== write) return;
    lane.hold = undefined;
    this.#goOn(lane);
    this.table.tidy(lane);
  }

  #revive(write: KeptWrite): void {
    this.known.revived(write);
    write.bornMs = this.#nowMs;
    write.conflicts = 0;
    // Whoever revives it knows that its agent took it back.
    write.takenBack = false;
    write.round++;
    write.hasResult = false;
    write.resultBytes = 0;
    write.lostBytes = undefined;
    this.room.take(write);
    this.table.lane(write).insert(write);
    this.#expiresBy(write);
  }

  #back(write: KeptWrite): void {
    const lane = this.table.lane(write);
    this.#again(lane, write, "an operator sends it again");
    this.#goOn(lane);
  }

  // ---- inside: when they go

  /** What the result says of the server as a whole. */
  #learn(server: LaneServer, write: KeptWrite, result: Result, wasProbe: boolean): void {
    const { away } = server;
    const kind = missing(result, wasProbe);
    if (kind !== undefined) {
      // A call that came in between says nothing that the last try did not say.
      if (away?.kind === kind && away.untilMs > this.#nowMs) return;
      const next = nextAway(this.table, away, kind, result, this.#nowMs);
      this.table.soon(next.untilMs);
      for (const one of kind === "login" ? this.table.sharing(server) : [server]) {
        // One that is not there is not asked for a login.
        if (one !== server && one.away !== undefined && one.away.kind !== "login") continue;
        one.away = next;
        // Whoever waits in another lane of it is told: it does not go on in the next moments.
        for (const lane of one.lanes.values()) if (lane.sending === undefined) this.#tellWaiting(lane, write);
      }
    } else if (away !== undefined && isFromServer(result)) {
      for (const one of [...this.table.servers.values()]) {
        if (one.away !== away) continue;
        one.away = undefined;
        this.#pump(one);
      }
    }
  }

  #goOn(lane: WriteLane): void {
    this.table.makeReady(lane);
    this.#pump(lane.server);
  }

  /** Sends what may be sent now. */
  #pump(server: LaneServer): void {
    if (server.isHeld || !this.#isStarted) return;
    for (const lane of server.ready) {
      const { away } = server;
      if (away !== undefined && away.untilMs > this.#nowMs) this.table.soon(away.untilMs);
      if (away !== undefined && (away.probing !== undefined || away.untilMs > this.#nowMs)) return;
      if (!server.hasPlace) return;
      const { head } = lane;
      if (head === undefined || !head.isCommitted || lane.sending !== undefined || isHeld(lane)) {
        server.ready.delete(lane);
        continue;
      }
      if (head.expiresMs <= this.#nowMs) {
        server.ready.delete(lane);
        this.#tooOld(lane, head);
        // Where it is asked about first, that is now.
        this.table.makeReady(lane);
        continue;
      }
      const waitMs = this.#pace(server.name, head.isCharged ? head.bornMs : undefined, this.#nowMs);
      if (waitMs > 0) {
        this.table.soon(this.#nowMs + waitMs);
        return;
      }
      head.isCharged = false;
      if (away !== undefined) away.probing = head;
      this.table.takePlace(lane, head);
      head.sinceMs = this.#wallMs;
      if (head.isAsked) this.#steps.push({ do: "confirm", write: head });
      // Of one that may have happened the disk says already that it may have.
      else this.#steps.push({ do: "send", write: head, mark: !head.maybe });
    }
  }

  #expiresBy(write: KeptWrite): void {
    this.#nextExpiryMs = Math.min(this.#nextExpiryMs, write.expiresMs);
    this.table.soon(this.#nextExpiryMs);
  }

  #expire(): void {
    this.#nextExpiryMs = NEVER;
    for (const lane of [...this.lanes()]) {
      for (const write of [...lane.writes]) {
        // What is being sent has a deadline of its own, and its reply ends it.
        const isBusy = lane.sending === write || !write.isCommitted;
        if (write.expiresMs <= this.#nowMs && !isBusy) this.#tooOld(lane, write);
        else this.#nextExpiryMs = Math.min(this.#nextExpiryMs, write.expiresMs);
      }
    }
    if (this.#nextExpiryMs <= this.#nowMs) this.#nextExpiryMs = this.#nowMs + HELD_LOOK_MS;
  }

  /** What may have happened has not merely expired. */
  #tooOld(lane: WriteLane, write: KeptWrite): void {
    const why = `it could not be delivered within ${write.facts.terms.maxAgeMs} ms ("maxAgeMs")`;
    if (!write.maybe) this.#end(write, "expired", why);
    else this.#unknown(lane, write, [write.why, why].filter(Boolean).join("; "));
  }

  #sweep(): void {
    for (const write of this.known.sweep(this.#nowMs)) this.#forget(write);
    this.#nextSweepMs = this.known.hasEnded ? this.#nowMs + SWEEP_MS : NEVER;
  }
}
