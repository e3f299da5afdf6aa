// Claude Code: takes servers by `--mcp-config`, beside the user's own. The form with `=` counts: without it the option
// takes the prompt that follows for a second file.

import { entryName, hasOption, isHttp, ownServers } from "./own-servers.js";
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
      ...(isHeadless && !approve && !hasOption(args, "--allowedTools", "--allowed-tools")
        ? [willRefuse(title, "with -p nobody can be asked, and it calls what was allowed before alone")]
        : []),
    ],
  };
}
