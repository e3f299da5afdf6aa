// The servers of a config, entry by entry: their names, those that are switched off, and those that are wrong in
// themselves, which are set aside so that the others can be used. What an entry means is servers.ts.

import { isObject } from "../runtime/words/json-object.js";
import {
  type ForeignReading,
  isOwnAuth,
  isSwitchedOff,
  readClientServerLists,
  readForeign,
} from "./clients/foreign-keys.js";
import { type Config, MAX_SERVER_NAME, type ServerConfig, type ServerMenu, type WrongEntry } from "./config.js";
import { mismatch, readFields } from "./form.js";
import { formatMistakes, type KeyPath, keyText, mistakeTexts, type PlacedMistake } from "./mistakes.js";
import { serverForm } from "./schema.js";
import { checkEntryKeys, resolveServer, tellForeign } from "./servers.js";
import type { ResolveContext } from "./variables.js";

export interface EntriesContext extends ResolveContext {
  /** Undefined for a config that was passed as an object. */
  readonly file: string | undefined;
  /** Entries that are wrong are set aside; otherwise their mistakes stay in the report. */
  readonly keepsWrong: boolean;
}

type Entries = Pick<Config, "servers" | "misconfigured" | "disabled">;

const GROUPS = ["mcpServers", "servers"];

export function resolveEntries(value: Readonly<Record<string, unknown>>, context: EntriesContext): Entries {
  const { report } = context;
  const found = new Entered(context);
  // By what the file says: an executor with a mistake in it is not unknown.
  const executors = isObject(value["executors"]) ? Object.keys(value["executors"]) : [];
  const around = { executors, hasBroker: value["mailboxes"] !== undefined };
  const lists = readClientServerLists(value);
  for (const group of Object.keys(value).filter((key) => GROUPS.includes(key))) {
    const entries = value[group];
    if (!isObject(entries)) {
      report.mistake([group], mismatch("an object with a server under each name", entries));
      continue;
    }
    for (const [rawName, entry] of Object.entries(entries)) {
      const isOff = isSwitchedOff(lists, rawName.trim());
      found.enter(rawName, entry, [group, rawName], { ...around, isOff });
    }
    // What is wrong with a name itself can leave no entry behind.
    found.setAsideUnder([group]);
  }
  return found;
}

/** What the rest of the file says that an entry depends on. */
interface FileContext extends Pick<ResolveContext, "executors" | "hasBroker"> {
  /** A list of the client that wrote the file leaves it out. */
  readonly isOff: boolean;
}

class Entered implements Entries {
  readonly servers: ServerConfig[] = [];
  readonly misconfigured: WrongEntry[] = [];
  readonly disabled: string[] = [];
  readonly #context: EntriesContext;
  readonly #seen = new Map<string, string>();

  constructor(context: EntriesContext) {
    this.#context = context;
  }

