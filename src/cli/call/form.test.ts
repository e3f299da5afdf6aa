// The fields of an elicitation, and what typed lines mean for them.

import { describe, expect, it } from "vitest";
import { explanation, type Field, fieldsOf, promptOf, readTyped } from "./form.js";

function field(schema: object, isRequired = true): Field {
  const [one] = fieldsOf({ properties: { it: schema }, required: isRequired ? ["it"] : [] });
  if (one === undefined) throw new Error("There is no field.");
  return one;
}

const typedAs = (schema: object, line: string) => {
  const typed = readTyped(field(schema), line);
  return typed.kind === "value" ? typed.value : typed.kind;
};

describe("a field is asked for [call-is-live]", () => {
  it.each([
    [{ type: "string", title: "Name" }, "Name: "],
    [{ type: "string", format: "email" }, "it (email): "],
    [{ type: "string", minLength: 2, maxLength: 5 }, "it (2 to 5 characters): "],
    [{ type: "integer", title: "Age", minimum: 0, default: 30 }, "Age (integer, at least 0) [30]: "],
    [{ type: "number", maximum: 1.5 }, "it (number, at most 1.5): "],
    [{ type: "boolean", default: false }, "it (yes or no) [no]: "],
    [{ type: "string", enum: ["a", "b"] }, "it (one of them): "],
    [
      { type: "array", items: { enum: ["a", "b"] }, minItems: 1, default: ["a"] },
      "it (with commas between, at least 1 of them) [a]: ",
    ],
    [{ type: "object" }, "it (as JSON): "],
    [{ type: "string", title: "\u001b[31mred\nline" }, "\\u{001B}[31mred line: "],
  ])("%j", (schema, prompt) => {
    expect(promptOf(field(schema))).toBe(prompt);
  });

  it("and one that is not required says so", () => {
    expect(promptOf(field({ type: "string" }, false))).toBe("it (may be left empty): ");
  });

  it("with what it is about and what can be chosen, in every form that enums have", () => {
    const named = { enum: ["r", "g"], enumNames: ["Red", "Green"], description: "A colour" };
    expect(explanation(field(named))).toEqual(["A colour", "  1) Red (r)", "  2) Green (g)"]);
    const titled = { oneOf: [{ const: "r", title: "Red" }, { const: "g" }] };
    expect(explanation(field(titled))).toEqual(["  1) Red (r)", "  2) g"]);
    const several = { type: "array", items: { anyOf: [{ const: "r", title: "Red" }] } };
    expect(explanation(field(several))).toEqual(["  1) Red (r)"]);
  });

  it("and of a thousand choices only some are shown [bounded]", () => {
    const many = { enum: Array.from({ length: 1000 }, (_, at) => `v${at}`) };
    expect(explanation(field(many)).at(-1)).toBe("  … and 960 more");
    expect(typedAs(many, "v999")).toBe("v999");
  });
});

describe("a typed line is checked [call-is-live]", () => {
  it.each([
    [{ type: "string" }, " as typed ", " as typed "],
    [{ type: "string", maxLength: 2 }, "🙂🙂", "🙂🙂"],
    [{ type: "string", maxLength: 2 }, "abc", "wrong"],
    [{ type: "string", minLength: 2 }, "a", "wrong"],
    [{ type: "string", format: "email" }, "ada@example.com", "ada@example.com"],
    [{ type: "string", format: "email" }, "ada", "wrong"],
    [{ type: "string", format: "uri" }, "https://example.com", "https://example.com"],
    [{ type: "string", format: "uri" }, "no address", "wrong"],
    [{ type: "string", format: "date" }, "2026-02-28", "2026-02-28"],
    [{ type: "string", format: "date" }, "2026-02-30", "wrong"],
    [{ type: "string", format: "date-time" }, "2026-02-28T12:00:00Z", "2026-02-28T12:00:00Z"],
    [{ type: "string", format: "date-time" }, "noon", "wrong"],
    [{ type: "string", format: "of-tomorrow" }, "anything", "anything"],
    [{ type: "number" }, "1.5", 1.5],
    [{ type: "number" }, "much", "wrong"],
    [{ type: "integer" }, "1.5", "wrong"],
    [{ type: "integer", minimum: 2, maximum: 3 }, "1", "wrong"],
    [{ type: "integer", minimum: 2, maximum: 3 }, "4", "wrong"],
    [{ type: "integer", minimum: 2, maximum: 3 }, "3", 3],
    [{ type: "boolean" }, "Y", true],
    [{ type: "boolean" }, "no", false],
    [{ type: "boolean" }, "maybe", "wrong"],
    [{ enum: ["red", "green"] }, "green", "green"],
    [{ enum: ["red", "green"] }, "2", "green"],
    [{ enum: ["2", "1"] }, "2", "2"],
    [{ enum: ["red"] }, "3", "wrong"],
    [{ enum: ["r"], enumNames: ["Red"] }, "red", "r"],
    [{ type: "array", items: { enum: ["a", "b", "c"] } }, "a, 3, a", ["a", "c"]],
    [{ type: "array", items: { enum: ["a", "b"] }, maxItems: 1 }, "a,b", "wrong"],
    [{ type: "array", items: { enum: ["a", "b"] }, minItems: 2 }, "a", "wrong"],
    [{ type: "array", items: { enum: ["a"] } }, "x", "wrong"],
    [{ type: "object" }, '{"a":1}', { a: 1 }],
    [{ type: "object" }, "{", "wrong"],
  ])("%j takes %j for %j", (schema, line, value) => {
    expect(typedAs(schema, line)).toEqual(value);
  });

  it("and an empty one is the default, nothing, or missing", () => {
    expect(readTyped(field({ type: "integer", default: 3 }), "")).toEqual({ kind: "value", value: 3 });
    expect(readTyped(field({ type: "integer", default: 3 }, false), "  ")).toEqual({ kind: "value", value: 3 });
    expect(readTyped(field({ type: "string" }, false), "")).toEqual({ kind: "absent" });
    expect(readTyped(field({ type: "string" }), "")).toEqual({ kind: "missing" });
  });

  it("and a pattern, however slow, is the server's to apply", () => {
    expect(typedAs({ type: "string", pattern: "^(a+)+$" }, `${"a".repeat(40)}!`)).toBe(`${"a".repeat(40)}!`);
  });
});

it("what is no schema has no fields", () => {
  expect(fieldsOf(undefined)).toEqual([]);
  expect(fieldsOf({ properties: [] })).toEqual([]);
  expect(fieldsOf({ properties: { a: 1 } })).toMatchObject([{ name: "a", kind: "text", isRequired: false }]);
});
