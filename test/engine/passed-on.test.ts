// A call that one gateway has passed to the one that keeps its server's writes, while both lose their engine.

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startHttpFixture } from "../e2e/harness.js";
import { callTool } from "../e2e/operator.js";
import { type EngineGateway, startOnEngine } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { effectsIn } from "../fixtures/ledger.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

/** So long its server takes to answer: the engine goes meanwhile. */
const ANSWER_MS = 2_000;
/** A loss that has lasted for 6 s is told. Without that a call that was passed on waits for 50 s. */
const SETTLED_MS = 25_000;

const title = natsPrograms.length === 0 ? `a call that was passed on, ${NO_NATS}` : "a call that was passed on";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  let both: readonly EngineGateway[];
  let other: EngineGateway;
  const ledger = join(temporaryFolder("toolway-ledger-"), "ledger.jsonl");

  beforeAll(async () => {
    nats = await startNats();
    const { url } = await startHttpFixture("tracker", ["--ledger", ledger]);
    const tools = { create_issue: { outbox: { key: "arguments.request_id" } } };
    const config = { names: "plain" as const, mcpServers: { tracker: { type: "http" as const, url, tools } } };
    both = [await startOnEngine(nats, config), await startOnEngine(nats, config)];
    for (const { gateway } of both) await gateway.servers.get("tracker")?.firstTry;
    await until("partitions to be spread", () =>
      both.every(({ gateway }) => gateway.status().engine?.gateways.every(({ partitions }) => partitions === 32)),
    );
    other = await until("the one that does not keep it", () => {
      const [own, ...others] = [...both].sort((a, b) => Number(acts(b)) - Number(acts(a)));
      return own !== undefined && acts(own) ? others[0] : undefined;
    });
  });
  afterAll(() => Promise.all(both.map(({ gateway }) => gateway.close({ drainMs: 0 }))));

  const acts = ({ gateway: { state } }: EngineGateway) => {
    const partitions = state.engine?.partitions;
    return partitions?.mayAct(partitions.of("tracker")) === true;
  };
  const call = (name: string, ms = 0) =>
    callTool(other.url, "create_issue", { project: "p", title: name, ms, request_id: name }, both[0]?.gateway.token);

  async function lostDuring(name: string, lose: () => Promise<void>) {
    const told = call(name, ANSWER_MS);
    await until("it at its server", () => effectsIn(ledger).some(({ title: made }) => made === name));
    const beganMs = performance.now();
    await lose();
    const { result, error } = await told;
    expect(performance.now() - beganMs).toBeLessThan(SETTLED_MS);
    return { result, error: error?.message };
  }

  it("has its result where the engine is back in a moment, is unknown where it stays away, and neither waits for the rest of its time [engine-away] [engine-outbox] [no-double-effect] [unknown-is-said]", async () => {
    await until("a write", async () => (await call("first")).error === undefined);
    const soon = await lostDuring("soon", async () => {
      await nats.nodes[0]?.kill();
      nats.nodes[0]?.start();
    });
    expect(soon.error).toBeUndefined();
    expect(JSON.stringify(soon.result)).toContain("soon");
    await until("a write again", async () => (await call("again")).error === undefined);
    const late = await lostDuring("late", async () => nats.nodes[0]?.kill());
    expect(late.error).toMatch(/^Whether it was queued is unknown: .* Ask for your receipts before you call again/);
    nats.nodes[0]?.start();
    const ask = async () => (await call("late", ANSWER_MS)).error?.message;
    await until("what became of it, by its key", async () => (await ask()) === undefined);
    const made = effectsIn(ledger).map(({ title: name }) => name);
    expect(made.filter((name) => name === "soon" || name === "late")).toEqual(["soon", "late"]);
  });
});
