// Expands `${…}` in the values of a config, and reads the files that hold variables. Its messages name the variable that
// is wrong, never a value.

import { sep } from "node:path";
import type { OutsideValue } from "../contracts/server-spec.js";
import { SECRET_NAME } from "../runtime/redact/ordinary.js";
import { isOwnSecret } from "../runtime/redact/secrets-of.js";
import { type Inputs, inputVariable } from "./inputs/inputs.js";
import type { KeyPath, Report } from "./mistakes.js";

export interface Variables {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly workspaceFolder: string;
  /** `$VAR` is a variable, too, as the client has it whose file this is. */
  readonly expandsBare?: boolean;
  /** Where `${input:…}` is looked up. Undefined where nothing is an input. */
  readonly inputs?: Inputs | undefined;
  /** What is expanded goes to the process of a server, which gets no secret of Toolway's. */
  readonly forProcess?: boolean;
}

interface Problem {
  readonly message: string;
  readonly hint: string | undefined;
}

export interface Expansion {
  readonly value: string;
  readonly problems: readonly Problem[];
  /** Forms that look like variables and are none that we know: they stay as they are. */
  readonly literal: readonly string[];
  /** What variables of the environment put into it. People keep secrets in them. */
  readonly outside: readonly OutsideValue[];
}

/** Variables that say who and where one is. They hold no secret, and are part of many texts. */
const ORDINARY =
  /^(?:HOME|USER|USERNAME|USERPROFILE|LOGNAME|PATH|PWD|OLDPWD|SHELL|LANG|LC_\w+|LANGUAGE|TERM|TZ|EDITOR|TMPDIR|TEMP|TMP|HOSTNAME|COMPUTERNAME|DISPLAY|NODE_ENV|APPDATA|LOCALAPPDATA|SYSTEMROOT|XDG_\w+)$/;

/** Whether what such a variable holds is no secret, by its name alone. */
export function isOrdinaryVariable(name: string): boolean {
  return ORDINARY.test(name);
}

export function expand(text: string, variables: Variables): Expansion {
  if (!text.includes(variables.expandsBare === true ? "$" : "${")) {
    return { value: text, problems: [], literal: [], outside: [] };
  }
  const outside: OutsideValue[] = [];
  const problems: Problem[] = [];
  const literal: string[] = [];
  let value = "";
  let at = 0;
  for (;;) {
    const open = text.indexOf("${", at);
    const close = open < 0 ? -1 : closingBrace(text, open + 2);
    if (close < 0) break;
    value += plainPart(text.slice(at, open), variables, { problems, literal, outside });
    const body = text.slice(open + 2, close);
    const known = lookUp(body, variables, { problems, literal, outside });
    if (known === undefined) literal.push(`\${${body}}`);
    value += known ?? `\${${body}}`;
    at = close + 1;
  }
  value += plainPart(text.slice(at), variables, { problems, literal, outside });
  return { value, problems, literal, outside };
}

/** What stands between the forms with braces. */
function plainPart(text: string, variables: Variables, found: Findings): string {
  if (variables.expandsBare !== true) return text;
  return text.replaceAll(
    /\$([A-Za-z_][A-Za-z0-9_]*)/g,
    (form, name: string) => lookUp(`env:${name}`, variables, found) ?? form,
  );
}

/** What is found on the way. */
interface Findings {
  readonly problems: Problem[];
  readonly literal: string[];
  readonly outside: OutsideValue[];
}

/** The value of what stands between the braces; undefined where it is no form of ours. */
function lookUp(body: string, variables: Variables, found: Findings): string | undefined {
  const fixed = predefined(body, variables);
  if (fixed !== undefined) return fixed;

  const match = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/.exec(body);
  const name = match?.[1];
  if (name !== undefined) {
    if (variables.forProcess === true && isOwnSecret(name)) {
      found.problems.push({
        message: `${name} holds a secret of Toolway's, which is given to no server`,
        hint: "give the server a secret of its own, in a variable of another name",
      });
      return "";
    }
    const value = variables.env[name];
    const fallback = match?.[2];
    // As in a shell, an empty variable counts as unset where there is a default.
    if (value !== undefined && (value !== "" || fallback === undefined)) {
      if (!isOrdinaryVariable(name)) found.outside.push({ name, value });
      return value;
    }
    if (fallback !== undefined) {
      const inner = expand(fallback, variables);
      found.problems.push(...inner.problems);
      found.literal.push(...inner.literal);
      found.outside.push(...inner.outside);
      // It stands in the file, and in the place of a credential.
      if (SECRET_NAME.test(name)) found.outside.push({ name, value: inner.value });
      return inner.value;
    }
    found.problems.push({
      message: `${name} is not set`,
      hint: `set this environment variable and restart the gateway, which keeps the environment that it was started with; or give a default: \${${name}:-default}`,
    });
    return "";
  }

  const id = /^input:(.*)$/s.exec(body)?.[1];
  if (id !== undefined) return lookUpInput(id, variables, found);
  const foreign = /^(command|config):(.*)$/s.exec(body);
  if (foreign !== null) {
    const suggestion = (foreign[2] ?? "").replace(/[^A-Za-z0-9]+/g, "_").toUpperCase();
    found.problems.push({
      message: `\${${body}} is filled in by an editor, and there is none here`,
      hint: `use an environment variable: \${${/^[A-Z_]/.test(suggestion) ? suggestion : "VAR"}}`,
    });
    return "";
  }
  return undefined;
}

