// The audit log of a gateway: lines for calls, refusals and kept writes, and for what operators do, gathered and written in batches off
// the calls' turn. Where there is no room they wait, within bounds; what is lost is counted, and a line says so when there is
// room again.

import type { EndedWrite } from "../../contracts/outbox.js";
import type { EndedLogin } from "../../contracts/service.js";
import { isObject } from "../../protocol/jsonrpc.js";
import type { RequestMessage } from "../../protocol/message.js";
import { scanMembers } from "../../protocol/scan.js";
import { SECRET_NAME } from "../../runtime/redact/ordinary.js";
import { REDACTED, redactShapes } from "../../runtime/redact/safe-url.js";
import { QUIET } from "../call-lines.js";
import type { AskedArguments, CallRecord } from "../call-record.js";
import type { CallSink } from "../call-recorder.js";
import { isoTimes } from "../log.js";
import { cutName, type RedactName, SafeNames } from "../safe-names.js";
import type { ChainHead } from "./chain.js";
import { Hmac } from "./hmac.js";
import { jsonStart } from "./json-start.js";

/** With the time that records are gathered, at most 100 ms. */
const BATCH_MS = 70;
const BATCH_LINES = 256;
/** A disk that is full is tried again so often. */
const RETRY_MS = 1_000;
/** So many wait for the disk: half a minute of a busy gateway. */
const MAX_WAITING_LINES = 8_192;
const MAX_WAITING_CHARACTERS = 16 * 1024 * 1024;
/** The head goes to the log so often, for whoever keeps the log elsewhere. */
const ANCHOR_MS = 3_600_000;
/** Names and ids are as long as an agent likes. */
const MAX_NAME_CHARACTERS = 256;
/** So much of arguments goes into their HMAC. Redacted ones are not looked at beyond it. */
const MAX_HMAC_CHARACTERS = 64 * 1024;
/** Of so short a request the HMAC is made when its call ends: to hold the request until there is time costs more. */
const MAX_AT_ONCE_CHARACTERS = 4 * 1024;
/** So much of redacted arguments is written; longer ones are their length. */
const MAX_REDACTED_CHARACTERS = 4 * 1024;
/** Tokens that are refused are a line each, up to so many a second of one address. */
const MAX_REFUSED_A_SECOND = 10;
/** So many addresses are told apart in a second; the others are one. */
const MAX_ADDRESSES = 1_000;

export interface AuditedArguments {
  readonly mode: "none" | "hmac" | "redacted";
  /** Of the HMAC. */
  readonly key: Uint8Array;
}

export interface AuditLogOptions {
  readonly writer: {
    append(bodies: readonly string[]): Promise<void>;
    readonly head: ChainHead;
    close(): Promise<void>;
  };
  readonly onFull: "drop" | "refuse";
  readonly arguments: AuditedArguments;
  readonly redact: RedactName;
  readonly wall: () => number;
  /** Keeps the head where who changes the files does not reach. Rejects where it cannot. */
  readonly keepHead: (head: ChainHead) => Promise<void>;
  readonly anchor: (head: ChainHead) => void;
  readonly told: (level: "warn" | "info", text: string) => void;
}

export class AuditLog implements CallSink {
  readonly #options: AuditLogOptions;
  readonly #names: SafeNames;
  readonly #hmac: Hmac;
  readonly #time = isoTimes();
  #waiting: string[] = [];
  #waitingCharacters = 0;
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #anchors: NodeJS.Timeout;
  #anchored = 0;
  #problem: string | undefined;
  #problemAt: string | undefined;
  #lost = 0;
  #lostAt: string | undefined;
  /** Those of them that no line has told of yet. */
  #lostUntold = 0;
  #written = 0;
  #refusedSecond = 0;
  readonly #refused = new Map<string, number>();
  /** Ends a second in which more came than is told one by one, also where none comes after it. */
  #secondTimer: NodeJS.Timeout | undefined;

  constructor(options: AuditLogOptions) {
    this.#options = options;
    this.#names = new SafeNames(options.redact, MAX_NAME_CHARACTERS);
    this.#hmac = new Hmac(options.arguments.key);
    this.#anchors = setInterval(() => this.#anchor(), ANCHOR_MS).unref();
  }

