// What a store says of itself while it cannot write, and when it takes that back.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { MIB } from "../../runtime/sizes.js";
import { diskFull } from "../store-error.js";
import { Committer } from "./committer.js";
import { ENV_OPTIONS } from "./env.js";
import { Space } from "./space.js";
import { openStore } from "./store.js";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolway-trouble-"));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(dir, { recursive: true, force: true });
});

it("a full disk is told from the first write that it refuses until one that adds something is on disk; a delete says nothing [status-true]", async () => {
  const store = await openStore({ dir });
  const map = store.map<string>("m");
  await map.put("old", "x");
  expect(store.trouble).toBeUndefined();
  let room = 0;
  const claim = vi.spyOn(Space.prototype, "claim").mockImplementation((_, more) => {
    if (more > room) throw diskFull(dir);
  });
  const fromMs = Date.now();
  await expect(map.put("new", "x")).rejects.toMatchObject({ code: "disk-full" });
  const { trouble } = store;
  expect(trouble).toMatchObject({ code: "disk-full", problem: expect.stringContaining("free some space") });
  expect(trouble?.sinceMs).toBeGreaterThanOrEqual(fromMs);
  expect(trouble?.sinceMs).toBeLessThanOrEqual(Date.now());
  // Room for deletes is kept back.
  room = 0.2 * MIB;
  await map.delete("old");
  expect(store.trouble).toEqual(trouble);
  vi.spyOn(Date, "now").mockReturnValue(fromMs + 60_000);
  await expect(map.put("new", "x")).rejects.toMatchObject({ code: "disk-full" });
  expect(store.trouble?.sinceMs).toBe(trouble?.sinceMs);
  // There is room for one of two that come together: the disk is as full as it was.
  room = MIB;
  const both = await Promise.allSettled([map.put("large", "x".repeat(2 * MIB)), map.put("small", "x")]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  expect(store.trouble?.code).toBe("disk-full");
  claim.mockRestore();
  await map.put("new", "x");
  expect(store.trouble).toBeUndefined();
  await store.close();
});

it("the bound of a store is told until what it refused would fit, whatever replaces something meanwhile [status-true] [bounded]", async () => {
  const store = await openStore({ dir, maxBytes: MIB });
  const map = store.map<string>("m");
  const large = "x".repeat(200_000);
  let keys = 0;
  const refused = await vi.waitUntil(async () =>
    map.put(`k${keys++}`, large).then(
      () => undefined,
      (error) => error,
    ),
  );
  expect(refused).toMatchObject({ code: "full" });
  const problem = expect.stringMatching(/limit of 1 MiB\. Reading and deleting go on; delete what is no longer needed/);
  expect(store.trouble).toMatchObject({ code: "full", problem });
  // No key of the config sets it.
  expect(store.trouble?.problem).not.toContain("raise");
  await map.put("k0", "x".repeat(199_000));
  expect(store.trouble?.code).toBe("full");
  await map.delete("k0");
  await map.delete("k1");
  expect(store.trouble).toBeUndefined();
  await map.put("k0", large);
  await store.close();
});

it("a commit that failed for another reason is told, until the next one does not [status-true]", async () => {
  const { open } = await import("lmdb");
  await (await openStore({ dir })).close();
  const env = open<string, Uint8Array>({ path: dir, ...ENV_OPTIONS });
  const space = new Space(join(dir, "data.mdb"));
  const committer = new Committer(env, space, dir, 1e9);
  const write = () => committer.submit([{ key: Buffer.from("k"), json: "1", bytes: 2 }]);
  const batch = vi
    .spyOn(env, "batch")
    .mockRejectedValueOnce(Object.assign(new Error("EIO: i/o error"), { code: "EIO" }));
  await expect(write()).rejects.toMatchObject({ code: "io" });
  expect(committer.trouble).toMatchObject({ code: "failed", problem: expect.stringContaining("EIO: i/o error") });
  batch.mockRestore();
  await write();
  expect(committer.trouble).toBeUndefined();
  space.close();
  await env.close();
});
