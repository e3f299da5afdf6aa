// A long message is walked in turns, and read as a short one is.

import fc from "fast-check";
import { expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { scanElements, scanLongElements, scanLongMessage, scanMessage } from "./scan.js";

const message = fc.record(
  {
    jsonrpc: fc.constant("2.0"),
    id: fc.oneof(fc.integer(), fc.string()),
    params: fc.oneof(
      fc.jsonValue(),
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.record({ name: fc.string(), arguments: fc.dictionary(fc.string(), fc.jsonValue()) }),
    ),
    'odd "name"\\': fc.jsonValue(),
  },
  { requiredKeys: [] },
);
const spaced = fc
  .tuple(message, fc.constantFrom(undefined, 1, "\t"))
  .map(([value, by]) => JSON.stringify(value, null, by));
/** Quotes that are escaped, and backslashes that are. */
const escapes = fc
  .array(fc.constantFrom('\\"', "\\\\", "\\\\".repeat(150), "x", "\\u0022", "{", "]", "é"), { maxLength: 900 })
  .map((parts) => `{"params":{"arguments":{"x":"${parts.join("")}","y":[{}]},"z":1},"id":2}`);

it("a message that is walked in turns has its members where one walk finds them, however short the turns are", async () => {
  let turns = 0;
  const pause = async () => void turns++;
  await fc.assert(
    fc.asyncProperty(fc.oneof(spaced, escapes), fc.integer({ min: 1, max: 300 }), async (text, charsATurn) => {
      const scanned = await scanLongMessage(text, pause, charsATurn);
      expect(scanned).toEqual(scanMessage(text));
      const value = JSON.parse(text);
      for (const { key, start, end } of scanned.members) expect(JSON.parse(text.slice(start, end))).toEqual(value[key]);
    }),
    { numRuns: histories(2_000) },
  );
  expect(turns).toBeGreaterThan(histories(2_000));
});

it("others have their turn while a message of megabytes is walked", async () => {
  let turns = 0;
  const pause = async () => void turns++;
  for (const value of [`[${"1,".repeat(2 << 20)}1]`, `"${'\\"'.repeat(2 << 20)}"`, `"${"\\\\".repeat(2 << 20)}"`]) {
    turns = 0;
    const text = `{"id":1,"params":{"x":${value}}}`;
    const { params } = await scanLongMessage(text, pause);
    expect(params).toEqual([{ key: "x", start: text.indexOf(value), end: text.length - 2 }]);
    expect(turns).toBeGreaterThanOrEqual(3);
  }
});

it("others have their turn where most of a message stands between its values, or is names of members", async () => {
  let turns = 0;
  const pause = async () => void turns++;
  const megabytes = 4 << 20;
  for (const text of [
    `{"params":{${'"a":1,'.repeat(40_000)}"a":1}}`,
    `{${'"a":null,'.repeat(40_000)}"a":true}`,
    `{"id"${" ".repeat(megabytes)}:1}`,
    `{"id":1${"\n".repeat(megabytes)},"params":{}}`,
    `{"id":1${"0".repeat(megabytes)}}`,
    `{"${'\\"'.repeat(megabytes / 2)}":1}`,
  ]) {
    turns = 0;
    expect(await scanLongMessage(text, pause)).toEqual(scanMessage(text));
    expect(turns).toBeGreaterThanOrEqual(3);
  }
});

it("a batch that is walked in turns has its elements where one walk finds them", async () => {
  let turns = 0;
  const pause = async () => void turns++;
  const batch = fc.tuple(fc.array(fc.oneof(message, fc.jsonValue())), fc.constantFrom(undefined, 1, "\t"));
  await fc.assert(
    fc.asyncProperty(batch, fc.integer({ min: 1, max: 300 }), async ([value, by], charsATurn) => {
      const text = JSON.stringify(value, null, by);
      expect(await scanLongElements(text, pause, charsATurn)).toEqual(scanElements(text, 0));
    }),
    { numRuns: histories(500) },
  );
  expect(turns).toBeGreaterThan(histories(500));
});
