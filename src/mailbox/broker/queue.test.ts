// The queue against a model that is a plain list, in thousands of histories; then what a reader wants to see by itself.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { MailboxQueue } from "./queue.js";
import {
  ANYBODY,
  type Binding,
  type Consumer,
  type Ended,
  type QueuedMessage,
  type QueueLimits,
} from "./queue-terms.js";

const LEASE_MS = 30_000;
const HOUR_MS = 3_600_000;
const LIMITS: QueueLimits = {
  leaseMs: LEASE_MS,
  maxFailures: 5,
  maxMessages: 10_000,
  maxBytes: 1 << 28,
  maxKinds: 64,
  replyBytes: 4_096,
};

/** Few enough that histories reach the limit often. */
const FEW: QueueLimits = { ...LIMITS, maxFailures: 3 };

const consumer = (more: Partial<Consumer> = {}): Consumer => ({
  kinds: undefined,
  journal: undefined,
  window: 16,
  knowsIdsOnly: false,
  ...more,
});

/** What the model knows of a message, in words that need no structure. */
interface Known {
  readonly message: QueuedMessage;
  state: "fresh" | "held" | "returned" | "over";
  order: number;
  failures: number;
  journal: string | undefined;
  stored: Binding | undefined;
  mayHaveRun: boolean;
  isRepeatable: boolean;
  holder: Consumer | undefined;
  leaseEndMs: number;
}

class Model {
  readonly all: Known[] = [];
  readonly consumers: Consumer[] = [];
  order = 0;

  get living(): Known[] {
    return this.all.filter(({ state }) => state !== "over");
  }

  heldBy(one: Consumer): Known[] {
    return this.all.filter(({ state, holder }) => state === "held" && holder === one);
  }

  /** What this consumer may be handed now, what came back first. */
  eligible(one: Consumer): Known[] {
    if (this.heldBy(one).length >= one.window) return [];
    return this.all.filter(
      ({ state, message, journal }) =>
        (state === "fresh" || (state === "returned" && (journal === undefined || journal === one.journal))) &&
        (one.kinds === undefined || one.kinds.has(message.kind)),
    );
  }
}

/** Its holder has it no more. What may run twice is for anybody then, all else for its journal alone. */
function goBack(known: Known): void {
  if (known.isRepeatable) known.journal = undefined;
  Object.assign(known, { state: "returned", holder: undefined });
}

const SENDERS = ["ann", "bob", "cid"];
const KINDS = ["mcp_request", "mcp_reply", "note"];
const CONSUMERS: readonly Consumer[] = [
  consumer({ window: 3 }),
  consumer({ window: 2, kinds: new Set(["mcp_request"]), journal: "J1" }),
  consumer({ window: 4, kinds: new Set(["mcp_request", "note"]), journal: "J1" }),
  consumer({ window: 2, kinds: new Set(["mcp_request", "mcp_reply"]), journal: "J2" }),
  consumer({ window: 1, journal: "J2" }),
];

const nat = fc.nat(1_000);
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("send"), a: nat, b: nat, ms: fc.constantFrom(500, 40_000, 400_000) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("attach"), a: nat, b: nat, ms: nat }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("detach"), a: nat, b: nat, ms: nat }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom("ack", "release", "fail", "extend", "repeatable", "cancel"),
      a: nat,
      b: nat,
      ms: nat,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("wait"),
      a: nat,
      b: nat,
      ms: fc.constantFrom(1, 400, 12_000, LEASE_MS, 90_000),
    }),
  },
);

const pick = <T>(from: readonly T[], n: number): T | undefined => from[n % Math.max(from.length, 1)];
const namesOf = (all: readonly { message: QueuedMessage }[]): string =>
  all
    .map(({ message }) => message.sequence)
    .sort((a, b) => a - b)
    .join(" ");

/** In thousands of histories: expect() costs far more than what is tested. */
function same(found: unknown, wanted: unknown, what: string): void {
  if (found !== wanted) expect(found, what).toBe(wanted);
}

