import { describe, expect, it } from "vitest";
import { findAnchor } from "../../protocol/anchor.js";
import { toLegacyError } from "./legacy-errors.js";

function reply(body: string) {
  const bytes = Buffer.from(`{"jsonrpc":"2.0","id":3,${body}}`);
  const anchor = findAnchor(bytes);
  if (anchor === undefined) throw new Error("no id");
  return { kind: "bytes", bytes, idStart: anchor.idStart, idEnd: anchor.idEnd } as const;
}

describe("toLegacyError", () => {
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
  ])("leaves %s alone", (_what, body) => {
    const before = reply(body);
    expect(toLegacyError(before)).toBe(before);
  });
});
