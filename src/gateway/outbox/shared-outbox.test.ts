import { describe, expect, it } from "vitest";
import { DONE, eachWorld, KEYED, TOOL, type World } from "../../../test/fixtures/outbox/world.js";
import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { Store } from "../../contracts/store.js";
import * as outboxModule from "../../outbox/index.js";
import { ENDED_MS } from "../../outbox/lanes/limits.js";
import type { SharedOutbox } from "../../outbox/shared/index.js";
import { MemoryMap } from "../../store/memory-map.js";
import { openSharedOutbox } from "./shared-outbox.js";

let world: World;
let store: Store;
eachWorld((one, on) => {
  world = one;
  store = on;
});

describe("a receipt that was given before its write was moved into an engine", () => {
  it("is found until its write is forgotten, and then nothing of it is left [engine-outbox]", async () => {
    const moved = new MemoryMap<{ readonly partition: number }>("moved-receipts");
    const engine = {
      self: "a",
      partitions: { of: () => 1, mayAct: () => true, gateways: () => [] },
      peers: { answer: () => () => {} },
      shared: { map: () => moved },
    } as unknown as GatewayEngine;
    let nowMs = 1_000;
    const limits = { maxWrites: 10, maxBytes: 1e6 };
    const clock = { now: () => nowMs, wall: () => nowMs };
    const { outbox } = openSharedOutbox(outboxModule, engine, {
      parts: () => ({
        clock,
        random: () => 0,
        limits,
        terms: () => KEYED,
        send: (call) => call.reply(DONE),
        judge: () => undefined,
        hasToken: () => true,
        receiptReply: () => DONE,
        log: () => {},
      }),
      limits: () => limits,
      handlerParts: { wall: clock.wall, tells: () => false, subscribers: { updated() {} } } as unknown as Parameters<
        typeof openSharedOutbox
      >[2]["handlerParts"],
      giveBack: () => {},
    });
    const shared = outbox as SharedOutbox;
    await shared.taken(1, store);
    const own = shared.at(1)?.outbox;
    const { call, replies } = world.make({ title: "a" });
    own?.take(call, "tracker", TOOL);
    await expect.poll(() => replies.length, { timeout: 10_000 }).toBe(1);
    const [write] = own?.lanes.all ?? [];
    const id = write?.facts.id ?? "";
    await moved.put(id, { partition: 1 });
    await moved.put("another", { partition: 1 });
    nowMs += ENDED_MS + 1;
    own?.start();
    own?.tick();
    await own?.settled();
    expect(own?.lanes.get(id)).toBeUndefined();
    expect([...moved.entries()].map(([name]) => name)).toEqual(["another"]);
    await shared.lost(1);
  });
});
