// Lists that change without a word, or with one that comes late: whoever asks is told what is so now.

import { describe, expect, it } from "vitest";
import { type Agent, connect, ERAS, type Era, fourServers } from "./eras.js";
import { type Gateway, sleep, startGateway, startHttpFixture, stdioFixture, until } from "./harness.js";

const ttlOf = (ms: number) => () => ["--ttl", String(ms)];

async function ready(gateway: Gateway, era: Era, ...servers: string[]): Promise<Agent> {
  const agent = await connect(era, gateway);
  await agent.waitFor(...servers.map((server) => `${server}__add`));
  return agent;
}

/** Asked over and over, it is there at the latest after this: the time that is borne, and some for a busy machine. */
const BORNE_MS = 6_000;

describe.each(ERAS)("a %s agent before servers that tell nothing", (era) => {
  it("sees and calls what its call has added, at once [menu-current]", async () => {
    const gateway = await startGateway({
      names: "prefixed",
      mcpServers: await fourServers("silent", {}, ttlOf(60_000)),
    });
    const agent = await ready(gateway, era, "legacy_http", "legacy_stdio", "modern_http", "modern_stdio");
    for (const server of ["legacy_http", "legacy_stdio", "modern_http", "modern_stdio"]) {
      await agent.call(`${server}__add`, { name: "fresh" });
      // No list was asked for in between.
      expect(await agent.text(`${server}__fresh`)).toBe("fresh");
      await agent.call(`${server}__add`, { name: "second" });
      expect(await listedNow(agent, gateway)).toContain(`${server}__second`);
    }
  });
});

/** A modern client keeps a list for as long as it is good; a new one asks. */
async function listedNow(agent: Agent, gateway: Gateway): Promise<string[]> {
  return agent.era === "legacy" ? agent.names() : (await connect("modern", gateway)).names();
}

it.each([
  ["legacy", "legacy", []],
  // It says that it tells of changes, and has no stream to tell them on.
  ["legacy", "legacy", ["--announce"]],
  ["legacy", "modern", ["--ttl", "0"]],
  ["legacy", "modern", ["--ttl", "1000"]],
] as const)(
  "a list that changed behind our back is read when a %s agent asks a %s server, %j [menu-current]",
  async (era, of, args) => {
    const { entry, url } = await changedBehind(of, args);
    const gateway = await startGateway({ names: "prefixed", mcpServers: { one: entry } });
    const agent = await ready(gateway, era, "one");
    await url.call("add", { name: "behind" });
    const from = Date.now();
    await until("it is listed", async () => (await agent.names()).includes("one__behind"));
    expect(Date.now() - from).toBeLessThan(BORNE_MS);
    await url.call("add", { name: "unlisted" });
    await sleep(2_100);
    expect(await agent.text("one__unlisted"), "called by a name that was never listed").toBe("unlisted");
  },
);

/** A server that somebody else changes, past the gateway. */
async function changedBehind(era: Era, args: readonly string[]) {
  const { entry } = await startHttpFixture("silent", ["--era", era, ...args]);
  return { entry, url: await connect(era, String(entry.url)) };
}

it("prompts and resources that are new are found by their names as well [menu-current]", async () => {
  const gateway = await startGateway({
    names: "prefixed",
    mcpServers: { one: stdioFixture("silent", ["--era", "legacy"]), two: stdioFixture("silent", ["--era", "legacy"]) },
  });
  const agent = await ready(gateway, "legacy", "one", "two");
  await agent.call("two__add", { name: "fresh" });
  const client = agent.client as { getPrompt(params: { name: string }): Promise<{ description?: string | undefined }> };
  expect((await client.getPrompt({ name: "two__prompt_fresh" })).description).toBe("prompt_fresh");
  await agent.call("two__add", { name: "other" });
  expect((await agent.client.readResource({ uri: "silent://other" })).contents).toHaveLength(1);
});

it("an agent that asks nothing is told of a change that a call made [menu-current]", async () => {
  const gateway = await startGateway({ mcpServers: { one: stdioFixture("silent", ["--era", "legacy"]) } });
  const agent = await connect("legacy", gateway);
  await agent.waitFor("add");
  await agent.names();
  agent.notified.length = 0;
  await agent.call("add", { name: "fresh" });
  await until("list_changed", () => agent.notified.some(({ method }) => method === "notifications/tools/list_changed"));
});

it("a list asked right after the call that changed it is the new one, though the word of it comes later [menu-current]", async () => {
  const gateway = await startGateway({
    mcpServers: { one: stdioFixture("silent", ["--era", "legacy", "--announce"]) },
  });
  const agent = await connect("legacy", gateway);
  await agent.waitFor("add");
  for (const name of ["a", "b", "c"]) {
    await agent.call("add", { name });
    expect(await agent.names()).toContain(name);
  }
});

it("what the process of one session has come to list is not read because another agent asks", async () => {
  const entry = stdioFixture("silent", ["--era", "legacy"], { isolation: "session" });
  const gateway = await startGateway({ mcpServers: { one: entry } });
  const [first, second] = [await connect("legacy", gateway), await connect("legacy", gateway)];
  await first.waitFor("add");
  await first.call("add", { name: "mine" });
  await second.call("seen");
  // Longer than what nothing is promised of is borne.
  await sleep(2_500);
  expect(await second.names()).not.toContain("mine");
});

it("a busy stream of calls is no stream of readings, and a slow list is waited for a moment only [one-bad-server]", async () => {
  const slow = stdioFixture("silent", ["--era", "legacy", "--slow", "3000"]);
  const gateway = await startGateway({
    names: "prefixed",
    mcpServers: { slow, quick: stdioFixture("silent", ["--era", "legacy"]) },
  });
  const agent = await ready(gateway, "legacy", "slow", "quick");
  await agent.call("slow__add", { name: "late" });
  for (let i = 0; i < 300; i++) await agent.call("quick__seen");
  expect(Number(await agent.text("quick__seen"))).toBeLessThan(12);
  const from = Date.now();
  await agent.names();
  await agent.names();
  await agent.names();
  expect(Date.now() - from).toBeLessThan(2_500);
});

describe.each(ERAS)("list_changed of a %s server without a change", (era) => {
  it("reaches an agent that subscribed to it, at most once a second, and no other [menu-current]", async () => {
    const entry = stdioFixture("changing", ["--era", era]);
    const gateway = await startGateway({ mcpServers: { one: entry } });
    const [listener, other] = [await connect("modern", gateway), await connect("legacy", gateway)];
    await listener.waitFor("announce");
    await other.waitFor("announce");
    await listener.listen({ lists: true });
    const heard = (agent: Agent) => agent.notified.filter(({ method }) => method.endsWith("tools/list_changed")).length;
    const before = heard(other);
    const from = Date.now();
    await other.call("announce");
    await until("it is passed on", () => heard(listener) > 0);
    for (let i = 0; i < 8; i++) {
      await other.call("announce");
      await sleep(100);
    }
    expect(heard(listener)).toBeLessThanOrEqual(1 + Math.ceil((Date.now() - from) / 1_000));
    expect(heard(other)).toBe(before);
  });
});
