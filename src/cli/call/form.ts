// The form of an elicitation: its fields as the server's schema declares them, how each is asked for, and what a typed
// line means for it. No terminal here: answers.ts asks.

import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { visible } from "../../runtime/visible.js";

export interface Choice {
  readonly value: unknown;
  /** As the server calls it for people; the value itself where it does not. */
  readonly title: string;
}

export interface Field {
  readonly name: string;
  readonly title: string;
  readonly description: string | undefined;
  readonly kind: "text" | "number" | "integer" | "yes-no" | "one-of" | "some-of" | "json";
  readonly isRequired: boolean;
  /** Undefined where there is none. */
  readonly preset: unknown;
  /** Empty where anything may be typed. */
  readonly choices: readonly Choice[];
  readonly schema: JsonObject;
}

/** What a typed line is for a field. "absent": it is left out of the answer. */
export type Typed =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "absent" }
  | { readonly kind: "missing" }
  | { readonly kind: "wrong"; readonly why: string };

/** Whoever is asked to choose among more than these types a value, and is not shown them all. */
const MAX_SHOWN_CHOICES = 40;

/** A title or a value that is longer is no title; the rest of it would only push the question away. */
const MAX_LABEL_CHARS = 200;

export function fieldsOf(schema: unknown): Field[] {
  const properties = isObject(schema) && isObject(schema["properties"]) ? schema["properties"] : {};
  const required = isObject(schema) && Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(properties).map(([name, property]) => {
    const own = isObject(property) ? property : {};
    const { title, description } = own;
    const items = own["type"] === "array" && isObject(own["items"]) ? own["items"] : undefined;
    const choices = choicesOf(items ?? own);
    return {
      name,
      title: typeof title === "string" && title !== "" ? title : name,
      description: typeof description === "string" ? description : undefined,
      kind: kindOf(own, choices),
      isRequired: required.includes(name),
      preset: own["default"],
      choices,
      schema: own,
    };
  });
}

function kindOf({ type }: JsonObject, choices: readonly Choice[]): Field["kind"] {
  if (type === "array") return choices.length > 0 ? "some-of" : "json";
  if (choices.length > 0) return "one-of";
  if (type === "boolean") return "yes-no";
  if (type === "number" || type === "integer") return type;
  return type === "string" || type === undefined ? "text" : "json";
}

/** The forms that enums have had: `enum`, with `enumNames` beside it, and `oneOf` or `anyOf` with titles. */
function choicesOf(schema: JsonObject): Choice[] {
  const { enum: values, enumNames: names } = schema;
  if (Array.isArray(values)) {
    return values.map((value, at) => {
      const name: unknown = Array.isArray(names) ? names[at] : undefined;
      return { value, title: typeof name === "string" ? name : wordOf(value) };
    });
  }
  const titled = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(titled)) return [];
  return titled.flatMap((one) => {
    if (!isObject(one) || !("const" in one)) return [];
    const { const: value, title } = one;
    return [{ value, title: typeof title === "string" ? title : wordOf(value) }];
  });
}

/** The lines above a field's question: what it is about, and what can be chosen. */
export function explanation({ description, choices }: Field): string[] {
  const about = description === undefined ? [] : [label(description)];
  const shown = choices.slice(0, MAX_SHOWN_CHOICES).map(({ value, title }, at) => {
    const word = wordOf(value);
    return `  ${at + 1}) ${label(title)}${word === title ? "" : ` (${label(word)})`}`;
  });
  const rest = choices.length - shown.length;
  return [...about, ...shown, ...(rest > 0 ? [`  … and ${rest} more`] : [])];
}

/** The question itself: `Age (integer, 0 to 120) [30]: `. */
export function promptOf(field: Field): string {
  const hints = hintsOf(field);
  const what = hints.length === 0 ? "" : ` (${hints.join(", ")})`;
  const preset = field.preset === undefined ? "" : ` [${label(presetText(field))}]`;
  return `${label(field.title)}${what}${preset}: `;
}

function presetText({ kind, preset }: Field): string {
  if (kind === "yes-no") return preset === true ? "yes" : "no";
  return Array.isArray(preset) ? preset.map(wordOf).join(", ") : wordOf(preset);
}

function hintsOf({ kind, schema, isRequired }: Field): string[] {
  const { format, minimum, maximum, minLength, maxLength, minItems, maxItems } = schema;
  const hints: string[] = [];
  if (kind === "number" || kind === "integer") hints.push(kind, ...rangeText(minimum, maximum, ""));
  if (kind === "text") {
    if (typeof format === "string") hints.push(label(format));
    hints.push(...rangeText(minLength, maxLength, " characters"));
  }
  if (kind === "yes-no") hints.push("yes or no");
  if (kind === "one-of") hints.push("one of them");
  if (kind === "some-of") hints.push("with commas between", ...rangeText(minItems, maxItems, " of them"));
  if (kind === "json") hints.push("as JSON");
  if (!isRequired) hints.push("may be left empty");
  return hints;
}

