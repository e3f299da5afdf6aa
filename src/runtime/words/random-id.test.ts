import { describe, expect, it } from "vitest";
import { randomId } from "./random-id.js";

describe("a random id", () => {
  it("is drawn again where a command line would read it as an option", () => {
    // In base64url 0xf8 begins with "-".
    const drawn = [Buffer.from([0xf8, 1, 2]), Buffer.from([0xfb, 1, 2]), Buffer.from([0, 1, 2])];
    expect(randomId(3, () => drawn.shift() ?? Buffer.alloc(0))).toBe("AAEC");
    expect(drawn).toEqual([]);
  });

  it("has as many bytes as asked for", () => {
    for (let i = 0; i < 2_000; i++) expect(randomId(16)).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{21}$/);
  });
});
