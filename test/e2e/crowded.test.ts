// One principal whose calls hang takes its part of an HTTP server's places, and no more; when it leaves, they are free.

import { type ClientRequest, request } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { ERAS, modernRequest } from "./eras.js";
import { type Gateway, startGateway, startHttpFixture, until } from "./harness.js";
import { callTool, createToken, hasTool, made, statusOf } from "./operator.js";

/** More than an HTTP server has places. */
const HANGING = 300;
/** What one principal gets of them: three quarters of what the gateway leaves to agents. */
const MOST = 180;

const open: ClientRequest[] = [];
afterEach(() => {
  for (const req of open.splice(0)) req.destroy();
});

/** A call of a modern agent that nobody waits for. */
function hang(gateway: Gateway, token: string, at: number): void {
  const params = { name: "sleep", arguments: { ms: 600_000, label: `${at}` } };
  const { text, headers } = modernRequest({ method: "tools/call", params });
  const req = request(gateway.url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: `Bearer ${token}`,
      ...headers,
    },
  });
  req.on("error", () => {});
  req.end(text);
  open.push(req);
}

describe.each(ERAS)("an HTTP server of the %s era", (era) => {
  it("that one principal's calls hang at serves others, and is told when that one leaves [bounded]", async () => {
    const { entry } = await startHttpFixture("slow", ["--era", era]);
    const gateway = await startGateway({ mcpServers: { slow: entry } }, { auth: true });
    const [ada, bob] = [await createToken(gateway, "ada", "default"), await createToken(gateway, "bob", "default")];
    await until("the tool", () => hasTool(gateway.url, "sleep", ada));
    for (let at = 0; at < HANGING; at++) hang(gateway, ada, at);
    await until("the calls", async () => (await statusOf(gateway, "slow")).inFlight === HANGING);
    const ask = async (tool: string) => made<unknown[]>(await callTool(gateway.url, tool, {}, bob));
    await until("those that have a place", async () => (await ask("started")).length === MOST);
    for (const req of open.splice(0)) req.destroy();
    await until("nothing in flight", async () => (await statusOf(gateway, "slow")).inFlight === 0);
    // Each one that was sent was taken back, also one that was sent while the others left.
    await until("the cancellations", async () => (await ask("cancelled")).length === (await ask("started")).length);
    expect((await ask("started")).length).toBeGreaterThanOrEqual(MOST);
  });
});
