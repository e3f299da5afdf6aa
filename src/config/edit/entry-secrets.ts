// What an entry of a config says that others should not read: the entry with its keys hidden, for a screen or a chat
// with an agent; which of its values are keys that stand there literally; and which variables it needs. Pure.

import { isPlaceUnder, isTrivial, isUrl, SECRET_NAME } from "../../runtime/redact/ordinary.js";
import { Redactor } from "../../runtime/redact/redactor.js";
import { REDACTED } from "../../runtime/redact/safe-url.js";
import { type SecretSource, secretsOf } from "../../runtime/redact/secrets-of.js";
import { isObject } from "../../runtime/words/json-object.js";
import { textsOf } from "../../runtime/words/json-values.js";

type Entry = Readonly<Record<string, unknown>>;

const HIDDEN = "(hidden)";

/** `${NAME}` and `${env:NAME}`, with what stands for it where it is not set; and what a person is asked for. */
const VARIABLE = /\$\{(?:input:[^{}]*|(?:env:)?([A-Za-z_]\w*)(?::-((?:[^{}]|\$\{[^{}]*\})*))?)\}/g;
/** Those that say where one is are filled in by ourselves. */
const FILLED_IN: ReadonlySet<string> = new Set([
  "userHome",
  "workspaceFolder",
  "workspaceFolderBasename",
  "pathSeparator",
]);
/** `--api-key`, `-token`. */
const OPTION = /^--?[\w.-]+$/;
/** `--api-key=x`, `API_KEY=x`, `Authorization: x`. A URL is none. */
const PAIR = /^(-{0,2}[\w.-]{1,64}\s?(?:=|:(?!\/\/))\s*)(\S.*)$/s;
/** What stands before a credential, and is none. */
const SCHEME = /^\s*(?:bearer|basic|token|apikey)?\s*$/i;
/** What is told to everybody who logs in, however it looks. */
const PUBLIC_NAME = /^(?:client_?id|scopes?)$/i;

/** The variables without which the entry does not work, each once. */
export function neededVariables(entry: unknown): string[] {
  const names = new Set<string>();
  for (const text of textsWithin(entry)) {
    for (const [, name, fallback] of text.matchAll(VARIABLE)) {
      if (name !== undefined && fallback === undefined && !FILLED_IN.has(name)) names.add(name);
    }
  }
  return [...names];
}

/** The entry as it may be shown. What names a variable instead of a value stays readable. */
export function hideSecrets(entry: Entry): Record<string, unknown> {
  const redact = redactorOf(entry);
  return Object.fromEntries(
    Object.entries(entry).map(([key, value]) => {
      if (key === "command" && typeof value === "string") return [key, hideArgs(value.split(" "), redact).join(" ")];
      return [key, hideMember(key, value, redact)];
    }),
  );
}

/** Where keys stand in it literally: `env.TOKEN`, `headers.Authorization`, `args[2]`, `url`. */
export function literalSecrets(entry: Entry): string[] {
  const found: string[] = [];
  const shown = hideSecrets(entry);
  for (const [key, value] of Object.entries(entry)) {
    if ((key === "env" || key === "headers") && isObject(value)) {
      for (const [name, text] of Object.entries(value)) {
        if (isSecret(name, String(text), key)) found.push(`${key}.${name}`);
      }
    } else if (Array.isArray(value) && Array.isArray(shown[key])) {
      const after: readonly unknown[] = shown[key];
      value.forEach((item, index) => {
        if (JSON.stringify(item) !== JSON.stringify(after[index])) found.push(`${key}[${index}]`);
      });
    } else if (JSON.stringify(value) !== JSON.stringify(shown[key])) found.push(key);
  }
  return found;
}

function isSecret(name: string, text: string, where: "env" | "headers"): boolean {
  const literal = text.replaceAll(VARIABLE, (_, _name, fallback: string | undefined) => fallback ?? "");
  if (SCHEME.test(literal) || isTrivial(literal)) return false;
  if (secretsOf({ [where]: { [name]: literal } }).size > 0) return true;
  return SECRET_NAME.test(name) && !isPlaceUnder(name, literal);
}

