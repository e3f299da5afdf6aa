// What a broker hands out when its store is slow, and when it fails: a broker on a store whose commits the test lets
// through or fails, with a clock of the test.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { HeldStore } from "../../../test/fixtures/mailbox/held-store.js";
import { ElapsedClock } from "../elapsed-clock.js";
import type { Deliver } from "../wire/frames.js";
import { Broker } from "./broker.js";
import { deadLetterOf } from "./dead-letters.js";
import { DEFAULT_END_MS, MAX_DEAD_LETTERS, MAX_END_MS, MAX_MAILBOXES, QUEUE_LIMITS, RETRY_MS } from "./limits.js";
import { MailboxOperator } from "./operator.js";
import type { Consumer } from "./queue-terms.js";
import { bindingOf, headerOf, type StoredBinding } from "./record.js";

const log = { debug() {}, info() {}, warn() {}, error() {} } as never;
const WORKER = { address: "worker-1", owner: "worker-1", role: "researcher", maySendTo: undefined };

let store: HeldStore;
let broker: Broker;
let nowMs: number;
let mayAct: boolean;

beforeEach(() => {
  vi.useFakeTimers();
  nowMs = 0;
  mayAct = true;
  store = new HeldStore();
  const clock = new ElapsedClock({ now: () => nowMs, wall: () => nowMs });
  broker = new Broker({ store: store.asStore, clock, log, knows: () => true, mayAct: () => mayAct });
});
afterEach(() => {
  broker.close();
  vi.useRealTimers();
});

/** A consumer, and the ids of what it was sent. */
class Taker {
  readonly consumer: Consumer;
  readonly got: string[] = [];
  onMessage: ((id: string) => void) | undefined;

  /** Without credit it is a bare one. */
  constructor(journal: string | undefined, credit: number | undefined) {
    this.consumer = { kinds: undefined, journal, window: 100, knowsIdsOnly: credit === undefined };
    broker.subscribe("studio", this.consumer, (frame) => this.#take(frame), credit);
  }

  #take(frame: string): boolean {
    const { kind, message } = JSON.parse(frame) as { kind: string; message: { id: string } };
    if (kind !== "message") return true;
    this.got.push(message.id);
    this.onMessage?.(message.id);
    return true;
  }

  leave(): void {
    broker.unsubscribe("studio", this.consumer);
  }

  ack(id: string): boolean {
    return broker.acknowledge("studio", this.consumer, [{ id, from: "worker-1" }]).length === 0;
  }
}

function deliver(id: string, leftMs = 3_600_000): Promise<void> {
  const message = { id, kind: "mcp_request", body: "{}", correlationId: undefined };
  const frame: Deliver = { kind: "deliver", to: "studio", message, leftMs, acknowledges: undefined };
  return broker.deliver(WORKER, frame);
}

/** Whom the store has a message down for: its journal, or false for nobody. */
function onDisk(id: string): string | undefined | false {
  for (const [sequence, record] of store.log("mail").entries()) {
    const header = headerOf(record);
    if (header.id !== id) continue;
    const binding = bindingOf(store.map<StoredBinding>("mail-bindings").get(String(sequence)) ?? header.bound);
    return binding === undefined ? false : binding.journal;
  }
  return false;
}

const turn = () => vi.advanceTimersByTimeAsync(0);

