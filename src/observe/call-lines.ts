// Calls in the log: one line each, at `info`; what only lists or sets a level is at `debug`. Text for people has the
// essence in front, JSON has every fact in a field of its own.

import type { JsonObject, RpcId } from "../protocol/jsonrpc.js";
import type { CallRecord } from "./call-record.js";
import type { CallSink } from "./call-recorder.js";
import type { Log, LogFields, LogLevel } from "./log.js";

/** Agents ask for lists all the time, and nothing is done by it. */
export const QUIET: ReadonlySet<string> = new Set([
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "logging/setLevel",
  "tasks/list",
]);

/** Names and ids are as long as an agent likes; real ones are far shorter. */
const MAX_NAME_CHARACTERS = 128;
/** So much of one is looked at for secrets. */
const MAX_NAME_READ = 4_096;

/** A text of this server's, or of any where that is not known, without the secrets of their entries. */
export type RedactName = (server: string | undefined, name: string) => string;

/** So many names are remembered without their secrets; servers have tens of tools, and all of these share a few bytes. */
const MAX_SAFE_NAMES = 4_096;

export class CallLines implements CallSink {
  readonly #log: Log;
  readonly #isJson: boolean;
  /** Lines that are written together. */
  #text = "";
  #count = 0;
  readonly #redact: RedactName;
  /** By server and by the tool's own name. */
  readonly #safeNames = new Map<string, Map<string, string>>();
  #safeCount = 0;

  constructor(log: Log, redact: RedactName = (_, name) => name) {
    this.#log = log;
    this.#redact = redact;
    this.#isJson = log.lines?.format === "json";
  }

  /** Whether any call would be written. */
  get isOn(): boolean {
    return this.#log.lines?.isOn("info") !== false;
  }

  take(record: CallRecord): void {
    const level: LogLevel = QUIET.has(record.method) ? "debug" : "info";
    // Asked each time: the level may be another than at the start.
    if (level === "debug" && this.#log.lines?.isOn("debug") !== true) return;
    const tool = record.tool === undefined ? undefined : this.#safeName(record.server, record.tool);
    const { lines } = this.#log;
    if (lines === undefined) {
      this.#log[level](sentenceOf(record, tool), fieldsOf(record, tool));
      return;
    }
    const text = this.#isJson ? "call" : sentenceOf(record, tool);
    const fields = this.#isJson ? fieldsOf(record, tool) : besides(record);
    this.#text += lines.line(level, record.endedAt, text, fields);
    this.#count++;
  }

  /** A server may name a tool like a secret of its entry. It is redacted before it is cut: half of one is not found. */
  #safeName(server: string | undefined, tool: string): string {
    // What agents make up is looked at each time.
    if (server === undefined) return cut(this.#redact(undefined, tool.slice(0, MAX_NAME_READ)));
    let names = this.#safeNames.get(server);
    let safe = names?.get(tool);
    if (safe !== undefined) return safe;
    safe = cut(this.#redact(server, tool.slice(0, MAX_NAME_READ)));
    if (this.#safeCount >= MAX_SAFE_NAMES) {
      this.forgetNames();
      names = undefined;
    }
    if (names === undefined) {
      names = new Map();
      this.#safeNames.set(server, names);
    }
    names.set(tool, safe);
    this.#safeCount++;
    return safe;
  }

  forgetNames(): void {
    this.#safeNames.clear();
    this.#safeCount = 0;
  }

  batchEnded(dropped: number): void {
    if (this.#count > 0) this.#log.lines?.write(this.#text, this.#count);
    this.#text = "";
    this.#count = 0;
    if (dropped > 0) {
      this.#log.warn(`${dropped} calls are not in the log: they ended faster than it could be written`, { dropped });
    }
  }
}

/** `call files/read_file: ok, 12 ms`. */
function sentenceOf({ method, server, outcome, ms }: CallRecord, tool: string | undefined): string {
  const what = plain(tool ?? cut(method));
  return `call ${server === undefined ? what : `${server}/${what}`}: ${outcome}, ${shortMs(ms)} ms`;
}

/** What the sentence does not say. */
function besides({ principal, clientInfo, cache, bytes }: CallRecord): LogFields {
  return { principal: principal.id, role: principal.role, client: clientOf(clientInfo), cache, bytes };
}

function fieldsOf(record: CallRecord, tool: string | undefined): LogFields {
  const { principal, clientInfo, method, server, outcome, ms, cache, bytesIn, bytes, traceId, id } = record;
  return {
    principal: principal.id,
    role: principal.role,
    client: clientOf(clientInfo),
    method: cut(method),
    server,
    tool,
    outcome,
    ms: shortMs(ms),
    queuedMs: phaseMs(record.queuedMs),
    startingMs: phaseMs(record.startingMs),
    credentialMs: phaseMs(record.credentialMs),
    serverMs: phaseMs(record.serverMs),
    returningMs: phaseMs(record.returningMs),
    cache,
    bytesIn,
    bytes,
    trace: traceId,
    id: shortId(id),
  };
}

/** `claude-code/2.1.0`, in the agent's own words. */
function clientOf({ name, version }: JsonObject): string | undefined {
  if (typeof name !== "string") return undefined;
  return cut(typeof version === "string" ? `${name}/${version}` : name);
}

/** A name that is no word is quoted: an agent may ask for one that reads like the rest of the line. */
function plain(name: string): string {
  return /^[\w./:@-]+$/.test(name) ? name : JSON.stringify(name);
}

function cut(name: string): string {
  return name.length > MAX_NAME_CHARACTERS ? `${name.slice(0, MAX_NAME_CHARACTERS)}…` : name;
}

function shortId(id: RpcId): RpcId {
  return typeof id === "string" ? cut(id) : id;
}

/** A phase that there was not is not told of. */
function phaseMs(ms: number): number | undefined {
  return ms > 0 ? shortMs(ms) : undefined;
}

/** Tenths are enough to tell a cache from a server. */
function shortMs(ms: number): number {
  return ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms);
}
