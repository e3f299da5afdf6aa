// Expands `${…}` in the values of a config. Its messages name the variable that is wrong, never a value.

import { sep } from "node:path";

export interface Variables {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly workspaceFolder: string;
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
}

export function expand(text: string, variables: Variables): Expansion {
  if (!text.includes("${")) return { value: text, problems: [], literal: [] };
  const problems: Problem[] = [];
  const literal: string[] = [];
  let value = "";
  let at = 0;
  for (;;) {
    const open = text.indexOf("${", at);
    const close = open < 0 ? -1 : closingBrace(text, open + 2);
    if (close < 0) break;
    value += text.slice(at, open);
    const body = text.slice(open + 2, close);
    const known = lookUp(body, variables, problems, literal);
    if (known === undefined) literal.push(`\${${body}}`);
    value += known ?? `\${${body}}`;
    at = close + 1;
  }
  return { value: value + text.slice(at), problems, literal };
}

/** The value of what stands between the braces; undefined where it is no form of ours. */
function lookUp(body: string, variables: Variables, problems: Problem[], literal: string[]): string | undefined {
  const fixed = predefined(body, variables);
  if (fixed !== undefined) return fixed;

  const match = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/.exec(body);
  const name = match?.[1];
  if (name !== undefined) {
    const value = variables.env[name];
    const fallback = match?.[2];
    // As in a shell, an empty variable counts as unset where there is a default.
    if (value !== undefined && (value !== "" || fallback === undefined)) return value;
    if (fallback !== undefined) {
      const inner = expand(fallback, variables);
      problems.push(...inner.problems);
      literal.push(...inner.literal);
      return inner.value;
    }
    problems.push({
      message: `the environment variable ${name} is not set`,
      hint: `set it before the start, or give a default: \${${name}:-default}`,
    });
    return "";
  }

  const foreign = /^(input|command|config):(.*)$/s.exec(body);
  if (foreign !== null) {
    const suggestion = (foreign[2] ?? "").replace(/[^A-Za-z0-9]+/g, "_").toUpperCase();
    problems.push({
      message: `\${${body}} is filled in by an editor, and there is none here`,
      hint: `use an environment variable: \${${/^[A-Z_]/.test(suggestion) ? suggestion : "VAR"}}`,
    });
    return "";
  }
  return undefined;
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
