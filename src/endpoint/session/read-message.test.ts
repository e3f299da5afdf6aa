import { describe, expect, it } from "vitest";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import { ENDPOINT_LIMITS } from "./limits.js";
import { BODY, PIPED, readMessage, TextCheck } from "./read-message.js";

const LIMITS = { ...ENDPOINT_LIMITS, depth: 10, batchMessages: 3 };
const read = (text: string, words = BODY) => readMessage(text, LIMITS, words);
const ping = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`;
const object = (count: number) => `{${Array.from({ length: count }, (_, n) => `"key ${n}":"a:b\\":${n}"`).join(",")}}`;

/** What is said of a text that cannot be read. */
function why(text: string, words = BODY): string {
  const found = read(text, words);
  return !Array.isArray(found) && found.kind === "unreadable" ? found.why : "";
}

describe("a text that an agent sent", () => {
  it("is one message, with its text as it came", () => {
    expect(read(ping(1))).toMatchObject({ kind: "request", id: 1, method: "ping", text: ping(1) });
    expect(read('{"jsonrpc":"2.0","method":"x"}')).toMatchObject({ kind: "notification", method: "x" });
    expect(read('{"jsonrpc":"2.0","id":7,"result":{}}')).toMatchObject({ kind: "response", id: 7 });
  });

  it("may be a batch, of which each message has its own text", () => {
    expect(read(`[ ${ping(1)}, ${ping(2)} ]`)).toMatchObject([{ text: ping(1) }, { text: ping(2) }]);
    expect(read("[]")).toEqual([]);
  });

  it("is refused where it is no JSON, and where it is no message", () => {
    expect(read("{")).toEqual({ kind: "unreadable", code: ErrorCode.parse, why: "The body is not JSON." });
    expect(why("{", PIPED)).toBe("Not JSON.");
    expect(read("5")).toMatchObject({ kind: "unreadable", code: ErrorCode.invalidRequest });
    expect(why(`[${ping(1)},{"id":1}]`)).toContain("jsonrpc");
  });

  it("is refused before it is parsed where it nests too deep [bounded]", () => {
    const nested = (levels: number) =>
      `{"jsonrpc":"2.0","method":"x","params":${'{"a":'.repeat(levels)}1${"}".repeat(levels)}}`;
    expect(read(nested(5))).toMatchObject({ kind: "notification" });
    expect(why(nested(10))).toBe("The body is nested deeper than 10 levels, which is the limit.");
    expect(why(nested(10), PIPED)).toMatch(/^The message is nested/);
  });

  it("is refused as it comes where there is too much to it, however it is cut [bounded]", () => {
    const limits = { ...ENDPOINT_LIMITS, depth: 4, values: 10, names: 5 };
    const judged = (text: string, size: number) => {
      const check = new TextCheck(limits, BODY);
      const bytes = Buffer.from(text);
      let found: string | undefined;
      for (let at = 0; at < bytes.length; at += size) found ??= check.push(bytes.subarray(at, at + size))?.why;
      return found;
    };
    const list = (count: number, element: string) => `[${Array.from({ length: count }, () => element).join(", ")}]`;
    for (const size of [1, 2, 7, 1000]) {
      for (const fine of [
        list(10, "1"),
        list(10, "{}"),
        list(10, "[ ]"),
        list(5, '{"a":null}'),
        object(5),
        '"'.concat(':,{[\\"'.repeat(50), '"'),
        "[[[[1]]]]",
        "",
        "]]]]",
      ])
        expect([size, fine, judged(fine, size)]).toEqual([size, fine, undefined]);
      for (const large of [list(11, "1"), list(11, "{}"), list(11, '"a,b"'), list(6, '{"a":1}'), list(4, "[1,2]")])
        expect([size, large, judged(large, size)]).toEqual([
          size,
          large,
          "The body has more than 10 values (members and elements), which is the limit.",
        ]);
      expect(judged(object(6), size)).toBe("The body has more than 5 different names of members, which is the limit.");
      expect(judged("[[[[[", size)).toBe("The body is nested deeper than 4 levels, which is the limit.");
    }
  });

  it("counts names about right, whatever they are [bounded]", () => {
    for (const name of [
      (n: number) => `k${n}`,
      (n: number) => `${"k".repeat(300)}${n}`,
      (n: number) => String(n * 8),
    ]) {
      const check = new TextCheck({ ...ENDPOINT_LIMITS, names: 20_000 }, BODY);
      const text = (from: number, to: number) =>
        Array.from({ length: to - from }, (_, n) => `"${name(from + n)}":1`).join(",");
      expect(check.push(Buffer.from(`{${text(0, 20_000)}`))).toBeUndefined();
      // The same ones again are no new ones.
      expect(check.push(Buffer.from(`,${text(0, 20_000)}`))).toBeUndefined();
      expect(check.push(Buffer.from(`,${text(20_000, 25_000)}`))?.why).toContain("different names");
    }
  });

  it("is refused where it is a batch of too many messages [bounded]", () => {
    const batch = (count: number) => `[${Array.from({ length: count }, (_, id) => ping(id)).join(",")}]`;
    expect(readMessage(batch(3), LIMITS, BODY)).toHaveLength(3);
    expect(readMessage(batch(4), LIMITS, BODY)).toMatchObject({ why: expect.stringContaining("more than 3 messages") });
    expect(readMessage(batch(4), LIMITS, PIPED)).toMatchObject({ why: "A batch has at most 3 messages." });
  });
});
