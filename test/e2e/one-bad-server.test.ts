// Servers that hang, die or talk nonsense beside healthy ones: the healthy ones must not notice.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { callJson, callText, connectV1, toolNames, waitForTools } from "./clients.js";
import { type Gateway, isAlive, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { statusOf } from "./operator.js";
import { lastOf, openStdioWire } from "./wire.js";

/** Far below the connect timeout of the bad ones, far above what two busy cores need. */
const SOON_MS = 8_000;

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({
    mcpServers: {
      deaf: stdioFixture("hang", ["--at", "initialize"]),
      listless: stdioFixture("hang", ["--at", "list"]),
      stuck: stdioFixture("hang", ["--at", "call"]),
      broken: stdioFixture("crash", ["--at", "start"]),
      missing: { command: "/no/such/program", args: [] },
      unset: { command: "$" + "{TOOLWAY_TEST_NOT_SET}" },
      refused: { url: "http://127.0.0.1:9/mcp" },
      noisy: stdioFixture("crash", ["--noise"]),
      good: stdioFixture("stateful"),
    },
  });
});

it("an entry that is wrong ends neither the start nor the other servers, and is told [bad-entry-alone]", async () => {
  const client = await connectV1(gateway.url);
  await waitForTools(client, "count");
  const told = "it is misconfigured: TOOLWAY_TEST_NOT_SET is not set (command)";
  const alone = await connectV1(`${gateway.url}/unset`);
  await expect(alone.callTool({ name: "x", arguments: {} })).rejects.toThrow(told);
  expect(await statusOf(gateway, "unset")).toMatchObject({ state: "misconfigured" });
  expect(gateway.log()).toContain("TOOLWAY_TEST_NOT_SET is not set");
});

describe("a hung server beside healthy ones [one-bad-server]", () => {
  it("does not delay the endpoint, the lists or the calls of others", async () => {
    const before = Date.now();
    const client = await connectV1(gateway.url);
    await waitForTools(client, "count", "quick", "pid");
    const listed = Date.now();
    await toolNames(client);
    expect(Date.now() - listed).toBeLessThan(SOON_MS);
    expect(await callJson(client, "count")).toMatchObject({ count: expect.any(Number) });
    expect(Date.now() - before).toBeLessThan(2 * SOON_MS);
  });

  it("keeps 50 stuck calls from slowing others, on the same server too", async () => {
    const client = await connectV1(gateway.url);
    await waitForTools(client, "count", "quick");
    let ended = 0;
    const leave = new AbortController();
    const stuck = Array.from({ length: 50 }, () =>
      client
        .callTool({ name: "hang", arguments: {} }, undefined, { signal: leave.signal })
        .catch(() => {})
        .then(() => ended++),
    );
    for (let i = 0; i < 20; i++) await callJson(client, "count");
    expect(await callText(client, "quick")).toBe("quick");
    // Nobody waited for one of them.
    expect(ended).toBe(0);
    leave.abort();
    await Promise.all(stuck);
  });

  it("ends 50 stuck calls each by its own deadline; their server goes on", async () => {
    const hang = stdioFixture("hang", ["--at", "call"], { callTimeoutMs: 1_500 });
    const client = await connectV1((await startGateway({ mcpServers: { hang } })).url);
    await waitForTools(client, "quick");
    const stuck = Array.from({ length: 50 }, () =>
      client.callTool({ name: "hang", arguments: {} }).then(
        () => "answered",
        (error: { code: number }) => error.code,
      ),
    );
    expect(new Set(await Promise.all(stuck))).toEqual(new Set([-31004]));
    expect(await callText(client, "quick")).toBe("quick");
  });

  it("skips noise on a server's stdout", async () => {
    const client = await connectV1(gateway.url);
    await waitForTools(client, "pid");
    const { pid } = await callJson<{ pid: number }>(client, "pid");
    expect(isAlive(pid)).toBe(true);
  });

  it("says what is wrong in the log, once it is known", async () => {
    await until("a word of the broken one", () => gateway.log().includes("MISSING_KEY"));
  });
});

it("a call to a server that cannot be started fails soon, and says why [one-bad-server]", async () => {
  const scoped = await startGateway({
    mcpServers: { broken: stdioFixture("crash", ["--at", "start"]), good: stdioFixture("stateful") },
  });
  const client = await connectV1(scoped.url);
  await waitForTools(client, "count");
  const before = Date.now();
  // No list of it was ever seen: the menu has no such tool, and says so without waiting.
  await expect(client.callTool({ name: "pid", arguments: {} })).rejects.toMatchObject({ code: -32602 });
  expect(Date.now() - before).toBeLessThan(SOON_MS);
});

it("a client's own `toolway stdio` serves the others where an entry cannot be read [bad-entry-alone] [one-bad-server]", async () => {
  const [folder, stateDir] = [await temporaryDirectory(), await temporaryDirectory()];
  const configPath = join(folder, "toolway.json");
  const wrong = { command: "x", env: { KEY: "$" + "{TOOLWAY_TEST_NOT_SET}" } };
  const config = { names: "plain", mcpServers: { good: stdioFixture("stateful"), wrong } };
  await writeFile(configPath, JSON.stringify(config));
  const wire = await openStdioWire({ configPath, stateDir });
  const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{}}}';
  expect(JSON.parse(lastOf(await wire.send(call)))).toMatchObject({ id: 1, result: { content: [{ type: "text" }] } });
  await wire.close();
});
