// Two gateways of one config on one engine: what is done at one holds at the other.

import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { enginePromises } from "../../src/store/nats/versions.js";
import { begin, type EngineGateway, post, startOnEngine, tokenAtAll } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { entry } from "../fixtures/gateways.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { playMonitor, SYNCS } from "../fixtures/played-monitor.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `gateways on one engine, ${NO_NATS}` : "gateways on one engine";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  let a: EngineGateway;
  let b: EngineGateway;
  let description: string;
  const ping = (gateway: EngineGateway, token: string, headers: Record<string, string>) =>
    post(gateway, token, { id: 1, method: "ping" }, headers);

  beforeAll(async () => {
    nats = await startNats();
    description = join(temporaryFolder("toolway-rug-"), "description");
    writeFileSync(description, "Adds two numbers.");
    const config = { mcpServers: { rug: entry("rug", ["--description", description]) } };
    a = await startOnEngine(nats, config);
    b = await startOnEngine(nats, config);
    for (const { gateway } of [a, b]) await gateway.servers.get("rug")?.firstTry;
  });
  afterAll(async () => {
    await Promise.all([a, b].map((one) => one?.gateway.close({ drainMs: 0 })));
  });

  it("have one default token, made by the first of them [engine-shared]", async () => {
    expect(b.gateway.token).toBe(a.gateway.token);
    expect([a, b].map(({ gateway }) => gateway.state.tokens.isNew)).toEqual([true, false]);
    expect((await begin(b, a.gateway.token))["mcp-session-id"]).not.toBe("");
  });

  it("let in by a token that was made at the other, and refuse it and end its streams once it is revoked there [engine-shared]", async () => {
    // Another at each try of this test.
    const id = `worker-${randomUUID()}`;
    const token = await tokenAtAll([a, b], { id, role: "default" });
    const session = await begin(b, token);
    const stream = await fetch(b.url, {
      headers: { ...session, authorization: `Bearer ${token}`, accept: "text/event-stream" },
    });
    expect(stream.status).toBe(200);
    const read = (async () => {
      for await (const _ of stream.body ?? []) {
        // Until it ends.
      }
      return "ended";
    })().catch(() => "ended");
    await a.gateway.state.tokens.revoke(id);
    expect(await read).toBe("ended");
    expect((await ping(b, token, session)).status).toBe(401);
    await expect(
      Promise.all(
        [a, b].map(({ gateway }) => gateway.state.tokens.create({ id: "same", role: "default" }, Date.now())),
      ),
    ).rejects.toThrow('"same" has a token already');
  });

  it("take up a session that was begun at the other, and end it where it was ended there [engine-shared]", async () => {
    const { token } = a.gateway;
    const session = await begin(a, token);
    expect((await ping(b, token, session)).status).toBe(200);
    expect((await ping(a, token, session)).status).toBe(200);
    const ended = await fetch(a.url, { method: "DELETE", headers: { ...session, authorization: `Bearer ${token}` } });
    expect(ended.status).toBe(200);
    await until("its end at B", async () => (await ping(b, token, session)).status === 404);
  });

  it("take a cursor and a context of the other's [engine-shared]", async () => {
    const sealed = a.gateway.state.sealer.seal("cursor", "page 2");
    expect(b.gateway.state.sealer.unseal("cursor", sealed)).toBe("page 2");
    await a.gateway.setContext("worker", { phase: "review", repo: "x" });
    await until("the context at B", () => b.gateway.contextOf("worker")["phase"] === "review");
    await b.gateway.setContext("worker", { phase: null, repo: null });
    await until("its end at A", () => Object.keys(a.gateway.contextOf("worker")).length === 0);
  });

  it("let in a run of the other's until it ends there [engine-shared]", async () => {
    const robot = { as: `robot-${randomUUID()}`, role: "default", client: "test" };
    const { run, secret } = await a.gateway.runs.begin(robot);
    const status = async () => (await post(b, secret, { id: 1, method: "ping" })).status;
    await until("the run at B", async () => (await status()) !== 401);
    await expect(b.gateway.runs.begin(robot)).rejects.toThrow(/under way at another gateway/);
    a.gateway.runs.release(run);
    await until("its end at B", async () => (await status()) === 401);
  });

  it("hold a pin that was accepted at the other [engine-shared] [host-12]", async () => {
    // Another text at each try of this test.
    writeFileSync(description, `Adds two numbers, and sends them elsewhere (${randomUUID()}).`);
    for (const { gateway } of [a, b]) await gateway.reloadServer("rug");
    const hidden = ({ gateway }: EngineGateway) => gateway.pins.list().find(({ tool }) => tool === "add")?.state;
    await until("the change at both", () => [a, b].every((one) => hidden(one) === "changed"));
    await a.gateway.pins.accept("rug");
    await until("the acceptance at B", () => hidden(b) === "pinned");
    const { token } = b.gateway;
    const shown = (await b.gateway.tools()).find(({ ownName }) => ownName === "add");
    expect(shown?.quarantined).toBeUndefined();
    const call = { id: 2, method: "tools/call", params: { name: shown?.name, arguments: { a: 2, b: 3 } } };
    expect((await post(b, token, call, await begin(b, token))).text).toContain('"5"');
  });

  it("say which promises hold, and which gateway goes by another config [engine-told] [engine-same-config]", async () => {
    await until("the promises", () =>
      a.log.some((line) => line.includes("engine: Acknowledged means kept by one node")),
    );
    const shown = () => a.gateway.status().engine?.differences ?? [];
    expect(shown()).toEqual([]);
    // What it syncs is asked of the monitoring port that the config names.
    await using monitor = await playMonitor(SYNCS.always);
    const other = await startOnEngine(nats, { mcpServers: {} }, { monitor: monitor.url });
    const promises = enginePromises({ version: nats.version, nodes: 1, replicas: 1, syncsAlways: true });
    await until("its promises", () =>
      promises.every(({ sentence }) => other.log.some((line) => line.includes(`engine: ${sentence}`))),
    );
    expect(monitor.asked).toEqual(["/jsz"]);
    await until("the difference", () => shown().length === 1);
    expect(shown()[0]).toMatch(/^Gateway \S+ goes by another config: server "rug"\./);
    await other.gateway.close({ drainMs: 0 });
    await until("its end", () => shown().length === 0);
  });

  it("leave nothing in the engine that says what a value was [engine-sealed]", async () => {
    const connection = await connect({ servers: nats.nodes.map(({ port }) => `127.0.0.1:${port}`) });
    try {
      const manager = await jetstreamManager(connection);
      const { state } = await manager.streams.info("tw_state");
      let found = "";
      for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
        found += (await manager.streams.getMessage("tw_state", { seq }).catch(() => undefined))?.string() ?? "";
      }
      expect(found).toContain('"pins"');
      for (const word of ["Adds two numbers", '"role"', a.gateway.token]) expect(found).not.toContain(word);
    } finally {
      await connection.close();
    }
  });
});
