// A program's guard over its gateway and its host, as agents meet it: real servers, real tokens, the public API alone.

import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import {
  type ConfigInput,
  createGateway,
  createHost,
  type Gateway,
  type Guard,
  type HostSpec,
  type ToolHost,
} from "../../src/index.js";
import { connect, listensToCached } from "./eras.js";
import { until } from "./harness.js";
import { callTool, listed, made, refusal } from "./operator.js";

const DENIED = -31007;
const HOUR_MS = 3_600_000;

const cleanUp: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

const entry = (name: string, more: object = {}, args: string[] = []) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL(`../fixtures/servers/${name}.mjs`, import.meta.url)), ...args],
  ...more,
});

interface Running {
  readonly gateway: Gateway;
  readonly url: string;
  token(id: string, role: string): Promise<string>;
}

async function start(config: ConfigInput, log: string[] = []): Promise<Running> {
  const tell = (text: string) => void log.push(text);
  const gateway = await createGateway(
    { names: "plain", ...config },
    { env: { PATH: process.env["PATH"] }, log: { debug: tell, info: tell, warn: tell, error: tell } },
  );
  cleanUp.push(() => gateway.close({ drainMs: 0 }));
  const { url } = await gateway.listen({ port: 0 });
  const token = (id: string, role: string) => gateway.state.tokens.create({ id, role }, Date.now());
  await until("the tools", () =>
    gateway.status().servers.every(({ state, counts }) => state === "ready" && counts.tools > 0),
  );
  return { gateway, url, token };
}

/** Denies these, as `server` or `server/tool`. */
const denying =
  (...denied: string[]): Guard =>
  (_principal, server, tool) =>
    denied.includes(tool === undefined ? server : `${server}/${tool}`)
      ? { kind: "deny", reason: "not today" }
      : { kind: "allow" };

