// Makes a ServerConfig of one entry of `mcpServers`: decides which kind it is, expands variables, resolves paths, and
// reports what is wrong with it.

import { ownToolName } from "../contracts/names.js";
import type {
  MailboxTarget,
  OutsideValue,
  ServerSpec,
  StdioTarget,
  Supervision,
  Target,
} from "../contracts/server-spec.js";
import type { Override } from "../contracts/settings.js";
import { isLoopback } from "../runtime/addresses.js";
import { nearest } from "../runtime/nearest.js";
import { BAD_HEADER_VALUE, HEADER_NAME } from "../runtime/network/headers.js";
import { isOwnSecret } from "../runtime/redact/secrets-of.js";
import { readTextFile } from "../runtime/text-file.js";
import { decoded } from "../runtime/words/percent.js";
import { resolveAuth } from "./auth.js";
import { FOREIGN_ENTRY_KEYS, type ForeignReading, isForeignMeaning, SYNONYMS } from "./clients/foreign-keys.js";
import {
  DEFAULT_AWAY_WAIT_MS,
  defaultSupervision,
  neverGivenUp,
  OUTBOX_EJECTED_PROBE_MS,
  type ServerConfig,
  type ServerMenu,
  type ToolOverride,
} from "./config.js";
import type { KeyPath, Report } from "./mistakes.js";
import { resolveOutbox } from "./outbox-terms.js";
import { absolutePath, commandPath } from "./paths.js";
import { ENTRY_KEYS, type OverrideEntry, type ServerEntry, type serverForm, type ToolEntry, TYPES } from "./schema.js";
import { expandAt, isOrdinaryVariable, parseEnvFile, type ResolveContext, text } from "./variables.js";

/** An entry as far as it could be read. `attempted` has the keys that are there, but could not be read. */
export type ReadEntry = { readonly [K in keyof typeof serverForm.fields]?: ServerEntry[K] | undefined } & {
  readonly attempted: readonly string[];
};

/** `server` is undefined, and the reasons in the report, where the entry cannot be used. */
export function resolveServer(
  name: string,
  entry: ReadEntry,
  path: KeyPath,
  context: ResolveContext,
): { readonly server: ServerConfig | undefined; readonly menu: ServerMenu } {
  const target = resolveTarget(entry, path, context);
  const tools = resolveOverrides(entry.tools, toolOverride, [...path, "tools"], context.report);
  const prompts = resolveOverrides(entry.prompts, override, [...path, "prompts"], context.report);
  const card = entry.card === undefined ? undefined : resolveCard(entry.card, [...path, "card"], context);
  const { isolation, era, declare, connectTimeoutMs, callTimeoutMs, budget } = entry;
  if (era === "modern" && entry.type === "sse") {
    context.report.mistake([...path, "era"], "the old HTTP+SSE is of the legacy era alone", { hint: "remove the key" });
  }
  if (entry.placement === "one") checkPlacement(entry, target, path, context.report);
  const menu: ServerMenu = { tools, prompts, only: entry.only };
  if (target === undefined || isolation === undefined) return { server: undefined, menu };
  if (connectTimeoutMs === undefined || callTimeoutMs === undefined) return { server: undefined, menu };
  const said = resolveSupervision(entry, target, path, context.report);
  const supervision = target.kind === "mailbox" ? neverGivenUp(said) : said;
  // Gemini CLI's `true` means that it need not ask a person; it says nothing of changed tools.
  const trust = entry.trust === "always" ? "always" : "pinned";
  const harmless = Object.keys(tools).filter((own) => tools[own]?.readOnly || tools[own]?.idempotent);
  const spec: ServerSpec = {
    name,
    target,
    isolation,
    // What goes through a mailbox is of the modern era, which has no handshake; both ends translate.
    era: target.kind === "mailbox" ? "modern" : era,
    declare,
    connectTimeoutMs,
    callTimeoutMs,
    supervision,
    trust,
    repeatable: new Set(harmless.map(ownToolName)),
    outbox: resolveOutbox(entry, target.kind === "mailbox", [...path, "tools"], context.report),
    ...(entry.placement === "one" ? { placement: "one" as const } : {}),
    card,
  };
  return { server: { ...spec, ...menu, budget }, menu };
}

