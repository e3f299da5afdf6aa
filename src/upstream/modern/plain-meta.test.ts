import { expect, it } from "vitest";
import { withoutSender } from "./plain-meta.js";

const request = (params: string) => `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${params}}`;

it("takes out what a modern request says of its sender, and nothing else", () => {
  const meta = `{ "io.modelcontextprotocol/protocolVersion":"2026-07-28" , "progressToken":7,
    "io.modelcontextprotocol/clientCapabilities":{"a":[1]},"traceparent":"00-é","n":1.0,
    "io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/logLevel":"info"}`;
  expect(withoutSender(request(`{"name":"x","_meta":${meta},"arguments":{"n":1.0}}`))).toBe(
    request('{"name":"x","_meta":{"progressToken":7,"traceparent":"00-é","n":1.0},"arguments":{"n":1.0}}'),
  );
});

it("leaves a request alone that says nothing", () => {
  for (const params of ["{}", '{"_meta":{}}', '{"_meta":{ "a" : 1 }}', '{"_meta":null}']) {
    expect(withoutSender(request(params))).toBe(request(params));
  }
  expect(withoutSender('{"jsonrpc":"2.0","id":7,"method":"x"}')).toBe('{"jsonrpc":"2.0","id":7,"method":"x"}');
});
