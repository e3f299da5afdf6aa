// The definitions that servers list (tools, prompts, resources, templates), as clients accept them. The official SDKs
// throw the whole list away for one member of a wrong type, every server's entries with it: so what they would refuse
// is mended or taken out here, and said. What they do not look at passes as the server wrote it. Pure.

import { isObject, type JsonObject } from "../jsonrpc.js";
import { deeperThan, type Member, scanMembers, splice } from "../scan.js";
import { flawOfSchema, toLegacyOutput } from "./output-schema.js";

/** The lists that entries stand in, as results name them. */
type DefinitionKind = "tools" | "prompts" | "resources" | "resourceTemplates";

/**
 * Clients walk a definition by recursion, and one that nests deeper breaks them; schemas that people use nest some
 * twenty deep.
 */
const MAX_DEPTH = 200;

/** A definition in both eras' words; `legacy` differs where that era's clients are stricter. */
export interface Mended {
  readonly modern: string;
  readonly legacy: string;
  /** A legacy agent is told that its structured output is `{"result": …}`, so that is what a call must give it. */
  readonly wrapsOutput: boolean;
  /** What was mended, e.g. `"icons" is left out: it is no list of icons`. */
  readonly notes: readonly string[];
}

export type JudgedDefinition =
  | { readonly kind: "fit" }
  | { readonly kind: "mended"; readonly mended: Mended }
  /** No client could use it; `why` goes behind "left out: ". */
  | { readonly kind: "unusable"; readonly why: string };

const FIT: JudgedDefinition = { kind: "fit" };

/** What was judged ahead of time, by the parsed value. */
const prepared = new WeakMap<JsonObject, { readonly json: string; readonly judged: JudgedDefinition }>();

/** Judges a definition ahead of time: for a list of thousands that takes too long for one turn of the event loop. */
export function prepareJudgement(kind: DefinitionKind, json: string, value: JsonObject): void {
  prepared.set(value, { json, judged: judgeNow(kind, json, value) });
}

/** Says what clients would make of it, now or ahead of time. `json` is the text of `value`. */
export function judge(kind: DefinitionKind, json: string, value: JsonObject): JudgedDefinition {
  const made = prepared.get(value);
  if (made === undefined) return judgeNow(kind, json, value);
  prepared.delete(value);
  return made.json === json ? made.judged : judgeNow(kind, json, value);
}

function judgeNow(kind: DefinitionKind, json: string, value: JsonObject): JudgedDefinition {
  if (json.length > 2 * MAX_DEPTH && deeperThan(json, MAX_DEPTH)) {
    return { kind: "unusable", why: `it nests deeper than ${MAX_DEPTH}` };
  }
  const changes = changesOf(kind, value);
  if (changes.length === 0) return FIT;
  const notes = changes.flatMap(({ note }) => (note === undefined ? [] : [note]));
  const modern = changed(
    json,
    changes.filter(({ legacyOnly }) => !legacyOnly),
  );
  const legacy = changed(json, changes);
  return {
    kind: "mended",
    mended: { modern, legacy, notes, wrapsOutput: changes.some(({ wraps }) => wraps === true) },
  };
}

// ── Changes of members ─────────────────────────────────────────────────────────────────────────────────────────

interface Change {
  readonly key: string;
  /** Undefined where the member goes. */
  readonly json: string | undefined;
  readonly legacyOnly: boolean;
  /** Undefined where nothing is wrong with it: the eras only differ. */
  readonly note: string | undefined;
  readonly wraps?: true;
}

/** The text with these members changed; later changes of a member replace earlier ones. The rest stays as written. */
function changed(json: string, changes: readonly Change[]): string {
  if (changes.length === 0) return json;
  const byKey = new Map(changes.map(({ key, json: text }) => [key, text]));
  const present = scanMembers(json, 0);
  const isKept = ({ key }: Member) => !byKey.has(key) || byKey.get(key) !== undefined;
  const kept = present.filter(isKept);
  const textOf = ({ key, start, end }: Member) => byKey.get(key) ?? json.slice(start, end);
  const added = [...byKey].flatMap(([key, text]) =>
    text === undefined || present.some((member) => member.key === key) ? [] : [`${JSON.stringify(key)}:${text}`],
  );
  if (kept.length < present.length) {
    return `{${[...added, ...kept.map((one) => `${JSON.stringify(one.key)}:${textOf(one)}`)].join(",")}}`;
  }
  const edits = kept.map((one) => ({ start: one.start, end: one.end, text: textOf(one) }));
  const inserted = added.length === 0 || kept.length === 0 ? added.join(",") : `${added.join(",")},`;
  const open = json.indexOf("{") + 1;
  return splice(json, [{ start: open, end: open, text: inserted }, ...edits]);
}

