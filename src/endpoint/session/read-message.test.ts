import { describe, expect, it } from "vitest";
import { hasMoreMembers } from "./read-message.js";

const object = (count: number) => `{${Array.from({ length: count }, (_, n) => `"key ${n}":"a:b\\":${n}"`).join(",")}}`;

describe("hasMoreMembers", () => {
  it("counts members of all objects, and no colon in a string", () => {
    expect(hasMoreMembers(object(10), 10)).toBe(false);
    expect(hasMoreMembers(object(11), 10)).toBe(true);
    expect(hasMoreMembers(`[${object(6)},${object(5)}]`, 10)).toBe(true);
    expect(hasMoreMembers(`[${object(5)},${object(5)}]`, 10)).toBe(false);
    expect(hasMoreMembers(JSON.stringify(":".repeat(1000)), 10)).toBe(false);
  });

  it("ends on what is no JSON", () => {
    for (const text of ['"', '{"a":"', '"\\'.repeat(50), "{".repeat(100)]) expect(hasMoreMembers(text, 1)).toBe(false);
  });
});
