import { expect, it, vi } from "vitest";
import { ownName } from "../../contracts/names.js";
import type { UpstreamCall } from "../../contracts/upstream.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { Meta, MODERN_VERSION } from "../../protocol/modern.js";
import type { Reply } from "../../protocol/reply.js";
import { ModernSide, unsharedParts } from "./side.js";

function setUp(namesAgents?: boolean) {
  const parts = unsharedParts();
  const value = {
    name: "query",
    inputSchema: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
  };
  parts.toolHeaders.learn([{ json: JSON.stringify(value), value }]);
  const sent: UpstreamCall[] = [];
  const direct = { send: (call: UpstreamCall) => void sent.push(call), cancel: () => {} };
  const side = new ModernSide(
    parts,
    true,
    { name: "gateway" },
    {
      now: () => 0,
      direct,
      onNotification: () => {},
      onOtherEra: () => {},
      namesAgents,
    },
  );
  return { side, sent };
}

/** A call whose text must not be made, since whoever wants something of it has the params. */
function unread(method: string, subject: string | undefined, params: JsonObject | undefined) {
  const replies: Reply[] = [];
  const call: UpstreamCall = {
    caller: undefined,
    method,
    subject: subject === undefined ? undefined : ownName(subject),
    params,
    progressToken: undefined,
    render: () => {
      throw new Error("the text was made to be read again");
    },
    reply: (reply) => void replies.push(reply),
  };
  return { call, replies };
}

it("headers of a request are made of its params, and not of its text", () => {
  const { side } = setUp();
  const headersOf = (...given: Parameters<typeof unread>) => side.headers(unread(...given).call)?.slice(4);
  expect(headersOf("tools/call", "query", { name: "query", arguments: { region: "eu" } })).toEqual([
    "mcp-name",
    "query",
    "mcp-param-region",
    "eu",
  ]);
  expect(headersOf("tools/call", "query", undefined)).toEqual(["mcp-name", "query"]);
  expect(headersOf("tools/call", "plain", { name: "plain", arguments: { region: "eu" } })).toEqual([
    "mcp-name",
    "plain",
  ]);
  expect(headersOf("tasks/get", undefined, { taskId: "t-1" })).toEqual(["mcp-name", "t-1"]);
  expect(headersOf("tools/list", undefined, undefined)).toEqual([]);
});

it("a subscription takes its resource from the params, and says so where there is none", async () => {
  const { side, sent } = setUp();
  side.start({
    era: "modern",
    version: "2026-07-28",
    capabilities: { resources: { subscribe: true } },
    serverInfo: {},
    instructions: undefined,
  });
  const without = unread("resources/subscribe", undefined, {});
  expect(side.send(without.call)).toBe(true);
  expect(without.replies).toMatchObject([{ kind: "error", fault: { code: "invalid" } }]);
  const good = unread("resources/subscribe", undefined, { uri: "file:///a" });
  expect(side.send(good.call)).toBe(true);
  expect(good.replies).toEqual([]);
  const wanted = { notifications: { resourceSubscriptions: ["file:///a"] } };
  await vi.waitFor(() => expect(sent.at(-1)?.params).toMatchObject(wanted), 60_000);
  side.stop();
});

it("a machine behind a mailbox is told which agent asks, as long as that is short, and every other server which gateway", () => {
  const caller = (era: "legacy" | "modern", clientInfo: JsonObject) =>
    ({ era, clientInfo, capabilities: { roots: {} }, logLevel: "debug" }) as never;
  const said = (namesAgents: boolean, from: UpstreamCall["caller"], params: JsonObject = {}) => {
    const { side } = setUp(namesAgents);
    const { call } = unread("tools/call", "query", params);
    const { meta = [] } = side.changes({ ...call, caller: from });
    return Object.fromEntries(meta.map(([key, json]) => [key, json === undefined ? undefined : JSON.parse(json)]));
  };
  const cli = { name: "some-cli", version: "3" };
  const gateway = { name: "gateway" };
  expect(said(true, caller("legacy", cli))).toEqual({
    [Meta.version]: MODERN_VERSION,
    [Meta.clientInfo]: cli,
    [Meta.capabilities]: { roots: {} },
    [Meta.logLevel]: "debug",
  });
  // What a modern agent says for itself stays as it wrote it.
  const own = { _meta: { [Meta.version]: MODERN_VERSION, [Meta.capabilities]: {}, [Meta.clientInfo]: cli } };
  expect(said(true, caller("modern", cli), own)).toEqual({ [Meta.clientInfo]: cli });
  expect(said(false, caller("modern", cli), own)).toEqual({ [Meta.clientInfo]: gateway });
  expect(said(false, caller("legacy", cli))).toMatchObject({ [Meta.clientInfo]: gateway });
  // Nobody, nothing, and more than is carried with each call.
  for (const nobody of [undefined, caller("legacy", {}), caller("legacy", { ...cli, icon: "x".repeat(1_024) })]) {
    expect(said(true, nobody)).toMatchObject({ [Meta.clientInfo]: gateway });
  }
});
