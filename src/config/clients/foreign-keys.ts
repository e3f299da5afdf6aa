// Keys of other clients' config files. An existing file must work unchanged: what means something here is taken over
// (which tools are shown, time limits), what makes a server less safe or less signed in is told, and the rest is passed
// over. Every other unknown key is reported. `serve` and `import` read foreign keys by this file alone.

import { basename, dirname } from "node:path";
import { nearest } from "../../runtime/nearest.js";
import { isObject } from "../../runtime/words/json-object.js";
import { textsOf } from "../../runtime/words/json-values.js";

/** Top level: only those that are near a key of ours, or so usual that they deserve no thought. */
export const FOREIGN_TOP_KEYS: ReadonlySet<string> = new Set(["inputs", "version", "rules", "mcp", "projects"]);

/** Where other clients keep their servers, in a form that is not ours. */
export const FOREIGN_GROUPS = ["mcp", "context_servers", "mcp_servers", "projects"] as const;

/** The servers that Gemini CLI and its relatives start, by lists beside the entries: the newer names, and the older. */
export interface ClientServerLists {
  readonly excluded: ReadonlySet<string>;
  /** Undefined where there is no such list. An empty one allows none. */
  readonly allowed: ReadonlySet<string> | undefined;
}

export function readClientServerLists(root: Readonly<Record<string, unknown>>): ClientServerLists {
  const mcp = isObject(root["mcp"]) ? root["mcp"] : {};
  const allowed = [mcp["allowed"], root["allowMCPServers"]].filter((list) => Array.isArray(list));
  return {
    excluded: new Set([mcp["excluded"], root["excludeMCPServers"]].flatMap(textsOf)),
    allowed: allowed.length === 0 ? undefined : new Set(allowed.flatMap(textsOf)),
  };
}

export function isSwitchedOff({ excluded, allowed }: ClientServerLists, name: string): boolean {
  return excluded.has(name) || allowed?.has(name) === false;
}

/** In a server's entry: they change nothing here. */
export const FOREIGN_ENTRY_KEYS: ReadonlySet<string> = new Set([
  // Approval, which agents do themselves: Cline, Roo, Windsurf, Gemini CLI, Kiro, Codex.
  "alwaysAllow",
  "autoApprove",
  "default_tools_approval_mode",
  // Time limits whose meaning no client documents; ours are connectTimeoutMs and callTimeoutMs.
  "networkTimeout",
  "initTimeout",
  "initializationTimeout",
  // Words about the server.
  "id",
  "name",
  "title",
  "description",
  "icon",
  "version",
  "gallery",
  "registry",
  "source",
  "settings",
  "extensionName",
  "instructions",
  "note",
  "notes",
  "comment",
  "_comment",
  "//",
  // Debugging: VS Code.
  "dev",
  // The rest: file watching, transports under another name (a URL is tried both ways here), when to load.
  "watchPaths",
  "transport",
  "transportType",
  "alwaysLoad",
  "required",
  "capabilities",
  "roots",
  "metadata",
  "scope",
]);

/** Lists of the tools that a client shows: Gemini CLI, Codex, and others. They mean what `only` means. */
const SHOWN_KEYS = ["includeTools", "enabledTools", "enabled_tools", "allowedTools", "allowed_tools"] as const;

/** Lists of those that it does not show. */
const HIDDEN_KEYS = ["excludeTools", "disabledTools", "disabled_tools", "disallowedTools", "disallowed_tools"] as const;

/** Time limits, by what each is in our words, and how many milliseconds its unit has. */
const TIME_KEYS = [
  { key: "startup_timeout_sec", means: "connectTimeoutMs", unitMs: 1000 },
  { key: "startup_timeout_ms", means: "connectTimeoutMs", unitMs: 1 },
  { key: "tool_timeout_sec", means: "callTimeoutMs", unitMs: 1000 },
] as const;

/** Node's timers fire at once beyond 2^31-1 ms. */
const MAX_TIMER_MS = 2_147_483_647;

