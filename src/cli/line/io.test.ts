import { PassThrough } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { CHARACTER } from "../../../test/fixtures/characters.js";
import { type Io, note, shown } from "./io.js";

/** What a terminal obeys, or an eye overlooks; line breaks and tabs are neither. */
const HIDDEN = /(?![\n\t])[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom(..."\u001b\u009b\u0007\r\n\t\u202e\u200b]8;[2Ja"),
    fc.string({ minLength: 1, maxLength: 1, unit: CHARACTER }),
  ),
});

describe("what a server wrote", () => {
  it("holds nothing hidden on a terminal, however deep it stands [terminal-inert]", () => {
    fc.assert(
      fc.property(text, (said) => {
        const value = shown({ [said]: [{ said }, said, 1, null, true] }, true);
        const all: string[] = [];
        JSON.stringify(value, (key, inner: unknown) => {
          all.push(key);
          if (typeof inner === "string") all.push(inner);
          return inner;
        });
        for (const one of all) expect(one).not.toMatch(HIDDEN);
      }),
      { numRuns: histories(2_000) },
    );
  });

  it("is untouched where it is piped", () => {
    const value = { said: "a\u001b[31mb" };
    expect(shown(value, false)).toBe(value);
  });

  it("keeps its lines, and shows what was hidden", () => {
    expect(shown("one\r\ntwo\tx\u001b[2J\u202e", true)).toBe("one\ntwo\tx\\u{001B}[2J\\u{202E}");
  });
});

it.each([
  [true, "a\\u{001B}[2J\n"],
  [false, "a\u001b[2J\n"],
])("a note on stderr, terminal: %s", (isErrTTY, written) => {
  const stderr = new PassThrough();
  note({ stderr, isErrTTY } as unknown as Io, "a\u001b[2J");
  expect(stderr.read()?.toString()).toBe(written);
});