/** What an answer is called that is hidden while a person types it. */
const PASSWORD = "password";

function lookUpInput(id: string, { inputs }: Variables, found: Findings): string {
  const input = inputs?.find(id);
  if (input === undefined) {
    found.problems.push({
      message: `${inputVariable(id)} is not set`,
      hint: `the file asks for the input "${id}": set this environment variable before the start, or run \`toolway doctor\` on a terminal, which asks for it and keeps the answer`,
    });
    return "";
  }
  if (input.isOutside) found.outside.push({ name: input.isPassword ? PASSWORD : id, value: input.value });
  return input.value;
}

function predefined(name: string, variables: Variables): string | undefined {
  switch (name) {
    case "userHome":
      return variables.home;
    case "workspaceFolder":
      return variables.workspaceFolder;
    case "workspaceFolderBasename":
      return variables.workspaceFolder.split(sep).at(-1) ?? "";
    case "pathSeparator":
    case "/":
      return sep;
    default:
      return undefined;
  }
}

/** Defaults may hold variables of their own, so braces nest. */
function closingBrace(text: string, from: number): number {
  let depth = 1;
  for (let i = from; i < text.length; i++) {
    if (text.startsWith("${", i)) depth++;
    else if (text[i] === "}" && --depth === 0) return i;
  }
  return -1;
}

/** The `NAME=value` lines of an envFile, as dotenv writes them. Lines that it cannot read are passed over. */
export function parseEnvFile(text: string): Record<string, string> {
  const values: Record<string, string> = {};
  const line =
    /^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*("(?:\\[\s\S]|[^"\\])*"|'[^']*'|[^\r\n]*)/gm;
  for (const [, name, raw] of text.replace(/^\uFEFF/, "").matchAll(line)) {
    if (name !== undefined && raw !== undefined) values[name] = unquote(raw);
  }
  return values;
}

function unquote(raw: string): string {
  if (raw.startsWith("'") && raw.endsWith("'") && raw.length > 1) return raw.slice(1, -1);
  if (raw.startsWith('"') && raw.endsWith('"') && raw.length > 1) {
    const escapes: Record<string, string> = { n: "\n", r: "\r", t: "\t" };
    return raw.slice(1, -1).replace(/\\([\s\S])/g, (_, char: string) => escapes[char] ?? char);
  }
  return raw.replace(/(^|[ \t])#.*$/, "").trim();
}

/** What an entry is resolved against. */
export interface ResolveContext {
  readonly dir: string;
  readonly variables: Variables;
  readonly report: Report;
  /** Names of the config's executors. */
  readonly executors?: readonly string[];
  /** The config has a broker of its own: "mailboxes". */
  readonly hasBroker?: boolean;
  /** Gathers what comes from outside of the config: these values are shown to nobody. */
  readonly outside?: OutsideValue[];
}

/** Expands one value; what is wrong goes to the report. */
export function text(raw: string, path: KeyPath, context: ResolveContext): string {
  return expandAt(raw, path, context).value;
}

/** `complete`: nothing of it is missing. */
export function expandAt(raw: string, path: KeyPath, context: ResolveContext): { value: string; complete: boolean } {
  const { value, problems, literal, outside } = expand(raw, context.variables);
  context.outside?.push(...outside);
  for (const { message, hint } of problems) context.report.mistake(path, message, { hint });
  for (const form of literal) context.report.warning(path, `${form} is no variable of ours, and stays as it is`);
  if (value.includes("\0")) context.report.mistake(path, "a text must not hold the character NUL");
  return { value, complete: problems.length === 0 };
}
