// The engine goes away for a minute while agents call at a steady rate: the gateways go on, and their memory stays what it was.

import { describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { sleep, startGateway, stdioFixture, until } from "../e2e/harness.js";
import { callTool, hasTool, statusOfAll, toolway } from "../e2e/operator.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { full } from "./length.js";
import { linux, MB, peakRss, report, resetPeak, rss } from "./measure.js";

const AWAY_MS = 60_000;
const WARM_MS = 20_000;
/** Of both gateways together: 200 at each. */
const CALLS_A_SECOND = 400;
const STEP_MS = 50;
const GROWTH = 50 * MB;

const title = natsPrograms.length === 0 ? `an engine away, ${NO_NATS}` : "an engine that is away for long";

// In the full run alone: it takes long, and test/engine and engine-outbox show the parts of it in a short time.
describe.skipIf(natsPrograms.length === 0 || !linux || !full)(title, () => {
  it("costs no call and no memory, refuses what needs it, and is found again [engine-away] [bounded]", async () => {
    const nats = await startNats();
    const env = { ...process.env, ENGINE_KEY: makeEngineKey() } as Record<string, string>;
    // Nobody is to be turned away for want of news: what is measured is the gateway at work.
    const engine = { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 1, staleMs: 600_000 };
    const config = { engine, mcpServers: { slow: stdioFixture("slow") } };
    const gateways = await Promise.all([0, 1].map(() => startGateway(config, { env })));
    for (const { url } of gateways) await until("the tools", () => hasTool(url, "sleep"));
    let calls = 0;
    const failed: string[] = [];
    const under = new Set<Promise<void>>();
    const call = (n: number) => {
      calls++;
      const url = gateways[n % gateways.length]?.url ?? "";
      const one = callTool(url, "sleep", { ms: 1, label: "call" })
        .then(({ error }) => void (error !== undefined && failed.push(JSON.stringify(error))))
        .catch((error: Error) => void failed.push(error.message))
        .finally(() => under.delete(one));
      under.add(one);
    };
    const load = async (ms: number) => {
      const endMs = performance.now() + ms;
      const each = (CALLS_A_SECOND * STEP_MS) / 1_000;
      while (performance.now() < endMs) {
        for (let n = 0; n < each; n++) call(calls);
        await sleep(STEP_MS);
      }
      await Promise.all(under);
    };
    await load(WARM_MS);
    const before = gateways.map(({ pid }) => rss(pid));
    for (const { pid } of gateways) resetPeak(pid);
    await nats.nodes[0]?.kill();
    const stateOf = async (n: number) => (await statusOfAll(gateways[n] as (typeof gateways)[0])).engine?.state;
    await until("both to know it", async () => (await stateOf(0)) === "away" && (await stateOf(1)) === "away");
    const refused = await toolway(
      gateways[0] as (typeof gateways)[0],
      "token",
      "create",
      "--id",
      "late",
      "--role",
      "default",
    );
    expect([refused.code === 0, `${refused.out}${refused.err}`]).toEqual([false, expect.stringContaining("next try")]);
    await load(AWAY_MS);
    const growth = gateways.map(({ pid }, n) => peakRss(pid) - (before[n] ?? 0));
    nats.nodes[0]?.start();
    await until(
      "both to be back",
      async () => (await stateOf(0)) === "connected" && (await stateOf(1)) === "connected",
    );
    await load(WARM_MS);
    report(
      "engine-away",
      `the engine away for ${AWAY_MS / 1_000} s under ${CALLS_A_SECOND} calls a second at two gateways: ${calls} calls, ${failed.length} failed; ` +
        `RSS at most +${growth.map((bytes) => (bytes / MB).toFixed(1)).join(" and +")} MB [engine-away] [bounded]`,
    );
    expect(failed).toEqual([]);
    for (const bytes of growth) expect(bytes).toBeLessThan(GROWTH);
  }, 300_000);
});