/** It says where a program runs, and one that each session has for itself is where its session is. */
function checkPlacement({ isolation }: ReadEntry, target: Target | undefined, path: KeyPath, report: Report): void {
  if (target !== undefined && target.kind !== "stdio") {
    const what = target.kind === "mailbox" ? "a mailbox" : "an address";
    report.mistake([...path, "placement"], `"one" is for a "command": nothing is started for ${what}`, {
      hint: "remove the key: all gateways reach the same server",
    });
  }
  if (isolation === "session") {
    const hint = 'remove the key, or the "isolation": one process for all sessions is what "shared" means';
    report.mistake([...path, "placement"], '"one" has no meaning beside "isolation": "session"', { hint });
  }
}

/** Where a key could not be read, the report has said so, and the default does no harm. */
function resolveSupervision(entry: ReadEntry, target: Target, path: KeyPath, report: Report): Supervision {
  const usual = defaultSupervision(target.kind);
  const { restarts, backoff, breaker, callCeilingMs, lazy, callTimeoutMs } = entry;
  if (backoff !== undefined && backoff.maxMs < backoff.baseMs) {
    report.mistake([...path, "backoff", "maxMs"], `expected at least "baseMs", which is ${backoff.baseMs}`);
  }
  const isKept = Object.values(entry.tools ?? {}).some(({ outbox }) => outbox !== undefined && outbox !== false);
  const isAddress = target.kind === "http" || target.kind === "sse";
  const probeMs = isKept && isAddress ? OUTBOX_EJECTED_PROBE_MS : usual.ejectedProbeMs;
  return {
    restarts: restarts ?? usual.restarts,
    backoff: backoff ?? usual.backoff,
    breaker: breaker ?? usual.breaker,
    ejectedProbeMs: interval(entry.ejectedProbeMs, probeMs),
    lazy: lazy ?? usual.lazy,
    keepAliveMs: entry.keepAliveMs,
    pingMs: interval(entry.pingMs, usual.pingMs),
    // A call may always take as long as one without progress may.
    callCeilingMs: Math.max(callCeilingMs ?? usual.callCeilingMs, callTimeoutMs ?? 0),
    sessionConnections: entry.sessionConnections ?? usual.sessionConnections,
  };
}

/** In a file, 0 means never. */
function interval(said: number | undefined, usual: number | undefined): number | undefined {
  return said === undefined ? usual : said === 0 ? undefined : said;
}

function resolveCard(raw: string, path: KeyPath, context: ResolveContext): string | undefined {
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(raw)) return resolveUrl(raw, path, context);
  return absolutePath(text(raw, path, context), context.dir, context.variables.home);
}

/** Tells what has to be said of keys of other clients. */
export function tellForeign({ remarks }: ForeignReading, path: KeyPath, report: Report): void {
  for (const { kind, key, message, hint } of remarks) report[kind]([...path, key], message, { hint, onKey: true });
}

/**
 * Tells of keys that we do not know, but for those that other clients are known to write. Returns the keys that
 * were probably meant.
 */
export function checkEntryKeys(entry: object, path: KeyPath, report: Report): string[] {
  const attempted: string[] = [];
  for (const key of Object.keys(entry)) {
    if (ENTRY_KEYS.includes(key) || FOREIGN_ENTRY_KEYS.has(key) || isForeignMeaning(key)) continue;
    const at = [...path, key];
    const near = nearest(key, ENTRY_KEYS);
    if (near !== undefined) {
      report.mistake(at, "unknown key", { hint: `did you mean "${near}"?`, onKey: true });
      attempted.push(near);
      continue;
    }
    const synonym = Object.hasOwn(SYNONYMS, key) ? SYNONYMS[key] : undefined;
    const hint = synonym === undefined ? undefined : `did you mean "${synonym}"?`;
    report.warning(at, "unknown key, ignored", { hint, onKey: true });
  }
  return attempted;
}