function rangeText(low: unknown, high: unknown, unit: string): string[] {
  if (typeof low === "number" && typeof high === "number") return [`${low} to ${high}${unit}`];
  if (typeof low === "number") return [`at least ${low}${unit}`];
  return typeof high === "number" ? [`at most ${high}${unit}`] : [];
}

export function readTyped(field: Field, line: string): Typed {
  const text = line.trim();
  if (text === "") {
    if (field.preset !== undefined) return { kind: "value", value: field.preset };
    return field.isRequired ? { kind: "missing" } : { kind: "absent" };
  }
  switch (field.kind) {
    case "text":
      return textOf(line, field.schema);
    case "number":
    case "integer":
      return numberOf(text, field);
    case "yes-no":
      return yesOrNo(text);
    case "one-of":
      return oneOf(text, field.choices);
    case "some-of":
      return someOf(text, field);
    case "json":
      return jsonOf(text);
  }
}

/** A `pattern` is left to the server: one that was made to be slow would hold up the whole program. */
function textOf(line: string, { minLength, maxLength, format }: JsonObject): Typed {
  // As JSON Schema counts: by characters, not by halves of them.
  const length = [...line].length;
  if (typeof minLength === "number" && length < minLength) return wrong(`It has at least ${minLength} characters.`);
  if (typeof maxLength === "number" && length > maxLength) return wrong(`It has at most ${maxLength} characters.`);
  const form = typeof format === "string" && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  return form === undefined || form.fits(line.trim()) ? { kind: "value", value: line } : wrong(form.expected);
}

/** Those that MCP names. */
const FORMATS: Readonly<Record<string, { readonly expected: string; fits(text: string): boolean }>> = {
  email: { expected: "It is an address like ada@example.com.", fits: (text) => /^[^\s@]+@[^\s@]+$/.test(text) },
  uri: { expected: "It is an address like https://example.com/a.", fits: (text) => URL.canParse(text) },
  date: {
    expected: "It is a date like 2026-01-31.",
    fits: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && isDay(text),
  },
  "date-time": {
    expected: "It is a time like 2026-01-31T12:00:00Z.",
    fits: (text) =>
      /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/.test(text) && isDay(text.slice(0, 10)) && !Number.isNaN(Date.parse(text)),
  },
};

/** February has no 30th, though `Date` takes it for a day of March. */
function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

function numberOf(text: string, { kind, schema }: Field): Typed {
  const value = Number(text);
  const { minimum, maximum } = schema;
  if (!Number.isFinite(value)) return wrong("It is a number.");
  if (kind === "integer" && !Number.isInteger(value)) return wrong("It is a whole number.");
  if (typeof minimum === "number" && value < minimum) return wrong(`It is at least ${minimum}.`);
  if (typeof maximum === "number" && value > maximum) return wrong(`It is at most ${maximum}.`);
  return { kind: "value", value };
}

export function yesOrNo(text: string): Typed {
  const word = text.trim().toLowerCase();
  if (["y", "yes", "true"].includes(word)) return { kind: "value", value: true };
  return ["n", "no", "false"].includes(word) ? { kind: "value", value: false } : wrong("It is yes or no.");
}

/** By its value, else by its title, else by its place: a value may itself be a number. */
function oneOf(text: string, choices: readonly Choice[]): Typed {
  const found =
    choices.find(({ value }) => wordOf(value) === text) ??
    choices.find(({ title }) => title === text) ??
    choices.find(({ title }) => title.toLowerCase() === text.toLowerCase()) ??
    (/^\d+$/.test(text) ? choices[Number(text) - 1] : undefined);
  return found === undefined
    ? wrong(`It is one of those above, or its number from 1 to ${choices.length}.`)
    : { kind: "value", value: found.value };
}

function someOf(text: string, { choices, schema }: Field): Typed {
  const values: unknown[] = [];
  for (const part of text.split(",").map((word) => word.trim())) {
    if (part === "") continue;
    const one = oneOf(part, choices);
    if (one.kind !== "value") return one;
    if (!values.includes(one.value)) values.push(one.value);
  }
  const { minItems, maxItems } = schema;
  if (typeof minItems === "number" && values.length < minItems) return wrong(`Choose at least ${minItems}.`);
  if (typeof maxItems === "number" && values.length > maxItems) return wrong(`Choose at most ${maxItems}.`);
  return { kind: "value", value: values };
}

function jsonOf(text: string): Typed {
  try {
    return { kind: "value", value: JSON.parse(text) };
  } catch {
    return wrong("It is JSON.");
  }
}

function wrong(why: string): Typed {
  return { kind: "wrong", why };
}

function wordOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** A server's words in one line, with nothing hidden in them. */
function label(text: string): string {
  const whole = visible(text.replace(/\s+/g, " ").trim());
  return whole.length <= MAX_LABEL_CHARS ? whole : `${whole.slice(0, MAX_LABEL_CHARS)}…`;
}
