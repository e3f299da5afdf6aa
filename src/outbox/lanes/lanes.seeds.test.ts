// The state machine of the outbox through thousands of histories: a disk that commits one thing after the other, servers that
// honour keys or do not, answers that are lost, an operator, and a crash between any two steps.

import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { randomOf } from "../../../test/faults/random.js";
import { ownToolName } from "../../contracts/names.js";
import type { OutboxTerms } from "../../contracts/outbox.js";
import type { KeptWrite } from "./lane.js";
import { Lanes } from "./lanes.js";
import { MESSAGE_LIFE_MS } from "./limits.js";
import type { Result, Step } from "./step.js";
import type { WriteFacts, WriteRecord } from "./write.js";

const LIMITS = { maxWrites: 1e6, maxBytes: 1e9 };
const SEEDS = histories(3_500);
const ACTIONS = 120;

/** Millions of checks: vitest's own take a hundred times as long. */
function demand(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

interface DiskWrite {
  readonly sequence: number;
  readonly record: WriteRecord | undefined;
  readonly onDisk: () => void;
}

/** A world in which the state machine runs, is lost and is started again. */
class World {
  readonly random: () => number;
  readonly disk = new Map<number, WriteRecord>();
  pending: DiskWrite[] = [];
  /** What a server did, in its order. Under a key it does a thing once. */
  readonly effects: { readonly id: string; readonly lane: string; readonly sequence: number }[] = [];
  readonly seenKeys = new Set<string>();
  /** Writes whose first commit is on disk: an agent may have been told so. */
  readonly acknowledged = new Set<string>();
  /** Writes of which at least one byte left, or may have by what was on disk at a crash. */
  readonly maybeLeft = new Set<string>();
  readonly dropped = new Set<string>();
  /** Writes that a person held and let go, or sends once more after their end: their lanes went on without them. */
  readonly setAside = new Set<string>();
  inFlight = new Set<KeptWrite>();
  confirming = new Set<KeptWrite>();
  lanes: Lanes;
  nowMs = 1_000;
  wallMs = 1_700_000_000_000;
  made = 0;
  operated = 0;
  isCalm = false;

  constructor(seed: number) {
    this.random = randomOf(seed);
    this.lanes = this.#fresh();
    this.lanes.start(this.nowMs, this.wallMs);
  }

  #fresh(): Lanes {
    return new Lanes({ random: this.random, hasWaiters: () => this.random() < 0.3, limits: LIMITS });
  }

  pick<T>(all: readonly T[]): T | undefined {
    return all[Math.floor(this.random() * all.length)];
  }

  do(steps: readonly Step[]): void {
    for (const step of steps) this.#doOne(step);
  }

  #record(write: KeptWrite): WriteRecord {
    return JSON.parse(JSON.stringify(write.record(this.nowMs, this.wallMs))) as WriteRecord;
  }

  #doOne(step: Step): void {
    const { write } = step;
    const { sequence } = write;
    switch (step.do) {
      case "tell":
        break;
      case "save":
        this.pending.push({ sequence, record: this.#record(write), onDisk: () => {} });
        break;
      case "thin":
        break;
      case "forget":
        this.dropped.add(write.facts.id);
        this.pending.push({ sequence, record: undefined, onDisk: () => {} });
        break;
      case "confirm":
        this.confirming.add(write);
        break;
      case "send":
        if (step.mark) {
          this.#address(write);
          this.pending.push({ sequence, record: this.#record(write), onDisk: () => this.#send(write) });
        } else this.#send(write);
    }
  }

  /** Who keeps a journal at the far end is not known each time. */
  #address(write: KeptWrite): void {
    if (write.facts.terms.key?.in !== "message") return;
    const untilAgeMs = this.nowMs - write.bornMs + MESSAGE_LIFE_MS;
    write.message = this.random() < 0.8 ? { journal: "j", untilAgeMs } : undefined;
  }

  #send(write: KeptWrite): void {
    if (write.takenBack) {
      this.do(this.lanes.result(write, { kind: "withdrawn", why: "taken back" }, this.nowMs, this.wallMs));
      return;
    }
    const { lane, server } = write.facts;
    if (lane !== undefined) {
      for (const other of this.inFlight) {
        demand(other.facts.server !== server || other.facts.lane !== lane, "two of one lane are under way");
      }
    }
    // Nothing leaves before the disk says that it may have left.
    const kept = this.disk.get(write.sequence);
    demand(kept?.state === "sending" || kept?.maybe === true, "sent without a mark on disk");
    this.inFlight.add(write);
  }

  /** What the server knows it by; undefined where it knows none. */
  #keyOf(write: KeptWrite): string | undefined {
    const { keyHash, id, terms } = write.facts;
    if (terms.key?.in !== "message") return terms.key === undefined ? undefined : keyHash;
    return write.message === undefined ? undefined : `${id} ${write.round}`;
  }

  /** What the server does when it gets it. */
  apply(write: KeptWrite): void {
    const { facts, sequence } = write;
    this.maybeLeft.add(facts.id);
    const key = this.#keyOf(write);
    if (key !== undefined) {
      if (this.seenKeys.has(key)) return;
      this.seenKeys.add(key);
    }
    this.effects.push({ id: facts.id, lane: `${facts.server} ${facts.lane ?? facts.id}`, sequence });
  }

  commitOne(): void {
    const next = this.pending.shift();
    if (next === undefined) return;
    if (next.record === undefined) this.disk.delete(next.sequence);
    else this.disk.set(next.sequence, next.record);
    next.onDisk();
  }

  accept(): void {
    const n = this.made++;
    const terms = this.pick(TERMS) as OutboxTerms;
    const lane = terms.lane.by === "none" ? undefined : `lane ${Math.floor(this.random() * 2)}`;
    const facts: WriteFacts = {
      id: `r${n}`,
      server: this.pick(["a", "b"]) as string,
      tool: ownToolName("create"),
      principal: { id: this.pick(["p", "q"]) as string, role: "agent" },
      lane,
      key: `k${n}`,
      keyHash: `h${n}`,
      argumentsHash: "args",
      terms,
      era: "legacy",
      version: "2025-06-18",
      takenMs: this.wallMs,
      bytes: 100,
    };
    const accepted = this.lanes.accept(facts, this.nowMs);
    if (accepted.kind !== "taken") throw new Error(accepted.kind);
    const { write } = accepted;
    const { lanes } = this;
    this.#address(write);
    this.pending.push({
      sequence: write.sequence,
      record: this.#record(write),
      onDisk: () => {
        this.acknowledged.add(facts.id);
        this.do(lanes.committed(write, this.nowMs, this.wallMs));
      },
    });
  }

  answer(write: KeptWrite): void {
    this.inFlight.delete(write);
    const roll = this.isCalm ? 0 : this.random();
    const why = "said so";
    let result: Result;
    if (roll < 0.4) {
      this.apply(write);
      result = { kind: "answered", failed: false };
    } else if (roll < 0.5) {
      this.apply(write);
      result = { kind: "maybe", why };
    } else if (roll < 0.6) {
      this.maybeLeft.add(write.facts.id);
      result = { kind: "maybe", why };
    } else if (roll < 0.75) result = { kind: "not-sent", why };
    else if (roll < 0.82) result = { kind: "not-done", why, retryAfterMs: this.random() < 0.5 ? undefined : 5_000 };
    else if (roll < 0.86) result = { kind: "login", why };
    else if (roll < 0.88) result = { kind: "forbidden", why };
    else if (roll < 0.92) result = { kind: "quarantine", why };
    else if (roll < 0.94) result = { kind: "refused", why };
    else if (roll < 0.96) result = { kind: "denied", why };
    else if (roll < 0.98) {
      this.setAside.add(write.facts.id);
      result = { kind: "revoked", why };
    } else if (this.seenKeys.has(this.#keyOf(write) ?? "")) result = { kind: "conflict", why };
    else result = { kind: "not-sent", why };
    this.do(this.lanes.result(write, result, this.nowMs, this.wallMs));
  }

  confirm(write: KeptWrite): void {
    this.confirming.delete(write);
    const isThere = this.effects.some(({ id }) => id === write.facts.id);
    const found = this.isCalm || this.random() < 0.7 ? isThere : undefined;
    this.do(this.lanes.confirmed(write, found, this.nowMs, this.wallMs));
  }

  crash(): void {
    // What is under way arrives, or does not.
    for (const write of this.inFlight) {
      this.maybeLeft.add(write.facts.id);
      if (this.random() < 0.5) this.apply(write);
    }
    this.inFlight = new Set();
    this.confirming = new Set();
    // Of what was to be written, a part was.
    for (let left = Math.floor(this.random() * (this.pending.length + 1)); left > 0; left--) {
      const next = this.pending.shift() as DiskWrite;
      if (next.record === undefined) this.disk.delete(next.sequence);
      else this.disk.set(next.sequence, next.record);
    }
    this.pending = [];
    const away = this.random() < 0.3 ? (this.random() - 0.5) * 2 * 86_400_000 : this.random() * 1_000;
    this.wallMs += away;
    this.nowMs = this.random() * 1_000;
    this.lanes = this.#fresh();
    for (const [sequence, record] of [...this.disk].sort(([a], [b]) => a - b)) {
      if (record.state === "sending") this.maybeLeft.add(record.id);
      this.acknowledged.add(record.id);
      this.lanes.restore(sequence, record, this.nowMs, this.wallMs);
    }
    this.do(this.lanes.start(this.nowMs, this.wallMs));
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.wallMs += ms;
    this.do(this.lanes.wake(this.nowMs, this.wallMs));
  }

  act(): void {
    const roll = this.random();
    if (roll < 0.2) this.accept();
    else if (roll < 0.5) this.commitOne();
    else if (roll < 0.7) {
      const write = this.pick([...this.inFlight]);
      if (write !== undefined) this.answer(write);
    } else if (roll < 0.75) {
      const write = this.pick([...this.confirming]);
      if (write !== undefined) this.confirm(write);
    } else if (roll < 0.88) this.pass(this.random() * 3_000);
    else if (roll < 0.89) this.pass(this.random() * 60_000);
    else if (roll < 0.91) this.operate();
    else if (roll < 0.92) {
      const write = this.pick([...this.lanes.all]);
      if (write === undefined) return;
      const { steps } = this.lanes.cancel(write, "taken back", this.nowMs, this.wallMs);
      this.do(steps);
    } else if (roll < 0.94) this.do(this.lanes.poke(this.pick(["a", "b", undefined]), this.nowMs, this.wallMs));
    else if (roll < 0.945) this.#answers(this.pick(["a", "b"]) as string);
    else if (roll < 0.955) this.lanes.hold(this.pick(["a", "b"]) as string, this.pick(["lane 0", undefined]));
    else if (roll < 0.97) {
      const server = this.pick(["a", "b"]) as string;
      this.do(this.lanes.release(server, undefined, this.nowMs, this.wallMs).steps);
    } else this.crash();
  }

  /** An operator settles something, and says what is true. */
  operate(): void {
    const write = this.pick(
      [...this.lanes.all].filter(({ isCommitted, held, state }) => isCommitted && (held || ASKING.has(state))),
    );
    if (write === undefined) return;
    const { id } = write.facts;
    const isThere = this.effects.some((effect) => effect.id === id);
    const { lanes, nowMs, wallMs } = this;
    const roll = this.random();
    let steps: string | Step[];
    if (write.state === "unknown" && roll < 0.8) {
      const as = isThere ? "done" : this.random() < 0.5 ? "again" : "failed";
      steps = lanes.resolve(write, as, nowMs, wallMs);
    } else steps = roll < 0.6 ? lanes.retry(write, nowMs, wallMs) : lanes.drop(write, nowMs, wallMs);
    if (typeof steps === "string") return;
    this.operated++;
    this.do(steps);
    if (!write.isOver) this.setAside.add(id);
  }

  /** Somebody else had an answer of the server: that is tried with one write, whatever waits for it. */
  #answers(server: string): void {
    const before = [...this.lanes.all].filter(({ state }) => state === "sending").length;
    this.do(this.lanes.answers(server, this.nowMs, this.wallMs));
    const after = [...this.lanes.all].filter(({ state }) => state === "sending").length;
    demand(after - before <= 1, "an answer to somebody else let loose more than one write");
  }

  /** All is well from now on: everything comes to its end. */
  settle(): void {
    this.isCalm = true;
    for (let round = 0; round < 400; round++) {
      for (const server of ["a", "b"]) this.do(this.lanes.release(server, undefined, this.nowMs, this.wallMs).steps);
      while (this.pending.length > 0) this.commitOne();
      for (const write of [...this.inFlight]) this.answer(write);
      for (const write of [...this.confirming]) this.confirm(write);
      this.pass(1_000);
      if (this.pending.length === 0 && [...this.lanes.all].every(({ isOver }) => isOver)) return;
    }
    const left = [...this.lanes.all].filter(({ isOver }) => !isOver);
    throw new Error(`never came to its end: ${left.map(({ facts, state, why }) => [facts.id, state, why].join(" "))}`);
  }
}