const URL_KEYS = ["url", "httpUrl", "serverUrl"] as const;

function resolveTarget(entry: ReadEntry, path: KeyPath, whole: ResolveContext): Target | undefined {
  const outside: OutsideValue[] = [];
  const target = resolveParts(entry, path, { ...whole, outside });
  if (target === undefined || outside.length === 0) return target;
  // One that is named twice is one.
  const secrets = new Map(outside.map((one) => [`${one.name}=${one.value}`, one]));
  return { ...target, secrets: [...secrets.values()] };
}

function resolveParts(entry: ReadEntry, path: KeyPath, context: ResolveContext): Target | undefined {
  const kind = entry.type === undefined ? undefined : TYPES[entry.type];
  const urlKey = URL_KEYS.find((key) => entry[key] !== undefined);
  if (!isDecided(entry, path, context.report)) {
    // What else is wrong in it is told all the same.
    resolveStdio("", entry, path, context);
    resolveHeaders(entry.headers ?? {}, [...path, "headers"], context);
    return undefined;
  }
  const via = resolveVia(entry, path, context);
  const auth = entry.auth === undefined ? undefined : resolveAuth(entry, path, context);
  if (entry.mailbox !== undefined) return resolveMailbox(entry.mailbox, entry, path, context);
  if (urlKey === undefined) return resolveStdio(entry.command ?? "", entry, path, context);
  const headers = resolveHeaders(entry.headers ?? {}, [...path, "headers"], context);
  const address = resolveAddress(entry[urlKey] ?? "", [...path, urlKey], context);
  if (address === undefined) return undefined;
  if (via !== undefined && address.socketPath !== undefined) {
    const hint = "remove one of the two";
    context.report.mistake([...path, "via"], "a Unix socket is on this machine, and no executor reaches it", { hint });
  }
  return {
    kind: kind === "sse" ? "sse" : "http",
    ...address,
    headers,
    ...(auth === undefined ? {} : { auth }),
    ...(via === undefined ? {} : { via }),
  };
}

/** Keys that mean something of a server that is reached directly, and what to do where they stand beside a mailbox. */
const NOT_BESIDE_MAILBOX = {
  type: "remove the key",
  via: "remove the key",
  headers: "remove the key",
  auth: "remove the key",
  args: "remove the key",
  env: "remove the key, or set it where the machine shares",
  cwd: "remove the key",
  envFile: "remove the key",
  era: "remove the key",
  declare: "remove the key",
} as const;

function resolveMailbox(
  mailbox: string,
  entry: ReadEntry,
  path: KeyPath,
  context: ResolveContext,
): MailboxTarget | undefined {
  const { report } = context;
  for (const [key, hint] of Object.entries(NOT_BESIDE_MAILBOX)) {
    if (entry[key as keyof typeof NOT_BESIDE_MAILBOX] === undefined) continue;
    report.mistake([...path, key], `"${key}" has no meaning beside "mailbox"`, { hint, onKey: true });
  }
  if (entry.isolation === "session") {
    const hint = 'set "isolation" where the machine shares: there each session of an agent is told from others';
    report.mistake([...path, "isolation"], 'a mailbox has one connection for all: expected "shared"', { hint });
  }
  const token = entry.token === undefined ? undefined : resolveToken(entry.token, [...path, "token"], context);
  if (entry.broker === undefined) {
    // The gateway's own broker knows its own worker, and asks it for no token.
    if (entry.token !== undefined) {
      const hint = 'remove the key, or add "broker": "wss://…"';
      report.mistake([...path, "token"], 'a "token" is shown to a "broker", and there is none', { hint, onKey: true });
    }
    if (context.hasBroker !== true) {
      report.mistake([...path, "mailbox"], 'expected the address of its "broker"', {
        hint: 'add "broker": "wss://…", or keep mailboxes in this gateway: "mailboxes": {} beside "mcpServers"',
        onKey: true,
      });
      return undefined;
    }
  }
  const broker =
    entry.broker === undefined
      ? undefined
      : resolveSocketUrl(entry.broker, [...path, "broker"], "the token and all messages", context);
  if (entry.broker !== undefined && broker === undefined) return undefined;
  return {
    kind: "mailbox",
    mailbox: text(mailbox, [...path, "mailbox"], context),
    broker,
    token,
    awayWaitMs: entry.awayWaitMs ?? DEFAULT_AWAY_WAIT_MS,
  };
}

