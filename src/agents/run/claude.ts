// Claude Code: takes servers by `--mcp-config`, beside the user's own. The form with `=` counts: without it the option
// takes the prompt that follows for a second file.

import { resolve } from "node:path";
import { Source } from "../../config/jsonc.js";
import { textsOf } from "../../runtime/words/json-values.js";
import { type ClientFields, table } from "../import/values.js";
import { entryName, hasOption, isHttp, ownServers, valuesOf } from "./own-servers.js";
import { type AgentPlan, BEARER_REFERENCE, type RunClient, type RunFacts, willRefuse } from "./plan.js";

const title = "Claude Code";

export const claude: RunClient = {
  id: "claude-code",
  title,
  program: "claude",
  install: "npm install -g @anthropic-ai/claude-code",
  plan,
};

function plan(facts: RunFacts): AgentPlan {
  const { url, args, only, approve } = facts;
  // The option's entry takes the place of the user's of that name, which is right for one of the same form alone.
  const { name, notes } = entryName(ownServers("claude-code", facts), isHttp, title);
  const entry = { type: "http", url, headers: { Authorization: BEARER_REFERENCE } };
  const isHeadless = hasOption(args, "-p", "--print");
  const isOpen = approve || isAllowed(name, facts) || isUnguarded(facts);
  return {
    args: [
      `--mcp-config=${JSON.stringify({ mcpServers: { [name]: entry } })}`,
      ...(only ? ["--strict-mcp-config"] : []),
      ...(approve ? [`--allowedTools=mcp__${name}`] : []),
      ...args,
    ],
    env: {},
    files: [],
    notes: [
      ...notes,
      ...(isHeadless && !isOpen
        ? [willRefuse(title, "with -p nobody can be asked, and it calls what was allowed before alone")]
        : []),
    ],
  };
}

/** By a rule for our tools, of the line or of settings: which of them it names is the user's choice. */
function isAllowed(name: string, facts: RunFacts): boolean {
  const rule = new RegExp(`(?:^|[\\s,=])mcp__${name}(?:$|[\\s,]|__)`);
  const said = hasOption(facts.args, "--allowedTools", "--allowed-tools") ? facts.args : [];
  const inSettings = permissionsOf(facts).flatMap(({ allow }) => textsOf(allow));
  return [...said, ...inSettings].some((one) => rule.test(one));
}

/** Nothing is asked for in this run. */
function isUnguarded(facts: RunFacts): boolean {
  const { args } = facts;
  const said = permissionsOf(facts);
  if (said.some(({ disableBypassPermissionsMode }) => disableBypassPermissionsMode === "disable")) return false;
  const modes = [...valuesOf(args, "--permission-mode"), ...said.map(({ defaultMode }) => defaultMode)];
  return hasOption(args, "--dangerously-skip-permissions") || modes.includes("bypassPermissions");
}

/** What the settings say that count in this folder, those of the line included: a file, or JSON in its place. */
function permissionsOf({ args, cwd, env, home, platform, read }: RunFacts): ClientFields[] {
  const own = env["CLAUDE_CONFIG_DIR"] || `${home}/.claude`;
  const files = [own, `${cwd}/.claude`].flatMap((folder) => [
    `${folder}/settings.json`,
    `${folder}/settings.local.json`,
  ]);
  const said = valuesOf(args, "--settings").map((one) => (/^\s*\{/.test(one) ? one : read(resolve(cwd, one))));
  // A file that cannot be read is the client's to complain of.
  const configs = [managedSettings(platform), ...files]
    .map(read)
    .concat(said)
    .map((text) => table(new Source(text ?? "{}").read(() => {})));
  return configs.map((config) => table(config["permissions"]));
}

/** The file of whoever looks after the machine. What a console or the system's own management says is known to the client alone. */
function managedSettings(platform: NodeJS.Platform): string {
  const folder = platform === "darwin" ? "/Library/Application Support/ClaudeCode" : "/etc/claude-code";
  return `${folder}/managed-settings.json`;
}
