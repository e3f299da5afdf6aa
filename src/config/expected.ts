// Reads values by their forms, and says in words what does not fit: what was expected, what was found, and the nearest
// valid word.

import { nearest } from "../runtime/nearest.js";
import type { AnyForm, Fields, OutOf, Scalar, Shape } from "./form.js";
import { type KeyPath, oneOf } from "./mistakes.js";
import type { Report } from "./report.js";

/**
 * Reads each key of an object on its own, so that one mistake does not hide the others. Keys that do not fit are
 * absent from the result, and their reasons in the report.
 */
export function readFields<F extends Fields>(
  fields: F,
  value: Readonly<Record<string, unknown>>,
  path: KeyPath,
  report: Report,
): { readonly [K in keyof F]?: OutOf<F[K]> } {
  const read: Record<string, unknown> = {};
  for (const [key, form] of Object.entries(fields)) {
    const found = readValue(form, value[key], [...path, key], report);
    if (found !== MISFIT) read[key] = found;
  }
  return read as { readonly [K in keyof F]?: OutOf<F[K]> };
}

/** In place of a value that did not fit; the report has the reason. */
const MISFIT = Symbol("misfit");

function readValue(form: AnyForm, given: unknown, path: KeyPath, report: Report): unknown {
  if (given === undefined && form.isOptional && form.fallback === undefined) return undefined;
  const value = given === undefined ? form.fallback : given;
  const misfit = (message: string, hint?: string): typeof MISFIT => {
    report.mistake(path, message, { hint });
    return MISFIT;
  };
  const { shape } = form;
  switch (shape.kind) {
    case "text":
      if (typeof value !== "string") return misfit(mismatch("a string", value));
      if (value.length < shape.min) return misfit("expected a text that is not empty");
      return value.length > shape.max ? misfit(`expected at most ${shape.max} characters`) : value;
    case "whole":
      if (typeof value !== "number" || !Number.isFinite(value)) return misfit(mismatch("a number", value));
      if (!Number.isInteger(value)) return misfit(mismatch("a whole number", value));
      if (value < shape.min) return misfit(`expected a number of at least ${shape.min}`);
      return value > shape.max ? misfit(`expected a number of at most ${shape.max}`) : value;
    case "flag":
      return typeof value === "boolean" ? value : misfit(mismatch("true or false", value));
    case "word": {
      if (shape.orFlag && typeof value === "boolean") return value;
      if (typeof value !== "string") return misfit(mismatch(oneOf(shape.words), value));
      if (shape.words.includes(value)) return value;
      const message = `expected ${oneOf(shape.words)}, found ${JSON.stringify(value)}`;
      return misfit(message, didYouMean(value, shape.words));
    }
    case "scalar": {
      const texts = shape.types.map((type) => SCALAR_WORDS[type]).join(", ");
      return isScalar(value, shape.types) ? value : misfit(mismatch(texts.replace(/, ([^,]*)$/, " or $1"), value));
    }
    case "list":
      return Array.isArray(value) ? readList(shape.of, value, path, report) : misfit(mismatch("a list", value));
    case "record":
      return isObject(value) ? readRecord(shape.of, value, path, report) : misfit(mismatch("an object", value));
    case "object":
      return isObject(value) ? readObject(shape, value, path, report) : misfit(mismatch("an object", value));
  }
}

function readList(of: AnyForm, values: readonly unknown[], path: KeyPath, report: Report): unknown {
  // Array.from visits holes too, which can only be in a config that was never a file.
  const read = Array.from(values, (value, index) => readValue(of, value, [...path, index], report));
  return read.includes(MISFIT) ? MISFIT : read;
}

function readRecord(of: AnyForm, value: Readonly<Record<string, unknown>>, path: KeyPath, report: Report): unknown {
  const read: Record<string, unknown> = {};
  let fits = true;
  for (const [key, entry] of Object.entries(value)) {
    // As a key of a plain object it would be the prototype's; in a file it is a mistake already.
    if (key === "__proto__") continue;
    const found = readValue(of, entry, [...path, key], report);
    if (found === MISFIT) fits = false;
    else read[key] = found;
  }
  return fits ? read : MISFIT;
}

function readObject(
  { fields, strict }: Extract<Shape, { kind: "object" }>,
  value: Readonly<Record<string, unknown>>,
  path: KeyPath,
  report: Report,
): unknown {
  const read = readFields(fields, value, path, report);
  let fits = Object.keys(fields).every((key) => Object.hasOwn(read, key));
  const known = Object.keys(fields);
  for (const key of strict ? Object.keys(value) : []) {
    if (Object.hasOwn(fields, key)) continue;
    fits = false;
    const hint = didYouMean(key, known);
    report.mistake([...path, key], `unknown key: expected ${oneOf(known)}`, { hint, onKey: true });
  }
  return fits ? read : MISFIT;
}

const SCALAR_WORDS: Readonly<Record<Scalar, string>> = {
  string: "a string",
  number: "a number",
  boolean: "a boolean",
  null: "null",
};

function isScalar(value: unknown, types: readonly Scalar[]): boolean {
  if (typeof value === "number" && !Number.isFinite(value)) return false;
  const type = value === null ? "null" : typeof value;
  return types.some((one) => one === type);
}

function didYouMean(found: string, words: readonly string[]): string | undefined {
  const near = nearest(found, words);
  return near === undefined ? undefined : `did you mean "${near}"?`;
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

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
