// What the state machine of the outbox holds in memory: writes, their lanes, and the servers that these go to. They are plain
// data with the small questions that can be asked of them; what happens to them is lanes.ts.

import type { LifeStep, WriteState } from "../../contracts/outbox.js";
import { writtenFacts } from "./kept-facts.js";
import { MAX_SENDS_A_SERVER } from "./limits.js";
import { type HoldKind, isEnd, type WriteFacts, type WriteMessage, type WriteRecord } from "./write.js";

/** The same in a row is one step: more different ones than this are a server that changes its mind. The oldest give way. */
const MAX_LIFE = 12;
/** Of a reason that a server had a part in. With 12 steps it is 3 kB of a record at most. */
const MAX_LIFE_WHY = 200;

export interface Hold {
  readonly kind: HoldKind;
  readonly why: string;
  /** The write whose outcome a person must say. */
  readonly of?: KeptWrite;
}

/** What may be true of a write, in one number: a hundred thousand of them may wait. */
const MAYBE = 1;
const TAKEN_BACK = 2;
const HELD = 4;
const HAS_RESULT = 8;
const QUEUE_LOGGED = 16;
const TOLD = 32;
const COMMITTED = 64;
const CHARGED = 128;

/** What most writes that wait have nothing of. */
interface Rest {
  life: readonly LifeStep[] | undefined;
  message: WriteMessage | undefined;
  round: number;
  resultBytes: number;
  lostBytes: number | undefined;
  endedBytes: number;
  notDone: number;
  conflicts: number;
  askUntilMs: number | undefined;
  endedMs: number;
}

const NOTHING: Readonly<Rest> = {
  life: undefined,
  message: undefined,
  round: 0,
  resultBytes: 0,
  lostBytes: undefined,
  endedBytes: 0,
  notDone: 0,
  conflicts: 0,
  askUntilMs: undefined,
  endedMs: 0,
};

/** A write while it is known, its end included. */
export class KeptWrite {
  readonly sequence: number;
  readonly facts: WriteFacts;
  state: WriteState;
  sinceMs: number;
  why: string | undefined = undefined;
  attempts = 0;
  /** When it was taken, on the steady clock. It may lie before the start of this program. */
  bornMs: number;
  #flags = 0;
  #rest: Readonly<Rest> = NOTHING;

  constructor(sequence: number, facts: WriteFacts, bornMs: number) {
    this.sequence = sequence;
    this.facts = facts;
    this.state = "queued";
    this.sinceMs = facts.takenMs;
    this.bornMs = bornMs;
  }

  /** What became of it before, as it was written down. */
  recall(record: WriteRecord): void {
    this.state = record.state;
    this.sinceMs = record.sinceMs;
    this.why = record.why;
    this.attempts = record.attempts;
    this.notDone = record.notDone ?? 0;
    this.maybe = record.maybe === true;
    this.takenBack = record.takenBack === true;
    this.held = record.held === true;
    this.message = record.message;
    this.round = record.round ?? 0;
    this.life = Array.isArray(record.life) ? record.life : undefined;
    this.hasResult = record.hasResult === true;
    this.resultBytes = record.resultBytes ?? 0;
    this.lostBytes = record.lostBytes;
    this.isCommitted = true;
    this.isQueueLogged = true;
    this.isTold = true;
  }

  #is(flag: number): boolean {
    return (this.#flags & flag) !== 0;
  }

