import { strictEqual } from "node:assert";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { histories, quicker } from "../../../test/faults/length.js";
import type { DumpEntry, Store } from "../../contracts/store.js";
import type { Migration } from "./migrations.js";
import { openStore } from "./store.js";

/** Each round of the writers waits for the disk. */
const EACH_WRITES = quicker(100, 20);

let dir: string;
let open: Store[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolway-store-"));
});
afterEach(async () => {
  for (const store of open) await store.close();
  open = [];
  rmSync(dir, { recursive: true, force: true });
});

async function start(options: { maxBytes?: number; readOnly?: boolean; migrations?: readonly Migration[] } = {}) {
  const store = await openStore({ dir: join(dir, "store"), ...options });
  open.push(store);
  return store;
}

describe("a map", () => {
  it("keeps values across a reopen", async () => {
    let store = await start();
    const map = store.map<{ n: number }>("things");
    await map.put("a", { n: 1 });
    await map.put("b", { n: 2 });
    await map.delete("a");
    await store.close();
    store = await start();
    expect(store.map("things").get("a")).toBeUndefined();
    expect(store.map("things").get("b")).toEqual({ n: 2 });
    expect(statSync(join(dir, "store", "data.mdb")).mode & 0o777).toBe(0o600);
    expect(statSync(join(dir, "store")).mode & 0o777).toBe(0o700);
  });

  it("returns any JSON value under any key, in the order of the keys' bytes", async () => {
    const store = await start();
    const map = store.map<unknown>("any");
    const expected = new Map<string, unknown>();
    // `grapheme` reaches NUL, combining marks and characters outside the BMP.
    const key = fc.string({ unit: "grapheme", maxLength: 40 });
    for (const [k, json] of fc.sample(fc.tuple(key, fc.json()), { numRuns: histories(400), seed: 7 })) {
      expected.set(k, JSON.parse(json));
    }
    expected.set("", "the empty key");
    expected.set("\0", null);
    expected.set("big", "ü".repeat(300_000));
    await Promise.all([...expected].map(([k, v]) => map.put(k, v)));
    for (const [k, v] of expected) expect(map.get(k)).toEqual(v);
    const order = [...expected.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect([...map.entries()].map(([k]) => k)).toEqual(order);
    expect(new Map(map.entries())).toEqual(expected);
  });

  it("keeps maps apart whose names begin alike", async () => {
    const store = await start();
    await store.map("m2").put("x", 0);
    await store.map("l").put("x", 0);
    await store.map("m").put("a", 1);
    expect([...store.map("m").entries()]).toEqual([["a", 1]]);
  });

  it("walks more than a page, and while things are deleted", async () => {
    const store = await start();
    const map = store.map<number>("m");
    const key = (i: number) => String(i).padStart(5, "0");
    await store.batch((b) => {
      for (let i = 0; i < 1500; i++) b.put(map, key(i), i);
    });
    const seen: number[] = [];
    let going: Promise<void>[] = [];
    for (const [k, v] of map.entries()) {
      seen.push(v);
      if (v % 2 === 0) going.push(map.delete(k));
      // Committed while the walk is under way, some hundred times in all: each of them waits for the disk.
      if (v % 15 === 0) going = await Promise.all(going).then(() => []);
    }
    await Promise.all(going);
    expect(seen).toHaveLength(1500);
    expect([...map.entries()]).toHaveLength(750);
  });
});

describe("a log", () => {
  it("numbers entries, walks them from a number, and uses no number twice, also when all were removed", async () => {
    let store = await start();
    let log = store.log("events");
    const numbers = await Promise.all(["a", "b", "c", "d"].map((v) => log.append(JSON.stringify(v))));
    expect(numbers).toEqual([1, 2, 3, 4]);
    expect([...log.entries(3)]).toEqual([
      [3, '"c"'],
      [4, '"d"'],
    ]);
    expect([...log.entries(2, 1)]).toEqual([[2, '"b"']]);
    expect(log.get(2)).toBe('"b"');
    await log.remove(2);
    expect(log.get(2)).toBeUndefined();
    expect([...log.entries()].map(([n]) => n)).toEqual([1, 3, 4]);
    await store.batch((b) => {
      for (const n of [1, 4, 3]) b.remove(log, n);
    });
    expect([...log.entries()]).toEqual([]);
    await store.close();
    store = await start();
    log = store.log("events");
    expect(await log.append('"e"')).toBe(5);
  });

  it("orders by number, not by text", async () => {
    const store = await start();
    const log = store.log("many");
    await store.batch((b) => {
      for (let i = 1; i <= 3000; i++) strictEqual(b.append(log, String(i)).sequence, i);
    });
    expect([...log.entries()].map(([n]) => n)).toEqual(Array.from({ length: 3000 }, (_, i) => i + 1));
  });
});

describe("the store", () => {
  it("commits a batch whole or not at all", async () => {
    const store = await start();
    const map = store.map<number>("m");
    const log = store.log("l");
    const sequence = await store.batch((b) => {
      b.put(map, "a", 1);
      b.put(map, "b", 2);
      b.delete(map, "a");
      return b.append(log, '"done"');
    });
    expect(sequence).toEqual({ sequence: 1 });
    expect([...map.entries()]).toEqual([["b", 2]]);
    await expect(
      store.batch((b) => {
        b.put(map, "c", 3);
        throw new Error("no");
      }),
    ).rejects.toThrow("no");
    expect(map.get("c")).toBeUndefined();
  });

  it("dumps everything that is stored", async () => {
    const store = await start();
    await store.map("tokens").put("x", { role: "r" });
    await store.map("a").put("k", [1]);
    await store.log("l").append('"first"');
    const dumped: DumpEntry[] = [];
    for await (const entry of store.dump()) dumped.push(entry);
    expect(dumped).toEqual([
      { log: "l", key: 1, value: "first" },
      { map: "a", key: "k", value: [1] },
      { map: "tokens", key: "x", value: { role: "r" } },
    ]);
  });

  it("stops writing at its bound, says so, and goes on after deletes", async () => {
    const store = await start({ maxBytes: 256 * 1024 });
    const map = store.map<string>("m");
    let stored = 0;
    let refused: unknown;
    for (let i = 0; i < 200 && refused === undefined; i++) {
      await map.put(`k${i}`, "v".repeat(3000)).then(
        () => stored++,
        (error: unknown) => {
          refused = error;
        },
      );
    }
    expect(refused).toMatchObject({ code: "full" });
    expect(String(refused)).toMatch(/limit of 256 KiB.*deleting go on/);
    expect(stored).toBeGreaterThan(30);
    expect(store.stats().usedBytes).toBeLessThanOrEqual(256 * 1024);
    // What does not grow is let through: a queue at its bound must be able to drain.
    await map.put("k0", "w".repeat(3000));
    await store.batch((b) => {
      b.delete(map, "k1");
      b.put(map, "kx", "w".repeat(2000));
    });
    expect(map.get("kx")).toHaveLength(2000);
    for (let i = 0; i < 20; i++) await map.delete(`k${i}`);
    await map.put("again", "v".repeat(3000));
    expect(map.get("again")).toHaveLength(3000);
  });

  it("refuses a second opening in one process, and writing after close", async () => {
    const store = await start();
    await expect(start()).rejects.toMatchObject({ code: "already-open" });
    const map = store.map<number>("m");
    const last = map.put("a", 1);
    await store.close();
    await last;
    await expect(map.put("b", 1)).rejects.toMatchObject({ code: "closed" });
    expect(() => map.get("a")).toThrow(/closed/);
    const again = await start();
    expect(again.map("m").get("a")).toBe(1);
  });

  it("reads without writing when opened for reading", async () => {
    await expect(start({ readOnly: true })).rejects.toMatchObject({ code: "missing" });
    const writer = await start();
    await writer.map("m").put("a", 1);
    await writer.close();
    const reader = await start({ readOnly: true });
    expect(reader.map("m").get("a")).toBe(1);
    expect([...reader.map("m").entries()]).toEqual([["a", 1]]);
    await expect(reader.map("m").put("b", 1)).rejects.toMatchObject({ code: "read-only" });
  });

  it("takes many writers at once", async () => {
    const store = await start();
    const map = store.map<number>("m");
    await Promise.all(
      Array.from({ length: 16 }, async (_, w) => {
        for (let i = 0; i < EACH_WRITES; i++) await map.put(`${w}/${i}`, i);
      }),
    );
    expect([...map.entries()]).toHaveLength(16 * EACH_WRITES);
  });

  it("refuses to queue without bound", async () => {
    const store = await start();
    const map = store.map<string>("m");
    const value = "v".repeat(8 * 1024 * 1024);
    const results = await Promise.allSettled(Array.from({ length: 12 }, (_, i) => map.put(`k${i}`, value)));
    const busy = results.filter((r) => r.status === "rejected");
    expect(busy.length).toBeGreaterThan(0);
    for (const { reason } of busy) expect(reason).toMatchObject({ code: "busy" });
    expect([...map.entries()]).toHaveLength(12 - busy.length);
  });
});

describe("a migration", () => {
  const rename: Migration = {
    name: "name becomes title",
    run(store) {
      for (const { key, value } of store.entries("map", "books")) {
        store.put("map", "books", key, { title: (value as { name: string }).name });
      }
    },
  };
  const drop: Migration = {
    name: "drop drafts",
    run(store) {
      for (const { key } of store.entries("map", "drafts")) store.delete("map", "drafts", key);
    },
  };

  it("brings an older store up to date, each step once", async () => {
    let store = await start({ migrations: [] });
    await store.map("books").put("1", { name: "A" });
    await store.map("drafts").put("1", "x");
    await store.close();
    store = await start({ migrations: [rename] });
    expect(store.map("books").get("1")).toEqual({ title: "A" });
    expect(store.stats().version).toBe(2);
    await store.close();
    store = await start({ migrations: [rename, drop] });
    expect(store.map("books").get("1")).toEqual({ title: "A" });
    expect(store.map("drafts").get("1")).toBeUndefined();
    expect(store.stats().version).toBe(3);
  });

  it("changes nothing when a step fails", async () => {
    let store = await start({ migrations: [] });
    await store.map("books").put("1", { name: "A" });
    await store.close();
    const bad: Migration = {
      name: "goes wrong",
      run() {
        throw new Error("oops");
      },
    };
    await expect(start({ migrations: [rename, bad] })).rejects.toThrow(/"goes wrong", nothing was changed: oops/);
    store = await start({ migrations: [] });
    expect(store.map("books").get("1")).toEqual({ name: "A" });
  });

  it("refuses a store of a newer version, and an older one for reading only", async () => {
    let store = await start({ migrations: [rename] });
    await store.close();
    await expect(start({ migrations: [] })).rejects.toMatchObject({
      code: "newer",
      message: expect.stringContaining("schema version 2; this version of Toolway knows up to 1"),
    });
    await expect(start({ migrations: [rename, drop], readOnly: true })).rejects.toMatchObject({ code: "older" });
    store = await start({ migrations: [rename] });
    expect(store.stats().version).toBe(2);
  });
});
