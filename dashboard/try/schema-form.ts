// A form for the arguments of a tool, from its JSON Schema: which fields there are, and what stands in them at first. The
// arguments themselves are the only state: a field shows a place in them, so that form and JSON cannot differ. It decides
// only, and knows no browser. What it has no field for is JSON with a skeleton.

import { isObject } from "../../src/runtime/words/json-object.js";

export type Schema = Readonly<Record<string, unknown>>;

export interface SchemaMember {
  readonly name: string;
  readonly required: boolean;
  readonly schema: Schema;
}

export type SchemaField = { readonly title: string; readonly help: string } & (
  | { readonly kind: "text"; readonly isLong: boolean; readonly examples: readonly string[] }
  | { readonly kind: "number"; readonly isWhole: boolean; readonly examples: readonly string[] }
  | { readonly kind: "boolean" }
  | { readonly kind: "fixed"; readonly value: unknown }
  | { readonly kind: "choice"; readonly values: readonly unknown[] }
  | { readonly kind: "object"; readonly members: readonly SchemaMember[] }
  | { readonly kind: "list"; readonly item: Schema }
  | { readonly kind: "either"; readonly options: readonly { readonly name: string; readonly schema: Schema }[] }
  | { readonly kind: "json" }
);

/** References are followed so far: one that leads back to itself ends there, as JSON. */
const MAX_REFERENCES = 16;
/** What is nested deeper is filled in as JSON. */
export const MAX_DEPTH = 8;
/** More choices, options and members than that are a matter for JSON: a page of ten thousand fields helps nobody. */
const MAX_MEMBERS = 200;

/** With its references followed, and its `allOf` in one. An empty schema where that cannot be done. */
export function resolved(root: Schema, schema: unknown): Schema {
  let now = isObject(schema) ? schema : {};
  for (let n = 0; typeof now["$ref"] === "string"; n++) {
    if (n >= MAX_REFERENCES) return {};
    const { $ref, ...beside } = now;
    const target = pointed(root, $ref as string);
    if (!isObject(target)) return beside;
    now = { ...target, ...beside };
  }
  const { allOf, ...rest } = now;
  if (!Array.isArray(allOf)) return now;
  return allOf.reduce<Schema>((all, part) => joined(all, resolved(root, part)), rest);
}

function joined(a: Schema, b: Schema): Schema {
  const both = (key: string) => ({ ...(isObject(a[key]) ? a[key] : {}), ...(isObject(b[key]) ? b[key] : {}) });
  const required = [...listOf(a["required"]), ...listOf(b["required"])];
  const more = { ...b, ...a };
  return {
    ...more,
    ...("properties" in more ? { properties: both("properties") } : {}),
    ...(required.length > 0 ? { required } : {}),
  };
}

