// A body far larger than what either end of an executor's connection may hold, to a reader that is slower than its
// server: both ends in processes of their own, whose memory is read from outside.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { cli, root } from "../e2e/harness.js";
import { digestOf, startOrigin } from "./executor-bodies.js";
import { figure } from "./length.js";
import { linux, MB, megabytes, peakRss, report, resetPeak, rss } from "./measure.js";

/** What may be added at each end while it goes on. */
const GROWTH = 32 * MB;
/** Twice that at least: an end that did not wait for its reader would hold nearly all of it. */
const BYTES = figure(64, 256) * MB;
const RATE = figure(16, 8) * MB;
/** Faster than it takes to read it all, so that what is measured is a process that has worked before. */
const WARM_BYTES = 4 * MB;
const RUN_MS = 300_000;

const started: ChildProcessWithoutNullStreams[] = [];
afterAll(() => {
  for (const child of started) child.kill("SIGKILL");
});

/** A process that prints lines of JSON, and who waits for the next one. */
function launch(args: readonly string[], token: string) {
  const child = spawn(process.execPath, args, {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, TOOLWAY_TOKEN: token },
  });
  started.push(child);
  child.stderr.pipe(process.stderr);
  const lines = createInterface(child.stdout);
  const next = async (): Promise<Record<string, unknown>> => {
    const [line] = (await once(lines, "line")) as [string];
    return JSON.parse(line) as Record<string, unknown>;
  };
  return { child, pid: child.pid as number, next };
}

describe.skipIf(!linux)("a body to a reader that is slower than its server", () => {
  it(`[exec-1] ${BYTES / MB} MB at ${RATE / MB} MB a second add less than ${GROWTH / MB} MB to either end`, {
    timeout: RUN_MS,
  }, async () => {
    const origin = await startOrigin();
    const token = "a-token-of-this-test";
    const executor = launch(
      [cli, "executor", "--listen", "ws://127.0.0.1:0", "--allow", `127.0.0.1:${origin.port}`, "--json"],
      token,
    );
    const { url } = (await executor.next()) as { url: string };
    const library = pathToFileURL(join(dirname(cli), "../index.js")).href;
    const client = launch([join(root, "test/faults/servers/slow-client.mjs"), library, url], token);
    expect(await client.next()).toEqual({ ready: true });
    const read = async (seed: number, bytes: number, rate: number): Promise<Record<string, unknown>> => {
      client.child.stdin.write(`${JSON.stringify({ url: origin.bodyUrl(seed, bytes), rate })}\n`);
      return await client.next();
    };
    expect(await read(1, WARM_BYTES, 1_000 * MB)).toMatchObject({ bytes: WARM_BYTES });

    const ends = { executor: executor.pid, client: client.pid };
    const before = Object.entries(ends).map(([name, pid]) => ({ name, pid, rss: rss(pid) }));
    for (const { pid } of before) resetPeak(pid);
    const result = await read(2, BYTES, RATE);
    const grown = before.map(({ name, pid, rss: was }) => ({ name, was, growth: peakRss(pid) - was }));
    report(
      "executor, slow reader",
      `${BYTES / MB} MB in ${Number(result["seconds"]).toFixed(1)} s; ` +
        grown.map(({ name, was, growth }) => `${name} ${megabytes(was)} + ${megabytes(growth)} at most`).join(", "),
    );
    expect(`${result["bytes"]} ${result["sha256"]}`).toBe(await digestOf(2, BYTES));
    // It was the reader who was slow, or nothing was shown.
    expect(Number(result["seconds"])).toBeGreaterThan((BYTES / RATE) * 0.8);
    for (const { name, growth } of grown) expect(growth, name).toBeLessThan(GROWTH);
    await origin.close();
  });
});
