// Forms: what a value of the config may be, as plain data with the types that follow from it, and how a value is read
// by its form: what does not fit is reported in words, with the nearest valid one. The JSON Schema for editors is made
// in json-schema.ts. A schema library did the same, and loading it took longer than the rest of a start.

import { nearest } from "../runtime/nearest.js";
import { looksRandom, SECRET_NAME } from "../runtime/redact/ordinary.js";
import { isObject } from "../runtime/words/json-object.js";
import type { KeyPath, Report } from "./mistakes.js";

export type Scalar = "string" | "number" | "boolean" | "null";

/** What another client has under the key of a word of ours. */
type OtherShape = "boolean" | "object";

export type Shape =
  | { readonly kind: "text"; readonly min: number; readonly max: number }
  | { readonly kind: "whole"; readonly min: number; readonly max: number }
  | { readonly kind: "flag" }
  | { readonly kind: "flagOr"; readonly of: AnyForm }
  /** What is no object is read by `first`. */
  | { readonly kind: "either"; readonly first: AnyForm; readonly of: AnyForm }
  | { readonly kind: "anyObject" }
  | { readonly kind: "word"; readonly words: readonly string[]; readonly or: OtherShape | undefined }
  | { readonly kind: "scalar"; readonly types: readonly Scalar[] }
  | { readonly kind: "list"; readonly of: AnyForm }
  | { readonly kind: "record"; readonly of: AnyForm }
  | { readonly kind: "object"; readonly fields: Fields; readonly strict: boolean; readonly id: string | undefined };

export interface Form<Out, In = Out> {
  readonly shape: Shape;
  /** What the key means, for editors and docs. */
  readonly meaning: string | undefined;
  readonly isOptional: boolean;
  /** What stands in for an absent value, and is read as if it were there. */
  readonly fallback: unknown;
  /** It is never there, and only carries the types. */
  readonly types?: { readonly out: Out; readonly in: In };
}

export type AnyForm = Form<unknown, unknown>;
export type Fields = Readonly<Record<string, AnyForm>>;

export type OutOf<F> = F extends Form<infer Out, infer _In> ? Out : never;
export type InOf<F> = F extends Form<infer _Out, infer In> ? In : never;

