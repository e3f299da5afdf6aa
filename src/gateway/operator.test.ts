// The operator's own session: what they may use and hear in it.

import { createInterface } from "node:readline";
import { duplexPair } from "node:stream";
import { afterEach, expect, it } from "vitest";
import { closeGateways, entry, listed, start } from "../../test/fixtures/gateways.js";
import { until } from "../../test/fixtures/wait.js";
import type { JsonObject } from "../protocol/jsonrpc.js";

afterEach(closeGateways);

it("uses every tool whatever roles say, and hears of its one server what is said outside a call [call-is-live]", async () => {
  const gateway = await start({
    mcpServers: { one: entry("logger"), two: entry("logger") },
    unlistedRoles: "deny",
  });
  await listed(gateway, "one", "two");
  const [ours, theirs] = duplexPair();
  const served = gateway.serveOperator(theirs, theirs, "one");
  const got: JsonObject[] = [];
  createInterface({ input: ours }).on("line", (line) => got.push(JSON.parse(line)));
  const send = (message: JsonObject) => ours.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const call = (id: number, name: string, data: string) =>
    send({ id, method: "tools/call", params: { name, arguments: { data, delayMs: 1 } } });
  const heard = () => got.filter(({ method }) => method === "notifications/message").map(({ params }) => params);
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } };
  send({ id: 0, method: "initialize", params });
  send({ method: "notifications/initialized" });
  send({ id: 1, method: "logging/setLevel", params: { level: "emergency" } });
  await until("the level", () => got.some(({ id }) => id === 1));
  call(2, "two__log_later", "of two");
  await until("the second server", () => got.some(({ id }) => id === 2));
  // Whatever the second says comes before what the first one says after it was called.
  await gateway.call("two__log_all");
  call(3, "one__log_later", "of one");
  await until("the first server's log", () => heard().length > 0);
  expect(heard()).toEqual([{ level: "emergency", logger: "fixture", data: "of one" }]);
  expect(gateway.status().sessions).toBe(1);
  ours.end();
  await served;
  expect(gateway.status().sessions).toBe(0);
});
