import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { ownToolName } from "../../contracts/names.js";
import type { Target } from "../../contracts/server-spec.js";
import { Redactor } from "../../runtime/redact/redactor.js";
import { openStore } from "../../store/local/store.js";
import { MemoryMap } from "../../store/memory-map.js";
import { type PinRecord, StoredPins } from "./stored-pins.js";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const tool = (name: string, more: object = {}) => {
  const value = { name, ...more };
  return { json: JSON.stringify(value), value };
};

const redactor = new Redactor(["hunter2hunter2"]);

function open(
  map = new MemoryMap<PinRecord>("pins") as Pick<MemoryMap<PinRecord>, keyof MemoryMap<PinRecord>>,
  identityOf?: (target: Target) => string,
) {
  const changes: string[] = [];
  const lines: string[] = [];
  let now = 1000;
  const book = new StoredPins({
    map,
    identityOf,
    wall: () => now++,
    onChange: (server) => changes.push(server),
    log: (level, text) => lines.push(`${level}: ${text}`),
    redact: (_server, text) => redactor.redact(text),
  });
  return { map, book, changes, lines };
}

describe("StoredPins", () => {
  it("write thousands of first sights over many turns, and none is lost by an end between them [one-bad-server]", async () => {
    let written = 0;
    const map = new (class extends MemoryMap<PinRecord> {
      override create(key: string, record: PinRecord) {
        written++;
        return super.create(key, record);
      }
    })("pins");
    const { book } = open(map);
    const many = Array.from({ length: 5_000 }, (_, n) => tool(`tool ${n}`));
    const { quarantined } = book.check("s", many);
    expect([quarantined.size, written]).toEqual([0, 100]);
    // In force at once, written or not.
    expect(book.check("other", [tool("one")]).differs).toBe(false);
    expect(book.list().filter(({ server }) => server === "s")).toHaveLength(5_000);
    let most = 0;
    for (let turns = 0, before = written; written < 5_001; before = written, turns++) {
      await new Promise((resolve) => setImmediate(resolve));
      most = Math.max(most, written - before);
      if (turns > 1_000) throw new Error(`${written} written`);
    }
    expect(most).toBeLessThanOrEqual(200);
    const changed = many.map(({ value: { name } }) => tool(name, { description: "x" }));
    book.check("s", changed);
    expect(book.diff("s")).toHaveLength(5_000);
    book.check("s", many);
    book.flush();
    expect([...map.entries()].filter(([, { changed }]) => changed !== undefined)).toEqual([]);
    expect([...map.entries()]).toHaveLength(5_001);
  });

  it("that are waiting when the store is closed are given up, and said", async () => {
    const store = new MemoryMap<PinRecord>("pins");
    let isClosed = false;
    const map = Object.assign(store, {
      get: () => {
        if (isClosed) throw new Error("The store is closed.");
        return undefined;
      },
    });
    const { book, lines } = open(map);
    book.check(
      "s",
      Array.from({ length: 300 }, (_, n) => tool(`tool ${n}`)),
    );
    isClosed = true;
    await new Promise((resolve) => setImmediate(resolve));
    expect(lines.at(-1)).toBe("warn: pins could not be kept: The store is closed.");
  });

  it("log no tool that is named like a secret of its server's entry, nor half of one [secrets-unseen]", () => {
    const { book, lines } = open();
    const names = ["hunter2hunter2", `${"x".repeat(75)}hunter2hunter2`];
    book.check(
      "s",
      names.map((name) => tool(name)),
    );
    book.check(
      "s",
      names.map((name) => tool(name, { description: "changed" })),
    );
    book.check(
      "s",
      names.map((name) => tool(name)),
    );
    expect(lines).toHaveLength(3);
    expect(lines.join("\n")).not.toContain("hunte");
    expect(lines[0]).toContain('pinned at first sight: "[redacted]", "xxx');
  });

  it("pins at first sight, quarantines a change, and takes it back when accepted [host-12]", async () => {
    const { book, changes, lines } = open();
    expect(book.check("s", [tool("add"), tool("sub")]).quarantined.size).toBe(0);
    const { quarantined, differs } = book.check("s", [tool("add", { description: "evil" }), tool("sub"), tool("new")]);
    expect([...quarantined.keys()]).toEqual(["add"]);
    expect(differs).toBe(true);
    expect(book.isQuarantined("s", ownToolName("add"))).toBe(true);
    expect(book.quarantine("s", ownToolName("add"))).toMatch(
      /^its definition changed since it was accepted: for whoever runs the gateway, `toolway pins diff s`/,
    );
    expect(book.isQuarantined("s", ownToolName("sub"))).toBe(false);
    expect(book.isQuarantined("s", ownToolName("new"))).toBe(false);
    expect(lines.at(-1)).toContain('warn: server "s": definition changed, so quarantined: "add"');
    expect(book.diff("s")).toMatchObject([
      {
        tool: "add",
        old: { definition: '{"name":"add"}' },
        new: { definition: '{"description":"evil","name":"add"}' },
      },
    ]);
    expect(changes).toEqual([]);
    expect(await book.accept("s", ownToolName("add"))).toMatchObject([{ tool: "add" }]);
    expect(changes).toEqual(["s"]);
    expect(book.isQuarantined("s", ownToolName("add"))).toBe(false);
    expect(book.diff("s")).toEqual([]);
    expect(await book.accept("s")).toEqual([]);
    expect(book.check("s", [tool("add")]).quarantined.size).toBe(1);
  });

  it("knows over a restart, from a real store, what was pinned, changed and accepted [host-12] [ack-is-durable]", async () => {
    const folder = mkdtempSync(join(tmpdir(), "toolway-pins-"));
    folders.push(folder);
    const within = async (act: (book: StoredPins) => unknown): Promise<void> => {
      const store = await openStore({ dir: join(folder, "store") });
      try {
        await act(open(store.shared<PinRecord>("pins")).book);
      } finally {
        await store.close();
      }
    };
    await within((book) =>
      book.check("s", [tool("a"), tool("b"), tool(`long ${"x".repeat(4000)}`), tool("half \ud800")]),
    );
    await within((book) => {
      expect(book.list().filter(({ server }) => server === "s")).toHaveLength(3);
      expect([...book.check("s", [tool("a", { v: 2 }), tool("b", { v: 2 })]).quarantined.keys()]).toEqual(["a", "b"]);
    });
    await within(async (book) => {
      // Nothing has been listed yet: what is known is enough to refuse.
      expect(book.isQuarantined("s", ownToolName("a"))).toBe(true);
      expect(book.diff("s", ownToolName("a"))).toMatchObject([
        { old: { definition: '{"name":"a"}' }, new: { definition: '{"name":"a","v":2}' } },
      ]);
      await book.accept("s", ownToolName("a"));
    });
    await within((book) => {
      expect(book.isQuarantined("s", ownToolName("a"))).toBe(false);
      expect(book.isQuarantined("s", ownToolName("b"))).toBe(true);
      expect([...book.check("s", [tool("a", { v: 2 }), tool("b")]).quarantined.keys()]).toEqual([]);
      expect([...book.check("s", [tool("a"), tool("b")]).quarantined.keys()]).toEqual(["a"]);
    });
  });

  it("leaves a rejected tool hidden and asks no more, over a restart, until it changes again [host-12]", async () => {
    const { book, map } = open();
    const [add, sub] = [ownToolName("add"), ownToolName("sub")];
    book.check("s", [tool("add"), tool("sub")]);
    book.check("s", [tool("add", { description: "evil" }), tool("sub", { description: "evil" })]);
    expect(book.asking("s")).toEqual([add, sub]);
    const hash = book.diff("s", add)[0]?.new.hash ?? "";
    await expect(book.reject("s", add, "A".repeat(12))).rejects.toMatchObject({ code: "invalid" });
    expect(await book.reject("s", add, hash)).toEqual([{ tool: add, hash }]);
    expect(await book.reject("s", add)).toEqual([]);
    for (const one of [book, open(map as never).book]) {
      one.check("s", [tool("add", { description: "evil" }), tool("sub", { description: "evil" })]);
      expect(one.asking("s")).toEqual([sub]);
      expect(one.quarantine("s", add)).toContain("rejected it as it is now");
      expect(one.list().find((line) => line.tool === add)).toMatchObject({ state: "rejected" });
      expect(one.diff("s", add)).toMatchObject([{ rejectedAt: expect.any(String) }]);
    }
    // Another change is another question; what was accepted before needs none.
    book.check("s", [tool("add", { description: "worse" }), tool("sub")]);
    expect([book.asking("s"), book.isQuarantined("s", sub)]).toEqual([[add], false]);
    await book.reject("s");
    expect(book.asking("s")).toEqual([]);
    expect(await book.accept("s", add)).toMatchObject([{ tool: "add" }]);
    expect(book.isQuarantined("s", add)).toBe(false);
  });

  it("rejects what was looked at, where the tool changes while that is on its way to the disk", async () => {
    const { book, map } = open();
    const add = ownToolName("add");
    book.check("s", [tool("add")]);
    book.check("s", [tool("add", { description: "evil" })]);
    const rejecting = book.reject("s", add);
    book.check("s", [tool("add", { description: "worse" })]);
    await rejecting;
    expect(book.asking("s")).toEqual([add]);
    expect(open(map as never).book.asking("s")).toEqual([add]);
  });

  it("accepts nothing that the disk refuses; a pin that it refuses holds, and is tried again", async () => {
    const { book, map, lines } = open();
    const [create, update] = [map.create.bind(map), map.update.bind(map)];
    map.create = () => Promise.reject(new Error("disk full"));
    map.update = map.create;
    book.check("s", [tool("a")]);
    book.check("s", [tool("a", { v: 2 })]);
    expect(book.isQuarantined("s", ownToolName("a"))).toBe(true);
    expect(book.diff("s")).toHaveLength(1);
    await expect(book.accept("s")).rejects.toThrow("disk full");
    expect(book.isQuarantined("s", ownToolName("a"))).toBe(true);
    expect(lines.some((line) => line.includes("could not be kept: disk full"))).toBe(true);
    map.create = create;
    map.update = update;
    book.check("s", [tool("a", { v: 2 })]);
    await Promise.resolve();
    expect(open(map).book.isQuarantined("s", ownToolName("a"))).toBe(true);
    await book.accept("s");
    expect(book.isQuarantined("s", ownToolName("a"))).toBe(false);
    expect(open(map).book.isQuarantined("s", ownToolName("a"))).toBe(false);
  });

  it("of two gateways hold what either accepts, and neither undoes it with what it sees at the same time [engine-shared]", async () => {
    const map = new MemoryMap<PinRecord>("pins");
    const [a, b] = [open(map), open(map)];
    for (const { book } of [a, b]) map.watch((key, record) => book.told(key, record));
    const state = ({ book }: typeof a) => book.list().find(({ tool }) => tool === "a")?.state;
    for (const { book } of [a, b]) book.check("s", [tool("a")]);
    for (const { book } of [a, b]) book.check("s", [tool("a", { v: 2 })]);
    expect([state(a), state(b)]).toEqual(["changed", "changed"]);
    // One accepts the second definition while the server of the other shows a third.
    const accepted = a.book.accept("s");
    b.book.check("s", [tool("a", { v: 3 })]);
    await accepted;
    expect([state(a), state(b)]).toEqual(["pinned", "changed"]);
    expect(a.book.list()[0]?.hash).toBe(b.book.list()[0]?.hash);
    // It is back to what was accepted, and free.
    b.book.check("s", [tool("a", { v: 2 })]);
    expect([state(a), state(b)]).toEqual(["pinned", "pinned"]);
    expect(open(map).book.list()[0]).toMatchObject({ state: "pinned", hash: a.book.list()[0]?.hash });
    await a.book.forget("s").catch(() => {});
    expect(state(b)).toBe(state(a));
  });

  it("accepts what was looked at, and not what came since", async () => {
    const { book, map } = open();
    book.check("s", [tool("a")]);
    book.check("s", [tool("a", { v: 2 })]);
    const looked = book.diff("s")[0]?.new.hash ?? "";
    book.check("s", [tool("a", { v: 3 })]);
    await expect(book.accept("s", ownToolName("a"), looked)).rejects.toMatchObject({ code: "invalid" });
    await expect(book.accept("s", ownToolName("a"), "abc")).rejects.toMatchObject({ code: "invalid" });
    expect(book.isQuarantined("s", ownToolName("a"))).toBe(true);

    // It changes while the acceptance is on its way to the disk.
    const put = map.put.bind(map);
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    // In the order of the calls, as the store does it.
    let last = held;
    map.put = (key, record) => {
      last = last.then(() => put(key, record));
      return last;
    };
    const accepting = book.accept("s", ownToolName("a"), book.diff("s")[0]?.new.hash.slice(0, 12));
    book.check("s", [tool("a", { v: 4 })]);
    release();
    await accepting;
    await last;
    expect(book.diff("s")).toMatchObject([
      { old: { definition: '{"name":"a","v":3}' }, new: { definition: '{"name":"a","v":4}' } },
    ]);
    expect(open(map).book.diff("s")).toMatchObject([{ old: { definition: '{"name":"a","v":3}' } }]);
  });

  it("leaves a trusted server alone, and says when it has to be looked at again", () => {
    const { book, changes } = open();
    book.check("s", [tool("a")]);
    book.check("s", [tool("a", { v: 2 })]);
    expect(book.configure([{ name: "s", trust: "always" }])).toEqual([]);
    expect(changes).toEqual(["s"]);
    expect(book.isQuarantined("s", ownToolName("a"))).toBe(false);
    expect(book.check("s", [tool("a", { v: 3 })]).quarantined.size).toBe(0);
    expect(book.list()).toEqual([]);
    expect(() => book.diff("s")).toThrow("always");
    expect(book.configure([{ name: "s", trust: "pinned" }])).toEqual(["s"]);
    expect(book.check("s", [tool("a", { v: 3 })]).quarantined.size).toBe(1);
  });

  it("says what each tool is, and what cannot be asked", async () => {
    const { book } = open();
    const twice = { json: '{"name":"odd","x":1,"x":2}', value: { name: "odd" } };
    book.check("s", [tool("a"), tool("b"), tool("c")]);
    book.check("s", [tool("a"), tool("b", { v: 2 }), twice]);
    expect(book.list().map(({ tool: name, state }) => [name, state])).toEqual([
      ["a", "pinned"],
      ["b", "changed"],
      ["c", "gone"],
      ["odd", "refused"],
    ]);
    expect(book.list()[1]).toMatchObject({ firstSeen: "1970-01-01T00:00:01.000Z", newHash: expect.any(String) });
    expect(() => book.diff("nobody")).toThrow('Nothing of server "nobody" is pinned');
    book.check("github", [tool("a")]);
    expect(() => book.diff("gihtub")).toThrow('Did you mean "github"?');
    await expect(book.accept("s", ownToolName("zzz"))).rejects.toMatchObject({ code: "not-found" });
    await expect(book.accept("s", ownToolName("odd"))).rejects.toMatchObject({ code: "denied" });
  });

  it("keeps no definition that is too large, and pins it all the same [bounded]", () => {
    const { book } = open();
    const large = (v: number) => tool("big", { description: "x".repeat(70_000), v });
    book.check("s", [large(1)]);
    book.check("s", [large(2)]);
    expect(book.isQuarantined("s", ownToolName("big"))).toBe(true);
    const [diff] = book.diff("s");
    expect(diff?.old.definition).toBeUndefined();
    expect(diff?.new.hash).not.toBe(diff?.old.hash);
  });

  it("forgets what has left the config, and keeps what a change is known by [status-true]", async () => {
    const { book, map, changes } = open();
    book.configure([
      { name: "old", trust: "pinned" },
      { name: "s", trust: "pinned" },
    ]);
    book.check("old", [tool("a"), tool("b")]);
    book.check("s", [tool("here"), tool("gone")]);
    book.check("s", [tool("here")]);
    await expect(book.forget("old")).rejects.toMatchObject({ code: "denied" });
    expect(await book.forget("s")).toEqual(["gone"]);
    await expect(book.forget("s")).rejects.toThrow(/its pins are in use: `toolway pins accept`/);
    book.check("s", [tool("here", { description: "evil" })]);
    expect(book.isQuarantined("s", ownToolName("here"))).toBe(true);
    await expect(book.forget("s", ownToolName("here"))).rejects.toMatchObject({ code: "denied" });

    // One that is switched off, or wrong, is in the config all the same.
    book.configure([{ name: "s", trust: "pinned" }], ["old"]);
    expect(book.list().map(({ server, state }) => `${server} ${state}`)).toEqual([
      "old pinned",
      "old pinned",
      "s changed",
    ]);
    book.configure([{ name: "s", trust: "pinned" }]);
    expect(book.list().map(({ server, state }) => `${server} ${state}`)).toEqual(["old left", "old left", "s changed"]);
    expect(await book.forget("old", ownToolName("a"))).toEqual(["a"]);
    expect(await book.forget("old")).toEqual(["b"]);
    expect(changes).toContain("old");
    expect([...map.entries()].map(([, record]) => record.server)).toEqual(["s"]);
    await expect(book.forget("old")).rejects.toMatchObject({ code: "not-found" });
    expect(book.list()).toHaveLength(1);
  });

  it("forgets on an engine for good: of a server that left before this start, and what was pinned before the engine [status-true]", async () => {
    const map = new MemoryMap<PinRecord>("pins");
    const urlOf = (target: Target) => (target.kind === "http" ? target.url : "");
    const entry = (name: string, url: string) => {
      return { name, trust: "pinned" as const, target: { kind: "http" as const, url, headers: {} } };
    };
    open(map).book.check("s", [tool("old"), tool("here")]);
    const first = open(map, urlOf).book;
    first.configure([entry("s", "one"), entry("left", "one")]);
    first.check("s", [tool("old", { v: 2 }), tool("here")]);
    first.check("left", [tool("a"), tool("b")]);
    const second = open(map, urlOf).book;
    second.configure([entry("s", "one")]);
    second.check("s", [tool("here")]);
    expect(await second.forget("s")).toEqual(["old"]);
    expect(await second.forget("left", ownToolName("a"))).toEqual(["a"]);
    const third = open(map, urlOf).book;
    third.configure([entry("s", "one")]);
    expect(third.list().map(({ server, tool: name }) => `${server}/${name}`)).toEqual(["left/b", "s/here"]);
    // What it means at another gateway is that one's.
    const other = open(map, urlOf).book;
    other.configure([entry("s", "two")]);
    other.check("s", [tool("here", { v: 3 })]);
    third.check("s", []);
    await third.forget("s");
    expect([...map.entries()].map(([, { server, target }]) => [server, target])).toEqual(
      expect.arrayContaining([
        ["s", "two"],
        ["left", "one"],
      ]),
    );
    expect([...map.entries()]).toHaveLength(2);
  });

  it("names the servers that are trusted, for as long as they are in the config [status-true]", () => {
    const { book } = open();
    book.configure([{ name: "ours", trust: "always" }]);
    expect(book.trusted).toEqual(["ours"]);
    book.configure([]);
    expect(book.trusted).toEqual([]);
  });
});
