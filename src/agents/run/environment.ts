// What an agent sees of the user's environment: all of it, but for Toolway's own variables and those in which the
// config has its servers' credentials. Pure.

import { inputVariable } from "../../config/inputs/inputs.js";
import { Source } from "../../config/jsonc.js";
import { isOrdinaryVariable } from "../../config/variables.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** Toolway's own. */
const OURS = /^TOOLWAY_/i;
/** Keys of a config below which every variable may hold a credential. */
const CREDENTIAL_KEYS: ReadonlySet<string> = new Set([
  "env",
  "headers",
  "auth",
  "token",
  "args",
  // Addresses, in all the words that there are for one: each may have a key in it.
  "url",
  "urls",
  "httpUrl",
  "serverUrl",
  "broker",
  "otlp",
]);
/** `${NAME}`, `${env:NAME}`, with a default or without, and `$NAME`, which some files have. */
const VARIABLE = /\$\{(?:env:)?([A-Za-z_]\w*)(?=\}|:-)|\$([A-Za-z_]\w*)/g;
/** As people name what holds a key. */
const SECRET_NAME = /key|secret|token|passw|passphrase|(?:^|_)pass(?:_|$)|auth|cred/i;
const INPUT = /\$\{input:([^}]*)\}/g;

export interface AgentEnvironment {
  readonly env: Record<string, string>;
  /** Names of what was left out, but for Toolway's own. */
  readonly left: readonly string[];
}

export function agentEnvironment(
  user: Environment,
  credentials: ReadonlySet<string>,
  keep: readonly string[],
): AgentEnvironment {
  const env: Record<string, string> = {};
  const left: string[] = [];
  for (const [name, value] of Object.entries(user)) {
    if (value === undefined) continue;
    if (keep.includes(name)) env[name] = value;
    else if (OURS.test(name)) continue;
    else if (credentials.has(name)) left.push(name);
    else env[name] = value;
  }
  return { env, left: left.sort((a, b) => a.localeCompare(b)) };
}

/** The variables that a config's `env`, `headers`, `auth`, `args` and addresses refer to; elsewhere those that are named like keys. */
export function credentialVariables(text: string): Set<string> {
  const names = new Set<string>();
  // What is wrong with the file is told by the gateway.
  walk(
    new Source(text).read(() => {}),
    { names, isCredential: false },
  );
  for (const name of names) if (isOrdinaryVariable(name)) names.delete(name);
  return names;
}

interface Place {
  readonly names: Set<string>;
  readonly isCredential: boolean;
}

function walk(value: unknown, place: Place): void {
  const { names, isCredential } = place;
  if (typeof value === "string") {
    for (const [, braced, bare] of value.matchAll(VARIABLE)) {
      const name = braced ?? bare ?? "";
      if (isCredential || SECRET_NAME.test(name)) names.add(name);
    }
    for (const [, id = ""] of value.matchAll(INPUT)) names.add(inputVariable(id));
  } else if (Array.isArray(value)) for (const one of value) walk(one, place);
  else if (typeof value === "object" && value !== null) {
    for (const [key, one] of Object.entries(value)) {
      // A variable by its name alone: what `auth` reads, or the key of an engine. A server's own `env` is no text.
      if (key === "env" && typeof one === "string") names.add(one);
      walk(one, { names, isCredential: isCredential || CREDENTIAL_KEYS.has(key) });
    }
  }
}
