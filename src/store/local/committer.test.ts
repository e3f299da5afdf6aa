import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { MIB } from "../../runtime/sizes.js";
import { Committer, envStats, fileEnd, type Write } from "./committer.js";
import { ENV_OPTIONS, type Env } from "./env.js";
import { Space } from "./space.js";
import { openStore } from "./store.js";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolway-commit-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe("room claimed ahead", () => {
  it("is enough for whatever a commit writes", async () => {
    const { open } = await import("lmdb");
    const env = open<string, Uint8Array>({
      path: dir,
      ...ENV_OPTIONS,
    });
    const data = join(dir, "data.mdb");
    const space = new Space(data);
    const committer = new Committer(env, space, dir, Number.MAX_SAFE_INTEGER);
    // A fixed seed: sizes from a few bytes to many pages, overwrites and deletes in random order and groups.
    let seed = 12345;
    const random = (n: number) => {
      seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
      return Math.floor((seed / 0x80000000) * n);
    };
    const shapes = [() => random(60), () => random(1500), () => 900 + random(300), () => random(40_000)];
    for (let round = 0; round < histories(400); round++) {
      const shape = shapes[random(shapes.length)] ?? (() => 1);
      const writes = Array.from({ length: 1 + random(round % 10 === 0 ? 400 : 30) }, (): Write => {
        const key = Buffer.from(`k${random(3000)}${"x".repeat(random(3) === 0 ? random(200) : 0)}`);
        if (random(3) === 0) return { key, json: undefined, bytes: key.length };
        const json = JSON.stringify("v".repeat(shape()));
        return { key, json, bytes: key.length + json.length };
      });
      await Promise.all(random(2) === 0 ? [committer.submit(writes)] : writes.map((w) => committer.submit([w])));
      // Nobody but us has made the file longer, and all pages are inside it.
      expect(statSync(data).size).toBe(space.bytes);
      expect(fileEnd(envStats(env))).toBeLessThanOrEqual(space.bytes);
    }
    await committer.drained();
    space.close();
    await env.close();
  });
});

const tree = { pageSize: 4096, treeDepth: 1, treeBranchPageCount: 0, treeLeafPageCount: 1, overflowPages: 0 };
const stats = { ...tree, entryCount: 1, lastPageNumber: 2, free: { ...tree, entryCount: 0 } };

/** An LMDB whose commits end when they are told to; `commits` has the keys of each. */
async function heldCommits() {
  const store = await openStore({ dir });
  await store.close();
  const commits: string[][] = [];
  let keys: string[] = [];
  let end = () => {};
  const put = (key: Uint8Array) => {
    keys.push(Buffer.from(key).toString());
    return Promise.resolve(true);
  };
  const batch = (action: () => void) => {
    keys = [];
    action();
    commits.push(keys);
    return new Promise<boolean>((resolve) => {
      end = () => resolve(true);
    });
  };
  const env = { getStats: () => stats, put, remove: put, batch } as unknown as Env;
  const space = new Space(join(dir, "data.mdb"));
  const committer = new Committer(env, space, dir, 1e9);
  const write = (key: string, mayWait = false) =>
    committer.submit([{ key: Buffer.from(key), json: "1", bytes: 2 }], mayWait);
  /** Some time passes, and what follows from it is done. */
  const passes = async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms);
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  return { committer, commits, write, passes, end: () => end(), close: () => space.close() };
}

