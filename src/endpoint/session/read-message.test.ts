import { describe, expect, it } from "vitest";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import { DEFAULT_LIMITS } from "./limits.js";
import { BODY, PIPED, readMessage } from "./read-message.js";

const LIMITS = { ...DEFAULT_LIMITS, depth: 10, members: 10, batchMessages: 3 };
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

  it("is refused before it is parsed where its objects have too many members together [bounded]", () => {
    const limit = /more than 10 members/;
    expect(why(object(10))).not.toMatch(limit);
    expect(why(object(11))).toMatch(limit);
    expect(why(`[${object(6)},${object(5)}]`)).toMatch(limit);
    expect(why(`[${object(5)},${object(5)}]`)).not.toMatch(limit);
    // A colon in a string is no member, and a text that breaks off ends the count.
    expect(why(JSON.stringify(":".repeat(1000)))).not.toMatch(limit);
    for (const text of ['"', '{"a":"', '"\\'.repeat(50)]) expect(why(text)).toBe("The body is not JSON.");
  });

  it("is refused where it is a batch of too many messages [bounded]", () => {
    const batch = (count: number) => `[${Array.from({ length: count }, (_, id) => ping(id)).join(",")}]`;
    const roomy = { ...LIMITS, members: 100 };
    expect(readMessage(batch(3), roomy, BODY)).toHaveLength(3);
    expect(readMessage(batch(4), roomy, BODY)).toMatchObject({ why: expect.stringContaining("more than 3 messages") });
    expect(readMessage(batch(4), roomy, PIPED)).toMatchObject({ why: "A batch has at most 3 messages." });
  });
});
