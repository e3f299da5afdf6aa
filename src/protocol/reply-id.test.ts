import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { Readable } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { CHARACTER } from "../../test/fixtures/characters.js";
import { renderReply } from "./reply.js";
import { findAnchor, largeReply } from "./reply-id.js";

/** Text that tries to look like the anchors: in strings, in keys, nested, escaped. */
const bait = fc.constantFrom(
  '{"jsonrpc":"2.0","id":7,"result":{}}',
  ',"id":7}',
  ',"id":7,"jsonrpc":"2.0"}',
  '"id":7',
  '\\","id":7}',
  '{"result":',
  "}",
  '"}',
  "\u2028",
  "\ud83d\ude00",
);
const name = fc.oneof(
  fc.constantFrom("id", "result", "error", "jsonrpc", "method", "__proto__", "params"),
  fc.string({ maxLength: 6 }),
);
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    bait,
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.string({ maxLength: 12, unit: CHARACTER }),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(name, tie("value")), { maxLength: 3 }).map((pairs) => Object.fromEntries(pairs)),
  ),
}));
const space = fc.constantFrom("", "", "", " ", "\n", "\t ", "\r\n");

/** A message as some server might write it: any order of members, any white space, extra members, requests too. */
const message = fc
  .record({
    id: fc.oneof(fc.nat(), fc.constantFrom(0, 7, 999_999_999_999_999), fc.string({ maxLength: 4 }), fc.constant(null)),
    body: fc.oneof(
      fc.tuple(fc.constant("result"), value),
      fc.tuple(fc.constant("error"), value),
      fc.tuple(fc.constant("method"), fc.constant("ping")),
    ),
    extra: fc.array(fc.tuple(fc.constantFrom("x", "params", "ide"), value), { maxLength: 1 }),
    order: fc.nat(23),
    gaps: fc.array(space, { minLength: 12, maxLength: 12 }),
  })
  .map(({ id, body, extra, order, gaps }) => {
    const members: [string, unknown][] = [
      ["jsonrpc", "2.0"],
      ["id", id],
      body as [string, unknown],
      ...(extra as [string, unknown][]),
    ];
    for (let i = members.length - 1, left = order; i > 0; i--) {
      const j = left % (i + 1);
      left = Math.floor(left / (i + 1));
      [members[i], members[j]] = [members[j] as [string, unknown], members[i] as [string, unknown]];
    }
    let gap = 0;
    const next = () => gaps[gap++ % gaps.length] as string;
    const text = members
      .map(([k, v]) => `${next()}${JSON.stringify(k)}${next()}:${next()}${JSON.stringify(v)}`)
      .join(",");
    return `${next()}{${text}${next()}}${next()}`;
  });

const RUNS = histories(50_000, 200_000);

describe("findAnchor", () => {
  it(`agrees with JSON.parse on ${RUNS} adversarial messages [crossed-never]`, () => {
    let anchored = 0;
    fc.assert(
      fc.property(message, (text) => {
        const bytes = Buffer.from(text);
        const anchor = findAnchor(bytes);
        if (anchor === undefined) return;
        anchored++;
        const parsed = JSON.parse(text) as Record<string, unknown>;
        // node:assert, because so many expect()s would take most of the time.
        strictEqual(anchor.id, parsed["id"]);
        ok(!("method" in parsed));
        const spliced = renderReply({ kind: "bytes", bytes, ...anchor }, '"agent-1"');
        deepStrictEqual(JSON.parse(spliced.toString()), { ...parsed, id: "agent-1" });
      }),
      { numRuns: RUNS },
    );
    // A matcher that never matches would agree with everything.
    expect(anchored).toBeGreaterThan(RUNS / 20);
  }, 600_000);

  it.each([
    ["head", '{"jsonrpc":"2.0","id":12,"result":{}}', 12],
    ["head, id first", '{"id":3,"jsonrpc":"2.0","error":{"code":1,"message":"x"}}', 3],
    ["head with spaces", '{"jsonrpc": "2.0", "id": 4, "result": {}}', 4],
    ["tail", '{"result":{"id":9},"jsonrpc":"2.0","id":5}', 5],
    ["tail, version last", '{"result":{},"id":6,"jsonrpc":"2.0"}\n', 6],
    ["a request of the server's", '{"jsonrpc":"2.0","id":7,"method":"ping"}', undefined],
    ["a string id", '{"jsonrpc":"2.0","id":"7","result":{}}', undefined],
    ["an id inside the result only", '{"jsonrpc":"2.0","result":{"a":1,"id":7}}', undefined],
    ["not JSON", "hello", undefined],
    ["empty", "", undefined],
  ])("finds the id of a message, or says that it cannot: %s", (_name, text, id) => {
    expect(findAnchor(Buffer.from(text))?.id).toBe(id);
  });
});

describe("largeReply", () => {
  const body = JSON.stringify({ text: "x".repeat(5000), nested: { id: 1 } });
  it.each([
    ["head", `{"jsonrpc":"2.0","id":42,"result":${body}}`],
    ["tail", `{"result":${body},"jsonrpc":"2.0","id":42}`],
  ])("splices a stream whose id stands at the %s, however it is cut", async (_name, text) => {
    for (const size of [1, 7, 127, 128, 1000]) {
      const bytes = Buffer.from(text);
      const chunks: Buffer[] = [];
      for (let i = 200; i < bytes.length; i += size) chunks.push(bytes.subarray(i, i + size));
      const reply = largeReply(bytes.subarray(0, 200), Readable.from(chunks), 42);
      const out: Buffer[] = [];
      if (reply === undefined || reply === "other-id") throw new Error("It is none.");
      for await (const chunk of reply.open('"a"')) out.push(chunk as Buffer);
      expect(Buffer.concat(out).toString()).toBe(text.replace('"id":42', '"id":"a"'));
    }
  });

  it("refuses a head that tells nothing", () => {
    expect(largeReply(Buffer.from('{"x":1,"jsonrpc":"2.0"'), Readable.from([]), 1)).toBeUndefined();
  });

  it("fails when the tail has no id, rather than passing on a message without one", async () => {
    await expect(endOf('{"result":{}', ',"x":1}')).rejects.toThrow("without an id");
  });

  it("refuses the id of another call, at the head at once and at the tail before its end is passed on [crossed-never]", async () => {
    const text = `{"jsonrpc":"2.0","id":42,"result":${body}}`;
    expect(largeReply(Buffer.from(text.slice(0, 200)), Readable.from([]), 43)).toBe("other-id");
    await expect(endOf(`{"result":${body}`, ',"jsonrpc":"2.0","id":42}')).rejects.toThrow("the id of another call");
  });

  async function endOf(head: string, rest: string): Promise<void> {
    const reply = largeReply(Buffer.from(head), Readable.from([Buffer.from(rest)]), 1);
    if (reply === undefined || reply === "other-id") throw new Error("It is none.");
    let passed = "";
    for await (const chunk of reply.open("1")) passed += String(chunk);
    expect(passed).not.toContain("}}");
  }
});