export function resolveToken(raw: string, path: KeyPath, context: ResolveContext): string | undefined {
  const { value, complete } = expandAt(raw, path, context);
  if (!complete) return undefined;
  if (/^[\x21-\x7e]+$/.test(value)) return value;
  context.report.mistake(path, "expected a token without spaces, in letters that can be sent in a header");
  return undefined;
}

/** `what` goes there, and is read on the way where it is not encrypted. */
export function resolveSocketUrl(
  raw: string,
  path: KeyPath,
  what: string,
  context: ResolveContext,
): string | undefined {
  const { value, complete } = expandAt(raw, path, context);
  if (!complete) return undefined;
  const url = URL.canParse(value.trim()) ? new URL(value.trim()) : undefined;
  if (url?.protocol !== "ws:" && url?.protocol !== "wss:") {
    // The value may hold a secret by now, so it is not shown.
    context.report.mistake(path, "expected an address that starts with ws:// or wss://", {
      hint: 'for instance "wss://example.com"',
    });
    return undefined;
  }
  if (url.protocol === "ws:" && !isLoopback(url.hostname)) {
    context.report.warning(path, `${what} go there unencrypted`, { hint: "use wss://" });
  }
  return url.href;
}

function resolveVia({ via, command }: ReadEntry, path: KeyPath, context: ResolveContext): string | undefined {
  if (via === undefined) return undefined;
  const { report, executors = [] } = context;
  const at = [...path, "via"];
  if (command !== undefined) {
    report.mistake(at, 'an executor makes HTTP requests: expected a "url" with it, found a "command"', {
      hint: "run the program in that network, behind HTTP, or remove the key",
      onKey: true,
    });
  } else if (!executors.includes(via)) {
    const near = nearest(via, executors);
    const hint = near === undefined ? `add it: "executors": { ${JSON.stringify(via)}: {} }` : `did you mean "${near}"?`;
    report.mistake(at, `there is no executor ${JSON.stringify(via)} in "executors"`, { hint });
  }
  return via;
}

