// A gateway that is connected to a node of its engine while most of the others are away: nobody leads what is kept there, and what
// is told elsewhere is not heard.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startHttpFixture } from "../e2e/harness.js";
import { callTool } from "../e2e/operator.js";
import { begin, type EngineGateway, post, startOnEngine } from "../fixtures/engine-gateways.js";
import { entry } from "../fixtures/gateways.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

/** That nobody leads is known: nothing is waited for. A busy machine takes a while for a call. */
const TOLD_MS = 5_000;

const title =
  natsPrograms.length === 0 ? `an engine without a majority of its nodes, ${NO_NATS}` : "an engine without a majority";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  /** One whose tokens hold for longer than the test, and one that is stale as soon as that is known, and not ready then. */
  let lasting: EngineGateway;
  let strict: EngineGateway;
  const both = () => [lasting, strict];
  const readyz = async ({ url }: EngineGateway) => (await fetch(url.replace(/\/mcp$/, "/readyz"))).status;

  beforeAll(async () => {
    nats = await startNats({ nodes: 3 });
    const { url } = await startHttpFixture("tracker");
    const tracker = { type: "http" as const, url, tools: { create_issue: { outbox: { lane: "arguments.project" } } } };
    const budget = { calls: 100_000, windowMs: 3_600_000 };
    const config = {
      names: "plain" as const,
      mcpServers: { fidelity: entry("fidelity"), slow: entry("slow", [], { budget }), tracker },
    };
    lasting = await startOnEngine(nats, config, { replicas: 3, staleMs: 600_000 });
    strict = await startOnEngine(nats, config, { replicas: 3, staleMs: 1, failReady: true });
    for (const { gateway } of both())
      for (const { name } of gateway.config.servers) await gateway.servers.get(name)?.firstTry;
  });
  afterAll(async () => {
    await Promise.all(both().map((one) => one?.gateway.close({ drainMs: 0 })));
  });

  it("is shown as what it is: what needs no write is served, what does is refused, tokens go stale, and all goes on when there is one again [engine-away] [told-why]", async () => {
    const { token } = lasting.gateway;
    const session = await begin(lasting, token);
    const list = (one: EngineGateway) => post(one, token, { id: 1, method: "tools/list" }, session);
    const write = (one: EngineGateway) => callTool(one.url, "create_issue", { project: "p", title: "kept" }, token);
    for (const one of both()) {
      await until("a write that is kept", async () => (await write(one)).result?.["structuredContent"] !== undefined);
    }
    await until("both to be ready", async () =>
      (await Promise.all(both().map(readyz))).every((status) => status === 200),
    );

    const [left, ...gone] = nats.nodes;
    for (const node of gone) await node.kill();
    await until("both at the node that is left, and told", () =>
      both().every(({ gateway }) => {
        const { state, node, problem } = gateway.status().engine ?? {};
        return (
          state === "connected" && node?.endsWith(`:${left?.port}`) && problem?.includes("none of its nodes leads")
        );
      }),
    );
    expect((await list(lasting)).status).toBe(200);
    expect(lasting.gateway.status().engine?.isStale).toBe(false);
    expect(await readyz(lasting)).toBe(200);
    expect(lasting.log.filter((line) => /^engine: .*none of its nodes leads/.test(line))).toHaveLength(1);
    const beganMs = performance.now();
    expect((await write(lasting)).error?.message).toMatch(/^Not sent, and not queued: It tells nothing, though/);
    const budgeted = await callTool(lasting.url, "sleep", { ms: 1 }, token);
    expect(JSON.stringify(budgeted)).toContain("the engine that counts it does not answer");
    expect(performance.now() - beganMs).toBeLessThan(TOLD_MS);

    const stale = await list(strict);
    expect([stale.status, strict.gateway.status().engine?.isStale]).toEqual([503, true]);
    expect(Number(stale.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await readyz(strict)).toBe(503);

    for (const node of gone) node.start();
    await until("both to hear of it", () =>
      both().every(({ gateway }) => gateway.status().engine?.problem === undefined),
    );
    for (const one of both()) {
      await until(
        "a write that is kept again",
        async () => (await write(one)).result?.["structuredContent"] !== undefined,
      );
    }
    expect([(await list(strict)).status, await readyz(strict)]).toEqual([200, 200]);
    expect(lasting.log).toContain("engine: it tells again");
  }, 300_000);
});
