// What is found and replaced in a text, against what JSON.parse makes of it.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories, quicker } from "../../test/faults/length.js";
import { CHARACTER } from "../../test/fixtures/characters.js";
import { Fault } from "./errors.js";
import type { JsonObject } from "./jsonrpc.js";
import { locate, parseMessage, rewrite, type Scans } from "./message.js";
import { deeperThan, scanElements, scanMembers, skipValue, splice } from "./scan.js";

/** Each builds its text out of hundreds of choices. */
const RUNS = { numRuns: quicker(100, 30) };
const SPACE = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
const KEY = fc.oneof(
  fc.string({ unit: CHARACTER }),
  fc.constantFrom("id", "name", "params", "__proto__", "constructor", 'a"b', "a\\", "\u2028", "\ud800", ""),
);

/** JSON text as nobody's serialiser writes it: white space anywhere, characters escaped at random. */
const untidy = (value: unknown): fc.Arbitrary<string> => {
  if (typeof value === "string") return escaped(value);
  if (Array.isArray(value)) {
    return fc.tuple(...value.map(untidy), SPACE).map((parts) => {
      const space = parts.pop() ?? "";
      return `[${space}${parts.join(`${space},${space}`)}${space}]`;
    });
  }
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(([key, of]) => fc.tuple(escaped(key), untidy(of)));
    return fc
      .tuple(fc.tuple(...members), SPACE, SPACE)
      .map(([all, a, b]) => `{${a}${all.map(([key, of]) => `${key}${b}:${a}${of}`).join(`${b},${a}`)}${b}}`);
  }
  return fc.constant(JSON.stringify(value));
};

const escaped = (text: string): fc.Arbitrary<string> =>
  fc.array(fc.boolean(), { minLength: text.length, maxLength: text.length }).map((coded) => {
    const units = [...Array(text.length).keys()].map((i) =>
      coded[i] === true ? `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}` : text[i],
    );
    // What is not escaped must be what JSON allows to stand as it is.
    const plain = units.map((unit) => (unit?.length === 1 ? JSON.stringify(unit).slice(1, -1) : unit));
    return `"${plain.join("")}"`;
  });

const object = fc.dictionary(KEY, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 });

describe("scanning", () => {
  it("finds every member where JSON.parse finds it, however it is written", () => {
    fc.assert(
      fc.property(
        object.chain((value) => untidy(value)),
        (text) => {
          const value = JSON.parse(text) as JsonObject;
          const members = scanMembers(text, 0);
          expect(new Set(members.map(({ key }) => key))).toEqual(new Set(Object.keys(value)));
          for (const { key, start, end } of members) expect(JSON.parse(text.slice(start, end))).toEqual(value[key]);
        },
      ),
      RUNS,
    );
  });

  it("finds every element of an array, or the first few", () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue({ maxDepth: 2 })).chain((value) => fc.tuple(untidy(value), fc.nat(8))),
        ([text, max]) => {
          const values = JSON.parse(text) as unknown[];
          const parsed = scanElements(text, 0).map(({ start, end }) => JSON.parse(text.slice(start, end)) as unknown);
          expect(parsed).toEqual(values);
          expect(scanElements(text, 0, max)).toEqual(scanElements(text, 0).slice(0, max));
        },
      ),
      RUNS,
    );
  });

  it("ends on any text, JSON or not, and never finds more than there is", () => {
    const junk = fc.stringMatching(/^[[\]{}",:\\ a0-]{0,60}$/);
    fc.assert(
      fc.property(junk, (text) => {
        expect(skipValue(text, 0)).toBeLessThanOrEqual(text.length);
        for (const { start, end } of scanElements(text, 0)) expect(end).toBeGreaterThanOrEqual(start);
        deeperThan(text, 3);
      }),
      { numRuns: histories(2_000) },
    );
  });

  it("counts depth as it is, not brackets in strings", () => {
    expect(deeperThan('["[[[[[[", {"[{": "\\"[["}]', 2)).toBe(false);
    expect(deeperThan("[[[]]]", 2)).toBe(true);
    expect(deeperThan("[".repeat(100_000), 128)).toBe(true);
  });

  it("splices spans in whatever order they are given", () => {
    const edits = [
      { start: 4, end: 5, text: "E" },
      { start: 0, end: 1, text: "AA" },
      { start: 2, end: 2, text: "+" },
    ];
    expect(splice("abcdef", edits)).toBe("AAb+cdEf");
  });
});

const request = (params: string) => parseMessage(`{"jsonrpc":"2.0","id":1,"method":"m","params":${params}}`);