  #flag(flag: number, is: boolean): void {
    this.#flags = is ? this.#flags | flag : this.#flags & ~flag;
  }

  #keep<K extends keyof Rest>(name: K, value: Rest[K]): void {
    if (this.#rest[name] === value) return;
    const rest: Rest = this.#rest === NOTHING ? { ...NOTHING } : this.#rest;
    rest[name] = value;
    this.#rest = rest;
  }

  get maybe(): boolean {
    return this.#is(MAYBE);
  }

  set maybe(is: boolean) {
    this.#flag(MAYBE, is);
  }

  get takenBack(): boolean {
    return this.#is(TAKEN_BACK);
  }

  set takenBack(is: boolean) {
    this.#flag(TAKEN_BACK, is);
  }

  get held(): boolean {
    return this.#is(HELD);
  }

  set held(is: boolean) {
    this.#flag(HELD, is);
  }

  get hasResult(): boolean {
    return this.#is(HAS_RESULT);
  }

  set hasResult(is: boolean) {
    this.#flag(HAS_RESULT, is);
  }

  /** The log has said that it waits; what was kept by an earlier run of the program was said by that. */
  get isQueueLogged(): boolean {
    return this.#is(QUEUE_LOGGED);
  }

  set isQueueLogged(is: boolean) {
    this.#flag(QUEUE_LOGGED, is);
  }

  /** Its agent was given a receipt in place of a result, or is one of an earlier run of the program. */
  get isTold(): boolean {
    return this.#is(TOLD);
  }

  set isTold(is: boolean) {
    this.#flag(TOLD, is);
  }

  /** Its first commit is on disk. */
  get isCommitted(): boolean {
    return this.#is(COMMITTED);
  }

  set isCommitted(is: boolean) {
    this.#flag(COMMITTED, is);
  }

  /** It was charged to its server's budget when it was taken, and has not been sent since. */
  get isCharged(): boolean {
    return this.#is(CHARGED);
  }

  set isCharged(is: boolean) {
    this.#flag(CHARGED, is);
  }

  get message(): WriteMessage | undefined {
    return this.#rest.message;
  }

  set message(value: WriteMessage | undefined) {
    this.#keep("message", value);
  }

  /** Most writes are sent once and done: they have none before their end. */
  get life(): readonly LifeStep[] | undefined {
    return this.#rest.life;
  }

  set life(value: readonly LifeStep[] | undefined) {
    this.#keep("life", value);
  }

  get round(): number {
    return this.#rest.round;
  }

  set round(value: number) {
    this.#keep("round", value);
  }

  get resultBytes(): number {
    return this.#rest.resultBytes;
  }

  set resultBytes(value: number) {
    this.#keep("resultBytes", value);
  }

  /** How large its result was, where that is not kept; 0 where that is not known. */
  get lostBytes(): number | undefined {
    return this.#rest.lostBytes;
  }

  set lostBytes(value: number | undefined) {
    this.#keep("lostBytes", value);
  }

  /** What it keeps on disk beside its record since it ended. */
  get endedBytes(): number {
    return this.#rest.endedBytes;
  }

  set endedBytes(value: number) {
    this.#keep("endedBytes", value);
  }

  /** Of the attempts, those of which the server said that it did nothing. */
  get notDone(): number {
    return this.#rest.notDone;
  }

  set notDone(value: number) {
    this.#keep("notDone", value);
  }

  /** The server may have had it before, and be at it still. */
  get isRepeat(): boolean {
    return this.attempts > this.notDone;
  }

  /** Answers "409" in a row. */
  get conflicts(): number {
    return this.#rest.conflicts;
  }

  set conflicts(value: number) {
    this.#keep("conflicts", value);
  }

  /** It would be unknown, and the server can be asked: it is not sent again before it has answered. Until when it is asked. */
  get askUntilMs(): number | undefined {
    return this.#rest.askUntilMs;
  }

  set askUntilMs(value: number | undefined) {
    this.#keep("askUntilMs", value);
  }

  /** When it ended, on the clock of bornMs. */
  get endedMs(): number {
    return this.#rest.endedMs;
  }

  set endedMs(value: number) {
    this.#keep("endedMs", value);
  }

  /** It is this from now on, for this reason. Whoever calls it sets the state itself. */
  becomes(state: WriteState, why: string | undefined, wallMs: number): void {
    if (this.state !== state) this.sinceMs = wallMs;
    this.why = why;
    const life = this.life ?? [];
    const last = life.at(-1);
    const short = why?.slice(0, MAX_LIFE_WHY);
    if (last !== undefined && last.state === state && last.why === short) {
      this.life = [...life.slice(0, -1), { ...last, times: (last.times ?? 1) + 1, lastMs: wallMs }];
    } else this.life = [...life.slice(1 - MAX_LIFE), { atMs: wallMs, state, why: short }];
  }

  /**
   * The server says so. `isReply`: as its answer to the message, which the journal of a machine repeats under the same id. One id
   * is run once at most, so that nothing was done; it goes again under another.
   */
  wasNotDone(isReply = false): void {
    this.notDone++;
    if (!isReply || this.message === undefined) return;
    this.round++;
    this.maybe = false;
  }

  get isKeyed(): boolean {
    const { key } = this.facts.terms;
    return key !== undefined && (key.in !== "message" || this.message !== undefined);
  }

  get isOver(): boolean {
    return isEnd(this.state);
  }

  /** The server is asked whether it took effect, before anything else is done about it. */
  get isAsked(): boolean {
    return this.maybe && (!this.isKeyed || this.takenBack || this.askUntilMs !== undefined);
  }

  get expiresMs(): number {
    const { maxAgeMs } = this.facts.terms;
    // What may have happened is sent again for as long as the other side is sure to know it.
    const untilMs = this.maybe ? (this.message?.untilAgeMs ?? maxAgeMs) : maxAgeMs;
    return Math.max(this.bornMs + Math.min(maxAgeMs, untilMs), this.askUntilMs ?? 0);
  }

  /** As it is written down. `facts`: its own as they were taken, where they are at hand: here they are packed. */
  record(nowMs: number, wallMs: number, facts = writtenFacts(this.facts)): WriteRecord {
    return {
      v: 1,
      ...facts,
      state: this.state,
      sinceMs: this.sinceMs,
      why: this.why,
      attempts: this.attempts,
      notDone: this.notDone || undefined,
      maybe: this.maybe || undefined,
      takenBack: this.takenBack || undefined,
      held: this.held || undefined,
      message: this.message,
      round: this.round || undefined,
      life: this.life,
      hasResult: this.hasResult || undefined,
      resultBytes: this.resultBytes || undefined,
      lostBytes: this.lostBytes,
      ageMs: Math.max(0, nowMs - this.bornMs),
      agedAtMs: wallMs,
    };
  }
}