describe("what a broker takes", () => {
  it("lives for an hour where its sender says nothing of it [bounded]", async () => {
    const message = { id: "m-1", kind: "mcp_request", body: "{}", correlationId: undefined };
    await broker.deliver(WORKER, {
      kind: "deliver",
      to: "studio",
      message,
      leftMs: undefined,
      acknowledges: undefined,
    });
    nowMs = DEFAULT_END_MS - 1;
    const first = new Taker(undefined, undefined);
    await turn();
    expect(first.got).toEqual(["m-1"]);
    first.leave();
    nowMs = DEFAULT_END_MS;
    const second = new Taker(undefined, undefined);
    await turn();
    expect(second.got).toEqual([]);
  });

  it("lives for 7 days at most, whatever its sender wants [bounded]", async () => {
    await deliver("m-1", 10 * MAX_END_MS);
    nowMs = MAX_END_MS - 1;
    const first = new Taker(undefined, undefined);
    await turn();
    expect(first.got).toEqual(["m-1"]);
    first.leave();
    nowMs = MAX_END_MS;
    const second = new Taker(undefined, undefined);
    await turn();
    expect(second.got).toEqual([]);
  });

  it("is refused by name where it would open one mailbox too many, and those that are open go on [bounded]", async () => {
    const taker = new Taker(undefined, undefined);
    for (let n = 1; n < MAX_MAILBOXES; n++) {
      broker.subscribe(`box-${n}`, { ...taker.consumer }, () => true, undefined);
    }
    const note = { id: "n-1", kind: "note", body: "{}", correlationId: undefined };
    const to = (address: string): Deliver => ({
      kind: "deliver",
      to: address,
      message: note,
      leftMs: undefined,
      acknowledges: undefined,
    });
    await expect(broker.deliver(WORKER, to("one-more"))).rejects.toThrow(`${MAX_MAILBOXES} mailboxes in use`);
    await broker.deliver(WORKER, to("studio"));
    expect(taker.got).toEqual(["n-1"]);
  });
});

