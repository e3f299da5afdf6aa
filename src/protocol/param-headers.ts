// `x-mcp-header` in a tool's inputSchema: which arguments of a call are repeated as Mcp-Param-* headers over HTTP, and
// whether a tool's annotations are valid at all. Both sides read it: we send such headers to servers, and check those
// of agents.

import { HEADER_NAME } from "../runtime/network/headers.js";
import { isObject, type JsonObject } from "./jsonrpc.js";
import { encodeHeaderValue } from "./modern.js";

const KEY = "x-mcp-header";
const TYPES = new Set(["integer", "string", "boolean"]);
/** Schemas nest a few levels; one deeper than this is an attack on whoever walks it, and its tool is left out. */
const MAX_DEPTH = 64;
/** Annotations of one tool: each becomes a header, and servers bound all headers of a request to some KiB. */
const MAX_HEADERS = 64;

/** An argument of a tool that a modern client repeats in a header. */
export interface ParamHeader {
  /** The whole name, in lower case: `mcp-param-…`. */
  readonly header: string;
  /** Names of members, from the arguments down. */
  readonly path: readonly string[];
}

/** The annotations of a tool's inputSchema, or what is wrong with them. */
export function readParamHeaders(schema: unknown): readonly ParamHeader[] | string {
  const found: ParamHeader[] = [];
  const problem = walk(schema, [], true, 0, found);
  return problem ?? found;
}

const readBefore = new WeakMap<object, readonly ParamHeader[]>();

/**
 * What a modern agent has to repeat of a call's arguments. Schemas are walked once; invalid annotations ask for
 * nothing.
 */
export function agentHeaders(schema: unknown): readonly ParamHeader[] {
  if (!isObject(schema)) return [];
  let headers = readBefore.get(schema);
  if (headers === undefined) {
    const found = readParamHeaders(schema);
    headers = typeof found === "string" ? [] : found;
    readBefore.set(schema, headers);
  }
  return headers;
}

/** `direct`: everything on the way here was a key of `properties`, and this is a schema. */
function walk(
  node: unknown,
  path: readonly string[],
  direct: boolean,
  depth: number,
  found: ParamHeader[],
): string | undefined {
  if (typeof node !== "object" || node === null) return undefined;
  if (depth > MAX_DEPTH) return `the schema nests deeper than ${MAX_DEPTH}`;
  if (Array.isArray(node)) return first(node, (item) => walk(item, path, false, depth + 1, found));
  const schema = node as JsonObject;
  if (Object.hasOwn(schema, KEY)) {
    const problem = annotate(schema, path, direct, found);
    if (problem !== undefined) return problem;
  }
  return first(Object.entries(schema), ([key, value]) => {
    if (key === KEY || DATA.has(key)) return undefined;
    if (!NAMED_SCHEMAS.has(key) || !isObject(value)) return walk(value, path, false, depth + 1, found);
    // Below it stand names that the server chose: a parameter may be called "x-mcp-header" or "default".
    const stays = direct && key === "properties";
    return first(Object.entries(value), ([name, one]) => walk(one, [...path, name], stays, depth + 1, found));
  });
}

/** Keywords whose value is data, not a schema: an annotation in there is none. */
const DATA = new Set(["const", "default", "enum", "examples"]);
/** Keywords whose value maps names to schemas. */
const NAMED_SCHEMAS = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);

function annotate(schema: JsonObject, path: readonly string[], direct: boolean, found: ParamHeader[]) {
  const value = schema[KEY];
  const where = path.length === 0 ? "the schema itself" : `"${path.join(".")}"`;
  if (typeof value !== "string" || value === "") return `${KEY} of ${where} is not a name`;
  if (!HEADER_NAME.test(value)) return `${KEY} of ${where} cannot be part of a header's name: ${JSON.stringify(value)}`;
  if (!direct || path.length === 0) return `${KEY} "${value}" stands where it cannot be reached by properties alone`;
  if (typeof schema["type"] !== "string" || !TYPES.has(schema["type"])) {
    return `${KEY} of ${where} needs the type integer, string or boolean, not ${JSON.stringify(schema["type"])}`;
  }
  const header = `mcp-param-${value.toLowerCase()}`;
  if (found.some((other) => other.header === header)) return `${KEY} "${value}" is used twice`;
  if (found.length >= MAX_HEADERS) return `it has more than ${MAX_HEADERS} ${KEY} annotations`;
  found.push({ header, path });
  return undefined;
}

function first<T>(items: readonly T[], of: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const problem = of(item);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The argument that a header repeats; undefined where there is none. */
export function argumentAt(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

/** The headers for these arguments. A value that is absent, null, or not of a type that a header can hold has none. */
export function paramHeaders(headers: readonly ParamHeader[], args: unknown): Record<string, string> {
  const out: Record<string, string> = {};
  for (const { header, path } of headers) {
    const value = argumentAt(args, path);
    if (typeof value === "string") out[header] = encodeHeaderValue(value);
    else if (typeof value === "boolean" || Number.isSafeInteger(value)) out[header] = String(value);
  }
  return out;
}
