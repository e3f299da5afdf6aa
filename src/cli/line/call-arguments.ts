// The arguments of `toolway call` as they are typed: JSON, `-` for stdin, `@file`, or `--arg key=value`, whose values
// take the type that the tool's schema asks for.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Readable } from "node:stream";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { fileTrouble, usageError } from "./errors.js";
import type { Io } from "./io.js";

/** What a shell can carry is far less; this is for pipes and files that were not meant. */
const MAX_INPUT_BYTES = 64 * 1024 * 1024;

/** The JSON text that was given: as it stands, from stdin, or from a file. */
export async function readJsonText(text: string | undefined, io: Io): Promise<string | undefined> {
  if (text === "-") return readAll(io.stdin);
  if (text?.startsWith("@") !== true) return text;
  const path = resolve(io.cwd, text.slice(1));
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw usageError(`The arguments cannot be read from ${path}: ${fileTrouble(cause)}.`);
  }
}

async function readAll(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer | string>) {
    const buffer = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    bytes += buffer.length;
    if (bytes > MAX_INPUT_BYTES) throw usageError(`More than ${MAX_INPUT_BYTES} bytes on stdin.`);
    chunks.push(buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Both forms may be mixed; what `--arg` says goes last. */
export function toArguments(json: string | undefined, pairs: readonly string[], schema: unknown): JsonObject {
  const base = json === undefined || json.trim() === "" ? {} : parseObject(json);
  const properties = isObject(schema) && isObject(schema["properties"]) ? schema["properties"] : {};
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at < 1) throw usageError(`--arg ${pair}: expected key=value.`);
    const key = pair.slice(0, at);
    // defineProperty: a key `__proto__` is an argument like any other.
    Object.defineProperty(base, key, {
      value: toValue(key, pair.slice(at + 1), Object.hasOwn(properties, key) ? properties[key] : undefined),
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return base;
}

function parseObject(json: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : "";
    throw usageError(`The arguments are no JSON: ${why}`, `For instance '{"a": 2}', or --arg a=2, or @file.json.`);
  }
  if (!isObject(value)) throw usageError("The arguments are a JSON object.", `For instance '{"a": 2}'.`);
  return value;
}

/** A string where the schema wants one; else JSON where it is JSON, and a string otherwise. */
function toValue(key: string, text: string, schema: unknown): unknown {
  const types = typesOf(schema);
  if (types.length === 1 && types[0] === "string") return text;
  try {
    const value: unknown = JSON.parse(text);
    // A schema that allows strings means what was typed: `--arg version=1.0` stays `1.0`.
    return types.includes("string") && !types.includes(typeWord(value)) ? text : value;
  } catch {
    if (types.length === 0 || types.includes("string")) return text;
    throw usageError(`--arg ${key}: expected ${types.join(" or ")}, as JSON.`);
  }
}

function typesOf(schema: unknown): string[] {
  if (!isObject(schema)) return [];
  const { type } = schema;
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.filter((word) => typeof word === "string");
  const values = schema["enum"];
  return Array.isArray(values) && values.length > 0 && values.every((word) => typeof word === "string")
    ? ["string"]
    : [];
}

function typeWord(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
}