describe("what a broker hands out", () => {
  it("is off the disk some time after it is acknowledged, for which nobody waits; what is taken back is off it at once", async () => {
    const taker = new Taker("J1", 1);
    await deliver("m-1");
    await deliver("m-2");
    expect(taker.got).toEqual(["m-1"]);
    expect(taker.ack("m-1")).toBe(true);
    expect([store.unawaited, [...store.log("mail").entries()].length]).toEqual([1, 1]);
    expect(await broker.cancel(WORKER, "studio", "m-2")).toBe(true);
    expect([store.unawaited, [...store.log("mail").entries()].length]).toEqual([1, 0]);
  });

  it("does not leave before its own binding is on disk, whichever other write came back [no-double-effect]", async () => {
    await deliver("m-1");
    await deliver("m-2");
    store.isHolding = true;
    const taker = new Taker("J1", 1);
    broker.grant("studio", taker.consumer, 1);
    await turn();
    expect(store.waiting).toBe(2);
    expect(taker.got).toEqual([]);
    store.commit();
    await turn();
    expect(taker.got).toEqual(["m-1"]);
    expect(onDisk("m-2")).toBe(false);
    store.commit();
    await turn();
    expect(taker.got).toEqual(["m-1", "m-2"]);
    expect(onDisk("m-2")).toBe("J1");
  });

  it("is handed out again, with its credit and in its order, when the store could not take its binding [ack-is-durable]", async () => {
    await deliver("m-1");
    await deliver("m-2");
    store.isHolding = true;
    const taker = new Taker("J1", 1);
    broker.grant("studio", taker.consumer, 1);
    await turn();
    // The first write fails while the second is under way: neither message may leave, and neither is lost.
    store.fail();
    await turn();
    store.commitAll();
    await turn();
    expect(taker.got).toEqual([]);
    await vi.advanceTimersByTimeAsync(RETRY_MS);
    store.commitAll();
    await turn();
    expect(taker.got).toEqual(["m-1", "m-2"]);
  });

  it("stays where it is while the broker does not know whose the mailbox is, and the broker goes on [one-owner]", async () => {
    await deliver("m-1");
    const bare = new Taker(undefined, undefined);
    await turn();
    expect(bare.got).toEqual(["m-1"]);
    mayAct = false;
    // Its lease is over by then.
    nowMs += 60_000;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(bare.got).toEqual(["m-1"]);
    mayAct = true;
    nowMs += RETRY_MS;
    await vi.advanceTimersByTimeAsync(RETRY_MS);
    expect(bare.got).toEqual(["m-1", "m-1"]);
  });

  it("does not leave by a binding that was stored when the mailbox may have been another's [one-owner]", async () => {
    await deliver("m-1");
    store.isHolding = true;
    const taker = new Taker("J1", 1);
    await turn();
    mayAct = false;
    store.commitAll();
    await turn();
    expect(taker.got).toEqual([]);
    mayAct = true;
    nowMs += RETRY_MS;
    await vi.advanceTimersByTimeAsync(RETRY_MS);
    store.commitAll();
    await turn();
    expect(taker.got).toEqual(["m-1"]);
  });

  it("is anybody's when its consumer goes before it has left, after a restart too [ack-is-durable]", async () => {
    await deliver("m-1");
    store.isHolding = true;
    const first = new Taker("J1", 100);
    await turn();
    first.leave();
    const second = new Taker("J2", 100);
    store.commitAll();
    await turn();
    store.commitAll();
    await turn();
    expect(first.got).toEqual([]);
    expect(second.got).toEqual(["m-1"]);
    expect(onDisk("m-1")).toBe("J2");
  });

  it("never runs when its sender cancels it on its way to the disk, whoever waits for it", async () => {
    const taker = new Taker("J1", 2);
    store.isHolding = true;
    const delivered = deliver("m-1");
    // It comes to the disk in the same commit, and its turn at the mailbox is that of the first.
    const second = deliver("m-2");
    const cancelled = broker.cancel(WORKER, "studio", "m-1");
    // Of another mailbox it says nothing.
    expect(await broker.cancel(WORKER, "attic", "m-2")).toBe(false);
    store.isHolding = false;
    store.commitAll();
    await Promise.all([delivered, second]);
    expect(await cancelled).toBe(true);
    await turn();
    expect(taker.got).toEqual(["m-2"]);
    const ids = [...store.log("mail").entries()].map(([, record]) => headerOf(record).id);
    expect(ids).toEqual(["m-2"]);
  });

  it("is said to be taken back when it is off the disk: a restart before that would hand it out [no-double-effect]", async () => {
    await deliver("m-1");
    store.isHolding = true;
    let told: boolean | undefined;
    const cancelled = broker.cancel(WORKER, "studio", "m-1").then((isRemoved) => {
      told = isRemoved;
    });
    await turn();
    expect(told).toBeUndefined();
    store.isHolding = false;
    store.commitAll();
    await cancelled;
    expect(told).toBe(true);
    expect([...store.log("mail").entries()]).toEqual([]);
  });

  it("never runs when its sender cancels it before it has left", async () => {
    await deliver("m-1");
    store.isHolding = true;
    const taker = new Taker("J1", 1);
    await turn();
    const cancelled = broker.cancel(WORKER, "studio", "m-1");
    store.isHolding = false;
    store.commitAll();
    expect(await cancelled).toBe(true);
    await turn();
    // Its credit is there for the next.
    await deliver("m-2");
    await turn();
    expect(taker.got).toEqual(["m-2"]);
  });

  it("gives its place to the next at once where it ended before it could leave [ack-is-durable]", async () => {
    await deliver("m-1", 1_000);
    await deliver("m-2");
    store.isHolding = true;
    const taker = new Taker("J1", 1);
    await turn();
    // Its end, and a lease more.
    nowMs += 62_000;
    await vi.advanceTimersByTimeAsync(2_000);
    store.isHolding = false;
    store.commitAll();
    await turn();
    expect(taker.got).toEqual(["m-2"]);
  });

  it("is not read from the disk where it just came and somebody takes it [ack-is-durable]", async () => {
    const read = vi.fn();
    const { log: logOf } = store;
    vi.spyOn(store, "log").mockImplementation((name) => {
      const one = logOf.call(store, name);
      const get = (sequence: number) => {
        read(sequence);
        return one.get(sequence);
      };
      return { ...one, get };
    });
    broker.close();
    const clock = new ElapsedClock({ now: () => nowMs, wall: () => nowMs });
    broker = new Broker({ store: store.asStore, clock, log, knows: () => true });
    const taker = new Taker("J1", 2);
    await deliver("m-1");
    expect([taker.got, read.mock.calls]).toEqual([["m-1"], []]);
    // One that comes again is.
    taker.leave();
    const next = new Taker("J1", 2);
    expect([next.got, read.mock.calls.length]).toEqual([["m-1"], 1]);
  });

  it("is known by its id to a bare consumer only while that one has it [bounded]", async () => {
    const bare = new Taker(undefined, undefined);
    await deliver("m-1");
    expect(bare.got).toEqual(["m-1"]);
    nowMs += 31_000;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(bare.got).toEqual(["m-1", "m-1"]);
    const name = { id: "m-1", from: undefined };
    expect(broker.acknowledge("studio", bare.consumer, [name])).toEqual([]);
    expect(broker.acknowledge("studio", bare.consumer, [name])).toEqual([name]);
  });

  it("reaches one journal alone and none is lost, in any order of writes, failures and departures [no-double-effect] [ack-is-durable]", async () => {
    for (let seed = 1; seed <= histories(100); seed++) await tryOut(seed);
  });
});

