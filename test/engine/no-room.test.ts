// A gateway whose engine has no room any more: what is refused, what is said, and what is there when it has room again.

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openEngine } from "../../src/store/nats/connection.js";
import { openNatsStores } from "../../src/store/nats/store.js";
import { startHttpFixture } from "../e2e/harness.js";
import { callTool } from "../e2e/operator.js";
import { type EngineGateway, startOnEngine } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { effectsIn } from "../fixtures/ledger.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

/** That it is full is known: nothing is waited for. A busy machine takes a while for a call. */
const TOLD_MS = 5_000;

const title = natsPrograms.length === 0 ? `an engine without room, ${NO_NATS}` : "an engine without room";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  let own: EngineGateway;
  let server: Awaited<ReturnType<typeof startHttpFixture>>;
  const ledger = join(temporaryFolder("toolway-ledger-"), "ledger.jsonl");
  const files = ["--ledger", ledger];

  beforeAll(async () => {
    nats = await startNats({ maxFile: "4M" });
    server = await startHttpFixture("tracker", files);
    const tools = { create_issue: { outbox: { key: "arguments.request_id" } } };
    const tracker = { type: "http" as const, url: server.url, tools };
    own = await startOnEngine(nats, { names: "plain" as const, mcpServers: { tracker } });
    await own.gateway.servers.get("tracker")?.firstTry;
    await until("its partitions", () => own.gateway.status().engine?.gateways[0]?.partitions === 64);
  });
  afterAll(async () => {
    await own?.gateway.close({ drainMs: 0 });
    await server?.kill();
  });

  it("refuses by name what it cannot keep, says so in status and log, and delivers all that it had kept when it has room [engine-away] [ack-is-durable]", async () => {
    await server.kill();
    const queued: string[] = [];
    let made = 0;
    /** How the first that is refused is refused, with so large a body. */
    async function fill(bytes: number): Promise<string> {
      for (let n = 0; n < 100; n++) {
        const args = { project: "a", title: `kept-${made}`, request_id: `key-${made++}`, body: "x".repeat(bytes) };
        const { result, error } = await callTool(own.url, "create_issue", args, own.gateway.token);
        if ((result?.["structuredContent"] as { queued?: boolean } | undefined)?.queued !== true) {
          return JSON.stringify(error ?? result);
        }
        queued.push(args.title);
      }
      throw new Error("It has room without end.");
    }
    const refusal = await fill(200_000);
    expect(refusal).toContain("Not sent, and not queued");
    expect(refusal).toContain("The engine has no room");
    expect(own.log.filter((line) => line.includes("The engine has no room"))).toHaveLength(1);
    for (const bytes of [10_000, 500]) await fill(bytes);
    expect(queued.length).toBeGreaterThan(5);
    const { engine } = own.gateway.status();
    expect(engine?.state).toBe("connected");
    expect(engine?.problem).toMatch(/has no room.*Until it has, nothing is kept, delivered or handed out/);

    // That it acts for the server cannot be written down any more either: from then on nobody keeps anything for it.
    const { partitions } = own.gateway.state.engine ?? {};
    await until("the end of its lease", () => partitions?.mayAct(partitions.of("tracker")) === false);
    const beganMs = performance.now();
    expect(await fill(1)).toMatch(/Not sent, and not queued: The engine has no room/);
    expect(performance.now() - beganMs).toBeLessThan(TOLD_MS);
    expect(own.gateway.status().engine?.problem).toMatch(/has no room/);

    server = await startHttpFixture("tracker", files, server.port);
    nats.setMaxFile("64M");
    await nats.nodes[0]?.kill();
    await until("the loss in the log", () => own.log.some((line) => /^engine: .*was lost.*waits for it/.test(line)));
    nats.nodes[0]?.start();
    await until("all of them", () => effectsIn(ledger).length >= queued.length);
    expect(effectsIn(ledger).map(({ title: name }) => name)).toEqual(queued);
    expect(own.log.some((line) => /^engine: connected to .* again$/.test(line))).toBe(true);
    expect(own.gateway.status().engine?.problem).toBeUndefined();
  });

  it("is told as that where it is its account that has none [engine-away]", async () => {
    const bounded = await startNats({ maxAccountFile: "1M" });
    const nodes = bounded.nodes.map(({ port }) => ({ host: "127.0.0.1", port }));
    const rest = { tls: undefined, auth: undefined, monitor: undefined, replicas: 1, prefix: "tw" };
    await using engine = await openEngine({ ...rest, nodes, key: { from: "env", name: "KEY" } }, { env: {} });
    const store = await (await openNatsStores({ engine, prefix: "tw", replicas: 1 })).partition(0);
    const map = store.map<string>("m");
    const fill = async () => {
      for (let n = 0; n < 100; n++) await map.put(`k${n}`, "x".repeat(50_000));
    };
    await expect(fill()).rejects.toMatchObject({ code: "full", message: expect.stringContaining("has no room") });
    expect(engine.status.full).toContain("The engine has no room");
    await store.close();
  });
});
