import fc from "fast-check";
import { parseTree } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { CHARACTER } from "../../test/fixtures/characters.js";
import { WholeReply } from "./arrived.js";
import { mayNameIdOrMethod } from "./bytes/scan-bytes.js";
import { flawOfLong, isAmbiguous, judgeShort, MemberCheck, Utf8Check } from "./check-reply.js";

/** How many fuzzed messages are judged; the full form is for `npm run faults`. */
const MESSAGES = histories(20_000, 300_000);

const HEAD = '{"jsonrpc":"2.0","id":12345,"result":';
/** In HEAD. */
const ID = { id: 12345, idStart: 22, idEnd: 27 };

const long = (text: string, cut?: number): string | undefined => {
  const bytes = Buffer.from(text);
  const pieces = cut === undefined ? [bytes] : [bytes.subarray(0, cut), bytes.subarray(cut)];
  return flawOfLong(pieces, ID);
};

const short = (text: string): string | undefined => {
  const bytes = Buffer.from(text);
  return judgeShort(bytes, bytes.toString("latin1")).flaw;
};

describe("a reply that names its id twice", () => {
  const again = [
    ',"id":6',
    ' , "id" : 6',
    ',"\\u0069d":6',
    ',"i\\u0064":6',
    ',"\\u0049D":6',
    ',"ID":6',
    ',"Id":"6"',
    ',"x":{"y":[1]},"id":null',
    ',"id":{"id":1}',
  ];

  it.each(again)("is refused with %s at its end, short and long [crossed-never]", (member) => {
    const filler = JSON.stringify({ content: [{ type: "text", text: "lorem ".repeat(2000) }] });
    expect(short(`${HEAD}{}${member}}`)).toMatch(/"id"/);
    expect(long(`${HEAD}${filler}${member}}`)).toMatch(/"id"/);
  });

  it("is refused wherever its pieces were cut [crossed-never]", () => {
    const text = `${HEAD}{"text":"abc"},"id":6}`;
    for (let cut = 1; cut < text.length; cut++) expect(long(text, cut), `cut at ${cut}`).toMatch(/"id"/);
    const escaped = `${HEAD}{"text":"abc"},"\\u0069\\u0064":6}`;
    for (let cut = 1; cut < escaped.length; cut++) expect(long(escaped, cut), `cut at ${cut}`).toMatch(/"id"/);
  });
});

describe("a reply with a method", () => {
  it.each([',"method":"ping"', ',"me\\u0074hod":"ping"', ',"METHOD":"x"', ',"\\u006dethod":1'])(
    "is refused with %s, short and long",
    (member) => {
      expect(short(`${HEAD}{}${member}}`)).toContain('"method"');
      expect(long(`${HEAD}{"a":"${"x".repeat(9000)}"}${member}}`)).toContain('"method"');
    },
  );
});

describe("a short reply", () => {
  it.each([
    ['{"jsonrpc":"2.0","id":1}', /one of "result" and "error"/],
    ['{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}', /one of/],
    ['{"jsonrpc":"2.0","id":1,"result":{},"result":{}}', /one of/],
    ['{"jsonrpc":"2.0","id":1,"result":"str"}', /no object/],
    ['{"jsonrpc":"2.0","id":1,"result":[]}', /no object/],
    ['{"jsonrpc":"2.0","id":1,"result":null}', /no object/],
    ['{"jsonrpc":"2.0","id":1,"error":"boom"}', /code and a message/],
    ['{"jsonrpc":"2.0","id":1,"error":null}', /code and a message/],
    ['{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"m"}}', /code and a message/],
    ['{"jsonrpc":"2.0","id":1,"result":{}', /no JSON/],
    ['{"jsonrpc":"2.0","id":1,"result":{}}}', /no JSON/],
  ])("is refused as %s", (text, why) => {
    expect(short(text)).toMatch(why);
  });

  it.each([
    '{"jsonrpc":"2.0","id":1,"result":{}}',
    '{"result":{"id":7,"method":"x","error":"y"},"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"m","data":{"id":2}}}',
    '{"jsonrpc":"2.0","id":1,"result":{"text":"say \\"id\\" or \\u0069d"},"_x":{"id":[1,{"id":2}]}}',
  ])("passes as %s", (text) => {
    expect(short(text)).toBeUndefined();
  });

  it("is refused where a byte of it is no UTF-8", () => {
    const bytes = Buffer.concat([Buffer.from(`${HEAD}{"a":"`), Buffer.from([0xff]), Buffer.from('"}}')]);
    expect(judgeShort(bytes, bytes.toString("latin1")).flaw).toMatch(/UTF-8/);
  });
});