describe("the room for an answer", () => {
  const to = "worker-1";
  const senderOf = (id: string) => ({ ...WORKER, address: id, owner: id });
  /** Says something in a sender's name, and why it was not taken, if it was not. */
  async function say(sender: string, id: string, to: string, correlationId?: string, kind = "note") {
    const message = { id, kind, body: "{}", correlationId };
    const frame: Deliver = { kind: "deliver", to, message, leftMs: undefined, acknowledges: undefined };
    const by = { consumer: undefined, journal: sender === "studio" ? "J1" : undefined };
    return broker.deliver(senderOf(sender), frame, by).then(
      () => undefined,
      (error: Error) => error.message,
    );
  }
  /** As much as there is room for. */
  async function fill(sender: string, box = to): Promise<string> {
    for (let n = 0; n <= QUEUE_LIMITS.maxMessages; n++) {
      const refused = await say(sender, `${sender}-${n}`, box);
      if (refused !== undefined) return refused;
    }
    return "it never ends";
  }

  it("is for whoever was asked, and for the answer: nobody else who names the message takes it [bounded]", async () => {
    const studio = new Taker("J1", 1);
    await deliver("m-1");
    expect(studio.got).toEqual(["m-1"]);
    expect(await fill("ann")).toContain("half of the mailbox");
    for (const kind of ["mcp_reply", "note"]) {
      expect(await say("ann", `ann-${kind}`, to, "m-1", kind)).toContain("half of the mailbox");
    }
    // These are taken as long as there is room for anything, and what they name changes nothing.
    expect(await say("bob", "forged", to, "m-1", "mcp_reply")).toBeUndefined();
    expect(await say("studio", "aside", to, "m-1")).toBeUndefined();
    expect(await fill("bob")).toContain("is full");
    expect(await say("studio", "r-1", to, "m-1", "mcp_reply")).toBeUndefined();
  });

  it("is kept when the answer cannot be stored, and no room is for what owed none: a full disk fills no mailbox [bounded]", async () => {
    const studio = new Taker("J1", 1);
    await deliver("m-1");
    expect(studio.got).toEqual(["m-1"]);
    const unstored = async (said: Promise<string | undefined>) => {
      store.fail();
      expect(await said).toContain("could not be stored: the disk is full");
    };
    store.isHolding = true;
    for (let n = 0; n < 3; n++) {
      await unstored(say("studio", "r-1", to, "m-1", "mcp_reply"));
      await unstored(say(to, "m-2", "attic", `own-${n}`, "mcp_request"));
      await unstored(say("bob", "b-1", "attic", `own-${n}`, "mcp_reply"));
    }
    expect(broker.inside.mailboxes.get("attic")).toBeUndefined();
    store.isHolding = false;
    expect([await fill("ann"), await fill("bob")]).toEqual([expect.any(String), expect.stringContaining("is full")]);
    expect(await say("studio", "r-1", to, "m-1", "mcp_reply")).toBeUndefined();
    expect(studio.ack("m-1")).toBe(true);
    expect(await say(to, "m-2", "attic", "own-1", "mcp_request")).toContain("no room for the reply");
  });

  it("is given up when its message ended while the answer was on its way to a disk that could not take it [bounded]", async () => {
    const studio = new Taker("J1", 1);
    await deliver("m-1");
    store.isHolding = true;
    const answered = say("studio", "r-1", to, "m-1", "mcp_reply");
    expect(studio.ack("m-1")).toBe(true);
    store.fail();
    expect(await answered).toContain("could not be stored");
    store.isHolding = false;
    store.commitAll();
    await turn();
    expect(broker.inside.mailboxes.get(to)).toBeUndefined();
  });

  it("is asked for first: a request whose answer would find none is refused by name, until there is some [bounded]", async () => {
    expect([await fill("ann"), await fill("bob")]).toEqual([expect.any(String), expect.stringContaining("is full")]);
    await expect(deliver("m-1")).rejects.toThrow(
      'your mailbox "worker-1" has no room for the reply: take what is in it first',
    );
    // What asks for no answer needs none.
    expect(await say(to, "n-1", "studio")).toBeUndefined();
    expect(await broker.cancel(senderOf("ann"), to, "ann-0")).toBe(true);
    await deliver("m-1");
    await expect(deliver("m-2")).rejects.toThrow("no room for the reply");
    // Where the request itself is not taken, neither is its room.
    expect(await broker.cancel(senderOf("bob"), to, "bob-0")).toBe(true);
    expect(await fill(to, "studio")).toContain("half of the mailbox");
    await expect(deliver("m-3")).rejects.toThrow("half of the mailbox");
    expect(await say("bob", "bob-0", to)).toBeUndefined();
  });
});

