// Calls in the log: one line each, at `info`; what only lists or sets a level is at `debug`. Text for people has the
// essence in front, JSON has every fact in a field of its own.

import type { Principal } from "../contracts/caller.js";
import type { JsonObject, RpcId } from "../protocol/jsonrpc.js";
import { shortMs } from "../runtime/clock.js";
import type { CallRecord } from "./call-record.js";
import type { CallSink } from "./call-recorder.js";
import { fieldsText, type Log, type LogFields, type LogLevel } from "./log.js";
import { cutName, MAX_NAME_CHARACTERS, type RedactName, SafeNames } from "./safe-names.js";

/** Agents ask for lists all the time, and nothing is done by it. */
export const QUIET: ReadonlySet<string> = new Set([
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "logging/setLevel",
  "tasks/list",
]);

export class CallLines implements CallSink {
  readonly #log: Log;
  readonly #isJson: boolean;
  /** Lines that are written together. */
  #text = "";
  #count = 0;
  readonly #names: SafeNames;
  /** Whose call was written last, and how that reads: the next one is seldom another's. */
  #who: { principal: Principal; name: unknown; version: unknown; text: string } | undefined;

  constructor(log: Log, redact: RedactName = (_, name) => name) {
    this.#log = log;
    this.#names = new SafeNames(redact, MAX_NAME_CHARACTERS);
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
    const tool = record.tool === undefined ? undefined : this.#names.of(record.server, record.tool);
    const { lines } = this.#log;
    if (lines === undefined) {
      this.#log[level](sentenceOf(record, tool), fieldsOf(record, tool));
      return;
    }
    this.#text += this.#isJson
      ? lines.line(level, record.endedAt, "call", fieldsOf(record, tool))
      : lines.line(level, record.endedAt, sentenceOf(record, tool) + this.#besides(record));
    this.#count++;
  }

  /** What the sentence does not say, as the log writes fields. */
  #besides({ principal, clientInfo, cache, bytes }: CallRecord): string {
    const { name, version } = clientInfo;
    let who = this.#who;
    if (who?.principal !== principal || who.name !== name || who.version !== version) {
      const fields = { principal: principal.id, role: principal.role, client: clientOf(clientInfo) };
      who = { principal, name, version, text: fieldsText(fields) };
      // A long name is not held for the sake of the next line.
      this.#who = isShort(name) && isShort(version) ? who : undefined;
    }
    if (cache === undefined) return bytes === undefined ? who.text : `${who.text} bytes=${bytes}`;
    return who.text + fieldsText({ cache, bytes });
  }

  forgetNames(): void {
    this.#names.forget();
  }

  batchEnded(dropped: number): void {
    if (this.#count > 0) this.#log.lines?.write(this.#text, this.#count);
    this.#text = "";
    this.#count = 0;
    if (dropped > 0) {
      const calls = dropped === 1 ? "1 call is not in the log: it" : `${dropped} calls are not in the log: they`;
      this.#log.warn(`${calls} ended faster than it could be written`, { dropped });
    }
  }
}

/** `call files/read_file: ok, 12 ms`. */
function sentenceOf({ method, server, outcome, ms }: CallRecord, tool: string | undefined): string {
  const what = plain(tool ?? cutName(method));
  return `call ${server === undefined ? what : `${server}/${what}`}: ${outcome}, ${shortMs(ms)} ms`;
}

function fieldsOf(record: CallRecord, tool: string | undefined): LogFields {
  const { principal, clientInfo, method, server, outcome, ms, cache, bytesIn, bytes, traceId, id } = record;
  return {
    principal: principal.id,
    role: principal.role,
    client: clientOf(clientInfo),
    method: cutName(method),
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
  return cutName(typeof version === "string" ? `${name}/${version}` : name);
}

/** A name that is no word is quoted: an agent may ask for one that reads like the rest of the line. */
function plain(name: string): string {
  return /^[\w./:@-]+$/.test(name) ? name : JSON.stringify(name);
}

function isShort(name: unknown): boolean {
  return name === undefined || (typeof name === "string" && name.length <= MAX_NAME_CHARACTERS);
}

function shortId(id: RpcId): RpcId {
  return typeof id === "string" ? cutName(id) : id;
}

/** A phase that there was not is not told of. */
function phaseMs(ms: number): number | undefined {
  return ms > 0 ? shortMs(ms) : undefined;
}