/** Writes that go to their server one after the other. */
export class WriteLane {
  readonly key: string;
  readonly server: LaneServer;
  /** Those that are not over, in their order. */
  readonly writes: KeptWrite[] = [];
  sending: KeptWrite | undefined;
  notBeforeMs = 0;
  /** Failures in a row, and when the first of them was. */
  tries = 0;
  failingSinceMs = 0;
  /** It waits because its server was not there, or lost a call: not because the server asked for it. */
  isForServer = false;
  /** Its last wait was cut short, and nothing has succeeded since. */
  wasHastened = false;
  #hold: Hold | undefined;
  /** When a hold that may end by itself is looked at again. */
  lookMs = 0;

  constructor(key: string, server: LaneServer) {
    this.key = key;
    this.server = server;
  }

  get hold(): Hold | undefined {
    return this.#hold;
  }

  set hold(hold: Hold | undefined) {
    this.#hold = hold;
    if (hold === undefined) this.server.heldLanes.delete(this);
    else this.server.heldLanes.add(this);
  }

  /** The first that is not held for a person by itself. */
  get head(): KeptWrite | undefined {
    for (const write of this.writes) if (!write.held) return write;
    return undefined;
  }

  insert(write: KeptWrite): void {
    this.writes.splice(this.placeOf(write), 0, write);
  }

  remove(write: KeptWrite): void {
    const at = this.placeOf(write);
    if (this.writes[at] !== write) return;
    if (at === 0) this.writes.shift();
    else this.writes.splice(at, 1);
  }

  /** How many come before it. */
  placeOf({ sequence }: KeptWrite): number {
    let low = 0;
    let high = this.writes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.writes[middle] as KeptWrite).sequence < sequence) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Why nothing but one try goes to a server. */
export interface Away {
  /** A login is one for all servers that share a credential: they have the same object. */
  readonly kind: "away" | "login";
  readonly why: string;
  readonly tries: number;
  /** When it was first found so. */
  readonly sinceMs: number;
  untilMs: number;
  probing: KeptWrite | undefined;
  /** The wait before this one was cut short, in vain. */
  readonly wasHastened: boolean;
}

export class LaneServer {
  readonly name: string;
  readonly lanes = new Map<string, WriteLane>();
  /** Lanes whose head may be sent now, in the order in which they became so. */
  readonly ready = new Set<WriteLane>();
  /** Lanes that wait for a time, or for another look. */
  readonly delayed = new Set<WriteLane>();
  /** Lanes that are held for something of their own. */
  readonly heldLanes = new Set<WriteLane>();
  sending = 0;
  away: Away | undefined;
  /** The lane that is tried before others like it. */
  first: WriteLane | undefined;
  /** By the operator, for all of its lanes. */
  isHeld = false;

  constructor(name: string) {
    this.name = name;
  }

  get hasPlace(): boolean {
    return this.sending < MAX_SENDS_A_SERVER;
  }
}

/** Without an order, each write is a lane of its own. */
export function laneKey({ facts, sequence }: KeptWrite): string {
  return facts.lane ?? `write ${sequence}`;
}

/** What the lane is held for, its server's login included. */
export function holdOfLane({ hold, server }: WriteLane): Hold | undefined {
  if (hold !== undefined) return hold;
  if (server.isHeld) return { kind: "person", why: "an operator holds all lanes of the server" };
  return server.away?.kind === "login" ? { kind: "login", why: server.away.why } : undefined;
}

/** Nothing of it is sent. A login is not meant: it is tried with one write. */
export function isHeld({ hold, server }: WriteLane): boolean {
  return hold !== undefined || server.isHeld;
}

export function unknownHold(write: KeptWrite): Hold {
  const { tool, id } = write.facts;
  const why = `whether ${tool} (receipt ${id}) took effect is unknown: say so with \`toolway outbox resolve ${id}\``;
  return { kind: "unknown", why, of: write };
}