const BASE: OutboxTerms = {
  key: undefined,
  lane: { by: "principal" },
  maxAgeMs: 30 * 86_400_000,
  onUnknown: "skip",
  confirm: undefined,
  tells: true,
};
const KEY: OutboxTerms["key"] = { in: "argument", path: ["request_id"] };
const CONFIRM: OutboxTerms["confirm"] = { tool: ownToolName("find"), arguments: "{}", found: "/0" };
const BY_MESSAGE: OutboxTerms["key"] = { in: "message" };
/** What an operator finds to do something about. */
const ASKING: ReadonlySet<KeptWrite["state"]> = new Set(["failed", "expired", "unknown", "queued"]);
const TERMS: readonly OutboxTerms[] = [
  { ...BASE, key: KEY },
  { ...BASE, key: KEY, onUnknown: "hold" },
  { ...BASE, key: KEY, lane: { by: "none" } },
  BASE,
  { ...BASE, onUnknown: "hold" },
  { ...BASE, confirm: CONFIRM },
  { ...BASE, maxAgeMs: 20_000 },
  { ...BASE, key: KEY, maxAgeMs: 20_000 },
  { ...BASE, key: KEY, confirm: CONFIRM },
  { ...BASE, key: KEY, confirm: CONFIRM, maxAgeMs: 20_000 },
  { ...BASE, key: BY_MESSAGE },
  { ...BASE, key: BY_MESSAGE, onUnknown: "hold" },
  { ...BASE, key: BY_MESSAGE, confirm: CONFIRM },
];

