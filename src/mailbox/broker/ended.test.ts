// How a broker ends what nobody finished, when its store is slow or fails: on a store whose commits the test lets through or
// fails, with a clock of the test.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HeldStore } from "../../../test/fixtures/mailbox/held-store.js";
import { ElapsedClock } from "../elapsed-clock.js";
import type { Deliver } from "../wire/frames.js";
import { Broker } from "./broker.js";
import { QUEUE_LIMITS, RETRY_MS } from "./limits.js";
import type { Consumer } from "./queue-terms.js";
import { messageOf } from "./record.js";

const log = { debug() {}, info() {}, warn() {}, error() {} } as never;
const HOUR_MS = 3_600_000;
const STUDIO: Consumer = { kinds: undefined, journal: "J1", window: 100, knowsIdsOnly: false };

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

function say(from: string, to: string, id: string, correlationId?: string, endsIn = HOUR_MS): Promise<void> {
  const kind = correlationId === undefined ? "mcp_request" : "mcp_reply";
  const leftMs = correlationId === undefined ? endsIn : 2 * HOUR_MS;
  const message = { id, kind, body: '{"result":{}}', correlationId };
  const frame: Deliver = { kind: "deliver", to, message, leftMs, acknowledges: undefined };
  // Who shares may answer, and nothing else.
  const maySendTo = from === "studio" ? new Set<string>() : undefined;
  const by = from === "studio" ? { consumer: STUDIO, journal: STUDIO.journal } : undefined;
  return broker.deliver({ address: from, owner: from, role: "researcher", maySendTo }, frame, by);
}

/** The messages on disk: what they answer, and how. */
function stored(): [string, string][] {
  const all = [...store.log("mail").entries()].map(([, record]) => JSON.parse(messageOf(record)));
  return all.map((one): [string, string] => [one.correlation_id, one.body.outcome ?? Object.keys(one.body).join()]);
}

const dead = () => broker.inside.mail.dead.count("studio");
const inInbox = () => [...(broker.inside.mailboxes.get("worker-1")?.queue.stored() ?? [])].length;
const turn = () => vi.advanceTimersByTimeAsync(0);

async function endOfAll(): Promise<void> {
  broker.unsubscribe("studio", STUDIO);
  nowMs += HOUR_MS + 1;
  await vi.advanceTimersByTimeAsync(2_000);
}

describe("what ended unfinished", () => {
  beforeEach(() => broker.subscribe("studio", STUDIO, () => true, 2));

  it("is told when the disk has room again, each message once, and not at the next start alone [unknown-is-said] [bounded]", async () => {
    for (const id of ["m-1", "m-2", "m-3"]) await say("worker-1", "studio", id);
    store.isHolding = true;
    await endOfAll();
    expect(store.waiting).toBe(3);
    for (let n = 0; n < 3; n++) store.fail();
    await turn();
    // One of them shows, once in a while, that there is still no room.
    for (let n = 0; n < 3; n++) {
      await vi.advanceTimersByTimeAsync(RETRY_MS);
      expect(store.waiting).toBe(1);
      store.fail();
      await turn();
    }
    expect([dead(), inInbox()]).toEqual([0, 0]);
    store.isHolding = false;
    await vi.advanceTimersByTimeAsync(RETRY_MS);
    expect(new Map(stored())).toEqual(
      new Map([
        ["m-1", "unknown"],
        ["m-2", "unknown"],
        ["m-3", "not run"],
      ]),
    );
    expect([dead(), inInbox()]).toEqual([2, 3]);
    await vi.advanceTimersByTimeAsync(10 * RETRY_MS);
    expect(stored()).toHaveLength(3);
  });

  it("may be said by whoever has the message, after its end too, as long as that one has it [unknown-is-said]", async () => {
    const second = 1_000;
    for (const id of ["m-1", "m-2"]) await say("worker-1", "studio", id, undefined, second);
    nowMs += second + 1;
    await say("studio", "worker-1", "r-1", "m-1");
    expect(stored()).toContainEqual(["m-1", "result"]);
    // One lease after its end it is over, and its sender is told.
    nowMs += QUEUE_LIMITS.leaseMs;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(stored()).toContainEqual(["m-2", "unknown"]);
    await expect(say("studio", "worker-1", "r-2", "m-2")).rejects.toThrow("may not send");
    // Who had it, and gave it back, has no say after its end.
    await say("worker-1", "studio", "m-3", undefined, second);
    broker.release("studio", STUDIO, { id: "m-3", from: "worker-1" }, { reason: "no" });
    broker.unsubscribe("studio", STUDIO);
    nowMs += second + 1;
    await expect(say("studio", "worker-1", "r-3", "m-3")).rejects.toThrow('"m-3" is not with this connection');
  });

  it("is nobody's news where it was answered, and only not acknowledged [no-double-effect]", async () => {
    await say("worker-1", "studio", "m-1");
    await say("worker-1", "studio", "m-2");
    await say("studio", "worker-1", "r-1", "m-1");
    // The disk does not take the answer to the other.
    store.isHolding = true;
    const refused = say("studio", "worker-1", "r-2", "m-2");
    store.fail();
    await expect(refused).rejects.toThrow("could not be stored");
    store.isHolding = false;
    await endOfAll();
    expect(stored()).toEqual([
      ["m-1", "result"],
      ["m-2", "unknown"],
    ]);
    expect(dead()).toBe(1);
  });
});
