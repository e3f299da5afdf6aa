// Results that a server lets us keep: served again within their time, to whom they are for, and to nobody who may not
// call. Only tools that the config marks.

import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Agent, connect, ERAS, type Era, listensToCached, modernRequest, send } from "./eras.js";
import {
  fixtureOver,
  type Gateway,
  type ServerEntry,
  startGateway,
  startHttpFixture,
  stdioFixture,
  until,
} from "./harness.js";
import { createToken, statusOf, toolway } from "./operator.js";
import { post } from "./wire.js";

const TOKEN = "tw_e2e_default_token_of_enough_length_0123456789";
const MARKED = { tools: { stamp: { cache: true }, asks: { cache: true } } };

interface Made {
  readonly run: number;
  readonly pid: number;
}

async function stamp(agent: Agent, args: Record<string, unknown>, tool = "stamp"): Promise<Made> {
  return JSON.parse(await agent.text(tool, args)) as Made;
}

/** How often the server itself made it. */
async function runs(agent: Agent, key: string): Promise<number> {
  return (JSON.parse(await agent.text("runs", { key })) as { runs: number }).runs;
}

describe.each(["stdio", "http"] as const)("a modern server over %s", (kind) => {
  let gateway: Gateway;
  let agents: Record<Era, Agent>;

  beforeAll(async () => {
    const args = ["--era", "modern"];
    const entry: ServerEntry = await fixtureOver(kind, "cached", args);
    gateway = await startGateway({ mcpServers: { cached: { ...entry, ...MARKED } } });
    await listensToCached(gateway);
  });

  beforeEach(async () => {
    agents = { legacy: await connect("legacy", gateway), modern: await connect("modern", gateway) };
    await agents.legacy.waitFor("stamp");
  });

  it.each(ERAS)("a %s agent gets a marked tool's result again, and another for other arguments", async (era) => {
    const first = await stamp(agents[era], { key: `again ${era}`, n: 1 });
    expect(await stamp(agents[era], { n: 1.0, key: `again ${era}` })).toEqual(first);
    expect((await stamp(agents[era], { key: `again ${era}`, n: 2 })).run).toBe(first.run + 1);
    expect(await runs(agents[era], `again ${era}`)).toBe(2);
  });

  it("what one era's agent was given, the other's gets too, as the server wrote it", async () => {
    const args = { key: "eras" };
    const legacy = await agents.legacy.call("stamp", args);
    const modern = await agents.modern.call("stamp", args);
    expect(modern.content).toEqual(legacy.content);
    expect(await runs(agents.legacy, "eras")).toBe(1);
  });

  it("a hit says how much of its time is left, under the asker's own id", async () => {
    const params = { name: "stamp", arguments: { key: "left" } };
    const first = await send(gateway.url, { method: "tools/call", params, id: "first" });
    expect(first.reply).toMatchObject({ id: "first", result: { ttlMs: 600_000 } });
    const left = await until("a time that is shorter", async () => {
      const { reply } = await send(gateway.url, { method: "tools/call", params, id: "second" });
      expect(reply).toMatchObject({ id: "second", result: { content: first.reply.result?.["content"] } });
      const { ttlMs } = reply.result as { ttlMs: number };
      return ttlMs < 600_000 ? ttlMs : undefined;
    });
    expect(left).toBeGreaterThan(0);
    expect(await runs(agents.modern, "left")).toBe(1);
  });

  it("[host-8] an unmarked tool is never cached, nor is a failed one", async () => {
    for (const run of [1, 2]) expect((await stamp(agents.modern, { key: "un" }, "unmarked")).run).toBe(run);
    for (const run of [1, 2]) {
      const args = { key: "failed", isError: true };
      expect(JSON.parse((await agents.legacy.call("stamp", args)).content[0]?.text ?? "")).toMatchObject({ run });
    }
    for (const run of [1, 2]) expect((await stamp(agents.legacy, { key: "now", ttlMs: 0 })).run).toBe(run);
  });

  it("integers that a double cannot tell apart are different arguments", async () => {
    const made = async (n: string) => {
      const request = { method: "tools/call", params: { name: "stamp", arguments: { key: "big", n: 0 } } };
      const { text, headers } = modernRequest(request);
      const answer = await post(gateway.url, text.replace('"n":0', `"n":${n}`), headers);
      const { result } = JSON.parse(answer.messages.at(-1) ?? "") as { result: { content: { text: string }[] } };
      return (JSON.parse(result.content[0]?.text ?? "") as Made).run;
    };
    const first = await made("12345678901234567890");
    expect(await made("12345678901234567891")).toBe(first + 1);
    expect(await made("12345678901234567890")).toBe(first);
  });

  it("[host-8] identical calls at the same time reach the server once", async () => {
    const calls = Array.from({ length: 10 }, () => stamp(agents.legacy, { key: "crowd", delayMs: 1500 }));
    const all = await Promise.all(calls);
    expect(new Set(all.map(({ run }) => run))).toEqual(new Set([1]));
    expect(await runs(agents.legacy, "crowd")).toBe(1);
  });

  it.each(ERAS)("what cost answers of a %s agent is asked for again", async (era) => {
    const key = `asks ${era}`;
    for (const run of [1, 2]) expect(await stamp(agents[era], { key }, "asks")).toMatchObject({ run });
    expect(agents[era].asked.length).toBeGreaterThanOrEqual(2);
  });

  it("resources are kept without a mark, until they are updated", async () => {
    const read = async (era: Era, uri: string) => {
      const { contents } = await agents[era].client.readResource({ uri });
      return JSON.parse((contents[0] as { text: string }).text) as Made;
    };
    const first = await read("modern", "cached://a");
    const other = await read("modern", "cached://b");
    expect(await read("legacy", "cached://a")).toEqual(first);
    await agents.legacy.listen({ uris: ["cached://a"] });
    await until("an update", async () => {
      await agents.legacy.text("touch", { uri: "cached://a" });
      return (await read("legacy", "cached://a")).run > first.run;
    });
    expect(await read("legacy", "cached://b")).toEqual(other);
  });

  it("a changed list of tools drops what was kept of them", async () => {
    const args = { key: "changed" };
    expect((await stamp(agents.legacy, args)).run).toBe(1);
    await agents.legacy.text("grow");
    await until("the new list", async () => (await stamp(agents.legacy, args)).run > 1);
  });
});