function changesOf(kind: DefinitionKind, value: JsonObject): Change[] {
  const changes: Change[] = [];
  for (const [key, fix, what] of RULES[kind]) {
    const own = value[key];
    if (own === undefined) continue;
    const fixed = fix(own);
    if (fixed === own) continue;
    const json = fixed === undefined ? undefined : JSON.stringify(fixed);
    const note =
      json === undefined ? `"${key}" is left out: it is no ${what}` : `"${key}" is mended: it was no ${what}`;
    changes.push({ key, json, legacyOnly: false, note });
  }
  if (kind === "tools") addSchemas(value, changes);
  else if (typeof value["name"] !== "string") addName(kind, value, changes);
  return changes;
}

/** A resource needs a name, and what it is found by is the best one at hand. A prompt without one is not listed at all. */
function addName(kind: DefinitionKind, value: JsonObject, changes: Change[]): void {
  const own = kind === "resources" ? value["uri"] : value["uriTemplate"];
  if (kind === "prompts" || typeof own !== "string") return;
  const note = '"name" is its URI: it had none';
  changes.push({ key: "name", json: JSON.stringify(own), legacyOnly: false, note });
}

// ── What each member has to be ─────────────────────────────────────────────────────────────────────────────────

/** The value itself where it is fit, another one that is, or undefined where the member has to go. */
type Fix = (value: unknown) => unknown;
type Rule = readonly [key: string, fix: Fix, what: string];

const isText = (value: unknown): value is string => typeof value === "string";
const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText);

const text: Fix = (value) => (isText(value) ? value : undefined);
const flag: Fix = (value) => (typeof value === "boolean" ? value : undefined);
const number: Fix = (value) => (Number.isFinite(value) ? value : undefined);
const object: Fix = (value) => (isObject(value) ? value : undefined);
const texts: Fix = (value) => (isTexts(value) ? value : undefined);
const oneOf =
  (...words: readonly string[]): Fix =>
  (value) =>
    isText(value) && words.includes(value) ? value : undefined;

/** An object whose members are as they should be; those that are not go. */
function members(fixes: Readonly<Record<string, Fix>>): Fix {
  return (value) => {
    if (!isObject(value)) return undefined;
    let fixed: JsonObject | undefined;
    for (const [key, fix] of Object.entries(fixes)) {
      const own = Object.hasOwn(value, key) ? value[key] : undefined;
      if (own === undefined) continue;
      const next = fix(own);
      if (next === own) continue;
      fixed ??= { ...value };
      if (next === undefined) delete fixed[key];
      else fixed[key] = next;
    }
    return fixed ?? value;
  };
}

/** A list whose elements are as they should be; those that cannot be mended go. */
function elements(fix: Fix): Fix {
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    const fixed = value.map(fix).filter((one) => one !== undefined);
    return fixed.length === value.length && fixed.every((one, i) => one === value[i]) ? value : fixed;
  };
}

/** An object that is nothing without this member, a text. */
function named(key: string, fix: Fix): Fix {
  return (value) => (isObject(value) && isText(value[key]) ? fix(value) : undefined);
}

const DATE_TIME =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

const time: Fix = (value) => (isText(value) && DATE_TIME.test(value) && isDay(value) ? value : undefined);

/** The 30th of February is written well and is no day. */
function isDay(value: string): boolean {
  const [year = 0, month = 0, day = 0] = value.slice(0, 10).split("-").map(Number);
  const isLeap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  const longest = month === 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
  return day <= longest;
}

const share: Fix = (value) => (typeof value === "number" && value >= 0 && value <= 1 ? value : undefined);

const icons = elements(named("src", members({ mimeType: text, sizes: texts, theme: oneOf("light", "dark") })));
const annotations = members({
  audience: elements(oneOf("user", "assistant")),
  priority: share,
  lastModified: time,
});
const hints = members({
  title: text,
  readOnlyHint: flag,
  destructiveHint: flag,
  idempotentHint: flag,
  openWorldHint: flag,
});
const parameters = elements(named("name", members({ description: text, required: flag })));

const COMMON: readonly Rule[] = [
  ["title", text, "text"],
  ["description", text, "text"],
  ["icons", icons, "list of icons"],
  ["_meta", object, "object"],
];
const OF_RESOURCES: readonly Rule[] = [
  ...COMMON,
  ["mimeType", text, "text"],
  ["annotations", annotations, "set of annotations"],
];