/** Below this a `timeout` is read as seconds, whoever wrote it: no client would give its servers less than a second. */
const LEAST_TIMEOUT_MS = 1000;

/** Something that has to be said of a foreign key. A mistake makes the entry one that cannot be used. */
export interface ForeignRemark {
  readonly kind: "mistake" | "warning";
  readonly key: string;
  readonly message: string;
  readonly hint: string;
}

/** What the foreign keys of an entry mean in our words. */
export interface ForeignReading {
  /** As `only`; undefined where no client's key narrows the tools so. */
  readonly only: readonly string[] | undefined;
  /** Names of tools that are hidden. */
  readonly hidden: readonly string[];
  readonly connectTimeoutMs: number | undefined;
  readonly callTimeoutMs: number | undefined;
  readonly remarks: readonly ForeignRemark[];
}

type Entry = Readonly<Record<string, unknown>>;

/** `file`: where the entry stands, which tells whose it is. Undefined for one that was never in a file. */
export function readForeign(entry: Entry, file: string | undefined): ForeignReading {
  const remarks: ForeignRemark[] = [];
  const shown = shownKeys(entry);
  const [first, second] = shown;
  if (first !== undefined && (second !== undefined || entry["only"] !== undefined)) {
    const other = second ?? "only";
    remarks.push({
      kind: "mistake",
      key: first,
      message: `"${first}" and "${other}" both say which tools are shown: expected one of them`,
      hint: `put all patterns into "only"`,
    });
  }
  remarks.push(...safetyRemarks(entry));
  const listOf = (key: string) => names(entry, key, remarks);
  return {
    only: first === undefined ? undefined : listOf(first),
    hidden: HIDDEN_KEYS.filter((key) => isSaid(entry, key)).flatMap(listOf),
    ...timeLimits(entry, file),
    remarks,
  };
}

/** Whether the key is one that readForeign reads. */
export function isForeignMeaning(key: string): boolean {
  return MEANINGS.has(key);
}

const isSaid = (entry: Entry, key: string): boolean => entry[key] !== undefined && entry[key] !== null;

/** Copilot's list of shown tools is called as our own settings of tools are, which are an object. */
function shownKeys(entry: Entry): string[] {
  const said: string[] = SHOWN_KEYS.filter((key) => isSaid(entry, key));
  return Array.isArray(entry["tools"]) ? [...said, "tools"] : said;
}

