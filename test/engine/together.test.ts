// Three gateways on one engine, and a Toolway of another prefix beside them: the end of a token everywhere, two operators at one
// pin, and that the two Toolways know nothing of each other.

import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callTool } from "../e2e/operator.js";
import { begin, type EngineGateway, post, startOnEngine, tokenAtAll } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { entry } from "../fixtures/gateways.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

/** A token that was revoked is refused by every gateway within this. */
const REVOKED_MS = 5_000;

const title = natsPrograms.length === 0 ? `three gateways, ${NO_NATS}` : "three gateways on one engine";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  let gateways: EngineGateway[] = [];
  let beside: EngineGateway;
  const description = join(temporaryFolder("toolway-rug-"), "description");

  beforeAll(async () => {
    nats = await startNats();
    writeFileSync(description, "Adds two numbers.");
    const config = { names: "plain" as const, mcpServers: { rug: entry("rug", ["--description", description]) } };
    gateways = await Promise.all([0, 1, 2].map(() => startOnEngine(nats, config)));
    beside = await startOnEngine(nats, config, { prefix: "beside" });
    for (const { gateway } of [...gateways, beside]) await gateway.servers.get("rug")?.firstTry;
  });
  afterAll(async () => {
    await Promise.all([...gateways, beside].map((one) => one?.gateway.close({ drainMs: 0 })));
  });

  it(`refuse a token everywhere within ${REVOKED_MS / 1_000} s of its end at one, under calls with it [engine-shared]`, async () => {
    const [first] = gateways as [EngineGateway];
    // Another at each try of this test.
    const id = `worker-${randomUUID()}`;
    const token = await tokenAtAll(gateways, { id, role: "default" });
    const status = async (one: EngineGateway) => (await post(one, token, { id: 1, method: "ping" })).status;
    const sessions = await Promise.all(gateways.map((one) => begin(one, token)));
    let lastMs = 0;
    let isOver = false;
    const callers = gateways.map(async (one, n) => {
      while (!isOver) {
        const { status: code } = await post(one, token, { id: 1, method: "ping" }, sessions[n]);
        if (code === 200) lastMs = performance.now();
      }
    });
    const revokedMs = performance.now();
    await first.gateway.state.tokens.revoke(id);
    await until("its end at all", async () => (await Promise.all(gateways.map(status))).every((code) => code === 401));
    isOver = true;
    await Promise.all(callers);
    expect(lastMs - revokedMs).toBeLessThan(REVOKED_MS);
    expect(await Promise.all(gateways.map(status))).toEqual([401, 401, 401]);
  });

  it("agree on a pin that two of them accept while the third sees another change [engine-shared] [host-12] [compare-and-set]", async () => {
    const stateAt = ({ gateway }: EngineGateway) => gateway.pins.list().find(({ tool }) => tool === "add")?.state;
    for (let round = 0; round < 2; round++) {
      writeFileSync(description, `Adds two numbers, and more (${randomUUID()}).`);
      await Promise.all(gateways.map(({ gateway }) => gateway.reloadServer("rug")));
      await until("the change at all", () => gateways.every((one) => stateAt(one) === "changed"));
      const [a, b, c] = gateways as [EngineGateway, EngineGateway, EngineGateway];
      // Two operators accept it, while the third's server shows another definition already.
      writeFileSync(description, `Adds two numbers, and something else (${randomUUID()}).`);
      await Promise.all([a.gateway.pins.accept("rug"), b.gateway.pins.accept("rug"), c.gateway.reloadServer("rug")]);
      // What the third saw nobody accepted: it is hidden there, and shown where the accepted one still is.
      await until("what each of them has seen", () => stateAt(c) === "changed");
      await until("the acceptance", () => [a, b].every((one) => stateAt(one) === "pinned"));
      await Promise.all([a, b].map(({ gateway }) => gateway.reloadServer("rug")));
      await until("the second change at all", () => gateways.every((one) => stateAt(one) === "changed"));
      const refused = await callTool(c.url, "add", { a: 1, b: 2 }, c.gateway.token);
      expect(refused.error ?? refused.result?.["isError"]).toBeTruthy();
      await c.gateway.pins.accept("rug");
      await until("its acceptance at all", () => gateways.every((one) => stateAt(one) === "pinned"));
    }
  });

  it("know nothing of a Toolway of another prefix on the same NATS, nor that of them [engine-shared] [engine-sealed]", async () => {
    const [first] = gateways as [EngineGateway];
    expect(beside.gateway.token).not.toBe(first.gateway.token);
    const ping = { id: 1, method: "ping" };
    expect((await post(beside, first.gateway.token, ping)).status).toBe(401);
    expect((await post(first, beside.gateway.token, ping)).status).toBe(401);
    const session = await begin(beside, beside.gateway.token);
    const { token } = first.gateway;
    expect((await post(first, token, ping, session)).status).toBe(404);
    await first.gateway.setContext("worker", { phase: "review" });
    await until("the context at the second", () => gateways[1]?.gateway.contextOf("worker")["phase"] === "review");
    expect(beside.gateway.contextOf("worker")).toEqual({});
    const seen = (one: EngineGateway) => one.gateway.state.engine?.partitions.gateways().length;
    expect([...gateways.map(seen), seen(beside)]).toEqual([3, 3, 3, 1]);
  });
});
