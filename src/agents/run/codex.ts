// Codex: takes keys of its config by `-c`, and merges them with the user's key by key. So an entry of the user's whose
// other keys would stay is left alone, and ours has another name.

import { parseToml, TomlError } from "../import/toml.js";
import { type ClientFields, strings, table } from "../import/values.js";
import { entryName, hasOption, ownServers } from "./own-servers.js";
import { type AgentPlan, type RunClient, type RunFacts, SECRET_VARIABLE, willRefuse } from "./plan.js";

const title = "Codex";

export const codex: RunClient = {
  id: "codex",
  title,
  program: "codex",
  install: "npm install -g @openai/codex",
  plan,
};

/** The keys that ours all set, or that do not change where a call goes and what goes with it. */
const OVERRIDDEN: ReadonlySet<string> = new Set([
  "url",
  "bearer_token_env_var",
  "enabled",
  "required",
  "startup_timeout_sec",
  "tool_timeout_sec",
  "default_tools_approval_mode",
]);

const EXCLUDE = "shell_environment_policy.exclude";
/** A word of the line that sets it, with what stands before the key. */
const EXCLUDES = /^(--config=|-c=?)?shell_environment_policy\.exclude=.*$/s;

/** A gateway answers at once; a machine that is busy takes some seconds. */
const START_SECONDS = 30;

function plan(facts: RunFacts): AgentPlan {
  const { url, args, only, approve } = facts;
  const servers = ownServers("codex", facts);
  const isSame = (entry: ClientFields) => Object.keys(entry).every((key) => OVERRIDDEN.has(key));
  const { name, notes } = entryName(servers, isSame, title);
  const entry = `mcp_servers.${name}`;
  const said = args.findIndex((word) => EXCLUDES.test(word));
  const hidden = JSON.stringify([...new Set([...userExcludes(facts, args[said]), SECRET_VARIABLE])]);
  const set = (key: string, value: unknown) => ["-c", `${key}=${JSON.stringify(value)}`];
  return {
    args: [
      ...set(`${entry}.url`, url),
      ...set(`${entry}.bearer_token_env_var`, SECRET_VARIABLE),
      ...set(`${entry}.enabled`, true),
      // Else the first turn goes out before the tools are there, and a start that failed is not told.
      ...set(`${entry}.required`, true),
      ...set(`${entry}.startup_timeout_sec`, START_SECONDS),
      ...(approve ? set(`${entry}.default_tools_approval_mode`, "approve") : []),
      ...(said < 0 ? ["-c", `${EXCLUDE}=${hidden}`] : []),
      ...(only ? [...servers.keys()].filter((one) => one !== name).flatMap((one) => switchedOff(one)) : []),
      // The last list counts: where the user gives one, ours goes into it.
      ...args.map((word, i) => (i === said ? word.replace(EXCLUDES, `$1${EXCLUDE}=${hidden}`) : word)),
    ],
    env: {},
    files: [],
    notes: [
      ...notes,
      ...(isHeadless(args) && !approve && !isUnguarded(args)
        ? [willRefuse(title, "`codex exec` cannot ask, and calls only tools that say that they change nothing")]
        : []),
    ],
  };
}

/** Keys of the command line are dotted, and a name with a dot in it cannot be written so. */
function switchedOff(name: string): string[] {
  return /^[\w-]+$/.test(name) ? ["-c", `mcp_servers.${name}.enabled=false`] : [];
}

function isHeadless(args: readonly string[]): boolean {
  return args.includes("exec") || args.includes("e");
}

function isUnguarded(args: readonly string[]): boolean {
  return hasOption(args, "--dangerously-bypass-approvals-and-sandbox", "--yolo") || args.includes("danger-full-access");
}

/** What the user hides from the shell already: a list replaces the one before. */
function userExcludes({ env, home, read }: RunFacts, said: string | undefined): string[] {
  const file = read(`${env["CODEX_HOME"] || `${home}/.codex`}/config.toml`);
  return [said?.replace(/^(?:--config=|-c=?)/, ""), file].flatMap((text) => excludesIn(text));
}

function excludesIn(text: string | undefined): string[] {
  try {
    return strings(table(parseToml(text ?? "")["shell_environment_policy"])["exclude"]);
  } catch (error) {
    // Codex says itself what is wrong with its config.
    if (error instanceof TomlError) return [];
    throw error;
  }
}
