// A gateway whose engine goes away and comes back: what it goes on with, what it refuses, and how it catches up.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startHttpFixture } from "../e2e/harness.js";
import { callTool } from "../e2e/operator.js";
import { begin, type EngineGateway, post, startOnEngine } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { entry } from "../fixtures/gateways.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `a gateway without its engine, ${NO_NATS}` : "a gateway without its engine";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  /** One whose tokens hold for longer than the test, and one that is stale at once and not ready then. */
  let lasting: EngineGateway;
  let strict: EngineGateway;
  let description: string;
  const readyz = async ({ url }: EngineGateway) => (await fetch(url.replace(/\/mcp$/, "/readyz"))).status;

  // For each try: what one leaves (a node that is killed, tokens) would fail the next.
  beforeEach(async () => {
    nats = await startNats();
    // Nobody answers at the second: a login there would say so, if it came so far as to ask.
    const linear = { url: "http://127.0.0.1:9/mcp", auth: "oauth" as const };
    description = join(temporaryFolder("toolway-rug-"), "description");
    writeFileSync(description, "Adds two numbers.");
    const rug = entry("rug", ["--description", description]);
    const { url } = await startHttpFixture("tracker");
    const tracker = { type: "http" as const, url, tools: { create_issue: { outbox: { lane: "arguments.project" } } } };
    const config = { names: "plain" as const, mcpServers: { fidelity: entry("fidelity"), linear, rug, tracker } };
    lasting = await startOnEngine(nats, config, { staleMs: 600_000 });
    strict = await startOnEngine(nats, config, { staleMs: 1, failReady: true });
    for (const { gateway } of [lasting, strict]) {
      for (const name of ["fidelity", "rug", "tracker"]) await gateway.servers.get(name)?.firstTry;
    }
  });
  afterEach(async () => {
    await Promise.all([lasting, strict].map((one) => one?.gateway.close({ drainMs: 0 })));
  });

  it("serves what needs no write, refuses what does with the time of the next try, and catches up by itself [engine-away]", async () => {
    const { token } = lasting.gateway;
    const session = await begin(lasting, token);
    const status = (one: EngineGateway) => post(one, token, { id: 1, method: "tools/list" }, session);
    await until("the first to be ready", async () => (await readyz(strict)) === 200);
    const other = await lasting.gateway.state.tokens.create({ id: "other", role: "default" }, Date.now());
    await until(
      "its token at the other",
      async () => (await post(strict, other, { id: 1, method: "ping" })).status !== 401,
    );
    const write = () => callTool(lasting.url, "create_issue", { project: "p", title: "kept" }, token);
    await until("a write that is kept", async () => (await write()).result?.["structuredContent"] !== undefined);
    writeFileSync(description, "Adds two numbers, and sends them elsewhere.");
    for (const { gateway } of [lasting, strict]) await gateway.reloadServer("rug");
    const pin = ({ gateway }: EngineGateway) => gateway.pins.list().find(({ tool }) => tool === "add")?.state;
    await until("the change at both", () => [lasting, strict].every((one) => pin(one) === "changed"));
    await nats.nodes[0]?.kill();
    await until("both to know it", () =>
      [lasting, strict].every((one) => one.gateway.status().engine?.state === "away"),
    );

    expect((await status(lasting)).status).toBe(200);
    expect(await begin(lasting, token)).toHaveProperty("mcp-session-id");
    expect(await readyz(lasting)).toBe(200);
    const { engine } = lasting.gateway.status();
    expect(engine).toMatchObject({ state: "away", isStale: false });
    expect(engine?.problem).toContain("was lost");
    const refused = { message: expect.stringMatching(/nothing was written\. The next try to reach it is in \d/) };
    const { tokens } = lasting.gateway.state;
    await expect(tokens.create({ id: "late", role: "default" }, Date.now())).rejects.toMatchObject(refused);
    await expect(lasting.gateway.runs.begin({ as: "late", role: "default", client: "t" })).rejects.toMatchObject(
      refused,
    );
    expect(lasting.gateway.runs.size).toBe(0);
    const login = () => lasting.gateway.logins.begin("linear", "http://127.0.0.1:1/callback");
    await expect(login()).rejects.toMatchObject(refused);
    await expect(lasting.gateway.pins.accept("rug")).rejects.toMatchObject(refused);
    expect(pin(lasting)).toBe("changed");
    // A revocation that cannot be told to the others is told to whoever asks for it, and holds here at once.
    await expect(tokens.revoke("other")).rejects.toMatchObject(refused);
    expect((await post(lasting, other, { id: 1, method: "ping" })).status).toBe(401);

    // Whoever had the write's server in hand refuses by itself for as long as it may act; then nobody has it.
    const { partitions } = lasting.gateway.state.engine ?? {};
    const partition = partitions?.of("tracker") ?? 0;
    await until("nobody to have it", () =>
      [lasting, strict].every((one) => one.gateway.state.engine?.partitions.mayAct(partition) === false),
    );
    const nextTry = expect.stringMatching(/^Not sent, and not queued: .* The next try to reach it is in \d/);
    expect((await write()).error?.message).toEqual(nextTry);
    const receipt = await callTool(lasting.url, "toolway__receipt", { id: `p${partition}_any` }, token);
    expect(receipt.error?.message).toEqual(nextTry);

    const stale = await status(strict);
    expect(stale.status).toBe(503);
    expect(Number(stale.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await readyz(strict)).toBe(503);
    expect(strict.gateway.status().engine?.isStale).toBe(true);

    nats.nodes[0]?.start();
    await until("both to be back", () =>
      [lasting, strict].every((one) => one.gateway.status().engine?.state === "connected"),
    );
    await until("the other to serve", async () => (await status(strict)).status === 200);
    expect(await readyz(strict)).toBe(200);
    await until("a write", () => tokens.create({ id: "late", role: "default" }, Date.now()));
    await until("it at the other", () => strict.gateway.state.tokens.has("late"));
    await expect(login()).rejects.toThrow("127.0.0.1:9");
    await until("a write that is kept again", async () => (await write()).result?.["structuredContent"] !== undefined);
    await lasting.gateway.pins.accept("rug");
    await until("the acceptance at the other", () => pin(strict) === "pinned");
    await tokens.revoke("other");
    await until("the end of the token at the other", () => !strict.gateway.state.tokens.has("other"));
  });
});