type Flat<T> = { [K in keyof T]: T[K] };
type UndefinedKeys<T> = { [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T];
type Loosened<T> = Flat<{ [K in Exclude<keyof T, UndefinedKeys<T>>]: T[K] } & { [K in UndefinedKeys<T>]?: T[K] }>;
type ObjectOut<F extends Fields> = Loosened<{ [K in keyof F]: OutOf<F[K]> }>;
type ObjectIn<F extends Fields> = Loosened<{ [K in keyof F]: InOf<F[K]> }>;

interface ScalarTypes {
  readonly string: string;
  readonly number: number;
  readonly boolean: boolean;
  readonly null: null;
}

function form<Out, In = Out>(shape: Shape): Form<Out, In> {
  return { shape, meaning: undefined, isOptional: false, fallback: undefined };
}

export function text({ min = 0, max = Number.POSITIVE_INFINITY } = {}): Form<string> {
  return form({ kind: "text", min, max });
}

/** Beyond the safe integers two numbers of a file could be one. */
export function whole({ min, max = Number.MAX_SAFE_INTEGER }: { min: number; max?: number }): Form<number> {
  return form({ kind: "whole", min, max });
}

export function flag(): Form<boolean> {
  return form({ kind: "flag" });
}

/** A switch, or an object that says more than that it is on. */
export function flagOr<Out, In>(of: Form<Out, In>): Form<Out | boolean, In | boolean> {
  return form({ kind: "flagOr", of });
}

/** A word or a text that says all, or an object that says more. */
export function either<Out, In, ObjectOut, ObjectIn>(
  first: Form<Out, In>,
  of: Form<ObjectOut, ObjectIn>,
): Form<Out | ObjectOut, In | ObjectIn> {
  return form({ kind: "either", first, of });
}

/** An object that is passed on as it is, and not read here. */
export function anyObject(): Form<Readonly<Record<string, unknown>>> {
  return form({ kind: "anyObject" });
}

export function word<const W extends string>(words: readonly W[]): Form<W> {
  return form({ kind: "word", words, or: undefined });
}

/** For a key of ours that another client has as a switch: its value is let pass, and mistakes are told of our words. */
export function wordOrFlag<const W extends string>(words: readonly W[]): Form<W | boolean> {
  return form({ kind: "word", words, or: "boolean" });
}

/** The same for a key that another client has as an object. */
export function wordOrObject<const W extends string>(words: readonly W[]): Form<W | Readonly<Record<string, unknown>>> {
  return form({ kind: "word", words, or: "object" });
}

export function scalar<const S extends Scalar>(...types: readonly S[]): Form<ScalarTypes[S]> {
  return form({ kind: "scalar", types });
}

export function list<Out, In>(of: Form<Out, In>): Form<Out[], In[]> {
  return form({ kind: "list", of });
}

export function record<Out, In>(of: Form<Out, In>): Form<Record<string, Out>, Record<string, In>> {
  return form({ kind: "record", of });
}

/** Ours alone: an unknown key is a mistake. `id` names it where the JSON Schema refers to it. */
export function strict<F extends Fields>(fields: F, id?: string): Form<ObjectOut<F>, ObjectIn<F>> & { fields: F } {
  return { ...form<ObjectOut<F>, ObjectIn<F>>({ kind: "object", fields, strict: true, id }), fields };
}

/** Shared with other clients: in a file, unknown keys are not judged here. In a program's own text they are mistakes. */
export function loose<F extends Fields>(fields: F, id?: string): Form<ObjectOut<F>, ObjectIn<F>> & { fields: F } {
  return { ...form({ kind: "object", fields, strict: false, id }), fields };
}

export function required<Out, In>(given: Form<Out, In>, meaning: string): Form<Out, In> {
  return { ...given, meaning };
}

export function optional<Out, In>(given: Form<Out, In>, meaning: string): Form<Out | undefined, In | undefined> {
  return { ...given, meaning, isOptional: true } as Form<Out | undefined, In | undefined>;
}

export function defaulted<Out, In>(
  given: Form<Out, In>,
  fallback: NoInfer<In>,
  meaning: string,
): Form<Out, In | undefined> {
  return { ...given, meaning, isOptional: true, fallback } as Form<Out, In | undefined>;
}

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
    case "flagOr":
      if (typeof value === "boolean") return value;
      return isObject(value)
        ? readValue(shape.of, value, path, report)
        : misfit(mismatch("true, false or an object", value));
    case "either":
      return readValue(isObject(value) ? shape.of : shape.first, value, path, report);
    case "anyObject":
      return isObject(value) ? value : misfit(mismatch("an object", value));
    case "word": {
      if (shape.or === "boolean" && typeof value === "boolean") return value;
      if (shape.or === "object" && isObject(value)) return value;
      if (typeof value !== "string") return misfit(mismatch(oneOf(shape.words), value));
      if (shape.words.includes(value)) return value;
      // A mistake is logged, and shown to others than who wrote it: where a key may stand, it is not repeated.
      const found = mayBeKey(path.at(-1), value) ? "another text" : JSON.stringify(value);
      const message = `expected ${oneOf(shape.words)}, found ${found}`;
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

function mayBeKey(name: string | number | undefined, value: string): boolean {
  return SECRET_NAME.test(String(name)) || looksRandom(value);
}

function didYouMean(found: string, words: readonly string[]): string | undefined {
  const near = nearest(found, words);
  return near === undefined ? undefined : `did you mean "${near}"?`;
}

export function mismatch(expected: string, found: unknown): string {
  return found === undefined ? `missing: expected ${expected}` : `expected ${expected}, found ${typeText(found)}`;
}

/** `"a"`, `"a" or "b"`, `"a", "b" or "c"`. */
function oneOf(values: readonly string[]): string {
  const quoted = values.map((value) => JSON.stringify(value));
  const last = quoted.at(-1) ?? "";
  return quoted.length < 2 ? last : `${quoted.slice(0, -1).join(", ")} or ${last}`;
}

function typeText(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") return `the number ${value}`;
  return "a string";
}
