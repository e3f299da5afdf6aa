import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { CHARACTER } from "../../../test/fixtures/characters.js";
import { plainAnswer } from "./plain-answer.js";

const RUNS = histories(3_000, 100_000);

/** A character a byte, as replies are given. */
const latin1 = (text: string): string => Buffer.from(text).toString("latin1");

const ORDERS = [
  ["jsonrpc", "id", "result"],
  ["result", "jsonrpc", "id"],
  ["id", "result", "jsonrpc"],
] as const;

const results = fc.dictionary(fc.string({ unit: CHARACTER }), fc.jsonValue({ maxDepth: 5 }), { maxKeys: 5 });
const answers = fc
  .tuple(results, fc.nat(), fc.constantFrom(...ORDERS), fc.constantFrom(undefined, 1, "\t", "\r\n"))
  .map(([result, id, order, indent]) => {
    const members = { jsonrpc: "2.0", id, result };
    return JSON.stringify(Object.fromEntries(order.map((name) => [name, members[name]])), undefined, indent);
  });

/** Whether JSON.parse reads just these three members of it, and a result that is an object. */
function isAnswer(text: string): boolean {
  try {
    const value = JSON.parse(text) as Record<string, unknown>;
    const { jsonrpc, result } = value;
    const isObject = typeof result === "object" && result !== null && !Array.isArray(result);
    return jsonrpc === "2.0" && isObject && "id" in value && Object.keys(value).length === 3;
  } catch {
    return false;
  }
}

describe("an answer as servers write it", () => {
  it("is known, whatever is in its result, in which order and with which white space", () => {
    fc.assert(
      fc.property(answers, (text) => {
        const isAscii = Buffer.byteLength(text) === text.length;
        expect(plainAnswer(latin1(text))?.isAscii).toBe(isAscii);
      }),
      { numRuns: RUNS },
    );
  });

  it.each([
    '{"jsonrpc":"2.0","id":1,"result":{"a":[0,-0,1.5,-2e3,1E+9,1e-9,true,false,null,"\\u00e9\\n\\/"]}}',
    ' { "id" : "x" , "result" : { } , "jsonrpc" : "2.0" }\n',
  ])("is known as %s", (text) => {
    expect(plainAnswer(text)?.isAscii).toBe(true);
  });

  it.each([
    [false, '{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"isError: true, \\"isError\\""}],"isErrors":1}}'],
    [false, '{"jsonrpc":"2.0","id":"isErro","result":{"error":{"code":1}}}'],
    [true, '{"jsonrpc":"2.0","id":1,"result":{"isError":true}}'],
    [true, '{"result":{"a":[], "isError" : false},"jsonrpc":"2.0","id":1}'],
    [true, '{"jsonrpc":"2.0","id":1,"result":{"content":[{"isError":true}]}}'],
    [true, '{"jsonrpc":"2.0","id":1,"result":{"is\\u0045rror":true}}'],
  ])("may say that it failed (%s) by a name in it, and not by what a text says: %s", (may, text) => {
    expect(plainAnswer(text)?.maySayFailed).toBe(may);
  });
});

describe("what is not an answer, or may be read as another", () => {
  it.each([
    "",
    "{}",
    "[]",
    '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","id":1,"result":[]}',
    '{"jsonrpc":"2.0","id":1,"result":null}',
    '{"jsonrpc":"2.00","id":1,"result":{}}',
    '{"jsonrpc":"2.0","id":1,"result":{},"id":2}',
    '{"jsonrpc":"2.0","id":1,"result":{},"result":{}}',
    '{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"result":{}}',
    '{"jsonrpc":"2.0","id":1,"result":{},"ID":2}',
    '{"jsonrpc":"2.0","id":1,"result":{},"\\u0069d":2}',
    '{"jsonrpc":"2.0","id":1,"result":{},"method":"x"}',
    '{"jsonrpc":"2.0","id":1,"result":{},"x":1}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}',
    '{"jsonrpc":"2.0","id":1,"result":{}',
    '{"jsonrpc":"2.0","id":1,"result":{}}}',
    '{"jsonrpc":"2.0","id":1,"result":{}} x',
    '{"jsonrpc":"2.0","id":1,"result":{},}',
    '{"jsonrpc":"2.0","id":01,"result":{}}',
    '{"jsonrpc":"2.0","id":1.,"result":{}}',
    '{"jsonrpc":"2.0","id":-,"result":{}}',
    '{"jsonrpc":"2.0","id":1e,"result":{}}',
    '{"jsonrpc":"2.0","id":1,"result":{"a":[1,]}}',
    '{"jsonrpc":"2.0","id":1,"result":{"a":1,}}',
    '{"jsonrpc":"2.0","id":1,"result":{a:1}}',
    '{"jsonrpc":"2.0","id":1,"result":{"a":tru}}',
    '{"jsonrpc":"2.0","id":1,"result":{"a":nulll}}',
    '{"jsonrpc":"2.0","id":1,"result":{"a":"\n"}}',
    '{"jsonrpc":"2.0","id":1,"result":{"a":"\\x"}}',
    '{"jsonrpc":"2.0","id":1,"result":{"a":"\\u00g0"}}',
    '{"jsonrpc":"2.0","id":1,"result":{"a":"\\u00"}}',
    '{"jsonrpc":"2.0","id":1,"result":{"a":"\\',
    '\u00a0{"jsonrpc":"2.0","id":1,"result":{}}',
    `{"jsonrpc":"2.0","id":1,"result":{"a":${"[".repeat(100)}${"]".repeat(100)}}}`,
  ])("is left to a closer look: %j", (text) => {
    expect(plainAnswer(text)).toBeUndefined();
  });

  it("is never taken for an answer, wherever a character was changed, left out or put in [crossed-never]", () => {
    const characters = fc.constantFrom(...'{}[]",:\\ue0123456789-+.tfnidr \n\u0000\u007f\u0080é');
    const tally = { known: 0, left: 0 };
    fc.assert(
      fc.property(answers, fc.nat(), fc.nat(2), characters, (answer, place, howMany, character) => {
        const at = place % answer.length;
        const text = latin1(answer.slice(0, at) + character + answer.slice(at + howMany));
        const isKnown = plainAnswer(text) !== undefined;
        if (isKnown) expect(isAnswer(text), text).toBe(true);
        tally[isKnown ? "known" : "left"]++;
      }),
      { numRuns: 4 * RUNS },
    );
    expect(Math.min(tally.known, tally.left)).toBeGreaterThan(RUNS / 10);
  });
});