/** The tools that a list names. Gemini CLI also writes `tool(arguments)`, and means the tool. */
function names(entry: Entry, key: string, remarks: ForeignRemark[]): string[] {
  const list = entry[key];
  if (Array.isArray(list) && list.every((one) => typeof one === "string" && one !== "")) {
    return (list as string[]).map((one) => one.replace(/\(.*$/s, ""));
  }
  remarks.push({
    kind: "mistake",
    key,
    message: "expected a list of names of tools",
    hint: "correct it: until then nobody can tell which tools may be shown",
  });
  return [];
}

/** `timeout` is the time of a call: seconds in files of Cline and Roo Code, milliseconds in all others. */
function timeLimits(
  entry: Entry,
  file: string | undefined,
): Pick<ForeignReading, "connectTimeoutMs" | "callTimeoutMs"> {
  const limits: { connectTimeoutMs: number | undefined; callTimeoutMs: number | undefined } = {
    connectTimeoutMs: undefined,
    callTimeoutMs: undefined,
  };
  const timeout = entry["timeout"];
  if (isTime(timeout)) {
    const unitMs = isInSeconds(file) || timeout < LEAST_TIMEOUT_MS ? 1000 : 1;
    limits.callTimeoutMs = inMs(timeout, unitMs);
  }
  for (const { key, means, unitMs } of TIME_KEYS) {
    const time = entry[key];
    if (isTime(time)) limits[means] = inMs(time, unitMs);
  }
  return limits;
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}

function inMs(time: number, unitMs: number): number {
  return Math.min(Math.ceil(time * unitMs), MAX_TIMER_MS);
}

function isInSeconds(file: string | undefined): boolean {
  if (file === undefined) return false;
  return /^(?:cline_)?mcp_settings\.json$/.test(basename(file)) || basename(dirname(file)) === ".roo";
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: this is a variable of the config
const OWN_HEADERS = 'put what it needs into "headers", for instance "Authorization": "Bearer ${MY_TOKEN}"';
const OWN_LOGIN = 'write "auth": "oauth" for a login by `toolway login`, or put a token into "headers"';
const UNSIGNED = "the client that wrote this signs in to the server, and here requests carry the entry's headers alone";

/** Keys that make a server safer, or sign in to it, in the client that wrote them. */
const SAFETY: readonly {
  readonly key: string;
  /** Whether the value asks for something. */
  asks(value: unknown, entry: Entry): boolean;
  readonly kind: ForeignRemark["kind"];
  readonly message: string;
  readonly hint: string;
}[] = [
  {
    key: "sandboxEnabled",
    asks: (value, entry) => value === true && entry["command"] !== undefined && entry["sandbox"] !== "none",
    kind: "mistake",
    message: "the client that wrote this runs the server in a sandbox, and here it would run without one",
    hint: 'if it may, write "sandbox": "none" into the entry',
  },
  {
    key: "headersHelper",
    asks: (value) => typeof value === "string" && value !== "",
    kind: "warning",
    message: "the program that makes headers is not run, so requests go without them",
    hint: OWN_HEADERS,
  },
  {
    // The same by Codex.
    key: "http_headers_helper",
    asks: (value) => typeof value === "string" && value !== "",
    kind: "warning",
    message: "the program that makes headers is not run, so requests go without them",
    hint: OWN_HEADERS,
  },
  { key: "oauth", asks: isObjectOrTrue, kind: "warning", message: UNSIGNED, hint: OWN_LOGIN },
  {
    key: "auth",
    asks: (value) => !isOwnAuth(value) && (isObjectOrTrue(value) || (typeof value === "string" && value !== "none")),
    kind: "warning",
    message: UNSIGNED,
    hint: OWN_LOGIN,
  },
  {
    key: "authProviderType",
    // The first is what it does unless it is told otherwise.
    asks: (value) => typeof value === "string" && value !== "dynamic_discovery",
    kind: "warning",
    message: UNSIGNED,
    hint: OWN_HEADERS,
  },
];

/** The keys of our own `auth`: where a token comes from. */
const AUTH_KEYS = ["bearer", "oauth", "clientCredentials"];

/** Our own `auth`, also where its key is misspelt; other clients' objects have other words. */
export function isOwnAuth(value: unknown): boolean {
  if (value === "oauth") return true;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.keys(value).some((key) => AUTH_KEYS.includes(key) || nearest(key, AUTH_KEYS) !== undefined);
}

function isObjectOrTrue(value: unknown): boolean {
  return value === true || (typeof value === "object" && value !== null && Object.keys(value).length > 0);
}

function safetyRemarks(entry: Entry): ForeignRemark[] {
  return SAFETY.filter(({ key, asks }) => isSaid(entry, key) && asks(entry[key], entry)).map(
    ({ kind, key, message, hint }) => ({ kind, key, message, hint }),
  );
}

const MEANINGS: ReadonlySet<string> = new Set([
  ...SHOWN_KEYS,
  ...HIDDEN_KEYS,
  "timeout",
  ...TIME_KEYS.map(({ key }) => key),
  ...SAFETY.map(({ key }) => key),
  // They go with those above.
  "targetAudience",
  "targetServiceAccount",
]);

/** Other words for keys of ours, too far from them to be typos. */
export const SYNONYMS: Readonly<Record<string, string>> = {
  environment: "env",
  environmentVariables: "env",
  cmd: "command",
  executable: "command",
  arguments: "args",
  workingDirectory: "cwd",
  working_directory: "cwd",
  uri: "url",
  endpoint: "url",
  baseUrl: "url",
  http_headers: "headers",
  httpHeaders: "headers",
  requestHeaders: "headers",
};
