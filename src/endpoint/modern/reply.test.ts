import { describe, expect, it } from "vitest";
import { renderReply } from "../../protocol/reply.js";
import { findAnchor } from "../../protocol/reply-id.js";
import { toModern } from "./reply.js";

const shape = { method: "tools/call", uri: undefined, serverInfo: { name: "toolway" } };

function dressed(text: string, method = "tools/call", idAt?: [number, number]): string {
  const bytes = Buffer.from(text);
  const anchor = idAt === undefined ? findAnchor(bytes) : { idStart: idAt[0], idEnd: idAt[1] };
  if (anchor === undefined) throw new Error("no id");
  const reply = toModern({ kind: "bytes", bytes, idStart: anchor.idStart, idEnd: anchor.idEnd }, { ...shape, method });
  return renderReply(reply as never, '"a"').toString();
}

/** Where the id stands, for texts in which no anchor finds it. */
function idIn(text: string): [number, number] {
  const start = Buffer.byteLength(text.slice(0, text.indexOf('"id":') + 5));
  return [start, start + 1];
}

describe("a legacy server's result for a modern agent", () => {
  it("gets resultType and keeps every byte of its own", () => {
    const result = '{"n":12345678901234567890,"z":-0,"f":1.0,"é":"\\ud800"}';
    expect(dressed(`{"jsonrpc":"2.0","id":7,"result":${result}}`)).toBe(
      `{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete",${result.slice(1)}}`,
    );
  });

  it.each([
    ["in the middle", '{"x":1.0,"result":{"n":12345678901234567890},"id":7,"y":"é","jsonrpc":"2.0"}'],
    ["before the result", '{"é":1.0,"id":7,"x":{"result":{}},"result":{"n":1.0},"jsonrpc":"2.0"}'],
  ])("keeps them too where the id stands %s", (_where, text) => {
    const out = dressed(text, "tools/call", idIn(text));
    expect(out).toBe(text.replace('"id":7', '"id":"a"').replace('{"n"', '{"resultType":"complete","n"'));
  });

  it("does not get a member twice, and is not fooled by one that is deeper or in a text", () => {
    const own = '{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","n":1.0}}';
    expect(dressed(own)).toBe(own.replace("7", '"a"'));
    expect(dressed('{"jsonrpc":"2.0","id":7,"result":{"a":{"resultType":"x"},"n":1.0}}')).toBe(
      '{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","a":{"resultType":"x"},"n":1.0}}',
    );
  });

  it("says how long a resource is good where the server does not", () => {
    const text = '{"jsonrpc":"2.0","id":7,"result":{"contents":[],"ttlMs":5}}';
    expect(JSON.parse(dressed(text, "resources/read"))).toMatchObject({
      result: { resultType: "complete", ttlMs: 5, cacheScope: "private", contents: [] },
    });
  });

  it("may be empty", () => {
    expect(dressed('{"jsonrpc":"2.0","id":7,"result":{}}')).toBe(
      '{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete"}}',
    );
  });
});

describe("a server's error for a modern agent", () => {
  it("passes as it is", () => {
    const text = '{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no","data":{"n":1.0}},"x":1.0}';
    expect(dressed(text)).toBe(text.replace("7", '"a"'));
  });

  it("has another code where the legacy one is gone", () => {
    const text = '{"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"no such resource"}}';
    expect(JSON.parse(dressed(text, "resources/read"))).toMatchObject({ id: "a", error: { code: -32602 } });
  });
});
