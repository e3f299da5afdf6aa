import { createHmac, randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { CHARACTER } from "../../../test/fixtures/characters.js";
import { Hmac } from "./hmac.js";

const TEXTS = ["", "x", '{"a":1}', "é€😀", "\ud800 alone", "x".repeat(4_096), "€".repeat(4_096), "😀".repeat(40_000)];

it.each([0, 1, 32, 63, 64, 65, 200])(
  "with a key of %d bytes it is Node's own HMAC, of any text and after any other",
  (bytes) => {
    const key = randomBytes(bytes);
    const hmac = new Hmac(key);
    const expected = (text: string) => createHmac("sha256", key).update(text).digest("base64url");
    for (const text of [...TEXTS, ...TEXTS.toReversed()]) expect(hmac.of(text)).toBe(expected(text));
    fc.assert(fc.property(fc.string({ unit: CHARACTER }), (text) => hmac.of(text) === expected(text)));
  },
);
