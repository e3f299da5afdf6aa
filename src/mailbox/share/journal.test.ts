import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import type { Store } from "../../contracts/store.js";
import { openStore } from "../../store/local/store.js";
import { MAX_ID_CHARS } from "../wire/limits.js";
import { Journal, JournalFull, PART_BYTES } from "./journal.js";
import { KEPT_AFTER_END_MS } from "./journal-entry.js";

let dir: string;
let store: Store;
let clock: TestClock;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "toolway-journal-"));
  store = await openStore({ dir });
  clock = new TestClock();
});
afterEach(async () => {
  await store.close();
  rmSync(dir, { recursive: true, force: true });
});

async function reopened(): Promise<Journal> {
  await store.close();
  store = await openStore({ dir });
  return Journal.open({ store, clock });
}

const call = (key: string, endMs: number, owner = "worker-1") => ({ key, owner, digest: "digest", endMs });

describe("a sharer's journal", () => {
  it("has its id, what was started and what finished after a restart [no-double-effect]", async () => {
    const first = await Journal.open({ store, clock });
    await first.start(call("one", 5_000), "add");
    await first.start(call("two", 5_000), "add");
    await first.finish(call("two", 5_000), '{"message":{}}', true);
    const second = await reopened();
    expect(second.id).toBe(first.id);
    expect(second.get("one")).toEqual({ state: "started", digest: "digest", endMs: 5_000, what: "add" });
    expect(second.get("two")).toMatchObject({ state: "finished", reply: '{"message":{}}' });
    expect(second.used).toEqual({ entries: 2, bytes: 0 });
  });

  it("writes the end of a call with a short reply once, and counts longer ones, which it forgets as it counted them [bounded]", async () => {
    const first = await Journal.open({ store, clock });
    const puts = vi.spyOn(store, "batch");
    const endMs = first.now() + 1_000;
    const reply = (bytes: number) => `"${"\u00e9".repeat(bytes / 2 - 1)}"`;
    const written: number[] = [];
    for (const bytes of [512, 514]) {
      await first.start(call(`call-${bytes}`, endMs), "add");
      await first.finish(call(`call-${bytes}`, endMs), reply(bytes), true);
      const put = vi.fn();
      puts.mock.lastCall?.[0]({ put, delete: vi.fn(), append: vi.fn(), remove: vi.fn() });
      written.push(put.mock.calls.length);
    }
    expect(written).toEqual([1, 2]);
    expect(first.used).toEqual({ entries: 2, bytes: 514 });
    puts.mockRestore();
    const second = await reopened();
    expect(second.used).toEqual({ entries: 2, bytes: 514 });
    clock.advance(1_000 + KEPT_AFTER_END_MS + 1);
    await second.sweep();
    expect(second.used).toEqual({ entries: 0, bytes: 0 });
    expect([second.get("call-512"), second.get("call-514")]).toEqual([undefined, undefined]);
  });

  it("tells messages of different senders apart, whatever their ids are", () => {
    expect(Journal.keyOf("studio", "worker-1", "m-1")).not.toBe(Journal.keyOf("studio", "worker-2", "m-1"));
    expect(Journal.keyOf("studio", "worker-1", "m-1")).not.toBe(Journal.keyOf("attic", "worker-1", "m-1"));
  });

  it("has side by side what a sender counts, and takes no two ids for one [no-double-effect]", () => {
    const keyOf = (id: string) => Journal.keyOf("studio", "worker-1", id);
    const counted = Array.from({ length: 1_200 }, (_, n) => keyOf(`link_x7-${n + 1}`));
    expect(counted.every((key, n) => n === 0 || key > String(counted[n - 1]))).toBe(true);
    expect(new Set(counted.map((key) => key.slice(0, 43))).size).toBe(1);
    const ids = ["m-1", "m-01", "m1", "m", "m-", "m--1", "m-1-1", "m-1-01", "-1", "1", "m-1234567890123456", "m-1 "];
    expect(new Set(ids.map(keyOf)).size).toBe(ids.length);
    expect(Math.max(...ids.map((id) => keyOf(id).length))).toBeLessThan(MAX_ID_CHARS - 16);
  });

  it("forgets an entry and its parts ten minutes after its message's end, and none earlier when the calendar is set [bounded]", async () => {
    const journal = await Journal.open({ store, clock });
    const endMs = journal.now() + 1_000;
    await journal.start(call("short", endMs), "add");
    await journal.finishLarge(call("large", endMs), randomBytes(3 * PART_BYTES), false);
    await journal.start(call("long", endMs + 60_000), "add");
    clock.jumpWall(7 * 24 * 3_600_000);
    clock.advance(1_000 + KEPT_AFTER_END_MS);
    await journal.sweep();
    expect(journal.get("short")).toBeDefined();
    clock.advance(1);
    await journal.sweep();
    expect([journal.get("short"), journal.get("large"), journal.piece("large", 0, 10)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(journal.get("long")).toBeDefined();
    expect(journal.used).toEqual({ entries: 1, bytes: 0 });
  });

  it("refuses what it has no room for, by name, and keeps what it has [bounded]", async () => {
    const journal = await Journal.open({ store, clock, limits: { entries: 2, bytes: 1_000 } });
    await journal.start(call("one", 0), "add");
    await journal.start(call("two", 0, "worker-2"), "add");
    await expect(journal.start(call("three", 0, "worker-3"), "add")).rejects.toThrow(JournalFull);
    await journal.finish(call("one", 0), "x".repeat(900), true);
    await expect(journal.finishLarge(call("two", 0, "worker-2"), randomBytes(200), true)).rejects.toThrow("1000 bytes");
    expect(journal.get("one")).toMatchObject({ state: "finished" });
    expect(journal.get("two")).toMatchObject({ state: "started" });
  });

  it("gives one worker half of it, by calls and by bytes, before and after a restart, and the rest to others [bounded]", async () => {
    const limits = { entries: 4, bytes: 2_000 };
    let journal = await Journal.open({ store, clock, limits });
    const endMs = journal.now() + 1_000;
    const tries = async () => {
      const refused: unknown[] = [];
      for (const owner of ["greedy", "modest"]) {
        const started = journal.start(call(`more-${owner}`, endMs, owner), "add");
        refused.push(
          await started.then(
            () => undefined,
            (error: Error) => error.message,
          ),
        );
      }
      return refused;
    };
    await journal.start(call("one", endMs, "greedy"), "add");
    await journal.start(call("two", endMs, "greedy"), "add");
    const full = expect.stringMatching(/no more room for "greedy".* 2 calls/);
    expect(await tries()).toEqual([full, undefined]);
    await store.close();
    store = await openStore({ dir });
    journal = await Journal.open({ store, clock, limits });
    expect(journal.used).toEqual({ entries: 3, bytes: 0 });
    await expect(journal.start(call("three", endMs, "greedy"), "add")).rejects.toThrow('no more room for "greedy"');
    // Bytes of replies are counted to whoever gets them, short ones to nobody.
    await expect(journal.finishLarge(call("one", endMs, "greedy"), randomBytes(1_000), true)).rejects.toThrow(
      "1000 bytes",
    );
    await journal.finishLarge(call("one", endMs, "greedy"), randomBytes(999), true);
    await expect(journal.finishLarge(call("two", endMs, "greedy"), randomBytes(1), true)).rejects.toThrow("1000 bytes");
    await journal.finishLarge(call("more-modest", endMs, "modest"), randomBytes(999), true);
    await journal.drawn("one");
    await journal.finishLarge(call("two", endMs, "greedy"), randomBytes(1), true);
    // What is over is nobody's.
    clock.advance(1_000 + KEPT_AFTER_END_MS + 1);
    await journal.sweep();
    expect(journal.used).toEqual({ entries: 0, bytes: 0 });
    await journal.start(call("four", journal.now(), "greedy"), "add");
  });

  it("knows entries from before shares were counted, which are nobody's own [bounded]", async () => {
    const ends = store.map<number>("journal-ends");
    await ends.put(`${"9".repeat(15)}/old`, 700);
    const journal = await Journal.open({ store, clock, limits: { entries: 4, bytes: 1_000 } });
    expect(journal.used).toEqual({ entries: 1, bytes: 700 });
    await journal.start(call("one", 0), "add");
    await expect(journal.finishLarge(call("one", 0), randomBytes(300), true)).rejects.toThrow("is full");
  });

  it("counts large replies while they are written, and what a broken write has left until it is swept [bounded]", async () => {
    const journal = await Journal.open({ store, clock, limits: { entries: 9, bytes: 80 * PART_BYTES } });
    const endMs = journal.now() + 1_000;
    const reply = randomBytes(30 * PART_BYTES);
    const first = journal.finishLarge(call("first", endMs), reply, false);
    await expect(journal.finishLarge(call("second", endMs), reply, false)).rejects.toThrow(JournalFull);
    await first;
    expect(journal.used).toEqual({ entries: 1, bytes: reply.length });
    const write = store.batch.bind(store);
    const batch = vi.spyOn(store, "batch");
    const more = randomBytes(10 * PART_BYTES - 1);
    // Nothing of it is on disk.
    batch.mockRejectedValueOnce(new Error("the disk is full"));
    await expect(journal.finishLarge(call("third", endMs), more, false)).rejects.toThrow("the disk is full");
    expect(journal.used).toEqual({ entries: 1, bytes: reply.length });
    // Its parts are, and the entry that says so is not.
    batch.mockImplementationOnce((fn) => write(fn)).mockRejectedValueOnce(new Error("the disk is full"));
    await expect(journal.finishLarge(call("third", endMs), more, false)).rejects.toThrow("the disk is full");
    expect(journal.used).toEqual({ entries: 2, bytes: reply.length + more.length });
    clock.advance(1_000 + KEPT_AFTER_END_MS + 1);
    await journal.sweep();
    expect(journal.used).toEqual({ entries: 0, bytes: 0 });
    expect(journal.piece("third", 0, 1)).toBeUndefined();
  });

  it("gives a large reply in pieces from any offset, also after a restart, until it was drawn", async () => {
    const reply = randomBytes(20 * PART_BYTES + 77);
    const { bytes, sha256 } = await (await Journal.open({ store, clock })).finishLarge(call("l", 5_000), reply, false);
    expect(bytes).toBe(reply.length);
    expect(sha256).toMatch(/^[0-9a-f]{64}$/);
    const journal = await reopened();
    const pieces: Buffer[] = [];
    // Begins in the middle of a part, as whoever was interrupted does.
    for (let at = 0; at < bytes; ) {
      const piece = Buffer.from(journal.piece("l", at, at === 0 ? 1_000 : PART_BYTES) ?? "", "base64");
      expect(piece.length).toBeGreaterThan(0);
      pieces.push(piece);
      at += piece.length;
    }
    expect(Buffer.concat(pieces).equals(reply)).toBe(true);
    expect(journal.used.bytes).toBe(bytes);
    await Promise.all([journal.drawn("l"), journal.drawn("l")]);
    await journal.drawn("l");
    // It takes no room any more, after a restart neither [bounded].
    expect(journal.used).toEqual({ entries: 1, bytes: 0 });
    expect(journal.piece("l", 0, 1)).toBeUndefined();
    expect(journal.get("l")).toMatchObject({ state: "finished" });
    expect((await reopened()).used).toEqual({ entries: 1, bytes: 0 });
  });
});
