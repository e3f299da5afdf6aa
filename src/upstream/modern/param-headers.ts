// `x-mcp-header` in a tool's inputSchema: which arguments of a call are repeated as Mcp-Param-* headers over HTTP, and
// whether a tool's annotations are valid at all. Pure, but for the map of what the server's list said last.

import type { ParamHeader as AgentHeader } from "../../contracts/service.js";
import type { Listed } from "../../contracts/upstream.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { encodeHeaderValue } from "../../protocol/modern.js";

const KEY = "x-mcp-header";
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TYPES = new Set(["integer", "string", "boolean"]);
/** Schemas nest a few levels; one deeper than this is an attack on whoever walks it, and its tool is left out. */
const MAX_DEPTH = 64;
/** Annotations of one tool: each becomes a header, and servers bound all headers of a request to some KiB. */
const MAX_HEADERS = 64;
/** Problems kept for `status`: the first few show what is wrong. */
const MAX_PROBLEMS = 20;

/** One annotated parameter. */
export interface ParamHeader {
  /** As it goes out: `mcp-param-…`. */
  readonly name: string;
  /** Names of properties, from the arguments down. */
  readonly path: readonly string[];
}

/** The annotations of a tool's inputSchema, or what is wrong with them. */
export function readParamHeaders(schema: unknown): readonly ParamHeader[] | string {
  const found: ParamHeader[] = [];
  const problem = walk(schema, [], true, 0, found);
  return problem ?? found;
}

const readBefore = new WeakMap<object, readonly AgentHeader[]>();

/** What a modern agent has to repeat of a call's arguments. Schemas are walked once; invalid annotations ask for nothing. */
export function agentHeaders(schema: unknown): readonly AgentHeader[] {
  if (!isObject(schema)) return [];
  let headers = readBefore.get(schema);
  if (headers === undefined) {
    const found = readParamHeaders(schema);
    headers = typeof found === "string" ? [] : found.map(({ name, path }) => ({ header: name, path }));
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
  if (!TOKEN.test(value)) return `${KEY} of ${where} cannot be part of a header's name: ${JSON.stringify(value)}`;
  if (!direct || path.length === 0) return `${KEY} "${value}" stands where it cannot be reached by properties alone`;
  if (typeof schema["type"] !== "string" || !TYPES.has(schema["type"])) {
    return `${KEY} of ${where} needs the type integer, string or boolean, not ${JSON.stringify(schema["type"])}`;
  }
  const name = `mcp-param-${value.toLowerCase()}`;
  if (found.some((other) => other.name === name)) return `${KEY} "${value}" is used twice`;
  if (found.length >= MAX_HEADERS) return `it has more than ${MAX_HEADERS} ${KEY} annotations`;
  found.push({ name, path });
  return undefined;
}

function first<T>(items: readonly T[], of: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const problem = of(item);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The headers for these arguments. A value that is absent, null, or not of a type that a header can hold has none. */
export function paramHeaders(headers: readonly ParamHeader[], args: unknown): Record<string, string> {
  const out: Record<string, string> = {};
  for (const { name, path } of headers) {
    let value: unknown = args;
    for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
    if (typeof value === "string") out[name] = encodeHeaderValue(value);
    else if (typeof value === "boolean" || Number.isSafeInteger(value)) out[name] = String(value);
  }
  return out;
}

/** What the tools of one server are annotated with, as its last list had it. Shared by all its connections. */
export class ToolHeaders {
  #byTool = new Map<string, readonly ParamHeader[]>();

  of(tool: string): readonly ParamHeader[] | undefined {
    return this.#byTool.get(tool);
  }

  /** Learns the list, and tells the tools that may be used from those whose annotations are invalid. */
  learn(tools: readonly Listed[]): { kept: readonly Listed[]; problems: readonly string[] } {
    const byTool = new Map<string, readonly ParamHeader[]>();
    const problems: string[] = [];
    const kept = tools.filter(({ value }) => {
      const headers = readParamHeaders(value["inputSchema"]);
      if (typeof headers !== "string") {
        if (headers.length > 0) byTool.set(String(value["name"]), headers);
        return true;
      }
      if (problems.length < MAX_PROBLEMS) {
        problems.push(`Tool ${JSON.stringify(value["name"])} is left out: ${headers}.`);
      }
      return false;
    });
    this.#byTool = byTool;
    return { kept, problems };
  }
}
