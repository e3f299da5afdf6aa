import { describe, expect, it } from "vitest";
import { eachWorld, TOOL, World } from "../../../test/fixtures/outbox/world.js";
import type { EngineStatus } from "../../contracts/engine/engine.js";
import type { Partitions } from "../../contracts/engine/partitions.js";
import type { Peers } from "../../contracts/engine/peers.js";
import type { Store } from "../../contracts/store.js";
import { StoreError } from "../../store/store-error.js";
import type { Outbox } from "../outbox.js";
import { decodeReply, encodeReply, factsOf, frame, unframe } from "./passed-call.js";
import { PASS_TAKE, SharedOutbox } from "./shared-outbox.js";

const CONNECTED = { state: "connected", sinceMs: 0, nextTryMs: undefined } as EngineStatus;
const DONE = encodeReply({ kind: "result", result: { n: 1 } }, false);

describe("a call that was taken here before another gateway had its partition, as at one that was frozen", () => {
  let store: Store;
  eachWorld((_, on) => {
    store = on;
  });

  /** An owner that is one no more when it writes: another gateway, "b", is. */
  async function frozen(
    code: "fenced" | "away" | "unknown",
    isStillOurs = false,
    answer: Uint8Array | Promise<Uint8Array> = DONE,
  ) {
    let isOurs = true;
    let onTake = async (body: Uint8Array) => body;
    const asked: string[] = [];
    const minted: (string | undefined)[] = [];
    let made: Outbox | undefined;
    let delivered = 0;
    let givenBack = 0;
    const partitions = {
      of: () => 1,
      mayAct: () => isOurs,
      ownerOf: () => "b",
      gateways: () => [],
      onChange: () => () => {},
    };
    const peers = {
      answer: (kind: string, act: (from: string, body: Uint8Array) => Promise<Uint8Array>) => {
        if (kind === PASS_TAKE) onTake = (body) => act("a", body);
        return () => {};
      },
      ask: async (peer: string, _: string, body: Uint8Array) => {
        asked.push(peer);
        minted.push(unframe<{ minted?: string }>(body)[0].minted);
        return answer;
      },
    };
    const outbox = new SharedOutbox({
      self: "a",
      partitions: partitions as unknown as Partitions,
      peers: peers as unknown as Peers,
      clock: { now: () => 0, wall: () => 0 },
      status: () => CONNECTED,
      watch: () => () => {},
      make: ({ passOn, giveBack }) => {
        const { outbox: own, operations } = new World(store, { passOn, giveBack });
        made = own;
        return { outbox: own, operations };
      },
      deliver: () => void delivered++,
      giveBack: () => void givenBack++,
      lookMs: 5,
    });
    await outbox.taken(1, store);
    store.batch = () => {
      isOurs = isStillOurs;
      return Promise.reject(new StoreError(code, "It could not be written."));
    };
    const counts = () => ({ givenBack, delivered });
    const own = () => made;
    return {
      own,
      outbox,
      asked,
      minted,
      onTake: (body: Uint8Array) => onTake(body),
      givenBack: () => givenBack,
      counts,
    };
  }

  it.each(["fenced", "away"] as const)(
    "is passed to that one, and not refused, where it was %s [engine-outbox] [takeover]",
    async (code) => {
      const { outbox, asked, givenBack } = await frozen(code);
      const { call: taken, replies } = new World(store).make({ title: "a" });
      expect(outbox.take(taken, "tracker", TOOL)).toBe(true);
      await expect.poll(() => replies).toHaveLength(1);
      expect([asked, replies[0]?.kind, givenBack()]).toEqual([["b"], "result", 0]);
    },
  );

  it("is passed under the key that it had where nobody can say whether it was written down, and sent by nobody else [engine-outbox] [takeover] [no-double-effect]", async () => {
    const kept = await frozen("unknown");
    const { call: taken, replies } = new World(store).make({ title: "a" });
    expect(kept.outbox.take(taken, "tracker", TOOL)).toBe(true);
    const [write] = kept.own()?.lanes.all ?? [];
    const key = write?.facts.key;
    expect(key).toMatch(/^[\w-]{22}$/);
    await expect.poll(() => replies).toHaveLength(1);
    expect([kept.asked, replies[0]?.kind, kept.minted]).toEqual([["b"], "result", [key]]);
    const other = await frozen("unknown", false, frame({ kind: "not-kept" }));
    const { call: again, replies: told } = new World(store).make({ title: "a" });
    expect(other.outbox.take(again, "tracker", TOOL)).toBe(true);
    await expect.poll(() => told).toHaveLength(1);
    expect(told[0]).toMatchObject({ kind: "error", fault: { code: "outcome-unknown" } });
    expect(other.counts()).toEqual({ givenBack: 0, delivered: 0 });
  });

  it("is unknown, and not called refused, where nobody can say whether it was written down and it is still ours [engine-outbox] [unknown-is-said]", async () => {
    const { outbox } = await frozen("unknown", true);
    const { call: taken, replies } = new World(store).make({ title: "a" });
    expect(outbox.take(taken, "tracker", TOOL)).toBe(true);
    await expect.poll(() => replies).toHaveLength(1);
    expect(replies[0]).toMatchObject({
      fault: { code: "outcome-unknown", message: "Whether it was queued is unknown: It could not be written." },
    });
  });

  it("is not passed on where its agent took it back before it was known that it is not ours: it is cancelled, or unknown [engine-outbox] [unknown-is-said]", async () => {
    for (const [code, told, back] of [
      ["fenced", "cancelled", 1],
      ["away", "cancelled", 1],
      ["unknown", "outcome-unknown", 0],
    ] as const) {
      const { outbox, asked, counts } = await frozen(code);
      const { call: taken, replies } = new World(store).make({ title: "a" });
      expect(outbox.take(taken, "tracker", TOOL)).toBe(true);
      taken.onCancel?.("enough");
      await expect.poll(() => replies).toHaveLength(1);
      expect(replies[0]).toMatchObject({ kind: "error", fault: { code: told } });
      expect([asked, counts()]).toEqual([[], { givenBack: back, delivered: 0 }]);
    }
  });

  it("is unknown where its agent takes it back while nobody can say whether it was written down [engine-outbox] [unknown-is-said]", async () => {
    const { outbox, asked, counts } = await frozen("unknown");
    const { call: taken, replies } = new World(store).make({ title: "a" });
    const passedOn = taken.onCancel;
    expect(outbox.take(taken, "tracker", TOOL)).toBe(true);
    const own = taken.onCancel;
    // It is passed on by now, and waits for the next owner.
    await expect.poll(() => taken.onCancel).not.toBe(own);
    expect(passedOn).toBeUndefined();
    taken.onCancel?.("enough");
    await expect.poll(() => replies).toHaveLength(1);
    expect(replies[0]).toMatchObject({ kind: "error", fault: { code: "outcome-unknown" } });
    expect([asked, counts()]).toEqual([[], { givenBack: 0, delivered: 0 }]);
  });

  it("has 28 s to be written down, which is more than the engine is tried for, and is unknown then and not called refused [unknown-is-said]", async () => {
    let commit = () => {};
    const late = new Promise<void>((resolve) => {
      commit = resolve;
    });
    const batch = store.batch.bind(store);
    store.batch = (fn) => late.then(() => batch(fn));
    const kept = new World(store, { passOn: () => true });
    const { replies } = kept.call({ title: "a" });
    kept.nowMs += 27_999;
    kept.outbox.tick();
    expect(replies).toEqual([]);
    kept.nowMs += 1;
    kept.outbox.tick();
    expect(replies[0]).toMatchObject({ fault: { code: "outcome-unknown" } });
    expect(kept.givenBack).toBe(0);
    // It is not sent where it is still ours.
    commit();
    await kept.rest();
    expect([kept.sent, kept.records[0]?.state]).toEqual([[], "cancelled"]);
  });

  it("is refused where the engine is away and it is still ours [engine-outbox]", async () => {
    const { outbox, asked, givenBack } = await frozen("away", true);
    const { call: taken, replies } = new World(store).make({ title: "a" });
    expect(outbox.take(taken, "tracker", TOOL)).toBe(true);
    await expect.poll(() => replies).toHaveLength(1);
    expect([asked, replies[0]?.kind, givenBack()]).toEqual([[], "error", 1]);
  });

  it("goes back to the gateway that passed it on, which asks the next [engine-outbox] [takeover]", async () => {
    const { onTake, asked } = await frozen("fenced");
    const { call: passed } = new World(store).make({ title: "a" });
    const head = { server: "tracker", tool: TOOL, minted: "minted", call: factsOf(passed) };
    expect(decodeReply(await onTake(frame(head)))).toEqual({ kind: "not-owner", mayBeKept: false });
    const late = await frozen("unknown");
    expect(decodeReply(await late.onTake(frame(head)))).toEqual({ kind: "not-owner", mayBeKept: true });
    expect([...asked, ...late.asked]).toEqual([]);
  });
});