  get counts(): { readonly written: number; readonly lost: number } {
    return { written: this.#written, lost: this.#lost };
  }

  /** When the last line was lost, and since when nothing can be written. */
  get times(): { readonly lostAt: string | undefined; readonly problemAt: string | undefined } {
    return { lostAt: this.#lostAt, problemAt: this.#problemAt };
  }

  get head(): ChainHead {
    return this.#options.writer.head;
  }

  /** Why nothing can be written; undefined where it can. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Whether calls are to be refused until there is room. */
  get isRefusing(): boolean {
    return this.#options.onFull === "refuse" && this.#problem !== undefined;
  }

  get wantsArguments(): boolean {
    return this.#options.arguments.mode !== "none";
  }

  /** What it needs of a call's arguments when there is time to write its line. */
  argumentsOf(message: RequestMessage): AskedArguments {
    const isShort = this.#options.arguments.mode === "hmac" && message.text.length <= MAX_AT_ONCE_CHARACTERS;
    return isShort ? { shown: this.#shown(message, undefined) } : { message };
  }

  /** To be called with every config: secrets may be others. */
  forgetNames(): void {
    this.#names.forget();
  }

  take(record: CallRecord): void {
    // Agents ask for lists all the time, and nothing is done by it; one that is refused is told.
    if (record.refusedBy === undefined && QUIET.has(record.method)) return;
    this.add(this.#bodyOf(record));
  }

  batchEnded(dropped: number): void {
    this.#lose(dropped);
  }

  /** An act of an operator, by way of another gateway on the engine too. `target` are names and ids, never secrets. */
  operator(
    by: "socket" | "page" | "gateway",
    act: string,
    target: Readonly<Record<string, string>>,
    outcome: string,
  ): void {
    const time = this.#time(this.#options.wall());
    this.add(JSON.stringify({ time, kind: "operator", by, act, target: shortened(target), outcome }));
  }

  /** A kept write has ended, after its call was answered by a receipt. What was done is `ok`, as it is for a call. */
  keptWrite({ id, server, tool, principal }: EndedWrite["facts"], state: EndedWrite["state"]): void {
    this.add(
      JSON.stringify({
        time: this.#time(this.#options.wall()),
        kind: "write",
        principal: principal.id,
        role: principal.role,
        server,
        tool: this.#names.of(server, tool),
        outcome: state === "done" ? "ok" : state,
        receipt: id,
      }),
    );
  }

  login({ server, outcome, ...wanted }: EndedLogin): void {
    const time = this.#time(this.#options.wall());
    const whose = wanted.by === "call" ? { principal: wanted.principal.id, role: wanted.principal.role } : undefined;
    this.add(JSON.stringify({ time, kind: "login", by: wanted.by, ...whose, server, outcome }));
  }

  /** A request that was refused at the door: whose token is not known. */
  refusedToken(address: string, path: string, why: string): void {
    const nowMs = this.#options.wall();
    const second = Math.floor(nowMs / 1_000);
    if (second !== this.#refusedSecond) this.#endSecond(second);
    const key = this.#refused.has(address) || this.#refused.size < MAX_ADDRESSES ? address : "";
    const count = (this.#refused.get(key) ?? 0) + 1;
    this.#refused.set(key, count);
    if (count > MAX_REFUSED_A_SECOND) {
      this.#secondTimer ??= setTimeout(() => this.#endSecond(0), 1_000).unref();
      return;
    }
    const line = { time: this.#time(nowMs), kind: "refusal", rule: "token", address, path: cut(path), why: cut(why) };
    this.add(JSON.stringify(line));
  }

  /** A JSON object as text, with `time` and `kind`. */
  add(body: string): void {
    const isFull =
      this.#waiting.length >= MAX_WAITING_LINES || this.#waitingCharacters + body.length > MAX_WAITING_CHARACTERS;
    if (isFull) {
      this.#lose(1);
      return;
    }
    this.#waiting.push(body);
    this.#waitingCharacters += body.length;
    if (this.#waiting.length >= BATCH_LINES && this.#problem === undefined) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), this.#problem === undefined ? BATCH_MS : RETRY_MS).unref();
  }

  /** Resolves when what waits is written, or cannot be. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
      // What came while a full disk was tried, or was left by it.
      if (this.#waiting.length > 0 || this.#lostUntold > 0) {
        this.#timer ??= setTimeout(() => void this.flush(), this.#problem === undefined ? BATCH_MS : RETRY_MS).unref();
      }
    });
    return this.#writing;
  }

  async close(): Promise<void> {
    clearInterval(this.#anchors);
    this.#endSecond(0);
    await this.flush();
    if (this.#waiting.length > 0) await this.flush();
    clearTimeout(this.#timer);
    this.#anchor();
    await this.#options.writer.close();
  }

  async #write(): Promise<void> {
    const { writer, keepHead, onFull, told, wall } = this.#options;
    while (this.#waiting.length > 0 || this.#lostUntold > 0) {
      const lines = this.#waiting.slice(0, BATCH_LINES);
      const lost = this.#lostUntold;
      const gap = lost > 0 ? [JSON.stringify({ time: this.#time(wall()), kind: "gap", lost })] : [];
      try {
        await writer.append([...gap, ...lines]);
      } catch (error) {
        const why = (error as Error).message;
        if (this.#problem === undefined) {
          const then =
            onFull === "refuse" ? "calls are refused until it can" : "lines that find no room are counted as lost";
          told("warn", `the audit log cannot be written: ${why}; ${then}`);
        }
        this.#problem = why;
        this.#problemAt ??= this.#time(wall());
        return;
      }
      this.#lostUntold -= lost;
      this.#waiting.splice(0, lines.length);
      for (const line of lines) this.#waitingCharacters -= line.length;
      this.#written += lines.length;
      if (this.#problem !== undefined) told("info", "the audit log can be written again");
      this.#problem = undefined;
      this.#problemAt = undefined;
      await keepHead(writer.head).catch((error: unknown) =>
        told("warn", `the head of the audit log could not be kept: ${(error as Error).message}`),
      );
    }
  }

  #lose(count: number): void {
    if (count === 0) return;
    this.#lost += count;
    this.#lostUntold += count;
    this.#lostAt = this.#time(this.#options.wall());
    this.#timer ??= setTimeout(() => void this.flush(), RETRY_MS).unref();
  }

  #anchor(): void {
    const { head } = this;
    if (head.seq === this.#anchored) return;
    this.#anchored = head.seq;
    this.#options.anchor(head);
  }

  /** What came too fast in the second that is over is one line. */
  #endSecond(second: number): void {
    clearTimeout(this.#secondTimer);
    this.#secondTimer = undefined;
    this.#refusedSecond = second;
    const counts = [...this.#refused];
    this.#refused.clear();
    for (const [address, count] of counts) {
      const more = count - MAX_REFUSED_A_SECOND;
      if (more <= 0) continue;
      const time = this.#time(this.#options.wall());
      this.add(JSON.stringify({ time, kind: "refusal", rule: "token", address: address || undefined, more }));
    }
  }

  #bodyOf(record: CallRecord): string {
    const { principal, clientInfo, server, tool, refusedBy, traceId, id } = record;
    const { name } = clientInfo;
    return JSON.stringify({
      time: this.#time(record.endedAt),
      kind: refusedBy === undefined ? "call" : "refusal",
      rule: refusedBy,
      principal: principal.id,
      role: principal.role,
      client: typeof name === "string" ? cut(name) : undefined,
      method: cut(record.method),
      server,
      tool: tool === undefined ? undefined : this.#names.of(server, tool),
      outcome: record.outcome,
      ms: Math.round(record.ms * 10) / 10,
      attempt: record.attempt > 1 ? record.attempt : undefined,
      bytesIn: record.bytesIn,
      bytes: record.bytes,
      id: typeof id === "string" ? cut(id) : id,
      trace: traceId,
      arguments: record.asked === undefined ? undefined : this.#arguments(record.asked, server),
    });
  }

  #arguments(asked: AskedArguments, server: string | undefined): unknown {
    return asked.message === undefined ? asked.shown : this.#shown(asked.message, server);
  }

  #shown(message: RequestMessage, server: string | undefined): unknown {
    const { params, text } = message;
    const { mode } = this.#options.arguments;
    const args = isObject(params) ? params["arguments"] : undefined;
    if (args === undefined || mode === "none") return undefined;
    if (mode === "hmac") {
      // The rest of long ones is not written out anew: that would take as long as the call.
      const json = text.length > MAX_HMAC_CHARACTERS ? jsonStart(args, MAX_HMAC_CHARACTERS + 1) : JSON.stringify(args);
      if (json.length <= MAX_HMAC_CHARACTERS) return { hmac: this.#hmac.of(json), length: json.length };
      return { hmac: this.#hmac.of(json.slice(0, MAX_HMAC_CHARACTERS)), length: writtenLength(message) };
    }
    if (text.length > MAX_HMAC_CHARACTERS) {
      const length = writtenLength(message);
      if (length > MAX_HMAC_CHARACTERS) return { length };
    }
    const shown = redactedValue("", args, (text) => redactShapes(this.#options.redact(server, text)));
    const { length } = JSON.stringify(shown);
    return length > MAX_REDACTED_CHARACTERS ? { length } : shown;
  }
}

/** How long the arguments are in the agent's own text. Of two of that name the last one is meant, as where it was parsed. */
function writtenLength({ text, members, inParams }: RequestMessage): number {
  const params = members.findLast(({ key }) => key === "params");
  if (params === undefined) return 0;
  const args = (inParams ?? scanMembers(text, params.start)).findLast(({ key }) => key === "arguments");
  return args === undefined ? 0 : args.end - args.start;
}

/** How deep it goes is bounded where messages are read. */
function redactedValue(name: string, value: unknown, redact: (text: string) => string): unknown {
  if (SECRET_NAME.test(name)) return REDACTED;
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map((one, index) => redactedValue(String(index), one, redact));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, redactedValue(key, one, redact)]));
}

function shortened(target: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(target).map(([key, value]) => [key, cut(value)]));
}

function cut(text: string): string {
  return cutName(text, MAX_NAME_CHARACTERS);
}
