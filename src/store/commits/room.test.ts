// What the stores of one process share when they write to one engine.

import { describe, expect, it } from "vitest";
import { randomOf } from "../../../test/faults/random.js";
import { VirtualEngine, VirtualTime } from "../../../test/fixtures/store/virtual-stream.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import { CommitRoom } from "./room.js";
import { openCommitStore } from "./store.js";

const CALM = { lost: 0, doubled: 0, late: 0 };

describe("the room for commits of one process", () => {
  it("is one for all partitions: what does not fit is refused by name, and what is kept for all has its own [bounded]", async () => {
    const time = new VirtualTime();
    const engine = new VirtualEngine(time, randomOf(1), CALM, false);
    const room = new CommitRoom();
    const open = async (number: number, shared: CommitRoom | undefined) => {
      const line = engine.connect();
      const prefix = `s.${number}.`;
      const work = openCommitStore({
        stream: line,
        pace: line.pace,
        layout: "partition",
        prefix,
        where: `partition ${number}`,
        room: shared,
      });
      let isOpen = false;
      void work.then(() => {
        isOpen = true;
      });
      await time.run(() => isOpen, time.now + 60_000);
      return work;
    };
    const [first, second, other] = [await open(1, room), await open(2, room), await open(3, undefined)];
    const entry = JSON.stringify("x".repeat(512 * KIB));
    const write = (store: typeof first) => store.batch((batch) => void batch.append(store.log("l"), entry));
    // Nothing has left yet: no time passes.
    const pending: Promise<unknown>[] = [];
    for (let n = 0; n < 60; n++) pending.push(write(first), write(second));
    for (const one of pending) one.catch(() => {});
    expect(room.pendingBytes).toBeGreaterThan(60 * MIB);
    expect(room.pendingBytes).toBeLessThanOrEqual(64 * MIB);
    for (let n = 0; n < 8; n++) pending.push(write(first).catch((error: Error) => error.message));
    expect(await pending.at(-1)).toContain("More than 64 MiB wait for the engine");
    const before = room.pendingBytes;
    void other.map("m").put("k", 1);
    expect(room.pendingBytes).toBe(before);
  });

  it("has turns between those whose commits wait, over all partitions [bounded]", async () => {
    const room = new CommitRoom();
    const entered: string[] = [];
    const enter = (name: string, by: string) => void room.enter(4 * MIB, by).then(() => entered.push(name));
    for (let n = 0; n < 6; n++) enter(`flood ${n}`, "flood");
    enter("ann", "ann");
    for (let n = 0; n < 6; n++) {
      await new Promise(setImmediate);
      room.left(4 * MIB);
    }
    expect(entered.slice(0, 4)).toEqual(["flood 0", "flood 1", "ann", "flood 2"]);
  });

  it("lets what is small and of another pass a large commit that waits for it, on the same partition [bounded]", async () => {
    const time = new VirtualTime();
    const engine = new VirtualEngine(time, randomOf(1), CALM, false);
    const room = new CommitRoom();
    const line = engine.connect();
    const rest = {
      stream: line,
      pace: line.pace,
      layout: "partition",
      prefix: "s.",
      where: "the engine",
      room,
    } as const;
    const work = openCommitStore(rest);
    let isOpen = false;
    void work.then(() => {
      isOpen = true;
    });
    await time.run(() => isOpen, 60_000);
    const store = await work;
    // Others fill it.
    await room.enter(4 * MIB);
    const stored: string[] = [];
    const write = (name: string, by: string, bytes: number) => {
      const entry = JSON.stringify("x".repeat(bytes));
      void store.batch((batch) => void batch.append(store.log("l"), entry), { by }).then(() => stored.push(name));
    };
    write("large", "flood", 512 * KIB);
    write("behind it", "flood", 10);
    write("of ann", "ann", 10);
    await time.run(() => stored.length > 1, time.now + 5_000);
    expect(stored).toEqual(["of ann"]);
    room.left(4 * MIB);
    for (let n = 0; n < 4 && stored.length < 3; n++) {
      await new Promise(setImmediate);
      await time.run(() => stored.length > 2, time.now + 5_000);
    }
    expect(stored).toEqual(["of ann", "large", "behind it"]);
  });

  it("has 4 MiB on their way at once, in order, and the small past all of them [bounded]", async () => {
    const room = new CommitRoom();
    const entered: number[] = [];
    const enter = (n: number, bytes: number) => void room.enter(bytes).then(() => entered.push(n));
    for (let n = 0; n < 12; n++) enter(n, MIB);
    enter(100, 1 * KIB);
    await new Promise(setImmediate);
    expect(entered.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 100]);
    room.left(1 * KIB);
    await new Promise(setImmediate);
    expect(entered).toHaveLength(5);
    for (let n = 0; n < 12; n++) {
      room.left(MIB);
      await new Promise(setImmediate);
    }
    expect(entered.filter((n) => n < 100)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });
});