/** True where the entry is either a program or an address; the report says why it is not. */
function isDecided(entry: ReadEntry, path: KeyPath, report: Report): boolean {
  const [urlKey, secondUrlKey] = URL_KEYS.filter((key) => entry[key] !== undefined);
  const kind = entry.type === undefined ? undefined : TYPES[entry.type];
  const wrong = (key: string, message: string, hint?: string, onKey = true): false => {
    report.mistake([...path, key], message, { hint, onKey });
    return false;
  };
  if (entry.mailbox !== undefined) {
    const other = entry.command === undefined ? urlKey : "command";
    if (other === undefined) return true;
    const hint = "a server is a program to start, an address to connect to or the mailbox of a machine: remove one";
    return wrong(other, `expected either "mailbox" or "${other}", found both`, hint);
  }
  const stray = (["broker", "token"] as const).find((key) => entry[key] !== undefined);
  if (stray !== undefined) {
    const isMisspelt = entry.attempted.includes("mailbox");
    if (!isMisspelt) wrong(stray, `"${stray}" stands beside a "mailbox", and there is none`, 'add "mailbox": "NAME"');
    return false;
  }
  if (entry.command !== undefined && urlKey !== undefined) {
    const hint = "a server is a program to start or an address to connect to: remove one";
    return wrong(urlKey, `expected either "command" or "${urlKey}", found both`, hint);
  }
  if (secondUrlKey !== undefined) {
    return wrong(secondUrlKey, `"${urlKey}" and "${secondUrlKey}" mean the same: expected one of them`, "remove one");
  }
  if (entry.command !== undefined && kind !== undefined && kind !== "stdio") {
    const message = `"${entry.type}" needs a "url", and the entry has a "command"`;
    return wrong("type", message, 'set "type" to "stdio" or remove it', false);
  }
  if (urlKey !== undefined && kind === "stdio") {
    const message = `"${entry.type}" needs a "command", and the entry has a "${urlKey}"`;
    return wrong("type", message, 'set "type" to "http" or remove it', false);
  }
  if (entry.command !== undefined || urlKey !== undefined) return true;
  // Said already, where the key is there but wrong.
  if (
    entry.attempted.some(
      (key) => key === "command" || key === "type" || key === "mailbox" || URL_KEYS.some((word) => word === key),
    )
  ) {
    return false;
  }
  const missing = kind === undefined ? '"command" or "url"' : kind === "stdio" ? '"command"' : '"url"';
  const hint = 'for instance "command": "npx" with "args", or "url": "https://example.com/mcp"';
  report.mistake(path, `missing: expected ${missing}`, { hint, onKey: true });
  return false;
}

function resolveStdio(command: string, entry: ReadEntry, path: KeyPath, around: ResolveContext): StdioTarget {
  const { dir } = around;
  const { home } = around.variables;
  const context = { ...around, variables: { ...around.variables, forProcess: true } };
  const cwd = entry.cwd === undefined ? "." : text(entry.cwd, [...path, "cwd"], context);
  const fromFile = entry.envFile === undefined ? {} : readEnvFile(entry.envFile, [...path, "envFile"], context);
  return {
    kind: "stdio",
    command: commandPath(text(command, [...path, "command"], context), dir, home),
    args: (entry.args ?? []).map((arg, index) => text(arg, [...path, "args", index], context)),
    env: { ...fromFile, ...resolveEnv(entry.env ?? {}, [...path, "env"], context) },
    cwd: absolutePath(cwd, dir, home),
  };
}

function resolveEnv(
  env: NonNullable<ServerEntry["env"]>,
  path: KeyPath,
  context: ResolveContext,
): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    const at = [...path, name];
    if (!/^[^=\0]+$/.test(name)) {
      context.report.mistake(at, 'expected the name of a variable, without "="', { onKey: true });
    } else if (value !== null && isOwnSecret(name)) {
      const why = "has no effect: variables of Toolway's own that hold a token or a key are given to no server";
      context.report.warning(at, why, { onKey: true });
      text(String(value), at, context);
    } else if (value !== null) {
      result[name] = text(String(value), at, context);
    }
  }
  return result;
}

function readEnvFile(file: string, path: KeyPath, context: ResolveContext): Record<string, string> {
  const { dir, variables, report } = context;
  const full = absolutePath(text(file, path, context), dir, variables.home);
  try {
    const read = parseEnvFile(readTextFile(full));
    for (const [name, value] of Object.entries(read))
      if (!isOrdinaryVariable(name)) context.outside?.push({ name, value });
    return read;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    report.mistake(path, `this file cannot be read: ${code === "ENOENT" ? "it does not exist" : code}`, {
      hint: "the path is relative to the folder of the config; create the file or remove the key",
    });
    return {};
  }
}

