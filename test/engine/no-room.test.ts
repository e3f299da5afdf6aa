// A gateway whose engine has no room any more: what is refused, what is said, and what is there when it has room again.

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startHttpFixture } from "../e2e/harness.js";
import { callTool } from "../e2e/operator.js";
import { type EngineGateway, startOnEngine } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { effectsIn } from "../fixtures/ledger.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

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
    const body = "x".repeat(200_000);
    const queued: string[] = [];
    let refusal: string | undefined;
    for (let n = 0; n < 100 && refusal === undefined; n++) {
      const args = { project: "a", title: `kept-${n}`, request_id: `key-${n}`, body };
      const { result, error } = await callTool(own.url, "create_issue", args, own.gateway.token);
      if ((result?.["structuredContent"] as { queued?: boolean } | undefined)?.queued === true) queued.push(args.title);
      else refusal = JSON.stringify(error ?? result);
    }
    expect(refusal).toContain("Not sent, and not queued");
    expect(refusal).toContain("The engine has no room");
    expect(queued.length).toBeGreaterThan(5);
    const { engine } = own.gateway.status();
    expect(engine?.state).toBe("connected");
    expect(engine?.problem).toMatch(/has no room.*Until it has, nothing is kept, delivered or handed out/);
    expect(own.log.filter((line) => line.includes("The engine has no room"))).toHaveLength(1);

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
});
