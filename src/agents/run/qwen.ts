// Qwen Code: its `--mcp-config` does not fill in variables, so that the secret would stand among the arguments. A file of
// system settings does, and may be the user's.

import { join } from "node:path";
import { Source } from "../../config/jsonc.js";
import { table } from "../import/values.js";
import { entryName, hasOption, isHttp, ownServers, unreadable } from "./own-servers.js";
import { type AgentPlan, BEARER_REFERENCE, type RunClient, type RunFacts, willRefuse } from "./plan.js";

const title = "Qwen Code";
const SETTINGS = "QWEN_CODE_SYSTEM_SETTINGS_PATH";
const FILE = "qwen-settings.json";

export const qwen: RunClient = {
  id: "qwen",
  title,
  program: "qwen",
  install: "npm install -g @qwen-code/qwen-code",
  plan,
};

function plan(facts: RunFacts): AgentPlan {
  const { url, args, only, approve, env, folder, read } = facts;
  const { name, notes } = entryName(ownServers("qwen", facts), isHttp, title);
  // Ours takes the place of the machine's own, whose settings stay in force.
  const path = env[SETTINGS] || systemSettings(facts);
  const system = read(path);
  const before = table(new Source(system ?? "{}").read(() => {}));
  const entry = { httpUrl: url, headers: { Authorization: BEARER_REFERENCE }, ...(approve ? { trust: true } : {}) };
  const settings = { ...before, mcpServers: { ...table(before["mcpServers"]), [name]: entry } };
  const isHeadless = hasOption(args, "-p", "--prompt") || facts.isPiped;
  const isOpen = hasOption(args, "--yolo", "-y") || args.includes("yolo");
  return {
    args: [...(only ? [`--allowed-mcp-server-names=${name}`] : []), ...args],
    env: { [SETTINGS]: join(folder, FILE) },
    files: [{ path: FILE, text: `${JSON.stringify(settings, null, 2)}\n` }],
    notes: [
      ...notes,
      ...unreadable(path, system, title),
      ...(isHeadless && !approve && !isOpen ? [willRefuse(title, "nobody can be asked")] : []),
    ],
  };
}

function systemSettings({ platform }: RunFacts): string {
  return platform === "darwin" ? "/Library/Application Support/QwenCode/settings.json" : "/etc/qwen-code/settings.json";
}