const RULES: Readonly<Record<DefinitionKind, readonly Rule[]>> = {
  tools: [
    ...COMMON,
    ["annotations", hints, "set of hints"],
    ["execution", members({ taskSupport: oneOf("required", "optional", "forbidden") }), "way to run it"],
  ],
  prompts: [...COMMON, ["arguments", parameters, "list of arguments"]],
  resources: [...OF_RESOURCES, ["size", number, "number"]],
  resourceTemplates: OF_RESOURCES,
};

// ── Schemas of tools ───────────────────────────────────────────────────────────────────────────────────────────

function addSchemas({ inputSchema, outputSchema }: JsonObject, changes: Change[]): void {
  const input = (fixed: JsonObject, note: string | undefined, legacyOnly: boolean) =>
    changes.push({ key: "inputSchema", json: JSON.stringify(fixed), legacyOnly, note });
  // Arguments are an object in every version, so this is what is meant by nothing, or by nonsense.
  const object = isObject(inputSchema) ? withoutBadDialect(inputSchema) : {};
  const typed = object["type"] === "object" ? object : { ...object, type: "object" };
  if (typed !== inputSchema) input(typed, '"inputSchema" is mended: it was no schema of an object', false);
  const strict = legacyProperties(typed);
  if (strict !== typed) {
    // A schema may be true or false, which clients of the legacy era do not know: they are told the same in words.
    const sameMeaning =
      hasOnlyBooleans(typed["properties"]) && (typed["required"] === undefined || isTexts(typed["required"]));
    const note = sameMeaning ? undefined : '"inputSchema" is mended for legacy agents: its properties were no schemas';
    input(strict, note, true);
  }
  if (outputSchema !== undefined) addOutput(outputSchema, changes);
}

function addOutput(outputSchema: unknown, changes: Change[]): void {
  const key = "outputSchema";
  if (!isObject(outputSchema)) {
    changes.push({ key, json: undefined, legacyOnly: false, note: `"${key}" is left out: it is no schema` });
    return;
  }
  const own = withoutBadDialect(outputSchema);
  if (own !== outputSchema) {
    const note = `"${key}" is mended: its "$schema" was no text`;
    changes.push({ key, json: JSON.stringify(own), legacyOnly: false, note });
  }
  const flaw = flawOfSchema(own);
  if (flaw !== undefined) {
    // They compile every schema when they list, and one that does not compile costs them the whole list.
    const note = `"${key}" is left out for legacy agents: ${flaw}`;
    changes.push({ key, json: undefined, legacyOnly: true, note });
    return;
  }
  const wraps = own["type"] !== "object";
  const legacy = legacyProperties(wraps ? toLegacyOutput(own) : own);
  if (legacy === own) return;
  const change = { key, json: JSON.stringify(legacy), legacyOnly: true, note: undefined };
  changes.push(wraps ? { ...change, wraps } : change);
}

function withoutBadDialect(schema: JsonObject): JsonObject {
  if (schema["$schema"] === undefined || isText(schema["$schema"])) return schema;
  const { $schema: _, ...rest } = schema;
  return rest;
}

function hasOnlyBooleans(properties: unknown): boolean {
  return isObject(properties) && Object.values(properties).every((one) => typeof one === "boolean" || isObject(one));
}

/** The same schema with `properties` and `required` as the legacy era's clients read them. */
function legacyProperties(schema: JsonObject): JsonObject {
  const { properties, required } = schema;
  let fixed = schema;
  if (properties !== undefined && !isObject(properties)) {
    const { properties: _, ...rest } = fixed;
    fixed = rest;
  } else if (
    isObject(properties) &&
    !Object.values(properties).every((one) => typeof one === "object" && one !== null)
  ) {
    const entries = Object.entries(properties).map(([name, one]) => [name, schemaObject(one)] as const);
    fixed = { ...fixed, properties: Object.fromEntries(entries) };
  }
  if (required !== undefined && !isTexts(required)) {
    const { required: _, ...rest } = fixed;
    fixed = Array.isArray(required) ? { ...rest, required: required.filter(isText) } : rest;
  }
  return fixed;
}

/** True and false are schemas: of everything, and of nothing. */
function schemaObject(schema: unknown): unknown {
  if (schema === false) return { not: {} };
  return typeof schema === "object" && schema !== null ? schema : {};
}