/** As VS Code writes it, `unix:///path/to.sock#/mcp`, and as proxies do, `unix:///path/to.sock:/mcp`. */
const UNIX_ADDRESS = /^unix:(?:\/\/)?([^#]+?)(?:[#:](\/.*))?$/s;

/** What the kernels allow in the address of a socket: 108 bytes on Linux, 104 on macOS, the last of them zero. */
const MAX_SOCKET_PATH = 103;

/** An address over the network, or on a Unix socket of this machine. */
function resolveAddress(
  raw: string,
  path: KeyPath,
  context: ResolveContext,
): { readonly url: string; readonly socketPath?: string } | undefined {
  if (!/^\s*unix:/i.test(raw)) {
    const url = resolveUrl(raw, path, context);
    return url === undefined ? undefined : { url };
  }
  const { value, complete } = expandAt(raw, path, context);
  if (!complete) return undefined;
  const [, socket = "", rest = "/"] = UNIX_ADDRESS.exec(value.trim()) ?? [];
  if (!/^(?:~|\.{0,2})\/.*[^/]$/s.test(socket) || !URL.canParse(rest, "http://localhost")) {
    context.report.mistake(path, "expected the path of a socket after unix://", {
      hint: 'for instance "unix:///run/server.sock#/mcp"',
    });
    return undefined;
  }
  // An address may have spaces as %20.
  const socketPath = absolutePath(decoded(socket), context.dir, context.variables.home);
  if (Buffer.byteLength(socketPath) > MAX_SOCKET_PATH) {
    context.report.mistake(path, `the path of a socket has at most ${MAX_SOCKET_PATH} bytes`, {
      hint: "put it into a folder that is less deep",
    });
    return undefined;
  }
  return { url: new URL(rest, "http://localhost").href, socketPath };
}

export function resolveUrl(raw: string, path: KeyPath, context: ResolveContext): string | undefined {
  const { value, complete } = expandAt(raw, path, context);
  if (!complete) return undefined;
  const url = URL.canParse(value.trim()) ? new URL(value.trim()) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return url.href;
  // The value may hold a secret by now, so it is not shown.
  context.report.mistake(path, "expected an address that starts with http:// or https://", {
    hint: 'for instance "https://example.com"',
  });
  return undefined;
}

function resolveHeaders(
  headers: NonNullable<ServerEntry["headers"]>,
  path: KeyPath,
  context: ResolveContext,
): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, raw] of Object.entries(headers)) {
    const at = [...path, name];
    const value = text(String(raw), at, context);
    if (!HEADER_NAME.test(name)) {
      context.report.mistake(at, "expected the name of a header: letters, digits and dashes", { onKey: true });
    } else if (BAD_HEADER_VALUE.test(value)) {
      context.report.mistake(at, "a header must not hold line breaks, control characters or letters beyond Latin-1");
    } else {
      result[name] = value;
    }
  }
  return result;
}

function override({ name, description, hide }: OverrideEntry): Override {
  return { name, description, hide };
}

function toolOverride(entry: ToolEntry): ToolOverride {
  const { readOnly, idempotent, cache, ask } = entry;
  return { ...override(entry), readOnly, idempotent, cache, ask };
}

function resolveOverrides<E extends OverrideEntry, O extends Override>(
  entries: Readonly<Record<string, E>> | undefined,
  made: (entry: E) => O,
  path: KeyPath,
  report: Report,
): Record<string, O> {
  const result: Record<string, O> = Object.create(null);
  const takenBy = new Map<string, string>();
  for (const [own, entry] of Object.entries(entries ?? {})) {
    const { name } = entry;
    const first = name === undefined ? undefined : takenBy.get(name);
    if (name !== undefined && first !== undefined) {
      report.mistake([...path, own, "name"], `"${name}" is already the name of "${first}"`, { hint: "choose another" });
    } else if (name !== undefined) {
      takenBy.set(name, own);
    }
    result[own] = made(entry);
  }
  return result;
}