it("[host-8] a private result stays with its principal, a public one is for all, a denied call gets neither", async () => {
  const entry = stdioFixture("cached", ["--era", "modern"], MARKED);
  const gateway = await startGateway(
    { mcpServers: { cached: entry }, roles: { dev: {}, guest: { deny: ["cached/stamp"] } } },
    { auth: true, env: { TOOLWAY_TOKEN: TOKEN } },
  );
  const as = async (id: string, role: string) =>
    connect("modern", gateway, { token: await createToken(gateway, id, role) });
  const [ann, bob, eve] = [await as("ann", "dev"), await as("bob", "dev"), await as("eve", "guest")];
  await listensToCached(gateway, { token: TOKEN });
  const hers = { key: "hers", cacheScope: "private" };
  expect((await stamp(ann, hers)).run).toBe(1);
  expect((await stamp(bob, hers)).run).toBe(2);
  expect((await stamp(ann, hers)).run).toBe(1);
  expect((await stamp(bob, hers)).run).toBe(2);
  const all = { key: "all" };
  expect((await stamp(ann, all)).run).toBe(1);
  expect((await stamp(bob, all)).run).toBe(1);
  for (const args of [hers, all]) {
    const refused = await eve.call("stamp", args).then(
      ({ isError, content }) => ({ isError, text: JSON.stringify(content) }),
      (error: unknown) => ({ isError: true, text: String(error) }),
    );
    expect(refused.isError).toBe(true);
    expect(refused.text).not.toContain("pid");
  }
});

