import { describe, expect, it } from "vitest";
import { randomId, randomWord } from "./random-id.js";

describe("a random id", () => {
  it("is drawn again where a command line would read it as an option", () => {
    // In base64url 0xf8 begins with "-".
    const drawn = [
      [0xf8, 1, 2],
      [0xfb, 1, 2],
      [0, 1, 2],
    ].map((bytes) => Buffer.from(bytes).toString("base64url"));
    expect(randomId(3, () => drawn.shift() ?? "")).toBe("AAEC");
    expect(drawn).toEqual([]);
  });

  it("has as many bytes as asked for", () => {
    for (let i = 0; i < 2_000; i++) expect(randomId(16)).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{21}$/);
  });

  it("is another one each time, also where more are asked for than are drawn at once", () => {
    const words = [3, 16, 32, 4_000, 5_000].flatMap((bytes) => Array.from({ length: 600 }, () => randomWord(bytes)));
    expect(words.map(({ length }) => length).slice(-1)).toEqual([Math.ceil((5_000 * 4) / 3)]);
    // Of 600 words of 3 bytes two may meet.
    expect(new Set(words).size).toBeGreaterThan(5 * 600 - 10);
    expect(new Set(words.slice(600)).size).toBe(4 * 600);
    for (const word of words) expect(word).not.toMatch(/^A{4,}$/);
  });
});