describe("rewriting", () => {
  it("changes the values at the paths and nothing else, not even white space", () => {
    const name = fc.string({ unit: CHARACTER });
    const params = fc.record({
      name,
      arguments: object,
      _meta: fc.dictionary(KEY, fc.jsonValue({ maxDepth: 1 }), { maxKeys: 4 }),
    });
    fc.assert(
      fc.property(
        params.chain((value) => fc.tuple(untidy(value), name)),
        ([text, own]) => {
          const message = request(text);
          const out = rewrite(message, [
            { path: ["params", "name"], json: JSON.stringify(own) },
            { path: ["id"], json: "77" },
            { path: ["params", "_meta", "progressToken"], json: "78" },
          ]);
          const expected = JSON.parse(message.text);
          expected.params.name = own;
          expected.id = 77;
          if (Object.hasOwn(expected.params._meta, "progressToken")) expected.params._meta.progressToken = 78;
          expect(JSON.parse(out)).toEqual(expected);
          // Undone, it is the text that came, byte for byte.
          const was = locate(message, ["params", "name"]);
          const now = locate(parseMessage(out), ["params", "name"]);
          const undone = rewrite(parseMessage(out), [
            { path: ["params", "name"], json: message.text.slice(was?.start, was?.end) },
            { path: ["id"], json: "1" },
          ]);
          expect(now).toBeDefined();
          if (!Object.hasOwn(expected.params._meta, "progressToken")) expect(undone).toBe(message.text);
        },
      ),
      RUNS,
    );
  });

  it("finds a key that is written with escapes, and leaves numbers that JavaScript cannot hold alone", () => {
    const message = request('{"n\\u0061me":"x","arguments":{"big":12345678901234567890.10}}');
    const out = rewrite(message, [{ path: ["params", "name"], json: '"y"' }]);
    expect(out).toBe(message.text.replace('"x"', '"y"'));
  });

  it("leaves absent paths absent, and looks into no value that is not an object", () => {
    for (const params of ["{}", '{"_meta":[1]}', '{"_meta":null}', '{"_meta":"{\\"progressToken\\":1}"}']) {
      const message = request(params);
      expect(rewrite(message, [{ path: ["params", "_meta", "progressToken"], json: "1" }])).toBe(message.text);
    }
  });

  it("scans what several paths share once", () => {
    const message = request('{"name":"x","_meta":{"progressToken":1}}');
    const scans: Scans = [];
    locate(message, ["params", "name"], scans);
    locate(message, ["params", "_meta", "progressToken"], scans);
    locate(message, ["params", "_meta", "other"], scans);
    // `params` was scanned with the message; what is in it by whoever came first.
    expect(scans).toHaveLength(1);
  });
});

describe("messages", () => {
  const refused = (text: string) => {
    try {
      parseMessage(text);
    } catch (error) {
      return error instanceof Fault ? error.code : String(error);
    }
    return "taken";
  };

  it("tells requests, notifications and responses apart", () => {
    expect(parseMessage('{"jsonrpc":"2.0","id":"a","method":"m"}')).toMatchObject({ kind: "request", id: "a" });
    expect(parseMessage('{"jsonrpc":"2.0","method":"m","params":{}}')).toMatchObject({ kind: "notification" });
    expect(parseMessage('{"jsonrpc":"2.0","id":1,"result":null}')).toMatchObject({ kind: "response", result: null });
    expect(parseMessage('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}')).toMatchObject({ id: null });
  });

  it.each([
    ["not JSON", "{"],
    ["no object", "[]"],
    ["no version", '{"id":1,"method":"m"}'],
    ["another version", '{"jsonrpc":"1.0","id":1,"method":"m"}'],
    ["a method that is no string", '{"jsonrpc":"2.0","id":1,"method":1}'],
    ["Method for method", '{"jsonrpc":"2.0","id":1,"Method":"m"}'],
    ["params that are a list", '{"jsonrpc":"2.0","id":1,"method":"m","params":[]}'],
    ["an id of null in a request", '{"jsonrpc":"2.0","id":null,"method":"m"}'],
    ["an id that is an object", '{"jsonrpc":"2.0","id":{},"method":"m"}'],
    ["a response without an id", '{"jsonrpc":"2.0","result":{}}'],
    ["a response without anything", '{"jsonrpc":"2.0","id":1}'],
    ["an error that is none", '{"jsonrpc":"2.0","id":1,"error":"x"}'],
    ["two ids", '{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}'],
    ["two methods, one escaped", '{"jsonrpc":"2.0","id":1,"method":"m","meth\\u006fd":"n"}'],
    ["more members than anybody needs", `{"jsonrpc":"2.0","id":1,"method":"m"${',"x":1'.repeat(300)}}`],
  ])("refuses %s", (_, text) => {
    expect(refused(text)).toBe("invalid");
  });

  it("refuses a member that stands twice on the way to what is looked for", () => {
    const twice = request('{"name":"good","n\\u0061me":"bad"}');
    expect(() => locate(twice, ["params", "name"])).toThrow(/Duplicate member "name" in "params"/);
    const deep = request('{"_meta":{"progressToken":1,"progressToken":2}}');
    expect(() => locate(deep, ["params", "_meta", "progressToken"])).toThrow(Fault);
  });

  it("treats __proto__ as a name like any other", () => {
    const message = request('{"__proto__":{"name":"polluted"},"_meta":{"__proto__":{"progressToken":9}}}');
    expect(locate(message, ["params", "name"])).toBeUndefined();
    expect(locate(message, ["params", "_meta", "progressToken"])).toBeUndefined();
    const at = locate(message, ["params", "__proto__", "name"]);
    expect(message.text.slice(at?.start, at?.end)).toBe('"polluted"');
    expect(({} as JsonObject)["name"]).toBeUndefined();
    expect(refused('{"__proto__":{"jsonrpc":"2.0","id":1,"method":"m"}}')).toBe("invalid");
  });
});
