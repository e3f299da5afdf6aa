// Copilot CLI: takes servers by `--additional-mcp-config`, beside the user's own.

import { entryName, hasOption, isHttp, ownServers } from "./own-servers.js";
import { type AgentPlan, BEARER_REFERENCE, type RunClient, type RunFacts, willRefuse } from "./plan.js";

const title = "Copilot CLI";

export const copilot: RunClient = {
  id: "copilot",
  title,
  program: "copilot",
  install: "npm install -g @github/copilot",
  plan,
};

function plan(facts: RunFacts): AgentPlan {
  const { url, args, only, approve } = facts;
  const servers = ownServers("copilot", facts);
  const { name, notes } = entryName(servers, isHttp, title);
  const entry = { type: "http", url, tools: ["*"], headers: { Authorization: BEARER_REFERENCE } };
  const isHeadless = hasOption(args, "-p", "--prompt");
  const isAllowed = hasOption(args, "--allow-all-tools", "--allow-tool", "--allow-all", "--yolo");
  const others = [...servers.keys()].filter((one) => one !== name);
  return {
    args: [
      "--additional-mcp-config",
      JSON.stringify({ mcpServers: { [name]: entry } }),
      ...(only ? ["--disable-builtin-mcps", ...others.map((one) => `--disable-mcp-server=${one}`)] : []),
      ...(approve ? [`--allow-tool=${name}`] : []),
      ...args,
    ],
    env: {},
    files: [],
    notes: [
      ...notes,
      ...(isHeadless && !approve && !isAllowed ? [willRefuse(title, "with -p nobody can be asked")] : []),
    ],
  };
}
