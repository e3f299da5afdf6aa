// What spans are called and what they say, by OpenTelemetry's conventions for MCP. Holds no secrets: no arguments,
// results, messages or names of principals. Names of our own have a prefix.

import { createHash } from "node:crypto";
import type { CallRecord } from "./call-record.js";
import { KNOWN_METHODS, UNKNOWN } from "./known-methods.js";
import { errorType, isFailure } from "./outcome.js";

export type SpanAttributes = Record<string, string | number>;

const TOOL_CALL = "tools/call";

/** `tools/call read_file`; the method alone where the tool is none that its server lists. */
export function spanName(method: string, knownTool: string | undefined): string {
  if (!KNOWN_METHODS.has(method)) return UNKNOWN;
  return method === TOOL_CALL && knownTool !== undefined ? `${method} ${knownTool}` : method;
}

/** Of what an agent asked for. They are set one by one: copying parts of them costs several times as much. */
export function attributesOf(record: CallRecord): SpanAttributes {
  const { server, principal, agentEra, era, cache, attempt, outcome, version, sessionKey, id } = record;
  const all = common(record);
  if (version !== "") all["mcp.protocol.version"] = version;
  all["jsonrpc.request.id"] = short(String(id));
  if (agentEra === "legacy" && sessionKey !== "") all["mcp.session.id"] = sessionHash(sessionKey);
  if (server !== undefined) all["toolway.server"] = server;
  all["toolway.era"] = era ?? "unknown";
  all["toolway.agent.era"] = agentEra;
  // Its id stays out: it may be a person's.
  all["toolway.role"] = principal.role;
  all["toolway.cache"] = cache ?? "off";
  all["toolway.attempt"] = attempt;
  all["toolway.outcome"] = outcome;
  const error = spanErrorType(record);
  if (error !== undefined) all["error.type"] = error;
  return all;
}

/** Of one sending to a server. `error` is undefined where it was answered without one. */
export function sendingAttributes(record: CallRecord, error: string | undefined): SpanAttributes {
  const { server, transport, era } = record;
  const all = common(record);
  if (transport !== undefined) all["network.transport"] = transport;
  if (server !== undefined) all["toolway.server"] = server;
  all["toolway.era"] = era ?? "unknown";
  if (error !== undefined) all["error.type"] = error;
  return all;
}

/** The JSON-RPC code of a server's error, `tool_error`, or the fault of ours; undefined where nothing failed. */
export function spanErrorType({ outcome, errorCode }: CallRecord): string | undefined {
  if (outcome === "rpc-error") return String(errorCode);
  return isFailure(outcome) ? errorType(outcome) : undefined;
}

function common({ method, tool }: CallRecord): SpanAttributes {
  const all: SpanAttributes = { "mcp.method.name": short(method) };
  if (method === TOOL_CALL) all["gen_ai.operation.name"] = "execute_tool";
  if (tool !== undefined) {
    const name = short(tool);
    all["toolway.tool"] = name;
    all["gen_ai.tool.name"] = name;
  }
  return all;
}

/** An agent's ids and names are as long as it likes, and thousands of spans may wait for a collector. */
const MAX_CHARACTERS = 128;

function short(text: string): string {
  if (text.length <= MAX_CHARACTERS) return text;
  // A copy: a slice would hold the whole text for as long as the span waits.
  return Buffer.from(text.slice(0, MAX_CHARACTERS)).toString();
}

/** So many sessions have their hashes at hand; a hash costs as much as the rest of a span. */
const MAX_HASHES = 1_000;
const hashes = new Map<string, string>();

/** Tells sessions apart, and opens none. */
function sessionHash(sessionKey: string): string {
  let hash = hashes.get(sessionKey);
  if (hash === undefined) {
    if (hashes.size >= MAX_HASHES) hashes.clear();
    hash = createHash("sha256").update(sessionKey).digest("hex").slice(0, 16);
    hashes.set(sessionKey, hash);
  }
  return hash;
}
