import { describe, expect, it } from "vitest";
import { checkArguments, exampleCall, parametersOf } from "./parameters.js";

const properties = {
  path: { type: "string", description: "Where it is." },
  depth: { type: "integer", minimum: 3 },
  order: { enum: ["up", "down"] },
  tags: { type: "array", items: { type: "string" } },
  size: { anyOf: [{ type: "number" }, { type: "null" }] },
};
const schema = { type: "object", properties, required: ["path", "depth"] };

describe("the parameters of a tool", () => {
  it("have a type that a person reads, also where the schema is unusual", () => {
    const types = (given: unknown) => parametersOf(given).map(({ name, type, required }) => [name, type, required]);
    expect(types(schema)).toEqual([
      ["path", "string", true],
      ["depth", "integer", true],
      ["order", '"up" | "down"', false],
      ["tags", "array of string", false],
      ["size", "number | null", false],
    ]);
    expect(types({ required: ["only"], properties: { constructor: true } })).toEqual([
      ["constructor", "any", false],
      ["only", "any", true],
    ]);
    for (const nothing of [undefined, null, [], "x", {}, { properties: 1, required: {} }]) {
      expect(parametersOf(nothing)).toEqual([]);
    }
  });

  it("give a call to paste, with what is needed and one word for each", () => {
    expect(exampleCall("files__find", schema)).toBe("call files__find --arg path=PATH --arg depth=3");
    const odd = { properties: { "it's": { default: "a b" } }, required: ["it's"] };
    expect(exampleCall("t", odd)).toBe(`call t --arg 'it'\\''s=a b'`);
  });
});

describe("arguments that were typed", () => {
  it("are refused where one is missing that the tool needs", () => {
    expect(() => checkArguments("find", { path: "/" }, schema)).toThrow("find needs depth (integer).");
    expect(checkArguments("find", { path: "/", depth: 1 }, schema)).toEqual([]);
  });

  it("are refused where the schema forbids them, else warned of with the nearest name", () => {
    const args = { path: "/", depth: 1, tag: [] };
    expect(() => checkArguments("find", args, { ...schema, additionalProperties: false })).toThrow(
      "find takes no argument tag.",
    );
    expect(checkArguments("find", args, schema)).toEqual(["find does not declare an argument tag. Did you mean tags?"]);
  });

  it("pass where the schema may declare them elsewhere, or says nothing", () => {
    const forbids = { ...schema, additionalProperties: false };
    const args = { path: "/", depth: 1, x_1: true };
    expect(checkArguments("find", args, { ...forbids, patternProperties: { "^x_": {} } })).toEqual([]);
    expect(checkArguments("find", args, { ...forbids, allOf: [{ properties: { x_1: {} } }] })).toEqual([]);
    expect(checkArguments("find", args, { type: "object" })).toEqual([]);
  });
});