/** `#/$defs/x`, `#/properties/a/items/0`; undefined where nothing stands there, or it is in another document. */
function pointed(root: Schema, reference: string): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let at: unknown = root;
  for (const raw of reference.slice(2).split("/")) {
    const key = decodeURIComponent(raw).replaceAll("~1", "/").replaceAll("~0", "~");
    at = Array.isArray(at) ? at[Number(key)] : isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

export function fieldOf(root: Schema, given: unknown, depth = 0): SchemaField {
  const schema = resolved(root, given);
  const about = { title: textOf(schema["title"]), help: textOf(schema["description"]) };
  if (depth >= MAX_DEPTH) return { kind: "json", ...about };
  if ("const" in schema) return { kind: "fixed", value: schema["const"], ...about };
  if (Array.isArray(schema["enum"]) && schema["enum"].length <= MAX_MEMBERS) {
    return { kind: "choice", values: schema["enum"], ...about };
  }
  const options = optionsOf(root, schema);
  if (options !== undefined) return { kind: "either", options, ...about };
  const examples = listOf(schema["examples"]).slice(0, 20).map(shown);
  switch (typeIn(schema)) {
    case "string":
      return { kind: "text", isLong: Number(schema["maxLength"] ?? 0) > 200, examples, ...about };
    case "number":
    case "integer":
      return { kind: "number", isWhole: typeIn(schema) === "integer", examples, ...about };
    case "boolean":
      return { kind: "boolean", ...about };
    case "null":
      return { kind: "fixed", value: null, ...about };
    case "array":
      return isObject(schema["items"]) || schema["items"] === undefined
        ? { kind: "list", item: (schema["items"] as Schema | undefined) ?? {}, ...about }
        : { kind: "json", ...about };
    case "object": {
      const members = membersOf(schema);
      return members.length === 0 && depth > 0 ? { kind: "json", ...about } : { kind: "object", members, ...about };
    }
    default:
      return { kind: "json", ...about };
  }
}

/** Of `oneOf`, `anyOf`, or several types; at the root each with the members that stand beside them. */
function optionsOf(root: Schema, schema: Schema) {
  for (const key of ["oneOf", "anyOf"]) {
    const { [key]: found, ...beside } = schema;
    if (!Array.isArray(found) || found.length === 0 || found.length > MAX_MEMBERS) continue;
    const { title: _title, description: _description, ...shared } = beside;
    return found.map((one, index) => {
      const option = joined(resolved(root, one), shared);
      return { name: optionName(option, index), schema: option };
    });
  }
  const { type, ...rest } = schema;
  if (!Array.isArray(type) || type.length < 2) return undefined;
  return type.map((one) => ({ name: String(one), schema: { ...rest, type: one } as Schema }));
}

function optionName(option: Schema, index: number): string {
  const named = textOf(option["title"]);
  if (named !== "") return named;
  if ("const" in option) return shown(option["const"]);
  const type = typeIn(option);
  const required = listOf(option["required"]).map(String);
  if (type === "object" && required.length > 0) return `with ${required.join(", ")}`;
  return type === undefined ? `option ${index + 1}` : type;
}

function typeIn(schema: Schema): string | undefined {
  const { type } = schema;
  if (typeof type === "string") return type;
  if (Array.isArray(type) && type.length === 1) return String(type[0]);
  if (isObject(schema["properties"])) return "object";
  return "items" in schema ? "array" : undefined;
}

function membersOf(schema: Schema): SchemaMember[] {
  const required = new Set(listOf(schema["required"]).map(String));
  const members = Object.entries(isObject(schema["properties"]) ? schema["properties"] : {})
    .slice(0, MAX_MEMBERS)
    .map(([name, one]) => ({ name, required: required.has(name), schema: isObject(one) ? one : {} }));
  // What is needed comes first, in the order of the schema.
  return [...members.filter((one) => one.required), ...members.filter((one) => !one.required)];
}

/** What stands in a field at first: its default, its first example or choice, and of an object what it needs. */
export function skeletonOf(root: Schema, given: unknown, depth = 0): unknown {
  const schema = resolved(root, given);
  if ("default" in schema) return schema["default"];
  const [example] = listOf(schema["examples"]);
  if (example !== undefined) return example;
  const field = fieldOf(root, schema, depth);
  switch (field.kind) {
    case "text":
      return "";
    case "number":
      return Math.max(0, Number(schema["minimum"] ?? 0));
    case "boolean":
      return false;
    case "fixed":
      return field.value;
    case "choice":
      return field.values[0];
    case "list":
      return [];
    case "either":
      return skeletonOf(root, field.options[0]?.schema, depth + 1);
    case "object":
      return Object.fromEntries(
        field.members
          .filter((member) => member.required || "default" in resolved(root, member.schema))
          .map(({ name, schema: one }) => [name, skeletonOf(root, one, depth + 1)]),
      );
    default:
      return typeIn(schema) === "array" ? [] : typeIn(schema) === "object" || depth === 0 ? {} : null;
  }
}

/**
 * Which option a value is of, by its type and the members that it needs; of several that fit the one that knows most of its
 * members, and among such `before`, then the first. Where none fits it is `before`, else the first.
 */
export function optionOf(
  root: Schema,
  options: readonly { readonly schema: Schema }[],
  value: unknown,
  before?: number,
): number {
  const unknown = options.map(({ schema }) => {
    const option = resolved(root, schema);
    return isLike(root, option, value) ? unknownMembers(option, value) : Number.POSITIVE_INFINITY;
  });
  const least = Math.min(...unknown);
  if (before !== undefined && unknown[before] === least) return before;
  return Math.max(0, unknown.indexOf(least));
}

/** How deep a value is looked at is bounded by the value: a schema that leads back to itself ends with it. */
function isLike(root: Schema, schema: Schema, value: unknown): boolean {
  if ("const" in schema) return isSame(schema["const"], value);
  if (Array.isArray(schema["enum"])) return schema["enum"].some((one) => isSame(one, value));
  const type = typeIn(schema);
  if (type === "object") {
    if (!isObject(value)) return false;
    if (schema["additionalProperties"] === false && unknownMembers(schema, value) > 0) return false;
    const properties = isObject(schema["properties"]) ? schema["properties"] : {};
    const needs = listOf(schema["required"]).every((name) => Object.hasOwn(value, String(name)));
    return (
      needs &&
      Object.entries(properties).every(
        ([name, one]) => !Object.hasOwn(value, name) || isLike(root, resolved(root, one), value[name]),
      )
    );
  }
  if (type === "array") return Array.isArray(value);
  if (type === "null") return value === null;
  if (type === "integer") return Number.isInteger(value);
  return type === undefined || typeof value === type;
}

/** How many of its members have no place in this object. */
function unknownMembers(schema: Schema, value: unknown): number {
  if (!isObject(value)) return 0;
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  return Object.keys(value).filter((name) => !Object.hasOwn(properties, name)).length;
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function shown(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