it("[host-8] what is kept is nothing to one whose role lost the tool, nor to another principal of its role, in either era", async () => {
  const mcpServers = { cached: stdioFixture("cached", ["--era", "modern"], MARKED) };
  const roles = { dev: {}, other: {} };
  const gateway = await startGateway({ mcpServers, roles }, { auth: true, env: { TOOLWAY_TOKEN: TOKEN } });
  const [anns, bobs, eves] = [
    await createToken(gateway, "ann", "dev"),
    await createToken(gateway, "bob", "dev"),
    await createToken(gateway, "eve", "other"),
  ];
  const agents = await Promise.all(
    ERAS.map(async (era) => ({
      ann: await connect(era, gateway, { token: anns }),
      bob: await connect(era, gateway, { token: bobs }),
      eve: await connect(era, gateway, { token: eves }),
    })),
  );
  await listensToCached(gateway, { token: eves });
  const hers = { key: "ann's own", cacheScope: "private" };
  const all = { key: "everybody's" };
  const runs = new Set<number>();
  for (const { ann, bob, eve } of agents) {
    // One principal is one, by whichever era it comes.
    runs.add((await stamp(ann, hers)).run);
    expect((await stamp(bob, hers)).run).toBe(2);
    expect((await stamp(eve, all)).run).toBe(1);
    expect((await stamp(ann, all)).run).toBe(1);
  }
  expect([...runs]).toEqual([1]);
  await gateway.writeConfig({ mcpServers, roles: { ...roles, dev: { deny: ["cached/stamp"] } } });
  for (const { ann, bob, eve } of agents) {
    await until("the new menu", async () => !(await ann.names()).includes("stamp"));
    for (const agent of [ann, bob]) {
      for (const args of [hers, all]) await expect(agent.call("stamp", args)).rejects.toMatchObject({ code: -31007 });
    }
    expect((await stamp(eve, all)).run).toBe(1);
  }
});

it("hits are served while the server is down and its breaker open", async () => {
  const server = await startHttpFixture("cached", ["--era", "modern"]);
  const entry = { ...server.entry, ...MARKED, breaker: { failures: 1, openMs: 600_000 } };
  const gateway = await startGateway({ mcpServers: { cached: entry } });
  const agent = await connect("legacy", gateway);
  await listensToCached(gateway);
  const before = await stamp(agent, { key: "down" });
  await server.kill();
  const failed = (key: string) =>
    agent.call("stamp", { key }).then(
      ({ isError }) => isError === true,
      () => true,
    );
  for (const key of ["other", "another"]) await until("a call that fails", () => failed(key));
  expect(await stamp(agent, { key: "down" })).toEqual(before);
});

it("a reload drops what was kept", async () => {
  const gateway = await startGateway({ mcpServers: { cached: stdioFixture("cached", ["--era", "modern"], MARKED) } });
  const agent = await connect("legacy", gateway);
  await listensToCached(gateway);
  const before = await stamp(agent, {});
  expect(await stamp(agent, {})).toEqual(before);
  expect(await toolway(gateway, "reload", "cached")).toMatchObject({ code: 0 });
  expect((await stamp(agent, {})).pid).not.toBe(before.pid);
});

describe.each(["stdio", "http"] as const)("a legacy server over %s", (kind) => {
  it("has its marked tools served again by its own ttlMs, and status says how often", async () => {
    const entry: ServerEntry = await fixtureOver(kind, "cached", ["--era", "legacy"]);
    const gateway = await startGateway({ mcpServers: { cached: { ...entry, ...MARKED } } });
    const agent = await connect("legacy", gateway);
    await agent.waitFor("stamp", "unmarked", "asks");
    for (const era of ERAS) {
      const one = await connect(era, gateway);
      expect((await stamp(one, { key: "kept" })).run).toBe(1);
    }
    for (const run of [1, 2]) expect((await stamp(agent, { key: "now", ttlMs: 0 })).run).toBe(run);
    for (const run of [1, 2]) expect((await stamp(agent, { key: "unmarked" }, "unmarked")).run).toBe(run);
    // What was made with an agent's answers is nobody else's, nor its own another time.
    for (const run of [1, 2]) expect((await stamp(agent, { key: "asks" }, "asks")).run).toBe(run);
    expect(agent.asked).toHaveLength(2);
    expect((await statusOf(gateway, "cached")).cache).toMatchObject({ hits: 1, misses: 5, entries: 1 });
    expect((await toolway(gateway, "status")).out).toMatch(/CACHED[\s\S]*1 of 6/);
  });
});