describe("what ended unfinished", () => {
  const hour = 3_600_000;
  const inbox = () => broker.inside.mailboxes.get("worker-1");

  it("has the room that was kept for its answer, whatever kinds of messages wait where that goes [bounded] [unknown-is-said]", async () => {
    await deliver("m-1");
    // No more than so many kinds wait in one mailbox, half of them of one sender.
    for (let n = 0; n < 64; n++) {
      const owner = n < 32 ? "studio" : "other";
      const message = { id: `k-${n}`, kind: `kind-${n}`, body: "{}", correlationId: undefined };
      const frame: Deliver = { kind: "deliver", to: "worker-1", message, leftMs: 2 * hour, acknowledges: undefined };
      await broker.deliver({ ...WORKER, address: owner, owner }, frame);
    }
    const waiting = () => [...(inbox()?.queue.stored() ?? [])].map(({ message }) => message.kind);
    expect(waiting()).toHaveLength(64);
    nowMs += hour + 1;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(waiting().filter((kind) => kind === "mcp_reply")).toHaveLength(1);
  });

  it("is kept for a week, whether another follows or not, and whoever starts the broker again [bounded]", async () => {
    const taker = new Taker("J1", 100);
    taker.onMessage = (id) => {
      queueMicrotask(() => broker.release("studio", taker.consumer, { id, from: "worker-1" }, { reason: "no" }));
    };
    const dead = () => broker.inside.mail.dead.count("studio");
    await deliver("m-1");
    await turn();
    expect(dead()).toBe(1);
    nowMs += 7 * 24 * hour - 1;
    await vi.advanceTimersByTimeAsync(hour);
    expect(dead()).toBe(1);
    nowMs += 1;
    await vi.advanceTimersByTimeAsync(hour);
    expect(dead()).toBe(0);
    expect([...store.log("dead-letters").entries()]).toEqual([]);
    await deliver("m-2");
    await turn();
    broker.close();
    nowMs += 8 * 24 * hour;
    const clock = new ElapsedClock({ now: () => nowMs, wall: () => nowMs });
    broker = new Broker({ store: store.asStore, clock, log, knows: () => true });
    await turn();
    expect(dead()).toBe(0);
  });

  it("is kept with the last ones of its mailbox, and the oldest go as others come [bounded]", async () => {
    const taker = new Taker("J1", MAX_DEAD_LETTERS * 10);
    taker.onMessage = (id) => {
      queueMicrotask(() => broker.release("studio", taker.consumer, { id, from: "worker-1" }, { reason: "no" }));
    };
    for (let n = 0; n < MAX_DEAD_LETTERS + 3; n++) await deliver(`m-${n}`);
    await turn();
    expect(broker.inside.mail.dead.count("studio")).toBe(MAX_DEAD_LETTERS);
    const kept = [...store.log("dead-letters").entries()].map(([, json]) => deadLetterOf(json).record);
    const ids = kept.map((record) => headerOf(record).id);
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([MAX_DEAD_LETTERS, "m-3", `m-${MAX_DEAD_LETTERS + 2}`]);
  });

  it("is sent again once, where two ask for it at once [no-double-effect]", async () => {
    const taker = new Taker("J1", 100);
    let fails = 5;
    taker.onMessage = (id) => {
      if (fails-- <= 0) return;
      queueMicrotask(() => broker.release("studio", taker.consumer, { id, from: "worker-1" }, { reason: "no" }));
    };
    await deliver("m-1");
    await turn();
    const operator = new MailboxOperator(broker.inside);
    store.isHolding = true;
    const first = operator.retry("studio", "m-1", undefined);
    await expect(operator.retry("studio", "m-1", undefined)).rejects.toThrow("being sent again already");
    store.isHolding = false;
    store.commitAll();
    const { id } = await first;
    await turn();
    expect(taker.got.slice(5)).toEqual([id]);
  });
});