  enter(rawName: string, entry: unknown, path: KeyPath, { isOff, ...around }: FileContext): void {
    const { report } = this.#context;
    const name = rawName.trim();
    const wrong = nameProblem(name, "server");
    if (wrong !== undefined) report.mistake(path, wrong, { hint: "rename the server", onKey: true });
    const first = this.#seen.get(name);
    if (first !== undefined) {
      report.mistake(path, `a server of this name is already there, as ${first}`, { hint: "rename one", onKey: true });
    }
    this.#seen.set(name, keyText(path));
    if (!isObject(entry)) {
      report.mistake(path, mismatch('an object with "command" or "url"', entry));
      this.#setAside(name, report, path, undefined);
      return;
    }
    const attempted = checkEntryKeys(entry, path, report);
    if (isOff || entry["disabled"] === true || entry["enabled"] === false) {
      // Switched off, often because it does not work: it need not.
      if (this.#context.keepsWrong) report.asWarnings(report.take(path));
      this.disabled.push(name);
      return;
    }
    const foreign = readForeign(entry, this.#context.file);
    tellForeign(foreign, path, report);
    const parsed = readFields(serverForm.fields, inOurWords(entry, foreign), path, report);
    const { server, menu } = resolveServer(
      name,
      { ...parsed, attempted: [...attempted, ...missing(entry, parsed)] },
      path,
      { ...this.#context, ...around },
    );
    tellNoEffect(entry, path, this.#context);
    if (this.#setAside(name, report, path, menu)) return;
    if (server !== undefined) this.servers.push(server);
  }

  /** The mistakes that are left below a group are of entries, too. */
  setAsideUnder(group: KeyPath): void {
    if (!this.#context.keepsWrong) return;
    const { report } = this.#context;
    for (const { path } of report.list(group)) {
      if (path.length > group.length) this.#setAside(String(path[group.length]), report, path.slice(0, 2), undefined);
    }
  }

  /** True where the entry is one that is wrong, and may be: the report says no more of it. */
  #setAside(name: string, report: EntriesContext["report"], path: KeyPath, menu: ServerMenu | undefined): boolean {
    if (!this.#context.keepsWrong) return false;
    const taken = report.take(path);
    if (taken.length === 0) return false;
    const shown = shownName(name);
    const before = this.misconfigured.findIndex((one) => one.name === shown);
    const twin = this.servers.findIndex((one) => one.name === shown);
    // Two entries of one name: nobody can tell which is meant, so neither is used.
    if (twin >= 0) this.#remove(twin);
    const mistakes = taken.map(({ mistake }) => mistake);
    const one: WrongEntry = {
      name: shown,
      why: mistakeTexts(taken, path),
      forOperator: formatMistakes(mistakes),
      place: this.servers.length,
      menu: twin < 0 && before < 0 && taken.every((placed) => isAboutReach(placed, path)) ? menu : undefined,
    };
    if (before < 0) this.misconfigured.push(one);
    else {
      const { why, forOperator, place } = this.misconfigured[before] as WrongEntry;
      const both = { why: `${why}; ${one.why}`, forOperator: `${forOperator}\n${one.forOperator}`, place };
      this.misconfigured[before] = { ...one, ...both };
    }
    return true;
  }

  #remove(index: number): void {
    this.servers.splice(index, 1);
    for (const [i, one] of this.misconfigured.entries()) {
      if (one.place > index) this.misconfigured[i] = { ...one, place: one.place - 1 };
    }
  }
}

/** The entry with what other clients' keys mean. Our own keys go before theirs. */
function inOurWords(entry: Readonly<Record<string, unknown>>, foreign: ForeignReading): Record<string, unknown> {
  const { only, hidden, connectTimeoutMs, callTimeoutMs } = foreign;
  const ours: Record<string, unknown> = {
    ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }),
    ...(callTimeoutMs === undefined ? {} : { callTimeoutMs }),
    ...(only === undefined ? {} : { only }),
    ...entry,
  };
  // What another client means by it was told.
  if (!isOwnAuth(ours["auth"])) delete ours["auth"];
  // Another client's list is read already.
  if (Array.isArray(ours["tools"])) delete ours["tools"];
  const { tools } = ours;
  if (hidden.length === 0 || (tools !== undefined && !isObject(tools))) return ours;
  const settings: [string, unknown][] = hidden.map((name) => {
    const own = isObject(tools) && Object.hasOwn(tools, name) ? tools[name] : {};
    return [name, isObject(own) ? { ...own, hide: true } : own];
  });
  return { ...ours, tools: { ...tools, ...Object.fromEntries(settings) } };
}

/** The keys that say how a server is reached, and nothing of what of it is shown. */
const REACH: ReadonlySet<unknown> = new Set([
  "type",
  "command",
  "args",
  "env",
  "envFile",
  "cwd",
  "url",
  "httpUrl",
  "serverUrl",
  "headers",
  "auth",
  "via",
  "mailbox",
  "broker",
  "token",
  "card",
  "sandboxEnabled",
  "sandbox",
]);

function isAboutReach({ path }: PlacedMistake, entry: KeyPath): boolean {
  return REACH.has(path[entry.length]);
}

/** The keys that are there, but could not be used. */
function missing(entry: object, parsed: object): string[] {
  return Object.keys(serverForm.fields).filter((key) => Object.hasOwn(entry, key) && !Object.hasOwn(parsed, key));
}

/** Names become part of a URL, percent-encoded, and of tool names, folded: nearly everything will do. */
export function nameProblem(name: string, what: "server" | "executor"): string | undefined {
  if (name === "") return `expected a name for the ${what}, found none`;
  if (name.length > MAX_SERVER_NAME) return `expected a name of at most ${MAX_SERVER_NAME} characters`;
  if (name === "." || name === "..") return `"${name}" cannot be part of an address`;
  if (UNSHOWN.test(name)) return "a name must not hold control characters";
  return /\p{Surrogate}/u.test(name) ? "a name must not hold half of a character (a lone surrogate)" : undefined;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNSHOWN = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** The name that a server with a wrong one is shown by. */
function shownName(name: string): string {
  if (nameProblem(name, "server") === undefined) return name;
  const cut = name.slice(0, MAX_SERVER_NAME - 1).replace(new RegExp(`${UNSHOWN.source}|\\p{Surrogate}`, "gu"), "?");
  return cut === name || cut === "" ? `${cut}?` : cut;
}

/** Keys that mean something only for the other kind of server, or beside another key. */
const OF_PROGRAMS = ["args", "env", "envFile", "cwd"];
/** Keys that say when a server is given up, or looked after. */
const OF_GIVING_UP = ["restarts", "breaker", "ejectedProbeMs", "pingMs"];

/** A key that does nothing where it stands is told: whoever wrote it counts on it. */
function tellNoEffect(entry: Readonly<Record<string, unknown>>, path: KeyPath, { report }: ResolveContext): void {
  const tell = (key: string, why: string): void => {
    if (!isEmpty(entry[key])) report.warning([...path, key], `has no effect: ${why}`, { onKey: true });
  };
  const isProgram = entry["command"] !== undefined;
  const isAddress = ["url", "httpUrl", "serverUrl"].some((key) => entry[key] !== undefined);
  if (isAddress && !isProgram) {
    for (const key of OF_PROGRAMS) tell(key, "it is for a server that is started here, and this one is at an address");
  }
  if (isProgram && !isAddress) tell("headers", "it is for a server at an address, and this one is started here");
  if (entry["mailbox"] !== undefined) {
    for (const key of OF_GIVING_UP) tell(key, "a machine behind a mailbox comes and goes, and is never given up");
  }
  if (entry["isolation"] !== "session") tell("sessionConnections", 'it needs "isolation": "session" beside it');
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);
}
