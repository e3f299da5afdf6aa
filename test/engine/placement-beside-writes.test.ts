// A server that one gateway runs for all, in a partition whose owner has a kept write on its way when it hands over.

import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { partitionOf } from "../../src/store/ownership/partitions.js";
import { startHttpFixture } from "../e2e/harness.js";
import { callTool, hasTool } from "../e2e/operator.js";
import { type EngineGateway, mayActFor, partitionsOf, startOnEngine } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { entry } from "../fixtures/gateways.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

/** How long the write is on its way; nobody else has its partition before its end. */
const WRITE_MS = 12_000;
/** What a process has to end and the next to start in, on a busy machine. */
const GAP_MS = 8_000;

const title =
  natsPrograms.length === 0
    ? `a server at one gateway beside kept writes, ${NO_NATS}`
    : "a server at one gateway beside kept writes";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let gateways: EngineGateway[] = [];
  const partition = partitionOf("tracker", 64);
  const placed =
    Array.from({ length: 10_000 }, (_, n) => `one${n}`).find((name) => partitionOf(name, 64) === partition) ?? "";

  beforeEach(async () => {
    const nats = await startNats();
    const { url } = await startHttpFixture("tracker", [
      "--ledger",
      join(temporaryFolder("toolway-ledger-"), "ledger.jsonl"),
    ]);
    const tracker = { type: "http" as const, url, tools: { create_issue: { outbox: { lane: "arguments.project" } } } };
    const mcpServers = { tracker, [placed]: entry("slow", [], { placement: "one" }) };
    const config = { names: "plain" as const, mcpServers };
    gateways = [await startOnEngine(nats, config), await startOnEngine(nats, config)];
    await until("each to have half of the partitions", () =>
      gateways.every(
        (one) =>
          partitionsOf(one)
            .gateways()
            .filter(({ partitions }) => partitions === 32).length === 2,
      ),
    );
    for (const { url: at, gateway } of gateways) {
      await until(
        "the tools",
        async () => (await hasTool(at, "sleep", gateway.token)) && hasTool(at, "create_issue", gateway.token),
      );
    }
  });
  afterEach(async () => {
    await Promise.all(gateways.map(({ gateway }) => gateway.close({ drainMs: 0 })));
  });

  it("goes on until the write has ended, and is handed over then [placement-one] [engine-drain]", async () => {
    await until("its owner", () => gateways.some((one) => mayActFor(one, "tracker")));
    const [leaving, staying] = (
      mayActFor(gateways[0] as EngineGateway, "tracker") ? gateways : [...gateways].reverse()
    ) as [EngineGateway, EngineGateway];
    const write = callTool(
      leaving.url,
      "create_issue",
      { project: "p", title: "slow", ms: WRITE_MS },
      leaving.gateway.token,
    );
    await until(
      "it to be sent",
      () => leaving.gateway.status().servers.find(({ name }) => name === "tracker")?.inFlight === 1,
    );
    let isOver = false;
    const left = leaving.gateway.leave().then(() => {
      isOver = true;
    });
    const gaps: number[] = [];
    while (!isOver) {
      const beganMs = performance.now();
      const { result, error } = await callTool(staying.url, "sleep", { ms: 1 }, staying.gateway.token);
      gaps.push(performance.now() - beganMs);
      expect([error, result?.["isError"] ?? false]).toEqual([undefined, false]);
    }
    await left;
    expect((await write).error).toBeUndefined();
    expect(gaps.length).toBeGreaterThan(10);
    expect(Math.max(...gaps)).toBeLessThan(GAP_MS);
    expect(mayActFor(staying, placed)).toBe(true);
  }, 120_000);
});