type Redact = (text: string) => string;

function redactorOf(entry: Entry): Redact {
  const url = ["url", "httpUrl", "serverUrl"].map((name) => entry[name]).find((value) => typeof value === "string");
  // Without the variables: their names are no secrets, and their values are not here.
  const source: SecretSource = {
    ...(typeof entry["command"] === "string" && { command: entry["command"] }),
    args: textsOf(entry["args"]),
    ...(url !== undefined && { url }),
    ...(typeof entry["broker"] === "string" && { broker: entry["broker"] }),
    env: texts(entry["env"]),
    headers: texts(entry["headers"]),
  };
  const redactor = new Redactor([...secretsOf(source)].filter((secret) => !secret.includes("${")));
  return (text) => aroundVariables(text, (literal) => redactAlone(redactor.redact(literal)));
}

/** What looks like a key, or names itself one, wherever it stands. */
function redactAlone(text: string): string {
  const found = secretsOf({ args: [text] });
  return found.size === 0 ? text : new Redactor(found).redact(text);
}

/** All values of `env` and `headers` are hidden: of most nobody can say what they are. */
function hideValue(value: unknown): unknown {
  const literal = String(value).replaceAll(VARIABLE, (_, _name, fallback: string | undefined) => fallback ?? "");
  return SCHEME.test(literal) ? value : HIDDEN;
}

function hideArgs(args: readonly unknown[], redact: Redact): unknown[] {
  return args.map((arg, index) => {
    if (typeof arg !== "string") return hideMember("", arg, redact);
    const before = args[index - 1];
    const isNamed = typeof before === "string" && OPTION.test(before) && SECRET_NAME.test(before);
    if (isNamed && !arg.startsWith("--")) return hideNamed(before, arg);
    const [, name, value] = PAIR.exec(arg) ?? [];
    if (name !== undefined && value !== undefined && SECRET_NAME.test(name)) return name + hideNamed(name, value);
    return redact(arg);
  });
}

/** It stands where credentials stand: it need not look like one. */
function hideNamed(name: string, text: string): string {
  // An address may have a key in it.
  if (isPlaceUnder(name, text) && !isUrl(text)) return text;
  return aroundVariables(text, (literal) => (SCHEME.test(literal) || isTrivial(literal) ? literal : REDACTED));
}

/** What an entry holds: credentials by their name and by where they stand, at any depth, and whatever looks like one. */
function hideMember(key: string, value: unknown, redact: Redact): unknown {
  const isHidden = key === "env" || key === "headers";
  if (typeof value === "string") {
    if (PUBLIC_NAME.test(key)) return value;
    return SECRET_NAME.test(key) ? hideNamed(key, value) : redact(value);
  }
  if (Array.isArray(value)) {
    if (isHidden) return value.map(hideValue);
    if (SECRET_NAME.test(key)) return value.map((item) => hideMember(key, item, redact));
    return PUBLIC_NAME.test(key) ? value : hideArgs(value, redact);
  }
  if (!isObject(value)) return value;
  return isHidden
    ? mapValues(value, hideValue)
    : Object.fromEntries(Object.entries(value).map(([name, item]) => [name, hideMember(name, item, redact)]));
}

/** Variables stay; what stands for one that is not set may be a key. */
function aroundVariables(text: string, change: (literal: string) => string): string {
  let changed = "";
  let at = 0;
  for (const match of text.matchAll(VARIABLE)) {
    const [whole, , fallback] = match;
    const head = fallback === undefined ? whole : whole.slice(0, whole.length - fallback.length - 1);
    changed += part(text.slice(at, match.index), change) + head;
    if (fallback !== undefined) changed += `${part(fallback, change)}}`;
    at = match.index + whole.length;
  }
  return changed + part(text.slice(at), change);
}

function part(literal: string, change: (literal: string) => string): string {
  return literal === "" ? "" : change(literal);
}

function textsWithin(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsWithin) : [];
}

function texts(value: unknown): Record<string, string> {
  return isObject(value) ? (mapValues(value, String) as Record<string, string>) : {};
}

function mapValues(value: Entry, change: (item: unknown) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, change(item)]));
}
