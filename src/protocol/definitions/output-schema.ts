// A tool's `outputSchema` for agents of the legacy era: there its root is an object's, and clients compile it as soon as
// they list. A schema of anything else is wrapped as `{"result": …}`, as the SDK's own servers do it. Pure.

import { isTexts } from "../../runtime/words/json-values.js";
import { isObject, type JsonObject } from "../jsonrpc.js";
import { DATA, isRecursive, movedSchema, NAMED } from "./moved-schema.js";

/** What a wrapped schema's own places become the end of. */
const WITHIN = "#/properties/result";

/** The schema of `{"result": value}` where `natural` is that of the value. References within it follow it. */
export function toLegacyOutput(natural: JsonObject): JsonObject {
  const { $schema } = natural;
  const dialect = typeof $schema === "string" ? { $schema } : {};
  const inner = movedSchema(natural, { within: WITHIN, isRecursive: isRecursive(natural), movedRef });
  return { ...dialect, type: "object", properties: { result: inner }, required: ["result"] };
}

/** What has an address of its own is referred to by that. */
function movedRef(ref: string, isInside: boolean): string {
  if (!isInside) return ref;
  if (ref === "#") return WITHIN;
  return ref.startsWith("#/") ? WITHIN + ref.slice(1) : ref;
}

// ── Whether it compiles ────────────────────────────────────────────────────────────────────────────────────────

const TYPES = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);
const isSchema = (value: unknown): boolean => typeof value === "boolean" || isObject(value);
const isNumber = (value: unknown): boolean => typeof value === "number";
const isText = (value: unknown): boolean => typeof value === "string";

/** What the value of a keyword has to be. */
const KEYWORDS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ...[
    ...["maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "maxLength", "minLength"],
    ...["maxItems", "minItems", "maxProperties", "minProperties", "maxContains", "minContains"],
  ].map((key) => [key, isNumber] as const),
  ...["pattern", "format", "$ref", "$id", "$anchor", "$dynamicAnchor", "$comment"].map((key) => [key, isText] as const),
  ...["uniqueItems", "nullable"].map((key) => [key, (value: unknown) => typeof value === "boolean"] as const),
  ...["not", "if", "then", "else", "contains", "propertyNames", "additionalProperties", "additionalItems"].map(
    (key) => [key, isSchema] as const,
  ),
  ["items", (value) => isSchema(value) || (Array.isArray(value) && value.every(isSchema))],
  ...["anyOf", "allOf", "oneOf"].map(
    (key) => [key, (value: unknown) => Array.isArray(value) && value.length > 0 && value.every(isSchema)] as const,
  ),
  ...["properties", "patternProperties", "$defs", "definitions"].map(
    (key) => [key, (value: unknown) => isObject(value) && Object.values(value).every(isSchema)] as const,
  ),
  ["dependencies", (value) => isObject(value) && Object.values(value).every((one) => isSchema(one) || isTexts(one))],
  ["required", isTexts],
  ["enum", (value) => Array.isArray(value) && value.length > 0],
  [
    "type",
    (value) => (Array.isArray(value) ? value : [value]).every((one) => typeof one === "string" && TYPES.has(one)),
  ],
  // Of draft 4, which nobody compiles any more.
  ["id", () => false],
]);

/** Why a client that compiles the schema would throw; undefined where nothing speaks against it. */
export function flawOfSchema(root: JsonObject): string | undefined {
  const schemas: JsonObject[] = [];
  const flaw = walk(root, schemas);
  if (flaw !== undefined) return flaw;
  const names = new Set<string>();
  for (const { $id, $anchor, $dynamicAnchor } of schemas) {
    for (const name of [
      $id,
      typeof $anchor === "string" ? `#${$anchor}` : undefined,
      typeof $dynamicAnchor === "string" ? `#${$dynamicAnchor}` : undefined,
    ]) {
      if (typeof name !== "string") continue;
      if (names.has(name)) return `it has two places called ${JSON.stringify(name)}`;
      names.add(name);
    }
  }
  for (const { $ref } of schemas) {
    if (typeof $ref === "string" && !isFound(root, $ref, names))
      return `it refers to ${quoted($ref)}, which is not in it`;
  }
  return undefined;
}

function walk(schema: JsonObject, schemas: JsonObject[]): string | undefined {
  schemas.push(schema);
  for (const [key, value] of Object.entries(schema)) {
    if (KEYWORDS.get(key)?.(value) === false) return `its ${quoted(key)} is not what the keyword takes`;
    const patterns = key === "pattern" ? [value] : key === "patternProperties" ? Object.keys(value as object) : [];
    for (const pattern of patterns) {
      if (!isPattern(pattern as string)) return `its pattern ${quoted(pattern as string)} is no regular expression`;
    }
    for (const inner of schemasIn(key, value)) {
      const flaw = walk(inner, schemas);
      if (flaw !== undefined) return flaw;
    }
  }
  const { nullable, type } = schema;
  const isTyped = type !== undefined && !(Array.isArray(type) && type.length === 0);
  if (nullable !== undefined && !isTyped) return '"nullable" needs a "type"';
  const isNull = type === "null" || (Array.isArray(type) && type.includes("null"));
  return nullable === false && isNull ? '"nullable" contradicts its "type"' : undefined;
}

/** The schemas in the value of a keyword; what keywords we do not know hold is nobody's schema, or compiles nowhere. */
function schemasIn(key: string, value: unknown): JsonObject[] {
  if (DATA.has(key) || !KEYWORDS.has(key)) return [];
  if (Array.isArray(value)) return value.filter(isObject);
  if (!isObject(value)) return [];
  return NAMED.has(key) ? Object.values(value).filter(isObject) : [value];
}

function isPattern(pattern: string): boolean {
  try {
    new RegExp(pattern, "u");
    return true;
  } catch {
    return false;
  }
}

function isFound(root: JsonObject, ref: string, names: ReadonlySet<string>): boolean {
  if (ref === "#" || names.has(ref) || names.has(ref.replace(/#$/, ""))) return true;
  if (/^https?:\/\/json-schema\.org\/draft-07\/schema#?$/.test(ref)) return true;
  if (!ref.startsWith("#/")) return false;
  let at: unknown = root;
  for (const part of ref.slice(2).split("/")) {
    const key = unescaped(part);
    at =
      key !== undefined && typeof at === "object" && at !== null && Object.hasOwn(at, key)
        ? (at as JsonObject)[key]
        : undefined;
  }
  return isSchema(at);
}

/** Undefined for what is escaped wrongly. */
function unescaped(part: string): string | undefined {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return undefined;
  }
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
