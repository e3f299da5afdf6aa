// The way of a request through catalog, policy and upstream, with real servers behind it: every request is answered
// once, by the right server, and leaves nothing behind.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { Agent, notification } from "../../test/fixtures/agent.js";
import { closeGateways, entry, listed, start } from "../../test/fixtures/gateways.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import type { Gateway } from "./gateway.js";

/** Two busy cores start a process in a second or two. */
const SOON = { timeout: 60_000, interval: 50 };
/** Far below the time that a hung server has to connect. */
const HUNG_MS = 60_000;

afterEach(closeGateways);

describe("requests", () => {
  let gateway: Gateway;
  const logged: string[] = [];

  beforeAll(async () => {
    gateway = await start(
      {
        mcpServers: { state: entry("stateful"), paint: entry("resources"), slow: entry("slow") },
        roles: { reader: { allow: ["state/whoami", "paint"] }, blind: { allow: [] } },
      },
      { note: (text) => void logged.push(text), lasting: true },
    );
    await listed(gateway, "state", "paint", "slow");
  });
  afterAll(() => gateway.close({ drainMs: 0 }));

  it("go to the server that the menu's name means, under its own name, with the rest as it came", async () => {
    const agent = new Agent(gateway, "ada");
    expect(await agent.call("state__whoami").json()).toMatchObject({ client: { name: "toolway" } });
    const params = '{ "arguments" : {"ms":1,"label":"x\\u0079"}, "n\\u0061me":"slow__sleep" }';
    expect(await agent.send("tools/call", params).json()).toEqual({ slept: 1, label: "xy" });
    const prompt = agent.send("prompts/get", { name: "paint__paint", arguments: { colour: "red" } });
    expect(await prompt.answer()).toMatchObject({ result: { messages: [{ content: { text: "Paint it red" } }] } });
    const read = agent.send("resources/read", { uri: "fixture://one" });
    expect(await read.answer()).toMatchObject({ result: { contents: [{ text: "one" }] } });
    const completed = agent.send("completion/complete", {
      ref: { type: "ref/prompt", name: "paint__paint" },
      argument: { name: "colour", value: "gr" },
    });
    expect(await completed.answer()).toMatchObject({ result: { completion: { values: ["green", "grey"] } } });
  });

  it("of two sessions with the same id and token are told apart [crossed-never]", async () => {
    const [ada, bob] = [new Agent(gateway, "ada"), new Agent(gateway, "bob")];
    const sent = [ada, bob].map((agent) =>
      agent.call("slow__sleep", { ms: 300, everyMs: 60, label: agent.sessionKey }, { progressToken: 7 }),
    );
    expect(await Promise.all(sent.map((one) => one.json()))).toEqual([
      { slept: 300, label: "ada" },
      { slept: 300, label: "bob" },
    ]);
    for (const agent of [ada, bob]) {
      expect(agent.heard.length).toBeGreaterThan(1);
      for (const { params } of agent.heard) {
        expect(params).toMatchObject({ progressToken: 7, message: expect.stringContaining(agent.sessionKey) });
      }
    }
  });

  it.each([
    ["two names", "tools/call", '{"name":"state__whoami","name":"state__count"}'],
    ["two names, one written with escapes", "tools/call", '{"name":"state__whoami","n\\u0061me":"state__count"}'],
    ["two tokens", "tools/call", '{"name":"state__count","_meta":{"progressToken":1,"progressToken":2}}'],
    ["two URIs", "resources/read", '{"uri":"fixture://one","uri":"fixture://two"}'],
    ["two names of a prompt", "completion/complete", '{"ref":{"type":"ref/prompt","name":"x","name":"paint__paint"}}'],
    ["no name", "tools/call", "{}"],
    ["a name that is none", "tools/call", '{"name":7}'],
    ["a name behind __proto__", "tools/call", '{"__proto__":{"name":"state__count"}}'],
    ["no URI", "resources/read", "{}"],
    ["an unknown tool", "tools/call", '{"name":"state__nothing"}'],
    ["an unknown prompt", "prompts/get", '{"name":"nothing"}'],
    ["no ref", "completion/complete", "{}"],
    ["a level that is none", "logging/setLevel", '{"level":"loud"}'],
    ["a cursor that is a number", "tools/list", '{"cursor":7}'],
    ["a cursor that is made up", "tools/list", '{"cursor":"AAAA"}'],
  ])("with %s are refused as invalid, and never sent", async (_, method, params) => {
    const agent = new Agent(gateway, "ada");
    const before = await agent.call("state__count").json();
    const sent = agent.send(method, params);
    expect(await sent.code()).toBe(-32602);
    expect(sent.replies).toHaveLength(1);
    const after = await agent.call("state__count").json();
    expect(after["count"]).toBe((before["count"] as number) + 1);
    expect(gateway.status().servers.map(({ inFlight }) => inFlight)).toEqual([0, 0, 0]);
  });

  it.each(["constructor", "__proto__", "toString", "odd/method"])("for the method %s find none", async (method) => {
    expect(await new Agent(gateway, "ada").send(method).code()).toBe(-32601);
    expect(logged.filter((line) => line.includes("inside the gateway"))).toEqual([]);
  });

  it("for a method that we do not know reach the only server that can be meant", async () => {
    const agent = new Agent(gateway, "ada", "default", "paint");
    const sent = agent.send("resources/templates/list");
    expect(await sent.answer()).toHaveProperty("result.resourceTemplates");
    // The server's own answer.
    expect(await agent.send("odd/method").answer()).toMatchObject({
      error: { code: -32601, message: "Method not found" },
    });
  });

  it("are judged by what they are for: what the list hides, a call refuses", async () => {
    const reader = new Agent(gateway, "reader", "reader");
    const names = async (agent: Agent) =>
      ((await agent.send("tools/list").answer())["result"] as { tools: { name: string }[] }).tools.map(
        ({ name }) => name,
      );
    expect(await names(reader)).toEqual(["state__whoami", "paint__touch", "paint__add", "paint__subscriptions"]);
    expect(await reader.call("state__whoami").json()).toHaveProperty("pid");
    expect(await reader.call("state__count").answer()).toMatchObject({
      error: { code: -31007, message: expect.stringContaining('role "reader"') },
    });
    const blind = new Agent(gateway, "blind", "blind");
    expect(await names(blind)).toEqual([]);
    expect(await blind.send("resources/read", { uri: "fixture://one" }).code()).toBe(-31007);
    expect(gateway.pipeline.introduce(blind, undefined).instructions).toBeUndefined();
  });

  it("taken back in flight are answered once, and their server is told", async () => {
    const agent = new Agent(gateway, "ada");
    const sent = agent.call("slow__sleep", { ms: 60_000, label: "taken back" });
    await vi.waitFor(async () => {
      expect(JSON.stringify(await agent.call("slow__started").json())).toContain("taken back");
    }, SOON);
    sent.onCancel?.("enough");
    expect(await sent.answer()).toMatchObject({ error: { code: -31008, message: "enough" } });
    expect(sent.onCancel).toBeUndefined();
    await vi.waitFor(async () => {
      expect(JSON.stringify(await agent.call("slow__cancelled").json())).toContain("taken back");
    }, SOON);
    expect(sent.replies).toHaveLength(1);
  });

  it("to subscribe are kept only where the server agreed, and policy before it", async () => {
    const agent = new Agent(gateway, "ada");
    const { sessions } = gateway.pipeline;
    const kept = () => [...sessions.subscriptions("paint", ({ sessionKey }) => sessionKey === agent.sessionKey)];
    expect(await agent.send("resources/subscribe", { uri: "fixture://colour/" }).code()).toBe(-32602);
    expect(kept()).toEqual([]);
    expect(await agent.send("resources/subscribe", { uri: "fixture://one" }).answer()).toHaveProperty("result");
    expect(kept()).toEqual(["fixture://one"]);
    // One that was there before is not lost when it is asked for again in a way that fails.
    expect(await agent.send("resources/subscribe", '{"uri":"fixture://one","uri":"fixture://one"}').code()).toBe(
      -32602,
    );
    expect(kept()).toEqual(["fixture://one"]);
    const blind = new Agent(gateway, "blind", "blind");
    expect(await blind.send("resources/subscribe", { uri: "fixture://one" }).code()).toBe(-31007);
    expect([...sessions.subscriptions("paint", ({ sessionKey }) => sessionKey === "blind")]).toEqual([]);
    expect(await agent.send("resources/unsubscribe", { uri: "fixture://one" }).answer()).toHaveProperty("result");
    expect(await agent.call("paint__subscriptions").json()).toMatchObject({ subscribed: [] });
  });

  it("to subscribe end with their session", async () => {
    const [ada, bob] = [new Agent(gateway, "ada"), new Agent(gateway, "bob")];
    for (const agent of [ada, bob]) await agent.send("resources/subscribe", { uri: "fixture://two" }).answer();
    ada.close();
    expect(await bob.call("paint__subscriptions").json()).toMatchObject({ subscribed: ["fixture://two"] });
    bob.close();
    const eve = new Agent(gateway, "eve");
    await vi.waitFor(async () => {
      expect(await eve.call("paint__subscriptions").json()).toMatchObject({ subscribed: [] });
    }, SOON);
  });
});