describe("a mailbox's queue", () => {
  it("never leases twice, loses nothing, keeps the order of each sender and the journals, and ends what failed at the limit [ack-is-durable] [no-double-effect]", () => {
    const seen = { dead: 0, expired: 0, repeats: 0, handed: 0 };
    fc.assert(
      fc.property(fc.array(step, { minLength: 10, maxLength: 100 }), (steps) => {
        const queue = new MailboxQueue(FEW);
        const model = new Model();
        let nowMs = 1_000;

        const settle = (ended: readonly Ended[], expected: readonly Known[]) => {
          same(namesOf(ended), namesOf(expected), "what ended");
          for (const { message, why, mayHaveRun, isRepeatable } of ended) {
            const known = model.all.find((one) => one.message === message) as Known;
            same(mayHaveRun, known.mayHaveRun, "whether it may have run");
            same(isRepeatable, known.isRepeatable, "whether it may run twice");
            if (why === "failed") same(known.failures, FEW.maxFailures, "failures");
            else same(message.endMs <= nowMs, true, "its end has come");
            seen[why === "failed" ? "dead" : "expired"]++;
            known.state = "over";
          }
        };

        const tick = () => {
          const due: Known[] = [];
          for (const known of model.living) {
            const isOver = known.message.endMs <= nowMs;
            if (known.state !== "held") {
              if (isOver) due.push(known);
            } else if (known.leaseEndMs <= nowMs) {
              goBack(known);
              if (!isOver) known.failures++;
              if (isOver || known.failures >= FEW.maxFailures) due.push(known);
            }
          }
          settle(queue.tick(nowMs), due);
        };

        const handOut = () => {
          for (;;) {
            const given = queue.next(nowMs);
            if (given === undefined) break;
            const options = model.eligible(given.consumer);
            const known = options.find(({ message }) => message === given.message) as Known;
            same(known === undefined, false, "it may not have this one");
            const returned = options.filter(({ state }) => state === "returned");
            if (returned.length > 0) {
              same(known.order, Math.min(...returned.map(({ order }) => order)), "the first that came back");
            } else {
              const own = options.filter(({ message }) => message.sender === known.message.sender);
              same(
                known.message.sequence,
                Math.min(...own.map(({ message }) => message.sequence)),
                "the first of its sender",
              );
            }
            same(given.isRepeat, known.order > 0, "whether it is a repeat");
            const isStored = known.stored !== undefined && known.stored.journal === given.consumer.journal;
            same(given.bindTo, isStored ? undefined : given.consumer, "what the store must know");
            known.stored = given.consumer;
            if (known.order === 0) known.order = ++model.order;
            else seen.repeats++;
            seen.handed++;
            known.state = "held";
            known.holder = given.consumer;
            known.journal = given.consumer.journal;
            known.mayHaveRun = true;
            known.isRepeatable = false;
            known.leaseEndMs = nowMs + LEASE_MS;
          }
          for (const one of model.consumers) same(model.eligible(one).length, 0, "what waits beside room");
        };

        for (const [at, one] of steps.entries()) {
          const taking = pick(model.consumers, one.a);
          const held = taking === undefined ? undefined : pick(model.heldBy(taking), one.b);
          switch (one.do) {
            case "send": {
              const [sender, kind] = [pick(SENDERS, one.a) as string, pick(KINDS, one.b) as string];
              const message = {
                sequence: at + 1,
                id: `m-${at}`,
                sender,
                kind,
                bytes: 10 + at,
                endMs: nowMs + one.ms,
                bound: undefined,
              };
              same(queue.admit(sender, kind, message.bytes), undefined, "room");
              queue.add(message);
              const now = {
                state: "fresh",
                order: 0,
                failures: 0,
                journal: undefined,
                stored: undefined,
                mayHaveRun: false,
                isRepeatable: false,
              } as const;
              model.all.push({ ...now, message, holder: undefined, leaseEndMs: 0 });
              break;
            }
            case "attach": {
              const next = CONSUMERS.find((each) => !model.consumers.includes(each));
              if (next === undefined) break;
              model.consumers.push(next);
              queue.attach(next);
              break;
            }
            case "detach":
              if (taking === undefined) break;
              model.consumers.splice(model.consumers.indexOf(taking), 1);
              for (const known of model.heldBy(taking)) goBack(known);
              queue.detach(taking);
              break;
            case "ack":
              if (held === undefined || taking === undefined) break;
              for (const other of CONSUMERS.filter((each) => each !== taking)) {
                same(queue.acknowledge(other, held.message.sender, held.message.id), undefined, "another's message");
              }
              same(queue.acknowledge(taking, held.message.sender, held.message.id), held.message, "acknowledged");
              held.state = "over";
              break;
            case "release":
            case "fail": {
              if (held === undefined || taking === undefined) break;
              const failed = one.do === "fail";
              Object.assign(held, { state: "returned", journal: undefined, mayHaveRun: failed, holder: undefined });
              held.stored = failed ? ANYBODY : undefined;
              if (failed) held.failures++;
              const { sender, id } = held.message;
              const ended = queue.release(taking, sender, id, failed ? { reason: "no" } : undefined);
              settle(ended === undefined ? [] : [ended], held.failures >= FEW.maxFailures ? [held] : []);
              break;
            }
            case "extend":
            case "repeatable":
              if (held === undefined || taking === undefined) break;
              if (one.do === "repeatable") held.isRepeatable = true;
              held.leaseEndMs = Math.min(nowMs, held.message.endMs) + LEASE_MS;
              same(
                queue.extend(taking, held.message.sender, held.message.id, nowMs, one.do === "repeatable"),
                held.leaseEndMs > nowMs,
                "extended",
              );
              break;
            case "cancel": {
              const known = pick(model.living, one.b);
              if (known === undefined) break;
              const told = queue.cancel(known.message.sender, known.message.id);
              same(told.was, known.mayHaveRun ? "handed-out" : "waiting", "what was cancelled");
              if (told.was === "handed-out") same(told.consumer, known.holder, "who has it");
              else {
                if (told.was === "waiting") same(told.message, known.message, "the cancelled one");
                known.state = "over";
              }
              break;
            }
            default:
              nowMs += one.ms;
          }
          tick();
          handOut();
          const { living } = model;
          same(queue.messages, living.length, "messages");
          same(
            queue.bytes,
            living.reduce((sum, { message }) => sum + message.bytes, 0),
            "bytes",
          );
          const dues = living.map((known) => (known.state === "held" ? known.leaseEndMs : known.message.endMs));
          same(queue.nextDueMs, dues.length === 0 ? undefined : Math.min(...dues), "the next due time");
        }
      }),
      { numRuns: histories(3_000) },
    );
    for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(histories(50));
  });

  const message = (sequence: number, more: Partial<QueuedMessage> = {}): QueuedMessage => ({
    sequence,
    id: `m-${sequence}`,
    sender: "ann",
    kind: "mcp_request",
    bytes: 100,
    endMs: HOUR_MS,
    bound: undefined,
    ...more,
  });

  function queueWith(messages: readonly QueuedMessage[], limits: Partial<QueueLimits> = {}): MailboxQueue {
    const queue = new MailboxQueue({ ...LIMITS, ...limits });
    for (const one of messages) {
      expect(queue.admit(one.sender, one.kind, one.bytes)).toBeUndefined();
      queue.add(one);
    }
    return queue;
  }

  it("takes turns between senders, however much one of them has sent", () => {
    const from = (sender: string, first: number, count: number) =>
      Array.from({ length: count }, (_, n) => message(first + n, { sender }));
    const queue = queueWith([...from("ann", 1, 50), ...from("bob", 51, 2), ...from("cid", 53, 2)]);
    queue.attach(consumer({ window: 7 }));
    const given = Array.from({ length: 7 }, () => queue.next(0)?.message.sender);
    expect(given).toEqual(["ann", "bob", "cid", "ann", "bob", "cid", "ann"]);
  });

  it("gives what was handed to a journal back to that journal alone, also after the broker started again", () => {
    const queue = new MailboxQueue(LIMITS);
    queue.restore(message(1, { bound: { journal: "J1" } }));
    queue.restore(message(2));
    queue.attach(consumer({ journal: "J2" }));
    expect(queue.next(0)?.message.sequence).toBe(2);
    expect(queue.next(0)).toBeUndefined();
    queue.attach(consumer({ journal: "J1" }));
    expect(queue.next(0)).toMatchObject({ message: { sequence: 1 }, isRepeat: true, bindTo: undefined });
  });

  it("gives what its holder said may run twice to anybody when that one goes or falls silent, and to the one journal that it is for [no-double-effect]", () => {
    for (const goes of [true, false]) {
      const queue = queueWith([message(1), message(2, { only: "J1" }), message(3)]);
      const [first, second] = [consumer({ journal: "J1" }), consumer({ journal: "J2" })];
      queue.attach(first);
      while (queue.next(0) !== undefined);
      for (const id of ["m-1", "m-2"]) expect(queue.extend(first, "ann", id, 0, true)).toBe(true);
      queue.attach(second);
      if (goes) queue.detach(first);
      else queue.pause(first, true);
      queue.tick(LEASE_MS);
      expect(queue.next(LEASE_MS)).toMatchObject({ consumer: second, message: { sequence: 1 }, bindTo: second });
      expect(queue.next(LEASE_MS)).toBeUndefined();
      // The second says nothing of it: it is its own from now on.
      queue.detach(second);
      if (goes) queue.attach(first);
      else queue.pause(first, false);
      const back = [queue.next(LEASE_MS), queue.next(LEASE_MS), queue.next(LEASE_MS)];
      expect(back.map((given) => given?.message.sequence)).toEqual([2, 3, undefined]);
    }
  });

  it("says that what was handed out may have run, when its journal is not back before its end [unknown-is-said]", () => {
    const queue = queueWith([message(1), message(2, { sender: "bob" })]);
    const one = consumer({ journal: "J1", window: 1 });
    queue.attach(one);
    expect(queue.next(0)?.message.sequence).toBe(1);
    queue.detach(one);
    expect(queue.tick(HOUR_MS)).toMatchObject([
      { message: { sequence: 1 }, why: "expired", mayHaveRun: true },
      { message: { sequence: 2 }, why: "expired", mayHaveRun: false },
    ]);
  });

  it("ends a lease that is extended for ever one lease after the message's own end", () => {
    const queue = queueWith([message(1, { endMs: 1_000 })]);
    const one = consumer();
    queue.attach(one);
    queue.next(0);
    for (let nowMs = 0; nowMs < LEASE_MS; nowMs += 10_000) expect(queue.extend(one, "ann", "m-1", nowMs)).toBe(true);
    expect(queue.tick(1_000 + LEASE_MS - 1)).toEqual([]);
    expect(queue.tick(1_000 + LEASE_MS)).toMatchObject([{ why: "expired", mayHaveRun: true }]);
  });

  it("has room for so many messages and bytes, half of it for one sender, and keeps the room of replies [bounded]", () => {
    const limits = { maxMessages: 10, maxBytes: 10_000, replyBytes: 1_000, maxKinds: 2 };
    const queue = queueWith(
      [1, 2, 3, 4, 5].map((n) => message(n)),
      limits,
    );
    expect(queue.admit("ann", "mcp_request", 1)).toBe("share");
    expect(queue.admit("bob", "mcp_request", 5_001)).toBe("share");
    expect(queue.reserve("r-1")).toBe(true);
    for (let n = 0; n < 4; n++) expect(queue.admit("bob", "mcp_request", 100)).toBeUndefined();
    expect(queue.admit("cid", "mcp_request", 1)).toBe("messages");
    expect(queue.reserve("r-2")).toBe(false);
    expect(queue.admit("ann", "mcp_reply", 20_000, "r-1")).toBe("bytes");
    expect(queue.admit("ann", "mcp_reply", 1_000, "r-1")).toBeUndefined();
    expect(queue.messages).toBe(10);
    queue.abandon("ann", "mcp_reply", 1_000, "r-1");
    expect(queue.admit("ann", "mcp_reply", 1_000, "r-1")).toBeUndefined();
    queue.abandon("bob", "mcp_request", 100);
    expect(queue.admit("cid", "mcp_request", 1)).toBeUndefined();
  });

  it("refuses one kind too many: each waits in a line of its own [bounded]", () => {
    const queue = queueWith([message(1, { kind: "a" }), message(2, { kind: "b", sender: "cid" })], { maxKinds: 2 });
    expect(queue.admit("bob", "c", 1)).toBe("kinds");
    expect(queue.admit("bob", "b", 1)).toBeUndefined();
  });

  it("takes new kinds of no sender beyond half of them, also while the first are on their way into the store, and a reply whose room is kept whatever its kind [bounded]", () => {
    const queue = queueWith([], { maxKinds: 4 });
    expect(queue.reserve("r-1")).toBe(true);
    for (const kind of ["a", "b"]) expect(queue.admit("ann", kind, 1)).toBeUndefined();
    expect(queue.admit("ann", "c", 1)).toBe("own-kinds");
    for (const kind of ["c", "d"]) expect(queue.admit("bob", kind, 1)).toBeUndefined();
    // What is there already costs nobody anything.
    expect(queue.admit("ann", "c", 1)).toBeUndefined();
    expect(queue.admit("cid", "mcp_request", 1)).toBe("kinds");
    expect(queue.admit("cid", "mcp_reply", 1, "r-1")).toBeUndefined();
    queue.abandon("ann", "a", 1);
    queue.abandon("cid", "mcp_reply", 1);
    expect(queue.admit("cid", "mcp_request", 1)).toBeUndefined();
  });

  it("hands two messages of one id, from two senders, one after the other to whoever knows them by their ids alone", () => {
    const same = [message(1), message(2, { sender: "bob", id: "m-1" }), message(3, { sender: "cid" })];
    const queue = queueWith(same);
    const bare = consumer({ knowsIdsOnly: true });
    queue.attach(bare);
    expect([queue.next(0), queue.next(0), queue.next(0)].map((given) => given?.message.sequence)).toEqual([
      1,
      3,
      undefined,
    ]);
    queue.acknowledge(bare, "ann", "m-1");
    expect(queue.next(0)?.message.sequence).toBe(2);
  });

  it("hands what is for one journal to nobody else, also when it was given back and after the broker started again [no-double-effect]", () => {
    const [other, own] = [consumer({ journal: "b" }), consumer({ journal: "a" })];
    for (const restored of [false, true]) {
      const queue = queueWith(restored ? [] : [message(1, { only: "a" })]);
      if (restored) queue.restore(message(1, { only: "a", bound: ANYBODY }));
      queue.attach(other);
      expect(queue.next(0)).toBeUndefined();
      queue.attach(own);
      expect(queue.next(0)?.consumer).toBe(own);
      queue.release(own, "ann", "m-1");
      queue.detach(own);
      expect(queue.next(0)).toBeUndefined();
    }
  });

  it("hands out no more than was granted and than the window holds", () => {
    const queue = queueWith([1, 2, 3, 4].map((n) => message(n)));
    const one = consumer({ window: 2 });
    queue.attach(one, 3);
    expect([queue.next(0), queue.next(0), queue.next(0)].map((given) => given?.message.sequence)).toEqual([
      1,
      2,
      undefined,
    ]);
    queue.acknowledge(one, "ann", "m-1");
    expect(queue.next(0)?.message.sequence).toBe(3);
    queue.acknowledge(one, "ann", "m-2");
    expect(queue.next(0)).toBeUndefined();
    queue.grant(one, 1);
    expect(queue.next(0)?.message.sequence).toBe(4);
  });
});
