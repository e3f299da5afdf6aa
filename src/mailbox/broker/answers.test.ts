// Who answers a message where several take from one mailbox: a broker without disk or sockets, with a clock of the test.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { HeldStore } from "../../../test/fixtures/mailbox/held-store.js";
import { ElapsedClock } from "../elapsed-clock.js";
import type { Deliver, MessageName } from "../wire/frames.js";
import { Broker } from "./broker.js";
import { QUEUE_LIMITS } from "./limits.js";
import type { Answerer } from "./mailbox.js";
import type { Consumer } from "./queue-terms.js";

const log = { debug() {}, info() {}, warn() {}, error() {} } as never;
const M1: MessageName = { id: "m-1", from: "worker-1" };
const NOT_THEIRS = /"m-1" is not with this connection: of those that take from "studio", whoever has a message answers/;

let store: HeldStore;
let broker: Broker;
let nowMs: number;

beforeEach(() => {
  vi.useFakeTimers();
  nowMs = 0;
  store = new HeldStore();
  const clock = new ElapsedClock({ now: () => nowMs, wall: () => nowMs });
  broker = new Broker({ store: store.asStore, clock, log, knows: () => true });
});
afterEach(() => {
  broker.close();
  vi.useRealTimers();
});

class Taker implements Answerer {
  readonly consumer: Consumer;
  readonly journal: string | undefined;
  readonly got: string[] = [];

  constructor(journal?: string, credit = 1) {
    this.journal = journal;
    this.consumer = { kinds: new Set(["mcp_request"]), journal, window: 100, knowsIdsOnly: false };
    const take = (frame: string) => this.got.push(JSON.parse(frame).message.id) > 0;
    broker.subscribe("studio", this.consumer, take, credit);
  }

  leave(): void {
    broker.unsubscribe("studio", this.consumer);
  }

  /** Why it was not taken; undefined where it was. */
  answer(more: Partial<Answering> = {}): Promise<string | undefined> {
    return answer(this, more);
  }
}

interface Answering {
  readonly id: string;
  readonly kind: string;
  readonly acknowledges: MessageName;
  /** Its token may send to everybody. */
  readonly isFree: boolean;
}

function answer(by: Answerer | undefined, more: Partial<Answering> = {}): Promise<string | undefined> {
  const { id = "r-1", kind = "mcp_reply", acknowledges, isFree = false } = more;
  const message = { id, kind, body: `"${id}"`, correlationId: "m-1" };
  const frame: Deliver = { kind: "deliver", to: "worker-1", message, leftMs: undefined, acknowledges };
  const maySendTo = isFree ? undefined : new Set<string>();
  const sender = { address: "studio", owner: "studio", role: "sharer", maySendTo };
  return broker.deliver(sender, frame, by).then(
    () => undefined,
    (error: Error) => error.message,
  );
}

async function ask(): Promise<void> {
  const message = { id: "m-1", kind: "mcp_request", body: "{}", correlationId: undefined };
  const frame: Deliver = { kind: "deliver", to: "studio", message, leftMs: undefined, acknowledges: undefined };
  await broker.deliver({ address: "worker-1", owner: "worker-1", role: "dev", maySendTo: undefined }, frame);
}

const inInbox = () =>
  [...(broker.inside.mailboxes.get("worker-1")?.queue.stored() ?? [])].map(({ message }) => message.id);
const inMailbox = () => [...(broker.inside.mailboxes.get("studio")?.queue.stored() ?? [])].map(({ state }) => state);

async function leaseRunsOut(): Promise<void> {
  nowMs += QUEUE_LIMITS.leaseMs + 1;
  await vi.advanceTimersByTimeAsync(2_000);
}

it("is refused by name where another consumer has the message, and changes nothing [no-double-effect]", async () => {
  const one = new Taker("J1");
  const two = new Taker("J2");
  await ask();
  expect([one.got, two.got]).toEqual([["m-1"], []]);
  for (const isFree of [false, true]) {
    for (const by of [two, undefined, { consumer: undefined, journal: "J2" }]) {
      expect(await answer(by, { isFree, acknowledges: M1 })).toMatch(NOT_THEIRS);
    }
  }
  // What it may send it sends, and finishes nothing of another with it.
  expect(await two.answer({ id: "note", kind: "note" })).toMatch(NOT_THEIRS);
  expect(await two.answer({ id: "note", kind: "note", isFree: true, acknowledges: M1 })).toBeUndefined();
  expect([inMailbox(), inInbox()]).toEqual([["leased"], ["note"]]);
  expect(await one.answer({ acknowledges: M1 })).toBeUndefined();
  expect([inMailbox(), inInbox()]).toEqual([[], ["note", "r-1"]]);
  // The answer that counts is the same whoever repeats it, and another is none.
  expect(await two.answer()).toBeUndefined();
  expect(await two.answer({ id: "r-2" })).toMatch(NOT_THEIRS);
  expect(await one.answer({ id: "r-2" })).toContain("answered already");
});

it("is refused of a message that nobody was handed [no-double-effect]", async () => {
  const full = new Taker("J1", 0);
  await ask();
  expect(full.got).toEqual([]);
  expect(await full.answer({ isFree: true, acknowledges: M1 })).toMatch(NOT_THEIRS);
  expect([inMailbox(), inInbox()]).toEqual([["waiting"], []]);
});

it("is taken from a later connection of the journal that has the message, also before that has it again", async () => {
  const before = new Taker("J1");
  await ask();
  before.leave();
  const other = new Taker("J2");
  expect(other.got).toEqual([]);
  expect(await other.answer()).toMatch(NOT_THEIRS);
  const later = new Taker("J1", 0);
  expect(await later.answer({ acknowledges: M1 })).toBeUndefined();
  expect([inMailbox(), inInbox()]).toEqual([[], ["r-1"]]);
});

it("is taken, the first of them, from whoever let the lease run out and whoever has it since: nobody waits for ever [no-double-effect]", async () => {
  const slow = new Taker();
  await ask();
  const next = new Taker();
  const never = new Taker(undefined, 0);
  await leaseRunsOut();
  expect([slow.got, next.got]).toEqual([["m-1"], ["m-1"]]);
  expect(await never.answer()).toMatch(NOT_THEIRS);
  expect(await slow.answer({ acknowledges: M1 })).toBeUndefined();
  expect(await next.answer({ id: "r-2" })).toContain("answered already");
  expect([inMailbox(), inInbox()]).toEqual([[], ["r-1"]]);
});

it("is not taken from whoever gave the message back, or has gone while another has it", async () => {
  const gone = new Taker();
  await ask();
  gone.leave();
  // Nobody has it, and who comes back without a journal is told from no other.
  const back = new Taker(undefined, 0);
  const next = new Taker();
  expect(next.got).toEqual(["m-1"]);
  expect(await back.answer()).toMatch(NOT_THEIRS);
  broker.release("studio", next.consumer, M1);
  expect(await next.answer()).toMatch(NOT_THEIRS);
  const last = new Taker();
  await vi.advanceTimersByTimeAsync(0);
  expect(last.got).toEqual(["m-1"]);
  last.leave();
  expect(await back.answer()).toBeUndefined();
});