it("a name that two texts can be read for is refused in plain mode too, where nothing is renamed", async () => {
  const gateway = await start({
    names: "plain",
    mcpServers: { state: entry("stateful") },
    roles: { default: { deny: ["state/count"] } },
  });
  await listed(gateway, "state");
  const agent = new Agent(gateway, "ada");
  expect(await agent.call("count").code()).toBe(-31007);
  expect(await agent.send("tools/call", '{"name":"count","name":"whoami"}').code()).toBe(-32602);
  expect(await agent.call("whoami").json()).toHaveProperty("pid");
});

it("a request that cannot be used does not harm a gateway whose server is still starting", async () => {
  const stateDir = mkdtempSync(join(tmpdir(), "toolway-pipeline-"));
  onTestFinished(() => rmSync(stateDir, { recursive: true, force: true }));
  const before = await start({ mcpServers: { state: entry("stateful") } }, { stateDir });
  await listed(before, "state");
  await before.close();
  // The menu is known from before, so calls wait for the server itself.
  const gateway = await start({ mcpServers: { state: entry("stateful") } }, { stateDir });
  const agent = new Agent(gateway, "ada");
  const bad = agent.send("tools/call", '{"name":"state__count","name":"state__count"}');
  const good = agent.call("state__count");
  expect(await bad.code()).toBe(-32602);
  expect(await good.json()).toMatchObject({ count: 1 });
});

