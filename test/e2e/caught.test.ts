// What agents did not have to notice is counted when it is true, each kind by what really happened: a crash, an expired token, a
// restart of the gateway, a server that is away, a tool that changed. Writes that were kept are in numbers.test.ts.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { findGateway } from "../../src/control/client.js";
import { readExposition } from "../fixtures/exposition.js";
import { startScripted } from "../fixtures/scripted-mcp.js";
import { type Gateway, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { callTool, hasTool, listed, made, statusOf } from "./operator.js";
import { openHttpWire } from "./wire.js";

const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

async function caught({ stateDir }: Gateway): Promise<Record<string, number>> {
  const { text } = (await (await findGateway(stateDir))?.get<{ text: string }>("/metrics")) ?? { text: "" };
  return Object.fromEntries(
    readExposition(text)
      .samples.filter(({ name }) => name === "toolway_caught_total")
      .map(({ labels, value }) => [labels["kind"], value]),
  );
}

it("restarts, renewed tokens, sessions over a restart, lists of servers that are away and changed tools are counted as caught [metrics-agree]", async () => {
  const dir = await temporaryDirectory();
  const [description, secret] = [join(dir, "description"), join(dir, "secret")];
  writeFileSync(description, "Adds two numbers.");
  writeFileSync(secret, "first");
  let good = "Bearer first";
  const guarded = await startScripted(
    [{ name: "guarded" }],
    () => ({ result: { content: [{ type: "text", text: "yes" }] } }),
    (header) => header === good,
  );
  closing.push(guarded.close);
  const config = {
    mcpServers: {
      crash: stdioFixture("crash", [], { tools: { pid: { readOnly: true } } }),
      rug: stdioFixture("rug", ["--description", description]),
      guarded: { ...guarded.entry, auth: { bearer: { file: secret } } },
    },
  };
  const gateway = await startGateway(config);
  closing.push(() => gateway.stop());
  for (const name of ["pid", "add", "guarded"]) await until(name, () => hasTool(gateway.url, name));
  expect(await caught(gateway)).toEqual({});

  // The server dies in a call, which its agent is told of; the next call is answered by the one that is started for it.
  const { pid } = made<{ pid: number }>(await callTool(gateway.url, "pid"));
  await callTool(gateway.url, "crash");
  expect(made<{ pid: number }>(await callTool(gateway.url, "pid")).pid).not.toBe(pid);
  await until("the restart", async () => (await caught(gateway))["restart"] === 1);

  // The server wants another token from now on, and that is where the old one was.
  // Where it is a request of the gateway's own that comes first, the next one is tried.
  let tokens = 0;
  await until("the token", async () => {
    good = `Bearer another-${++tokens}`;
    writeFileSync(secret, `another-${tokens}`);
    expect((await callTool(gateway.url, "guarded")).result).toBeDefined();
    return ((await caught(gateway))["token"] ?? 0) > 0;
  });
  expect(await caught(gateway)).toEqual({ restart: 1, token: expect.any(Number) });

  // The gateway is killed; its sessions go on, and one of its servers cannot be started any more.
  const wire = await openHttpWire(gateway.url);
  const ping = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pid","arguments":{}}}';
  await wire.send(ping);
  await gateway.stop("SIGKILL");
  writeFileSync(description, "Adds two numbers, and tells somebody.");
  guarded.close();
  const again = await gateway.again();
  closing.push(() => again.stop());
  expect((await wire.send(ping)).status).toBe(200);
  await until("the session", async () => (await caught(again))["session"] === 1);

  await until("the changed tool", async () => (await statusOf(again, "rug")).quarantined === 1);
  await until("what was held back", async () => (await caught(again))["pin"] === 1);

  await until("the server to be away", async () => (await statusOf(again, "guarded")).lastError !== undefined);
  const before = (await caught(again))["menu"] ?? 0;
  expect(await listed(again.url)).toContain("guarded");
  await until("the list", async () => ((await caught(again))["menu"] ?? 0) > before);
  rmSync(dir, { recursive: true, force: true });
});
