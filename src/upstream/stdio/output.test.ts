// The pair that a child writes its output to: made by real sockets, and given to a real process.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { until } from "../../../test/fixtures/wait.js";
import { openOutputPair } from "./output.js";

const folder = mkdtempSync(join(tmpdir(), "output-pair-"));

afterEach(() => {
  vi.unstubAllEnvs();
});

it.skipIf(process.platform === "win32")(
  "What a child writes is read into a block that is read into again, and its end is told [bounded]",
  async () => {
    vi.stubEnv("TMPDIR", folder);
    const memory = new Set<ArrayBufferLike>();
    let text = "";
    const pair = await openOutputPair((bytes) => {
      memory.add(bytes.buffer);
      text += bytes.toString("latin1");
      return false;
    });
    if (pair === undefined) throw new Error("no pair");
    // Neither the listener nor its folder outlives the making of the pair.
    expect(readdirSync(folder)).toEqual([]);
    let hasEnded = false;
    pair.ours.once("end", () => {
      hasEnded = true;
    });
    const script =
      'let n = 0; const t = setInterval(() => { console.log("line", n++); if (n === 5) clearInterval(t); }, 1)';
    const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", pair.theirs, "inherit"] });
    pair.theirs.destroy();
    await until(() => hasEnded);
    expect(text).toBe([0, 1, 2, 3, 4].map((n) => `line ${n}\n`).join(""));
    expect(memory.size).toBe(1);
    await until(() => child.exitCode === 0);
  },
);

it.skipIf(process.platform === "win32")(
  "A path that is too long for a socket is not cut off: no pair is made, and nothing is left behind [bounded]",
  async () => {
    const long = join(folder, "x".repeat(94 - folder.length));
    mkdirSync(long);
    vi.stubEnv("TMPDIR", long);
    expect(await openOutputPair(() => false)).toBeUndefined();
    expect(readdirSync(long)).toEqual([]);
    rmSync(long, { recursive: true });
  },
);

it.skipIf(process.platform === "win32")("Where no pair can be made, none is given", async () => {
  vi.stubEnv("TMPDIR", join(folder, "not-there"));
  expect(await openOutputPair(() => false)).toBeUndefined();
  vi.stubEnv("TMPDIR", folder);
  rmSync(folder, { recursive: true });
  expect(await openOutputPair(() => false)).toBeUndefined();
});