describe("a server that hangs [one-bad-server]", () => {
  const hung = entry("hang", ["--at", "initialize"], { connectTimeoutMs: HUNG_MS });

  it("holds up nobody who asks another server for what it does not have", async () => {
    const gateway = await start({ mcpServers: { deaf: hung, paint: entry("resources") } });
    await listed(gateway, "paint");
    const agent = new Agent(gateway, "ada", "default", "paint");
    expect(await agent.call("nothing").code()).toBe(-32602);
    expect(await agent.send("prompts/get", { name: "nothing" }).code()).toBe(-32602);
    const read = agent.send("resources/read", { uri: "other://x" });
    // It is the only one here that can have it, and says no.
    expect(await read.code()).toBe(-32602);
  });

  it("lets calls go that wait for it: taken back, or with their server, or with the gateway", async () => {
    const gateway = await start({ mcpServers: { deaf: hung, slow: entry("slow") } });
    await listed(gateway, "slow");
    const agent = new Agent(gateway, "ada");
    const [first, second] = [agent.call("deaf__hang"), agent.call("deaf__hang")];
    first.onCancel?.("no patience");
    expect(await first.answer()).toMatchObject({ error: { code: -31008, message: "no patience" } });
    await gateway.close({ drainMs: 0 });
    expect(await second.code()).toBe(-31001);
    expect([first.replies.length, second.replies.length]).toEqual([1, 1]);
  });
});

describe('isolation "session"', () => {
  it("gives a connection to the session, not to the call that opened it", async () => {
    const gateway = await start({ mcpServers: { asker: entry("asker", [], { isolation: "session" }) } });
    await listed(gateway, "asker");
    const agent = new Agent(gateway, "ada");
    await agent.call("asker__ask_outside", { kind: "elicit", delayMs: 50 }).answer();
    // The call has long ended when its session is asked.
    await vi.waitFor(async () => {
      expect(JSON.stringify(await agent.call("asker__outcomes").json())).toContain("ada answers");
    }, SOON);
    expect(agent.asked).toHaveLength(1);
  });

  it("tells a session of its own resources only", async () => {
    const gateway = await start({ mcpServers: { paint: entry("resources", [], { isolation: "session" }) } });
    await listed(gateway, "paint");
    const [ada, bob] = [new Agent(gateway, "ada"), new Agent(gateway, "bob")];
    for (const agent of [ada, bob]) await agent.send("resources/subscribe", { uri: "fixture://one" }).answer();
    await ada.call("paint__touch", { uri: "fixture://one" }).answer();
    await vi.waitFor(() => expect(ada.heardMethods()).toContain("notifications/resources/updated"), SOON);
    await bob.call("paint__subscriptions").answer();
    expect(bob.heardMethods()).not.toContain("notifications/resources/updated");
  });

  it("keeps levels and subscriptions off the connection that only reads the lists", async () => {
    const gateway = await start({ mcpServers: { logger: entry("logger", [], { isolation: "session" }) } });
    const agent = new Agent(gateway, "ada");
    expect(await agent.send("logging/setLevel", { level: "error" }).answer()).toHaveProperty("result");
    await listed(gateway, "logger");
    await vi.waitFor(() => expect(gateway.status().servers[0]?.connections).toBe(0), SOON);
    // The session's own is told when it comes up.
    await vi.waitFor(async () => expect(await agent.call("logger__asked").json()).toEqual(["error"]), SOON);
  });

  it("answers what a session has in flight when it ends, and lets its process go", async () => {
    const gateway = await start({ mcpServers: { slow: entry("slow", [], { isolation: "session" }) } });
    await listed(gateway, "slow");
    const agent = new Agent(gateway, "ada");
    const sent = agent.call("slow__sleep", { ms: 60_000 });
    await vi.waitFor(() => expect(gateway.status().servers[0]).toMatchObject({ state: "ready", inFlight: 1 }), SOON);
    agent.close();
    expect(await sent.code()).toBe(-31003);
    expect(sent.replies).toHaveLength(1);
    await vi.waitFor(() => expect(gateway.status().servers[0]).toMatchObject({ connections: 0, inFlight: 0 }), SOON);
  });
});

