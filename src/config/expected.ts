// Turns what zod found into words: what was expected, what was found, and the nearest valid word.

import type { z } from "zod";
import { type KeyPath, oneOf } from "./mistakes.js";
import { nearest } from "./nearest.js";
import type { Report } from "./report.js";
import { NAMED_OBJECTS, OWN_OBJECTS } from "./schema.js";

type Issue = z.core.$ZodIssue;

/**
 * Parses each key of an object on its own, so that one mistake does not hide the others. Keys that do not fit are
 * absent from the result, and their reasons in the report.
 */
export function parseShape<S extends Readonly<Record<string, z.ZodType>>>(
  shape: S,
  value: Readonly<Record<string, unknown>>,
  path: KeyPath,
  report: Report,
): { readonly [K in keyof S]?: z.output<S[K]> } {
  const parsed: Record<string, unknown> = {};
  for (const [key, schema] of Object.entries(shape)) {
    const result = schema.safeParse(value[key]);
    if (result.success) parsed[key] = result.data;
    else for (const issue of result.error.issues) reportIssue(issue, value[key], [...path, key], report);
  }
  return parsed as { readonly [K in keyof S]?: z.output<S[K]> };
}

function reportIssue(issue: Issue, part: unknown, base: KeyPath, report: Report): void {
  const inside = issue.path.filter((step) => typeof step !== "symbol");
  const path = [...base, ...inside];
  const found = valueAt(part, inside);
  switch (issue.code) {
    case "unrecognized_keys": {
      const known = knownKeysAt(path);
      for (const key of issue.keys) {
        const near = nearest(key, known);
        const hint = near === undefined ? undefined : `did you mean "${near}"?`;
        report.mistake([...path, key], `unknown key: expected ${oneOf(known)}`, { hint, onKey: true });
      }
      return;
    }
    case "invalid_value": {
      const words = issue.values.map(String);
      if (typeof found !== "string") return void report.mistake(path, mismatch(oneOf(words), found));
      const near = nearest(found, words);
      const hint = near === undefined ? undefined : `did you mean "${near}"?`;
      return void report.mistake(path, `expected ${oneOf(words)}, found ${JSON.stringify(found)}`, { hint });
    }
    case "invalid_type":
      return void report.mistake(path, mismatch(TYPE_WORDS[issue.expected] ?? issue.expected, found));
    case "invalid_union": {
      const choice = issue.errors.flat().find((inner) => inner.code === "invalid_value");
      if (choice !== undefined) return void reportIssue({ ...choice, path: issue.path }, part, base, report);
      const words = issue.errors.flat().map((inner) => (inner.code === "invalid_type" ? inner.expected : ""));
      const texts = [...new Set(words)]
        .map((word) => (word === "boolean" ? "a boolean" : (TYPE_WORDS[word] ?? word)))
        .filter((text) => text !== "");
      return void report.mistake(path, mismatch(texts.join(", ").replace(/, ([^,]*)$/, " or $1"), found));
    }
    case "too_small":
      if (issue.origin === "string") return void report.mistake(path, "expected a text that is not empty");
      return void report.mistake(path, `expected a number of at least ${issue.minimum}`);
    case "too_big":
      if (issue.origin === "string") return void report.mistake(path, `expected at most ${issue.maximum} characters`);
      return void report.mistake(path, `expected a number of at most ${issue.maximum}`);
    default:
      return void report.mistake(path, issue.message);
  }
}

const TYPE_WORDS: Record<string, string> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "an object",
  record: "an object",
  array: "a list",
  null: "null",
};

/** The valid keys of the object at that path: `limits` itself, or an entry of `roles` or `tools`. */
function knownKeysAt(path: KeyPath): readonly string[] {
  const [last, above] = [path.at(-1), path.at(-2)];
  const owner = NAMED_OBJECTS.has(String(above)) ? String(above) : String(last);
  return Object.hasOwn(OWN_OBJECTS, owner) ? Object.keys(OWN_OBJECTS[owner as keyof typeof OWN_OBJECTS]) : [];
}

export function mismatch(expected: string, found: unknown): string {
  return found === undefined ? `missing: expected ${expected}` : `expected ${expected}, found ${typeText(found)}`;
}

function typeText(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") return `the number ${value}`;
  return "a string";
}

function valueAt(value: unknown, path: KeyPath): unknown {
  let at = value;
  for (const step of path) {
    at = typeof at === "object" && at !== null ? (at as Record<string | number, unknown>)[step] : undefined;
  }
  return at;
}