function check(world: World): void {
  const states = new Map([...world.lanes.all].map((write) => [write.facts.id, write]));
  for (const id of world.acknowledged) {
    demand(states.has(id) || world.dropped.has(id), `${id} was acknowledged and is lost`);
  }
  const counts = new Map<string, number>();
  for (const { id } of world.effects) counts.set(id, (counts.get(id) ?? 0) + 1);
  for (const [id, count] of counts) demand(count === 1, `${id} took effect twice`);
  for (const [id, write] of states) {
    const isThere = counts.has(id);
    if (write.state === "done") demand(isThere, `${id} is called done`);
    if (write.state === "cancelled" || write.state === "expired") demand(!isThere, `${id} is ${write.state}`);
    if (write.state === "unknown") demand(world.maybeLeft.has(id), `${id} is called unknown`);
  }
  const last = new Map<string, number>();
  for (const { id, lane, sequence } of world.effects) {
    if (world.setAside.has(id)) continue;
    demand(sequence > (last.get(lane) ?? 0), `${id} was overtaken in ${lane}`);
    last.set(lane, sequence);
  }
  const waiting = [...states.values()].filter(({ isOver }) => !isOver).length;
  demand(world.lanes.room.writes === waiting, "the room is counted wrong");
}

describe("the state machine of the outbox", () => {
  it(`loses nothing, does nothing twice and keeps the order of every lane, in ${SEEDS} histories with crashes between any two steps [ack-is-durable] [no-double-effect] [unknown-is-said] [lane-order]`, () => {
    let effects = 0;
    let operated = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const world = new World(seed);
      try {
        for (let i = 0; i < ACTIONS; i++) world.act();
        check(world);
        world.settle();
        check(world);
      } catch (error) {
        (error as Error).message = `seed ${seed}: ${(error as Error).message}`;
        throw error;
      }
      effects += world.effects.length;
      operated += world.operated;
    }
    expect(effects).toBeGreaterThan(SEEDS);
    expect(operated).toBeGreaterThan(SEEDS / 2);
  });
});
