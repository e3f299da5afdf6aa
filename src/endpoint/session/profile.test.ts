import { describe, expect, it } from "vitest";
import { LastProfile, profileOf } from "./profile.js";

describe("a profile", () => {
  it("is one for all who declared the same, however they wrote it [told-truly]", () => {
    const one = profileOf({ roots: { listChanged: true }, sampling: {} });
    expect(one?.capabilities).toEqual({ roots: { listChanged: true }, sampling: {} });
    expect(profileOf({ sampling: {}, roots: { listChanged: true } })).toBe(one);
    expect(profileOf({ sampling: {}, roots: {} })).not.toBe(one);
  });

  it("of a modern agent follows what its requests declare", () => {
    const last = new LastProfile();
    const one = last.of({ elicitation: { form: {} }, experimental: { a: [1, { b: null }] } });
    expect(last.of({ experimental: { a: [1, { b: null }] }, elicitation: { form: {} } })).toBe(one);
    for (const other of [
      {},
      { elicitation: { form: {} } },
      { elicitation: { form: {} }, experimental: { a: [1, { b: null }, 2] } },
      { elicitation: { form: {} }, experimental: { a: [1, { c: null }] } },
      { elicitation: {}, experimental: { a: [1, { b: null }] } },
    ]) {
      expect(last.of(other)).not.toBe(one);
      expect(last.of(other)).toBe(profileOf(other));
    }
    expect(last.of({ elicitation: { form: {} }, experimental: { a: [1, { b: null }] } })).toBe(one);
  });

  it("of which there are too many is none, as is one that cannot be compared [bounded]", () => {
    const held = Array.from({ length: 70 }, (_, at) => profileOf({ experimental: { [`many${at}`]: {} } }));
    expect(held.filter((one) => one === undefined).length).toBeGreaterThan(0);
    expect(held[0]).toBeDefined();
    expect(profileOf({ experimental: { "\ud800": {} } })).toBeUndefined();
  });
});
