// Codex: takes keys of its config by `-c`, and merges them with the user's key by key. So an entry of the user's whose
// other keys would stay is left alone, and ours has another name.

import { textsOf } from "../../runtime/words/json-values.js";
import { parseToml, TomlError } from "../import/toml.js";
import { type ClientFields, table } from "../import/values.js";
import { entryName, hasOption, isHttp, ownFiles, ownServers, valuesOf } from "./own-servers.js";
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
/** A word of the line that sets it, by itself or with the rest of its table, after what stands before the key. */
const EXCLUDES = /^(?:--config=|-c=?)?(?=shell_environment_policy(?:\.exclude)?\s*=)/;

/** The machine's own, below all others. */
const SYSTEM_CONFIG = "/etc/codex/config.toml";

/** A gateway answers at once; a machine that is busy takes some seconds. */
const START_SECONDS = 30;

function plan(facts: RunFacts): AgentPlan {
  const { url, args, only, approve } = facts;
  const more = [...profileFiles(facts), SYSTEM_CONFIG];
  const servers = ownServers("codex", facts, more);
  const isSame = (entry: ClientFields) => Object.keys(entry).every((key) => OVERRIDDEN.has(key));
  const { name, notes } = entryName(servers, isSame, title);
  const entry = `mcp_servers.${name}`;
  // The last list counts: ours follows the user's own, and has all that is in them.
  const after = args.findLastIndex((word) => EXCLUDES.test(word)) + 1;
  const hidden = JSON.stringify([...new Set([...userExcludes(facts, more), SECRET_VARIABLE])]);
  const others = only ? [...servers].filter(([one]) => one !== name) : [];
  const staying = others.map(([one]) => one).filter((one) => !isPlainKey(one));
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
      ...others.flatMap(([one, [own]]) => (isPlainKey(one) ? switchedOff(one, own) : [])),
      ...args.slice(0, after),
      ...["-c", `${EXCLUDE}=${hidden}`],
      ...args.slice(after),
    ],
    env: {},
    files: [],
    notes: [
      ...notes,
      ...(staying.length > 0 ? [stay(staying)] : []),
      ...(isHeadless(args) && !approve && !isUnguarded(args)
        ? [willRefuse(title, "`codex exec` cannot ask, and calls only tools that say that they change nothing")]
        : []),
    ],
  };
}

/**
 * Codex does not read the file of a project that it does not trust, and starts with no entry that has neither a program nor an
 * address: so each gets one, which is never used.
 */
function switchedOff(name: string, own: ClientFields): string[] {
  const way = isHttp(own) ? 'url="http://127.0.0.1"' : 'command="false"';
  return [way, "enabled=false"].flatMap((word) => ["-c", `mcp_servers.${name}.${word}`]);
}

/** Keys of the command line are dotted, and a name with a dot in it, or a space, cannot be written so. */
function isPlainKey(name: string): boolean {
  return /^[\w-]+$/.test(name);
}

function stay(names: readonly string[]): string {
  const which = names.map((name) => JSON.stringify(name)).join(", ");
  return `--only cannot hide these servers of ${title}'s: ${which}. Its command line takes names of letters, digits, "_" and "-" alone: rename them, or set "enabled" to false in its config.`;
}

function isHeadless(args: readonly string[]): boolean {
  return args.includes("exec") || args.includes("e");
}

function isUnguarded(args: readonly string[]): boolean {
  return hasOption(args, "--dangerously-bypass-approvals-and-sandbox", "--yolo") || args.includes("danger-full-access");
}

/** `-p NAME`, in the forms that it has, is a file beside the user's config, which is read above it. */
function profileFiles({ args, env, home }: RunFacts): string[] {
  const joined = args.flatMap((word) => /^-p=?([^=].*)$/.exec(word)?.[1] ?? []);
  const names = [...valuesOf(args, "-p"), ...valuesOf(args, "--profile"), ...joined];
  const folder = env["CODEX_HOME"] || `${home}/.codex`;
  // Codex refuses any other name.
  return names.filter((name) => /^[\w-]+$/.test(name)).map((name) => `${folder}/${name}.config.toml`);
}

/** All that is hidden from the shell already, by whatever file: ours replaces the list of each. */
function userExcludes(facts: RunFacts, more: readonly string[]): string[] {
  const said = facts.args.filter((word) => EXCLUDES.test(word)).map((word) => word.replace(EXCLUDES, ""));
  const files = ownFiles("codex", facts, more).map(({ file }) => facts.read(file));
  return [...said, ...files].flatMap((text) => excludesIn(text));
}

function excludesIn(text: string | undefined): string[] {
  try {
    return textsOf(table(parseToml(text ?? "")["shell_environment_policy"])["exclude"]);
  } catch (error) {
    // Codex says itself what is wrong with its config.
    if (error instanceof TomlError) return [];
    throw error;
  }
}