describe("a long reply", () => {
  const rows = Array.from({ length: 400 }, (_, id) => ({ id, method: "get", note: 'an \\u0069d and an "id"' }));

  it("passes with ids and methods inside its values, as text and as rows", () => {
    expect(long(`${HEAD}${JSON.stringify({ structuredContent: { rows } })}}`)).toBeUndefined();
    const text = JSON.stringify(rows, undefined, 2);
    expect(long(`${HEAD}${JSON.stringify({ content: [{ type: "text", text }] })}}`)).toBeUndefined();
  });

  it("needs no walk for JSON inside a string", () => {
    const bytes = Buffer.from(JSON.stringify({ text: JSON.stringify(rows.map(({ id }) => ({ id, method: "get" }))) }));
    expect(mayNameIdOrMethod([bytes])).toBe(false);
  });

  it("is searched alike where it has few quotes and where it has many [crossed-never]", () => {
    const words = [
      '"',
      "\\",
      "d",
      "D",
      "id",
      "ID",
      '"id"',
      "method",
      '"method"',
      "u",
      "\\u0069",
      "\\u00",
      "\\n",
      "x ",
      "{",
    ];
    const many = "\\n".repeat(20);
    let named = 0;
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...words), { maxLength: 12 }), (parts) => {
        // No name may begin before it or end behind it: what stands there is not known, and a reason to look closer.
        const text = `........${parts.join("")}........`;
        const mayName = mayNameIdOrMethod([Buffer.from(text)]);
        if (mayName) named++;
        expect(mayNameIdOrMethod([Buffer.from(many + text)])).toBe(mayName);
        expect(mayNameIdOrMethod([Buffer.from(text + "x".repeat(40_000) + many)])).toBe(mayName);
      }),
      { numRuns: histories(2000) },
    );
    expect(named).toBeGreaterThan(100);
  });

  it.each(['"', "]", "}]", '},"id"', "} x"])("is refused where it ends in %j", (end) => {
    expect(long(`${HEAD}{"a":"${"x".repeat(9000)}"}${end}`)).toBeDefined();
  });

  it("is refused where a byte of it is no UTF-8, wherever its pieces were cut", () => {
    const good = Buffer.from(`${HEAD}{"a":"é€😀"}}`);
    const bad = Buffer.concat([good.subarray(0, -3), Buffer.from([0xf0, 0x9f]), good.subarray(-3)]);
    for (let cut = 0; cut <= good.length; cut++) {
      const pieces = (bytes: Buffer) => [bytes.subarray(0, cut), bytes.subarray(cut)];
      expect(flawOfLong(pieces(good), ID), `cut at ${cut}`).toBeUndefined();
      expect(flawOfLong(pieces(bad), ID), `cut at ${cut}`).toMatch(/UTF-8/);
    }
  });
});

it.each([
  [["jsonrpc", "method", "params"], false],
  [["jsonrpc", "id", "method", "params", "_vendor"], false],
  [["jsonrpc", "method", "params", "result"], true],
  [["jsonrpc", "id", "method", "Error"], true],
  [["jsonrpc", "id", "method", "ID"], true],
  [["jsonrpc", "method", "Method"], true],
])("a server's message with the members %j is ambiguous: %s", (keys, expected) => {
  expect(isAmbiguous(keys.map((key) => ({ key })))).toBe(expected);
});

describe("UTF-8 in pieces", () => {
  it("is judged as in one, whatever the pieces", () => {
    const bytes = fc.array(
      fc.oneof(
        fc.uint8Array({ maxLength: 4 }),
        fc.string({ unit: CHARACTER }).map((text) => Buffer.from(text)),
      ),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(bytes, (parts) => {
        const whole = Buffer.concat(parts);
        const check = new Utf8Check();
        const inPieces = parts.every((part) => check.push(Buffer.from(part))) && check.isWhole;
        let isText = true;
        try {
          new TextDecoder("utf-8", { fatal: true }).decode(whole);
        } catch {
          isText = false;
        }
        expect(inPieces).toBe(isText);
      }),
      { numRuns: histories(2000) },
    );
  });
});

/** What a reader that is strict and knows nothing of ours finds at the top level. */
function strictly(text: string): { names: string[] } | undefined {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  const tree = parseTree(text);
  if (tree?.type !== "object") return undefined;
  return { names: (tree.children ?? []).map(({ children }) => String(children?.[0]?.value)) };
}

/** Of a text that is JSON and has one result and no error. */
function isResultOfVersion(text: string): boolean {
  const { jsonrpc, result } = JSON.parse(text) as { jsonrpc: unknown; result: unknown };
  return jsonrpc === "2.0" && typeof result === "object" && result !== null && !Array.isArray(result);
}

const NAMES = ["id", "method", "result", "error", "jsonrpc", "x", "ID", "i", "d", "meta", "_d", "\\", '"', "é"];

/** A name as JSON, with some letters escaped. */
function spelt(random: () => number): string {
  const name = NAMES[Math.floor(random() * NAMES.length)] as string;
  let out = "";
  for (const letter of name) {
    const code = letter.charCodeAt(0).toString(16).padStart(4, "0");
    if (random() < 0.15) out += `\\u${random() < 0.5 ? code : code.toUpperCase()}`;
    else out += JSON.stringify(letter).slice(1, -1);
  }
  return `"${out}"`;
}