async function tryOut(seed: number): Promise<void> {
  const random = randomOf(seed);
  store = new HeldStore();
  const clock = new ElapsedClock({ now: () => nowMs, wall: () => nowMs });
  broker = new Broker({ store: store.asStore, clock, log, knows: () => true });
  const handedTo = new Map<string, string>();
  const ended = new Set<string>();
  const delivered: string[] = [];
  const takers = new Map<string, Taker>();
  const come = (journal: string): Taker => {
    const taker = new Taker(journal, 2);
    takers.set(journal, taker);
    taker.onMessage = (id) => {
      expect(onDisk(id), `seed ${seed}: ${id} left to ${journal} before the store knew it`).toBe(journal);
      expect(handedTo.get(id) ?? journal, `seed ${seed}: ${id} reached two journals`).toBe(journal);
      handedTo.set(id, journal);
    };
    return taker;
  };
  store.isHolding = true;
  for (let step = 0; step < 60; step++) {
    const journal = random() < 0.5 ? "J1" : "J2";
    const taker = takers.get(journal);
    const dice = random();
    if (dice < 0.25) {
      const id = `m-${step}`;
      void deliver(id).then(
        () => delivered.push(id),
        () => {},
      );
    } else if (dice < 0.5) store.commit();
    else if (dice < 0.58) store.fail();
    else if (dice < 0.66) taker?.leave();
    if (dice >= 0.58 && dice < 0.66) takers.delete(journal);
    else if (dice >= 0.66 && dice < 0.76 && taker === undefined) come(journal);
    else if (dice >= 0.76 && dice < 0.86) await vi.advanceTimersByTimeAsync(RETRY_MS);
    else if (dice >= 0.86 && taker !== undefined) {
      const id = taker.got.shift();
      if (id !== undefined && taker.ack(id)) {
        ended.add(id);
        broker.grant("studio", taker.consumer, 1);
      }
    }
    await turn();
  }
  // All is well again: whatever is there reaches somebody, with the credit that is left.
  store.isHolding = false;
  for (const journal of ["J1", "J2"]) if (!takers.has(journal)) come(journal);
  for (let round = 0; round < 80; round++) {
    store.commitAll();
    await vi.advanceTimersByTimeAsync(RETRY_MS);
    for (const taker of takers.values()) {
      for (const id of taker.got.splice(0)) {
        if (!taker.ack(id)) continue;
        ended.add(id);
        broker.grant("studio", taker.consumer, 1);
      }
    }
    if (delivered.every((id) => ended.has(id))) break;
  }
  expect(
    [...delivered].filter((id) => !ended.has(id)),
    `seed ${seed}: never handed out`,
  ).toEqual([]);
  broker.close();
}

function randomOf(seed: number): () => number {
  let state = seed * 2_654_435_761;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 4_294_967_296;
  };
}
