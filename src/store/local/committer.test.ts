import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { Committer, envStats, fileEnd, type Write } from "./committer.js";
import type { Env } from "./env.js";
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
      noSubdir: false,
      overlappingSync: false,
      eventTurnBatching: false,
      encoding: "string",
      keyEncoding: "binary",
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

describe("a failed commit", () => {
  it("rejects its writes with the reason that LMDB tells later, and only them", async () => {
    const store = await openStore({ dir });
    await store.close();
    const tree = { pageSize: 4096, treeDepth: 1, treeBranchPageCount: 0, treeLeafPageCount: 1, overflowPages: 0 };
    const stats = { ...tree, entryCount: 1, lastPageNumber: 2, free: { ...tree, entryCount: 0 } };
    const unhandled: unknown[] = [];
    const listener = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", listener);
    // LMDB fails a commit so: a general error at once, and in it a promise that rejects with the reason.
    const failures: unknown[] = [
      Object.assign(new Error("No space left on device"), { code: 28 }),
      Object.assign(new Error("Input/output error"), { code: 5 }),
    ];
    const env = {
      getStats: () => stats,
      put: () => Promise.resolve(true),
      remove: () => Promise.resolve(true),
      batch: (action: () => void) => {
        action();
        const reason = failures.shift();
        if (reason === undefined) return Promise.resolve(true);
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
      await committer.submit([write]);
      await committer.drained();
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", listener);
      space.close();
    }
  });
});
