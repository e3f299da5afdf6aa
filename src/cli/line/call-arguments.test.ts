import { describe, expect, it } from "vitest";
import { toArguments } from "./call-arguments.js";

const schema = {
  type: "object",
  properties: {
    text: { type: "string" },
    n: { type: "number" },
    on: { type: "boolean" },
    list: { type: "array" },
    either: { type: ["string", "null"] },
    mode: { enum: ["1", "2"] },
  },
};

describe("--arg", () => {
  it("takes the type of the tool's schema", () => {
    const pairs = ["text=42", "n=42", "on=true", "list=[1,2]", "either=7", "mode=1"];
    expect(toArguments(undefined, pairs, schema)).toEqual({
      text: "42",
      n: 42,
      on: true,
      list: [1, 2],
      either: "7",
      mode: "1",
    });
  });

  it("is JSON where it can be when there is no schema, and text otherwise", () => {
    expect(toArguments(undefined, ["a=1", "b=x y", "c=a=b", "d="], undefined)).toEqual({
      a: 1,
      b: "x y",
      c: "a=b",
      d: "",
    });
  });

  it("goes over the JSON that was given", () => {
    expect(toArguments('{"text":"a","n":1}', ["n=2"], schema)).toEqual({ text: "a", n: 2 });
  });

  it("says which one cannot be read", () => {
    expect(() => toArguments(undefined, ["n=two"], schema)).toThrow("--arg n: expected number, as JSON.");
    expect(() => toArguments(undefined, ["novalue"], schema)).toThrow("expected key=value");
  });

  it("sets a key called __proto__ as an argument, not as the prototype", () => {
    const made = toArguments(undefined, ['__proto__={"x":1}'], undefined);
    expect(Object.keys(made)).toEqual(["__proto__"]);
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
  });
});

describe("JSON", () => {
  it("must be an object", () => {
    expect(() => toArguments("[1]", [], undefined)).toThrow("a JSON object");
    expect(() => toArguments("{a:1}", [], undefined)).toThrow("no JSON");
    expect(toArguments(" \n", [], undefined)).toEqual({});
  });
});
