// `isolation: "shared"` and `"session"`: who shares a server's connection with whom.

import { expect, it } from "vitest";
import { callJson, connectV1, connectV2, waitForTools } from "./clients.js";
import { isAlive, startGateway, startHttpFixture, stdioFixture, until } from "./harness.js";
import { createToken, hasTool, statusOf } from "./operator.js";
import { initialize, lastOf, post } from "./wire.js";

interface Count {
  readonly count: number;
  readonly connection: string;
  readonly pid: number;
}

it('with isolation "shared" all sessions talk over one connection', async () => {
  const gateway = await startGateway({ mcpServers: { stateful: stdioFixture("stateful") } });
  const [a, b] = [await connectV1(gateway.url), await connectV2(gateway.url)];
  await waitForTools(a, "count");
  const first = await callJson<Count>(a, "count");
  const second = await callJson<Count>(b, "count");
  expect(second.connection).toBe(first.connection);
  expect(second.count).toBe(first.count + 1);
});

it('with isolation "session" each session has a process of its own, which ends with the session', async () => {
  const entry = stdioFixture("stateful", [], { isolation: "session" });
  const gateway = await startGateway({ mcpServers: { stateful: entry } });
  const [a, b] = [await connectV1(gateway.url), await connectV1(gateway.url)];
  await waitForTools(a, "count");
  const first = await callJson<Count>(a, "count");
  const second = await callJson<Count>(b, "count");
  expect(second.pid).not.toBe(first.pid);
  expect([first.count, second.count]).toEqual([1, 1]);
  expect(await callJson(a, "count")).toMatchObject({ count: 2, connection: first.connection });
  expect(await callJson(b, "count")).toMatchObject({ count: 2, connection: second.connection });
  const transport = a.transport as unknown as { terminateSession(): Promise<void> };
  await transport.terminateSession();
  await until("the end of its process", () => !isAlive(first.pid));
  expect(await callJson(b, "count")).toMatchObject({ count: 3, connection: second.connection });
});

it('with isolation "session" over HTTP each session has one of its own with the server', async () => {
  const fixture = await startHttpFixture("stateful");
  const gateway = await startGateway({ mcpServers: { stateful: { ...fixture.entry, isolation: "session" } } });
  const [a, b] = [await connectV1(gateway.url), await connectV2(gateway.url)];
  await waitForTools(a, "count");
  const first = await callJson<Count>(a, "count");
  const second = await callJson<Count>(b, "count");
  expect(second.connection).not.toBe(first.connection);
  expect([first.count, second.count]).toEqual([1, 1]);
});

it("500 sessions that want a process at once get what there is, or are told; another principal is served [bounded]", async () => {
  const entry = stdioFixture("stateful", [], { isolation: "session", sessionConnections: 8 });
  const gateway = await startGateway({ mcpServers: { stateful: entry } }, { auth: true });
  const [ada, bob] = [await createToken(gateway, "ada", "default"), await createToken(gateway, "bob", "default")];
  await until("the tool", () => hasTool(gateway.url, "count", ada));
  const count = async (token: string): Promise<string> => {
    const headers = { authorization: `Bearer ${token}` };
    const opened = await post(gateway.url, initialize("0"), headers);
    const session = { ...headers, "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
    const text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{}}}';
    return lastOf(await post(gateway.url, text, session));
  };
  const answers = await Promise.all(Array.from({ length: 500 }, () => count(ada)));
  expect(answers.filter((text) => text.includes('"result"'))).toHaveLength(6);
  const told = answers.filter(
    (text) => text.includes("no connection left for this session") && text.includes("-31006"),
  );
  expect(told).toHaveLength(494);
  expect(await statusOf(gateway, "stateful")).toMatchObject({ connections: 6, inFlight: 0 });
  expect(await count(bob)).toContain('"result"');
});
