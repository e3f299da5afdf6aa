import { describe, expect, it } from "vitest";
import { parseMessage, withChanges } from "../../protocol/message.js";
import { findAnchor } from "../../protocol/reply-id.js";
import { toLegacyError, WITHOUT_SENDER } from "./translate.js";

const withoutSender = (text: string) => withChanges(parseMessage(text), WITHOUT_SENDER);

function reply(body: string) {
  const bytes = Buffer.from(`{"jsonrpc":"2.0","id":3,${body}}`);
  const anchor = findAnchor(bytes);
  if (anchor === undefined) throw new Error("no id");
  return { kind: "bytes", bytes, idStart: anchor.idStart, idEnd: anchor.idEnd } as const;
}

describe("a modern server's error for a legacy agent", () => {
  it("has the older code for a resource that is not there, and the rest as it was", () => {
    const before = reply('"error":{"code":-32602,"message":"no","data":{"uri":"x://y","more":1},"odd":2}');
    expect(toLegacyError(before)).toEqual({
      kind: "error",
      error: { code: -32002, message: "no", data: { uri: "x://y", more: 1 }, odd: 2 },
    });
  });

  it.each([
    ["bad parameters", '"error":{"code":-32602,"message":"uri is missing"}'],
    ["another error", '"error":{"code":-32603,"message":"-32602","data":{"uri":"x"}}'],
    ["a result that speaks of it", '"result":{"contents":[{"uri":"x","text":"-32602"}]}'],
    ["what is no message", '"result":{"text":"-32602"'],
  ])("stays as it is: %s", (_what, body) => {
    const before = reply(body);
    expect(toLegacyError(before)).toBe(before);
  });
});

const request = (params: string) => `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${params}}`;

describe("a modern agent's request for a legacy server", () => {
  it("loses what it says of its sender, and nothing else", () => {
    const meta = `{ "io.modelcontextprotocol/protocolVersion":"2026-07-28" , "progressToken":7,
    "io.modelcontextprotocol/clientCapabilities":{"a":[1]},"traceparent":"00-é","n":1.0,
    "io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/logLevel":"info"}`;
    expect(withoutSender(request(`{"name":"x","_meta":${meta},"arguments":{"n":1.0}}`))).toBe(
      request('{"name":"x","_meta":{ "progressToken":7,"traceparent":"00-é","n":1.0},"arguments":{"n":1.0}}'),
    );
  });

  it("stays as it is where it says nothing", () => {
    for (const params of ["{}", '{"_meta":{}}', '{"_meta":{ "a" : 1 }}', '{"_meta":null}']) {
      expect(withoutSender(request(params))).toBe(request(params));
    }
    expect(withoutSender('{"jsonrpc":"2.0","id":7,"method":"x"}')).toBe('{"jsonrpc":"2.0","id":7,"method":"x"}');
  });
});
