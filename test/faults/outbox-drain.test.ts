// Many writes that wait for a server in many lanes, and how long they take, and how much memory, when it is back. It runs
// with the full figures only: src/outbox/durability.test.ts has the short form, without processes.

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startGateway, startHttpFixture, temporaryDirectory, until } from "../e2e/harness.js";
import { callTool, hasTool, statusOfAll } from "../e2e/operator.js";
import { effectsIn } from "../fixtures/ledger.js";
import { begunWrite, disorder, type MadeWrite } from "../fixtures/outbox/kept-writes.js";
import { full } from "./length.js";
import { linux, MB, ownMemory, peakRss, report, resetPeak, rss } from "./measure.js";

const WRITES = 100_000;
const LANES = 64;
const MAX_DRAIN_MS = 300_000;
/** Of the gateway's own memory. What it has read of its state on disk comes on top, and is the kernel's to keep. */
const MAX_GROWTH = 100 * MB;
/** As many are kept and delivered before: a heap at work is larger than that of a start. */
const WARM_UP = 5_000;
const LOOK_MS = 500;

describe.skipIf(!linux || !full)("a server that is back", () => {
  it(`gets ${WRITES} writes of ${LANES} lanes, each once and each lane in order [lane-order] [ack-is-durable] [bounded]`, async () => {
    const ledger = join(await temporaryDirectory(), "ledger.jsonl");
    const files = ["--ledger", ledger];
    const server = await startHttpFixture("tracker", files);
    const tools = { create_issue: { outbox: { lane: "arguments.project", key: "arguments.request_id" } } };
    const tracker = { ...server.entry, tools, restarts: { max: 1_000 }, breaker: { failures: 1_000_000 } };
    const gateway = await startGateway({
      mcpServers: { tracker },
      outbox: { maxWrites: 4 * WRITES, maxBytes: 512 * MB },
    });
    await until("the tools", () => hasTool(gateway.url, "create_issue"));
    const queue = async (count: number, word: string): Promise<MadeWrite[]> => {
      let next = 0;
      const writes: MadeWrite[] = [];
      const agents = Array.from({ length: 32 }, async () => {
        for (let n = next++; n < count; n = next++) {
          const write = { ...begunWrite(n, n % LANES, 0, "create_issue"), title: `${word}-${n}` };
          writes.push(write);
          const args = { project: write.lane, title: write.title };
          const { result } = await callTool(gateway.url, "create_issue", args);
          write.toldMs = performance.now();
          expect(result?.["structuredContent"]).toMatchObject({ queued: true });
        }
      });
      await Promise.all(agents);
      return writes;
    };
    const drained = () =>
      until("all to be delivered", async () => (await statusOfAll(gateway)).outbox?.waiting === 0, 2 * MAX_DRAIN_MS);
    await server.kill();
    await queue(WARM_UP, "warm");
    const warm = await startHttpFixture("tracker", files, server.port);
    await drained();
    await warm.kill();
    const beforeBytes = rss(gateway.pid);
    const ownBytes = ownMemory(gateway.pid);
    resetPeak(gateway.pid);
    let growth = 0;
    const look = setInterval(() => {
      growth = Math.max(growth, ownMemory(gateway.pid) - ownBytes);
    }, LOOK_MS);
    const writes = await queue(WRITES, "write");
    await startHttpFixture("tracker", files, server.port);
    const beganMs = performance.now();
    await drained();
    const tookMs = performance.now() - beganMs;
    clearInterval(look);
    const inAll = peakRss(gateway.pid) - beforeBytes;
    const effects = effectsIn(ledger).filter(({ title }) => title.startsWith("write-"));
    expect(effects).toHaveLength(WRITES);
    expect(new Set(effects.map(({ title }) => title)).size).toBe(WRITES);
    const lanes = new Set(writes.map(({ lane }) => lane));
    const wrong = [...lanes].flatMap((lane) => disorder(lane, writes, effects));
    expect(wrong).toEqual([]);
    report(
      "outbox",
      `${WRITES} writes over ${LANES} lanes delivered ${(tookMs / 1_000).toFixed(1)} s after their server was back, ` +
        `memory of its own at most +${(growth / MB).toFixed(0)} MB, RSS with what it read of its state +${(inAll / MB).toFixed(0)} MB ` +
        `[lane-order] [bounded]`,
    );
    expect(tookMs).toBeLessThanOrEqual(MAX_DRAIN_MS);
    expect(growth).toBeLessThanOrEqual(MAX_GROWTH);
  }, 1_800_000);
});