const space = (random: () => number) => (random() < 0.2 ? [" ", "\n", "\t", "\r\n"][Math.floor(random() * 4)] : "");

function value(random: () => number, depth: number): string {
  const kind = Math.floor(random() * (depth > 3 ? 4 : 6));
  if (kind === 0) return String(Math.floor(random() * 1e6));
  if (kind === 1) return ["null", "true", "-1.5e3"][Math.floor(random() * 3)] as string;
  if (kind < 4) return spelt(random);
  const count = Math.floor(random() * 4);
  const items = Array.from({ length: count }, () =>
    kind === 4 ? value(random, depth + 1) : `${spelt(random)}${space(random)}:${value(random, depth + 1)}`,
  );
  return kind === 4 ? `[${items.join(`,${space(random)}`)}]` : `{${items.join(`${space(random)},`)}}`;
}

function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

describe("fuzzed replies, against a strict reader", () => {
  it("pass only with one id, one answer at most of each kind and no method [crossed-never]", () => {
    const seed = Number(process.env["TOOLWAY_SEED"] ?? Date.now() % 1e9);
    const random = seeded(seed);
    const tally = { passed: 0, refused: 0, shortPassed: 0 };
    for (let i = 0; i < MESSAGES; i++) {
      const extra = Array.from(
        { length: Math.floor(random() * 4) },
        () => `${space(random)},${space(random)}${spelt(random)}${space(random)}:${space(random)}${value(random, 2)}`,
      );
      // Where quotes are many they are looked for in another way than where they are few.
      const filler = random() < 0.5 ? `[${'"a",'.repeat(20)}${value(random, 0)}]` : value(random, 0);
      const result = random() < 0.5 ? filler : `{${spelt(random)}:${filler}}`;
      let text = `${HEAD}${result}${extra.join("")}${space(random)}}`;
      if (random() < 0.1) text = text.slice(0, Math.floor(random() * text.length));
      else if (random() < 0.05) text += ["}", "{}", ',"id":1}', " x"][Math.floor(random() * 4)];
      const bytes = Buffer.from(text);
      const cuts = [random(), random()].map((share) => Math.floor(share * bytes.length)).sort((a, b) => a - b);
      const pieces = [bytes.subarray(0, cuts[0]), bytes.subarray(cuts[0], cuts[1]), bytes.subarray(cuts[1])];
      const strict = strictly(text);
      const folded = strict?.names.map((name) => name.toUpperCase()) ?? [];
      const count = (name: string) => folded.filter((one) => one === name).length;
      const flaw = flawOfLong(pieces, ID);
      const where = `seed ${seed}, message ${i}: ${text}`;
      if (strict !== undefined) {
        const isSafe = count("ID") === 1 && count("METHOD") === 0;
        // Where nothing names an id or a method, a second result is the reader's to judge.
        if (!isSafe) expect(flaw, where).toBeDefined();
        else if (count("RESULT") + count("ERROR") === 1) expect(flaw, where).toBeUndefined();
      }
      const check = new MemberCheck();
      for (const piece of pieces) check.push(piece);
      const isAnswer =
        strict !== undefined && count("ID") === 1 && count("METHOD") === 0 && count("RESULT") + count("ERROR") === 1;
      // A walk judges no value, so what is no JSON inside of one passes it; all else is exact.
      if (strict !== undefined) expect(check.flaw() === undefined, where).toBe(isAnswer);
      // Of a short one all is judged: what it is an answer with, too.
      const isShortAnswer = isAnswer && isResultOfVersion(text);
      expect(judgeShort(bytes, bytes.toString("latin1")).flaw === undefined, where).toBe(isShortAnswer);
      if (isShortAnswer) tally.shortPassed++;
      tally[flaw === undefined ? "passed" : "refused"]++;
    }
    expect(tally.shortPassed).toBeGreaterThan(MESSAGES / 20);
    expect(tally.passed).toBeGreaterThan(MESSAGES / 20);
    expect(tally.refused).toBeGreaterThan(MESSAGES / 20);
  });
});

it.each([
  [true, '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\\"isError\\": true"}]}}'],
  [false, '{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}'],
  [false, '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}'],
  [false, '{"jsonrpc":"2.0","id":1,"result":{},"more":{"isError":true}}'],
  [false, '{"jsonrpc":"2.0","id":1,"result":{"a":"\u00e9"}}'],
])(
  "a short reply is known to have succeeded only where nothing in it may say otherwise (%s): %s",
  (succeeded, text) => {
    // A character a byte, of which one is no UTF-8 by itself.
    const bytes = Buffer.from(text, "latin1");
    expect(judgeShort(bytes, text).succeeded).toBe(succeeded);
    const reply = new WholeReply(bytes, { idStart: 22, idEnd: 23 }, undefined, text, succeeded);
    expect(reply.succeeded).toBe(succeeded);
    // Nor a copy, which may have other bytes.
    expect({ ...reply, bytes: Buffer.from("{}") }).not.toHaveProperty("succeeded");
  },
);