describe("the search menu", () => {
  it("finds tools and calls them, by the same rules as ever", async () => {
    const gateway = await start({
      menu: "search",
      mcpServers: { state: entry("stateful"), slow: entry("slow") },
      roles: { default: { deny: ["state/count"] } },
    });
    await listed(gateway, "state", "slow");
    const agent = new Agent(gateway, "ada");
    const found = await agent.call("find_tools", { query: "whoami" }).answer();
    expect(JSON.stringify(found)).toContain("state__whoami");
    const call = (name: string, args: JsonObject = {}) => agent.call("call_tool", { name, arguments: args });
    expect(await call("state__whoami").json()).toHaveProperty("pid");
    expect(await call("slow__sleep", { ms: 1, label: "in" }).json()).toEqual({ slept: 1, label: "in" });
    expect(await call("state__count").code()).toBe(-31007);
    expect(await call("call_tool").code()).toBe(-32602);
    expect(await agent.call("find_tools", {}).answer()).toMatchObject({ result: { isError: true } });
    // Progress and cancelling are those of the call inside.
    const sent = agent.call(
      "call_tool",
      { name: "slow__sleep", arguments: { ms: 60_000, everyMs: 50 } },
      { progressToken: "t" },
    );
    await vi.waitFor(() => expect(agent.heard.length).toBeGreaterThan(0), SOON);
    expect(agent.heard[0]).toMatchObject({ params: { progressToken: "t" } });
    sent.onCancel?.("enough");
    expect(await sent.code()).toBe(-31008);
  });
});

describe("notifications of agents", () => {
  it("that we do not know go to the only server, where policy lets them; roots to the session's own", async () => {
    const gateway = await start({ mcpServers: { asker: entry("asker", [], { isolation: "session" }) } });
    await listed(gateway, "asker");
    const agent = new Agent(gateway, "ada");
    await agent.call("asker__outcomes").answer();
    const { pipeline } = gateway;
    pipeline.handleNotification(agent, notification("notifications/roots/list_changed"), undefined);
    await vi.waitFor(async () => {
      expect(await agent.call("asker__roots_changed").json()).toEqual({ rootsChanged: 1 });
    }, SOON);
    // Of nobody's question, and of no use: nothing happens.
    pipeline.handleNotification(agent, notification("notifications/progress", { progressToken: 1 }), undefined);
    pipeline.handleNotification(agent, notification("notifications/odd"), undefined);
    expect(await agent.call("asker__roots_changed").json()).toEqual({ rootsChanged: 1 });
  });
});

it("a call whose session ended while it waited is not sent", async () => {
  const gateway = await start({ mcpServers: { state: entry("stateful") } });
  const agent = new Agent(gateway, "ada");
  const sent = agent.call("state__count");
  // What the endpoint does with the calls of a session that ends.
  sent.onCancel?.("The session ended.");
  agent.close();
  expect(await sent.code()).toBe(-31008);
  await listed(gateway, "state");
  expect(await new Agent(gateway, "bob").call("state__count").json()).toMatchObject({ count: 1 });
  expect(sent.replies).toHaveLength(1);
});

it("what goes wrong inside is said without its details", async () => {
  const logged: string[] = [];
  const gateway = await start({ mcpServers: { state: entry("stateful") } }, { note: (text) => void logged.push(text) });
  await listed(gateway, "state");
  const agent = new Agent(gateway, "ada");
  vi.spyOn(gateway.servers, "get").mockImplementationOnce(() => {
    throw new TypeError("secret detail");
  });
  const answer = await agent.call("state__count").answer();
  expect(answer).toMatchObject({ error: { code: -32603 } });
  expect(JSON.stringify(answer)).not.toContain("secret detail");
  expect(logged.some((line) => line.includes("inside the gateway"))).toBe(true);
});
