// What servers are told that agents can do: each agent's own word where it is known before the server is met, and else
// everything, or what the config says. And who is spoken to in which era, where a server has both.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Agent, connect, type Era } from "./eras.js";
import { type Gateway, startGateway, startHttpFixture, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { runCli, statusOf } from "./operator.js";

interface Told {
  readonly session: number;
  readonly capabilities: Record<string, unknown> | null;
}

const EVERYTHING = {
  roots: { listChanged: true },
  sampling: { tools: {}, context: {} },
  elicitation: { form: {}, url: {} },
};

async function agentOf(gateway: Gateway, capabilities: Record<string, object>, era: Era = "legacy"): Promise<Agent> {
  const agent = await connect(era, gateway, { name: era, capabilities });
  await agent.waitFor("told");
  return agent;
}

const told = async (agent: Agent) => JSON.parse(await agent.text("told")) as Told;

describe.concurrent("a legacy server over HTTP that all share", () => {
  it("is told by each agent's own session at it what that agent can be asked [told-truly]", async () => {
    const { entry } = await startHttpFixture("capable");
    const gateway = await startGateway({ mcpServers: { capable: entry } });
    const able = await agentOf(gateway, { elicitation: { form: {} } });
    const mute = await agentOf(gateway, {});
    expect((await told(able)).capabilities).toEqual({ elicitation: { form: {} } });
    expect((await told(mute)).capabilities).toEqual({});
    // Whoever declares the same shares a session, also if it is written in another order.
    const [one, other] = [
      { roots: {}, sampling: {} },
      { sampling: {}, roots: {} },
    ];
    const first = await told(await agentOf(gateway, one));
    expect(first.capabilities).toEqual(one);
    expect((await told(await agentOf(gateway, other))).session).toBe(first.session);
    // So it need not ask who cannot answer, and does otherwise.
    expect(await able.text("remove")).toBe("legacy: Remove it?");
    expect(await mute.text("remove")).toBe("say force");
    expect(mute.asked).toEqual([]);
    // There is one list, by the session that is told everything.
    expect(await mute.names()).toEqual(await able.names());
    expect(await able.names()).toContain("ask_user");
    expect(await able.text("ask_user")).toBe("legacy: Well?");
  });

  it("is told by a modern agent's calls what they can be asked [told-truly]", async () => {
    const { entry } = await startHttpFixture("capable");
    const gateway = await startGateway({ mcpServers: { capable: entry } });
    const able = await agentOf(gateway, { elicitation: { form: {} } }, "modern");
    const mute = await agentOf(gateway, {}, "modern");
    expect((await told(able)).capabilities).toEqual({ elicitation: { form: {} } });
    expect((await told(mute)).capabilities).toEqual({});
    expect(await able.text("remove")).toBe("modern: Remove it?");
    expect(await mute.text("remove")).toBe("say force");
  });

  it("has so many sessions and no more: further agents share the one that is told everything [told-truly] [bounded]", async () => {
    const { entry } = await startHttpFixture("capable");
    const gateway = await startGateway({ mcpServers: { capable: entry } });
    const seen: Told[] = [];
    for (let at = 0; at < 6; at++) {
      seen.push(await told(await agentOf(gateway, { experimental: { [`x${at}`]: {} } })));
    }
    expect(seen.slice(0, 4).map(({ capabilities }) => capabilities)).toEqual(
      [0, 1, 2, 3].map((at) => ({ experimental: { [`x${at}`]: {} } })),
    );
    expect(seen.slice(4).map(({ capabilities }) => capabilities)).toEqual([EVERYTHING, EVERYTHING]);
    expect(new Set(seen.map(({ session }) => session)).size).toBe(5);
    expect(await statusOf(gateway, "capable")).toMatchObject({ connections: 5, state: "ready", restarts: 0 });
  });

  it("that takes one session only is used by that one [told-truly]", async () => {
    const { entry } = await startHttpFixture("capable", ["--one-session"]);
    const gateway = await startGateway({ mcpServers: { capable: entry } });
    const able = await agentOf(gateway, { elicitation: {} });
    const mute = await agentOf(gateway, {});
    expect((await told(able)).capabilities).toEqual(EVERYTHING);
    expect(await able.text("remove")).toBe("legacy: Remove it?");
    // It asks, and hears that this agent does not know such requests.
    const refused = await mute.call("remove").catch((error: Error) => error);
    expect(JSON.stringify(refused instanceof Error ? refused.message : refused)).toMatch(/-32601|elicitation/);
    expect(mute.asked).toEqual([]);
  });

  it("is told what its entry declares, whoever calls, by one session [told-truly]", async () => {
    const { entry } = await startHttpFixture("capable");
    const gateway = await startGateway({ mcpServers: { capable: { ...entry, declare: ["roots"] } } });
    const seen = [await told(await agentOf(gateway, { elicitation: {} })), await told(await agentOf(gateway, {}))];
    expect(seen).toEqual([seen[0], seen[0]]);
    expect(seen[0]?.capabilities).toEqual({ roots: { listChanged: true } });
  });
});

describe.concurrent("a legacy server over stdio that all share", () => {
  const ABLE = { elicitation: { form: {} } };

  it.each(["legacy", "modern"] as const)(
    "is told what the %s agent can be asked that started the gateway by `toolway stdio` [told-truly]",
    async (era) => {
      const dir = await temporaryDirectory();
      const configPath = join(dir, "toolway.json");
      await writeFile(configPath, JSON.stringify({ names: "plain", mcpServers: { capable: stdioFixture("capable") } }));
      const alone = { configPath, stateDir: join(dir, "state") } as Gateway;
      const agent = await connect(era, alone, { name: era, capabilities: ABLE, stdio: true });
      await agent.waitFor("told");
      expect((await told(agent)).capabilities).toEqual(ABLE);
      expect(await agent.text("remove")).toBe(`${era}: Remove it?`);
    },
  );

  it("is told everything where it was started before anybody came; who cannot be asked is not [told-truly]", async () => {
    const gateway = await startGateway({ mcpServers: { capable: stdioFixture("capable") } });
    const mute = await agentOf(gateway, {});
    expect((await told(mute)).capabilities).toEqual(EVERYTHING);
    await mute.call("remove").catch(() => undefined);
    expect(mute.asked).toEqual([]);
    // It is never started again for it.
    expect((await told(await agentOf(gateway, ABLE))).session).toBe(1);
  });

  it("that is lazy is told what the agent can be asked whose call starts it, if the others can do the same [told-truly]", async () => {
    const entry = stdioFixture("capable", [], { lazy: true, keepAliveMs: 500 });
    const gateway = await startGateway({ mcpServers: { capable: entry } });
    const mute = await agentOf(gateway, {});
    expect((await told(mute)).capabilities).toEqual({});
    await agentOf(gateway, ABLE);
    await until("its rest", async () => (await statusOf(gateway, "capable")).state === "idle" || undefined);
    expect((await told(mute)).capabilities).toEqual(EVERYTHING);
  });

  it('with isolation "session" is told by each process of its own agent what that can be asked [told-truly]', async () => {
    const gateway = await startGateway({
      mcpServers: { capable: stdioFixture("capable", [], { isolation: "session" }) },
    });
    const mute = await agentOf(gateway, {});
    const able = await agentOf(gateway, ABLE);
    expect((await told(mute)).capabilities).toEqual({});
    expect((await told(able)).capabilities).toEqual(ABLE);
    expect(await mute.text("remove")).toBe("say force");
    expect(await able.text("remove")).toBe("legacy: Remove it?");
  });

  it("is told what its entry declares, lazy or not [told-truly]", async () => {
    const entry = stdioFixture("capable", [], { declare: [] });
    const gateway = await startGateway({ mcpServers: { capable: entry } });
    const agent = await agentOf(gateway, ABLE);
    expect((await told(agent)).capabilities).toEqual({});
    expect(await agent.text("remove")).toBe("say force");
    expect(await agent.names()).not.toContain("ask_user");
  });
});

it.concurrent("`toolway doctor` says when a server over stdio offers both eras, and how to choose [own-era]", async () => {
  const dir = await temporaryDirectory();
  const configPath = join(dir, "toolway.json");
  const both = stdioFixture("capable", ["--era", "both"]);
  const mcpServers = { both, chosen: { ...both, era: "legacy" }, modern: stdioFixture("asker", ["--era", "modern"]) };
  await writeFile(configPath, JSON.stringify({ mcpServers }));
  const { out, code } = await runCli("doctor", "--json", "--config", configPath);
  const found = JSON.parse(out) as { servers?: { name: string; era: string; problems: string[] }[] };
  const rows = (found.servers ?? (found as unknown as { name: string; era: string; problems: string[] }[])).map(
    ({ name, era, problems }) => ({ name, era, advised: problems.some((text) => text.includes('"era": "legacy"')) }),
  );
  expect(code).toBe(0);
  expect(rows).toEqual([
    { name: "both", era: "modern", advised: true },
    { name: "chosen", era: "legacy", advised: false },
    { name: "modern", era: "modern", advised: false },
  ]);
});

/** What comes of a tool that asks by a request of its own. */
async function removed(agent: Agent): Promise<string> {
  const { content, isError } = await agent.call("remove");
  return `${isError === true ? "error: " : ""}${content[0]?.text ?? ""}`;
}

describe.concurrent("a server of both eras, whose tools ask by requests", () => {
  const BOTH = ["--era", "both"];
  const ABLE = { elicitation: { form: {} } };

  it("over HTTP asks a legacy agent in a legacy session, beside the modern one for modern agents [own-era]", async () => {
    const { entry } = await startHttpFixture("capable", BOTH);
    const gateway = await startGateway({ mcpServers: { capable: entry } });
    const legacy = await agentOf(gateway, ABLE);
    expect(await removed(legacy)).toBe("legacy: Remove it?");
    expect((await told(legacy)).capabilities).toEqual(ABLE);
    // A modern agent has what it would have without us.
    const modern = await agentOf(gateway, ABLE, "modern");
    expect(await modern.call("remove").catch((error: Error) => error.message)).toMatch(/not available|error/i);
    // One server, one list, one entry.
    const { connections, version, restarts } = await statusOf(gateway, "capable");
    expect({ connections, version, restarts }).toEqual({ connections: 2, version: "2026-07-28", restarts: 0 });
    expect(await legacy.names()).toEqual(await modern.names());
  });

  it.each(["http", "stdio"])(
    'over %s asks agents of either era where its entry says "era": "legacy" [own-era]',
    async (kind) => {
      const entry = kind === "http" ? (await startHttpFixture("capable", BOTH)).entry : stdioFixture("capable", BOTH);
      const gateway = await startGateway({ mcpServers: { capable: { ...entry, era: "legacy" } } });
      expect(await removed(await agentOf(gateway, ABLE))).toBe("legacy: Remove it?");
      expect(await removed(await agentOf(gateway, ABLE, "modern"))).toBe("modern: Remove it?");
      expect(await statusOf(gateway, "capable")).toMatchObject({ version: "2025-11-25", restarts: 0 });
    },
  );

  it('is spoken to in the modern era alone where its entry says "era": "modern" [own-era]', async () => {
    const { entry } = await startHttpFixture("capable", BOTH);
    const gateway = await startGateway({ mcpServers: { capable: { ...entry, era: "modern" } } });
    const legacy = await agentOf(gateway, ABLE);
    expect(await removed(legacy).catch((error: Error) => error.message)).toMatch(/not available|error/i);
    expect(await statusOf(gateway, "capable")).toMatchObject({ version: "2026-07-28", connections: 1 });
  });
});

it.concurrent("a server of the modern era alone serves legacy agents as ever, and is asked for a session once [own-era]", async () => {
  const { entry } = await startHttpFixture("asker", ["--era", "modern"]);
  const gateway = await startGateway({ mcpServers: { asker: entry } });
  const agent = await connect("legacy", gateway);
  await agent.waitFor("elicit");
  for (let i = 0; i < 3; i++) expect(await agent.text("elicit", { what: `${i}?` })).toContain(`legacy: ${i}?`);
  expect(await statusOf(gateway, "asker")).toMatchObject({
    connections: 1,
    restarts: 0,
    ejected: false,
    state: "ready",
  });
  expect(gateway.log()).not.toMatch(/ warn /);
});

it.concurrent('a server that is not what its entry says by "era" is down, and the reason says so [own-era]', async () => {
  const mcpServers = { capable: stdioFixture("capable", [], { era: "modern" }) };
  const gateway = await startGateway({ mcpServers });
  await until("its failure", async () => (await statusOf(gateway, "capable")).lastError);
  expect((await statusOf(gateway, "capable")).lastError).toContain('Remove "era": "modern"');
});
