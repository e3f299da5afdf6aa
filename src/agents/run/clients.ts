// The clients that `toolway run` knows, by the word on its line, and what any other command is given.

import { join } from "node:path";
import { claude } from "./claude.js";
import { codex } from "./codex.js";
import { copilot } from "./copilot.js";
import { gemini } from "./gemini.js";
import { opencode } from "./opencode.js";
import { type AgentPlan, ENTRY_NAME, FILE_VARIABLE, type RunClient, type RunFacts, URL_VARIABLE } from "./plan.js";
import { qwen } from "./qwen.js";

const CLIENTS: readonly RunClient[] = [claude, codex, gemini, opencode, copilot, qwen];

export const CLIENT_WORDS: readonly string[] = CLIENTS.map(({ program }) => program);

/** Undefined for any other command. */
export function clientNamed(word: string): RunClient | undefined {
  return CLIENTS.find(({ program }) => program === word);
}

const FILE = "mcp.json";
/** Stands in the text of a file where the secret goes when it is written. */
const SECRET_MARK = "{secret}";

/** A command of which nothing is known: the address and the secret in variables, and both in a file of the usual form. */
export function planForCommand({ url, args, folder, only, approve }: RunFacts): AgentPlan {
  const entry = { type: "http", url, headers: { Authorization: `Bearer ${SECRET_MARK}` } };
  const notes = [
    ...(only ? ["--only is for clients that are known: this command has what servers it has."] : []),
    ...(approve ? ["--approve is for clients that are known: this command asks, or does not, as it is."] : []),
  ];
  const text = `${JSON.stringify({ mcpServers: { [ENTRY_NAME]: entry } }, null, 2)}\n`;
  return {
    args,
    env: { [URL_VARIABLE]: url, [FILE_VARIABLE]: join(folder, FILE) },
    files: [{ path: FILE, text, secretAt: SECRET_MARK }],
    notes,
  };
}