describe("a gateway's guard", () => {
  it("hides in lists what it refuses in calls, and says why [host-9] [host-11]", async () => {
    const { gateway, url, token } = await start({ mcpServers: { one: entry("stateful"), two: entry("slow") } });
    const ann = await token("ann", "dev");
    expect(await listed(url, ann)).toEqual(expect.arrayContaining(["count", "whoami", "sleep"]));
    gateway.setGuard(denying("one/count", "two"));
    expect(await listed(url, ann)).toEqual(["whoami"]);
    const told = await refusal(url, "count", {}, ann);
    expect(told).toMatchObject({ code: DENIED, data: { fault: "denied" } });
    expect(told.message).toBe('You may not use tool "count" of server "one": not today.');
    expect(await refusal(url, "sleep", { ms: 1 }, ann)).toMatchObject({ code: DENIED });
    made(await callTool(url, "whoami", {}, ann));
    // The program's own calls, too.
    await expect(gateway.call("count")).rejects.toThrow(/not today/);
    gateway.setGuard(undefined);
    expect(await listed(url, ann)).toEqual(expect.arrayContaining(["count", "whoami", "sleep"]));
    made(await callTool(url, "count", {}, ann));
  });

  it("tells agents that are connected to look again", async () => {
    const { gateway, url, token } = await start({ mcpServers: { one: entry("stateful") } });
    const agent = await connect("legacy", url, { token: await token("ann", "dev") });
    await until("a word of the change", () => {
      // Again and again: the agent's stream may open after the first.
      gateway.setGuard(denying("one/count"));
      return agent.notified.some(({ method }) => method === "notifications/tools/list_changed");
    });
    expect(await agent.names()).toEqual(["whoami"]);
  });

  it("stands beside the rules of roles: either denies, neither allows what the other denies [host-11]", async () => {
    const { gateway, url, token } = await start({
      mcpServers: { one: entry("stateful"), two: entry("slow") },
      roles: { guest: { deny: ["one/whoami"] } },
    });
    const [guest, dev] = [await token("gus", "guest"), await token("dee", "dev")];
    gateway.setGuard(denying("two"));
    expect(await listed(url, guest)).toEqual(["count"]);
    expect(await listed(url, dev)).toEqual(expect.arrayContaining(["count", "whoami"]));
    expect(await refusal(url, "whoami", {}, guest)).toMatchObject({ code: DENIED });
    for (const who of [guest, dev]) expect(await refusal(url, "sleep", { ms: 1 }, who)).toMatchObject({ code: DENIED });
    gateway.setGuard(() => ({ kind: "allow" }));
    expect(await refusal(url, "whoami", {}, guest)).toMatchObject({ code: DENIED });
  });

  it("is asked about the principal of the token, the server, and its own name of the tool", async () => {
    const { gateway, url, token } = await start({
      mcpServers: { one: entry("stateful", { tools: { count: { name: "renamed" } } }) },
    });
    const asked = new Set<string>();
    const guard: Guard = ({ id, role }, server, tool) => {
      asked.add([id, role, server, tool ?? "-"].join(" "));
      return id === "bob" ? { kind: "deny", reason: "bob" } : { kind: "allow" };
    };
    const [ann, bob] = [await token("ann", "dev"), await token("bob", "dev")];
    gateway.setGuard(guard);
    asked.clear();
    made(await callTool(url, "renamed", {}, ann));
    expect([...asked]).toEqual(["ann dev one -", "ann dev one count"]);
    // Two of one role, and each has a list of its own.
    expect(await listed(url, ann)).toContain("renamed");
    expect(await listed(url, bob)).toEqual([]);
    expect(await refusal(url, "renamed", {}, bob)).toMatchObject({ code: DENIED });
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("SECRET-OF-THE-GUARD");
      },
    ],
    ["answers nothing", () => undefined],
    ["answers later", () => Promise.reject(new Error("SECRET-OF-THE-GUARD"))],
    ["answers something else", () => true],
  ])("that %s denies; the log knows, agents learn nothing of it [host-11]", async (_what, guard) => {
    const log: string[] = [];
    const { gateway, url, token } = await start({ mcpServers: { one: entry("stateful") } }, log);
    const ann = await token("ann", "dev");
    gateway.setGuard(guard as unknown as Guard);
    expect(await listed(url, ann)).toEqual([]);
    const told = await refusal(url, "count", {}, ann);
    expect(told).toMatchObject({ code: DENIED });
    expect(told.message).toContain("the guard could not decide");
    expect(JSON.stringify(told)).not.toContain("SECRET");
    expect(log.some((line) => line.includes("guard"))).toBe(true);
  });

  it("comes before the budget and the cache [host-8]", async () => {
    const { gateway, url, token } = await start({
      mcpServers: { cached: entry("cached", { tools: { stamp: { cache: true } } }, ["--era", "modern"]) },
      roles: { dev: { budget: { calls: 2, windowMs: HOUR_MS } } },
    });
    const ann = await token("ann", "dev");
    await listensToCached(url, { token: ann });
    const first = made(await callTool(url, "stamp", {}, ann));
    gateway.setGuard(denying("cached/stamp"));
    for (let call = 0; call < 3; call++) {
      const told = await refusal(url, "stamp", {}, ann);
      expect(told).toMatchObject({ code: DENIED });
    }
    gateway.setGuard(undefined);
    // The result was kept, and one call of the two is left.
    expect(made(await callTool(url, "stamp", {}, ann))).toEqual(first);
    expect(await refusal(url, "stamp", {}, ann)).toMatchObject({ data: { fault: "budget", spent: 2 } });
  });
});

describe("a host's guard", () => {
  const spec = (name: string, fixture: string): HostSpec => ({ name, ...entry(fixture) });

  async function create(): Promise<ToolHost> {
    const host = await createHost({ env: { PATH: process.env["PATH"] } });
    cleanUp.push(() => host.close({ drainMs: 0 }));
    return host;
  }

  it("is asked on spawn, list, discovery and call alike [host-9] [host-10] [host-11]", async () => {
    const host = await create();
    host.setGuard(denying("barred", "one/count"));
    await expect(host.spawn(spec("barred", "stateful"))).rejects.toMatchObject({ fault: "denied", server: "barred" });
    expect(host.status()).toEqual([]);
    await host.spawn(spec("one", "stateful"));
    expect((await host.tools("one")).map(({ name }) => name)).toEqual(["whoami"]);
    await expect(host.call("one", "count")).rejects.toMatchObject({ fault: "denied", server: "one" });
    await host.call("one", "whoami");
    const found = await host.discover();
    expect(found.map(({ server }) => server)).toEqual(["one"]);
    expect(JSON.stringify(found)).not.toContain('"count"');
  });

  it("that throws denies all of it, and a later one that allows gives it back [host-11]", async () => {
    const host = await create();
    await host.spawn(spec("one", "stateful"));
    host.setGuard(() => {
      throw new Error("no");
    });
    await expect(host.call("one", "count")).rejects.toMatchObject({ fault: "denied" });
    await expect(host.spawn(spec("two", "slow"))).rejects.toMatchObject({ fault: "denied" });
    host.setGuard(() => ({ kind: "allow" }));
    await host.call("one", "count");
    await host.spawn(spec("two", "slow"));
  });
});