describe("a commit", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "hrtime", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  it("waits for the many who were answered by the last one, so that they do not go by halves for ever", async () => {
    const { committer, commits, write, passes, end, close } = await heldCommits();
    const ROUNDS = 6;
    const writer = async (name: string) => {
      for (let n = 0; n < ROUNDS; n++) await write(name);
    };
    const names = Array.from({ length: 24 }, (_, n) => `w${n}`);
    const first = names.slice(0, 12).map(writer);
    await passes(0);
    const rest = names.slice(12).map(writer);
    for (let n = 1; n < ROUNDS; n++) {
      end();
      await passes(0);
    }
    // The second half came while the first was written; from then on all go together.
    const sizes = commits.map((keys) => keys.length);
    expect(sizes).toEqual([12, ...Array.from({ length: ROUNDS - 1 }, () => 24)]);
    // Half of them do not write again. They are waited for, and not for long.
    end();
    await passes(0);
    expect(commits).toHaveLength(ROUNDS);
    await passes(1);
    expect(commits[ROUNDS]).toHaveLength(12);
    end();
    await Promise.all([...first, ...rest]);
    await committer.drained();
    close();
  });

  it("waits on while they come one by one, and not without end", async () => {
    const { committer, commits, write, passes, end, close } = await heldCommits();
    for (let n = 0; n < 24; n++) void write(`w${n}`);
    await passes(0);
    end();
    await passes(0);
    for (let n = 0; n < 4; n++) {
      void write(`again${n}`);
      await passes(0.7);
      expect(commits).toHaveLength(1);
    }
    await passes(1);
    expect(commits[1]).toEqual(["again0", "again1", "again2", "again3"]);
    end();
    await committer.drained();
    close();
  });

  it("waits for nobody where few were answered, or when it has been a while", async () => {
    const { committer, commits, write, passes, end, close } = await heldCommits();
    const submit = async (keys: readonly string[]) => {
      for (const key of keys) void write(key);
      await passes(0);
      expect(commits.at(-1)).toEqual(keys);
      end();
      await passes(0);
    };
    await submit(["a", "b", "c"]);
    await submit(["d"]);
    await submit(Array.from({ length: 24 }, (_, n) => `w${n}`));
    await passes(10);
    await submit(["e"]);
    await committer.drained();
    close();
  });

  it("waits while those who were answered keep coming, though they take a while, and no longer than that or 4 ms", async () => {
    const { committer, commits, write, passes, end, close } = await heldCommits();
    const many = (name: string, count: number) => Array.from({ length: count }, (_, n) => write(`${name}${n}`));
    const answer = async () => {
      end();
      await passes(0);
    };
    many("a", 24);
    await passes(0);
    await answer();
    // What they do between two writes takes 5 ms; then all of them come, some in each millisecond.
    await passes(5);
    for (let n = 0; n < 3; n++) {
      many(`b${n}-`, 8);
      await passes(n < 2 ? 0.5 : 0);
    }
    expect(commits.map((keys) => keys.length)).toEqual([24, 24]);
    await answer();
    // The last of them does not come: a millisecond later nobody waits for it.
    many("c", 23);
    await passes(0);
    expect(commits).toHaveLength(2);
    await passes(1);
    expect(commits[2]).toHaveLength(23);
    await answer();
    // They come one by one: the first has waited long enough before the last is there.
    many("d", 1);
    for (let n = 0; n < 4; n++) {
      await passes(0.5);
      expect(commits).toHaveLength(3);
      many(`e${n}`, 1);
      await passes(0.5);
    }
    expect(commits[3]).toHaveLength(5);
    await answer();
    await committer.drained();
    close();
  });

  it("takes with it what nobody waits for, which goes by itself where no other comes, and at once at the end", async () => {
    const { committer, commits, write, passes, end, close } = await heldCommits();
    const gone = write("gone", true);
    await passes(0);
    expect(commits).toEqual([]);
    const told = write("told");
    await passes(0);
    expect(commits).toEqual([["gone", "told"]]);
    // It does not follow a commit as what is waited for does.
    const later = write("later", true);
    end();
    await Promise.all([gone, told]);
    await passes(1);
    expect(commits).toHaveLength(1);
    await passes(4);
    expect(commits[1]).toEqual(["later"]);
    end();
    await later;
    const last = write("last", true);
    const drained = committer.drained();
    await passes(0);
    expect(commits[2]).toEqual(["last"]);
    end();
    await Promise.all([last, drained]);
    close();
  });
});

it("what comes in the turn in which LMDB is told of a commit is in it, as far as there is room", async () => {
  const store = await openStore({ dir, maxBytes: 4 * MIB });
  const commits: number[] = [];
  let written = 0;
  store.onCommit = () => void commits.push(written);
  const map = store.map<string>("m");
  const put = async (key: string, value = "v") => {
    await map.put(key, value);
    written++;
  };
  const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
  const first = put("a");
  // The commit is made up in the turn that this one is of, and begins in the next.
  await nextTurn();
  const joined = Array.from({ length: 40 }, (_, n) => put(`b${n}`));
  const tooMuch = put("c", "x".repeat(5 * MIB));
  await Promise.all([first, ...joined]);
  expect(commits).toEqual([0]);
  for (const key of ["a", "b0", "b39"]) expect(map.get(key)).toBe("v");
  await expect(tooMuch).rejects.toMatchObject({ code: "full" });
  await put("d");
  expect(commits).toEqual([0, 41]);
  await store.close();
});

describe("a failed commit", () => {
  it("rejects its writes with the reason that LMDB tells later, and only them", async () => {
    const store = await openStore({ dir });
    await store.close();
    const unhandled: unknown[] = [];
    const listener = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", listener);
    // LMDB fails a commit so: a general error at once, and in it a promise that rejects with the reason.
    const failures: unknown[] = [
      Object.assign(new Error("No space left on device"), { code: 28 }),
      Object.assign(new Error("Input/output error"), { code: 5 }),
      "at once",
    ];
    const env = {
      getStats: () => stats,
      put: () => Promise.resolve(true),
      remove: () => Promise.resolve(true),
      batch: (action: () => void) => {
        action();
        const reason = failures.shift();
        if (reason === undefined) return Promise.resolve(true);
        if (reason === "at once") return Promise.reject(new Error("Input/output error"));
        const commitError = new Promise((_, fail) => setTimeout(fail, 20, reason));
        return Promise.reject(Object.assign(new Error("Commit failed (see commitError for details)"), { commitError }));
      },
    } as unknown as Env;
    const space = new Space(join(dir, "data.mdb"));
    const committer = new Committer(env, space, dir, 1e9);
    const write = { key: Buffer.from("k"), json: "1", bytes: 2 };
    try {
      await expect(committer.submit([write])).rejects.toMatchObject({ code: "disk-full" });
      await expect(committer.submit([write])).rejects.toMatchObject({
        code: "io",
        message: expect.stringContaining("Input/output error"),
      });
      // Who writes in the very turn in which it failed is in the next one, and is not left behind.
      await committer.submit([write]).catch(() => {});
      await committer.submit([write]);
      await committer.drained();
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", listener);
      space.close();
    }
  });
});
