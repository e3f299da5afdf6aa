// Codex as an agent: `codex exec` with one MCP server in an environment that an executor serves, and a model that
// calls one tool of it.

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start } from "../fixtures/processes.js";
import { findCodex } from "./binary.js";
import { FINAL_MESSAGE, startFakeModel } from "./fake-model.js";

/** A run takes a second; a dozen of them on half a core take longer. */
const RUN_MS = 90_000;

/** What Codex calls the MCP server: no name of a test may be mistaken for it. */
const SERVER = "behind";

export interface CodexRun {
  readonly mcpUrl: string;
  /** `ws://…`: where the executor listens. */
  readonly executorUrl: string;
  readonly token: string;
  readonly tool: { readonly name: string; readonly arguments?: object };
  /** A token for the MCP server, which Codex holds and the executor does not. */
  readonly mcpToken?: string;
}

export interface CodexOutcome {
  /** All that Codex wrote, for a failed test to show. */
  readonly output: string;
  /** The text of the tool's result as Codex reports it; undefined where the call failed. */
  readonly toolResult: string | undefined;
  /** Why the call failed, in Codex's words. */
  readonly toolError: string | undefined;
  /** The model heard of an outcome and had the last word. */
  readonly finished: boolean;
}

/** Rejects where Codex cannot be had, or hangs. */
export async function runCodex(run: CodexRun): Promise<CodexOutcome> {
  const codex = await findCodex();
  if (codex.path === undefined) throw new Error(codex.missing);
  const home = await mkdtemp(join(tmpdir(), "toolway-codex-agent-"));
  const model = await startFakeModel({
    server: SERVER,
    name: run.tool.name,
    arguments: run.tool.arguments ?? {},
  });
  try {
    const work = join(home, "work");
    await mkdir(work);
    await writeFile(join(home, "config.toml"), configFor(run, model.baseUrl));
    await writeFile(join(home, "environments.toml"), environmentsFor(run), { mode: 0o600 });
    const args = ["exec", "--json", "--skip-git-repo-check", "--cd", work, "--sandbox", "read-only", "Call the tool."];
    // Nothing of ours but the path: no account, no settings, no proxy of the machine.
    const env = { PATH: process.env["PATH"] ?? "", HOME: home, CODEX_HOME: home, MCP_TOKEN: run.mcpToken ?? "" };
    return outcomeOf(await runToEnd(codex.path, args, env));
  } finally {
    await model.close();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

function configFor({ mcpUrl, mcpToken }: CodexRun, modelUrl: string): string {
  const text = JSON.stringify;
  return [
    'model = "fake"',
    'model_provider = "fake"',
    "[model_providers.fake]",
    'name = "fake"',
    `base_url = ${text(modelUrl)}`,
    'wire_api = "responses"',
    `[mcp_servers.${SERVER}]`,
    `url = ${text(mcpUrl)}`,
    'environment_id = "remote"',
    // Nobody is there to be asked.
    'default_tools_approval_mode = "approve"',
    ...(mcpToken === undefined ? [] : ['bearer_token_env_var = "MCP_TOKEN"']),
    "",
  ].join("\n");
}

function environmentsFor({ executorUrl, token }: CodexRun): string {
  const text = JSON.stringify;
  const remote = ['id = "remote"', `url = ${text(executorUrl)}`, `auth_bearer_token = ${text(token)}`];
  return ['default = "local"', "[[environments]]", ...remote, ""].join("\n");
}

async function runToEnd(path: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const { child, closed, log, stop } = start("codex", path, args, env);
  child.stdin.end();
  const timer = setTimeout(() => void stop("SIGKILL"), RUN_MS);
  const code = await closed;
  clearTimeout(timer);
  if (code === null) throw new Error(`codex did not end: ${log().slice(-4000)}`);
  return log();
}

interface CodexEvent {
  readonly type: string;
  readonly item?: {
    readonly type: string;
    readonly text?: string;
    readonly result?: { readonly content: readonly { readonly text?: string }[] } | null;
    readonly error?: { readonly message: string } | null;
  };
}

function outcomeOf(output: string): CodexOutcome {
  let toolResult: string | undefined;
  let toolError: string | undefined;
  let finished = false;
  for (const line of output.split("\n")) {
    if (!line.startsWith("{")) continue;
    const { type, item } = JSON.parse(line) as CodexEvent;
    if (type !== "item.completed" || item === undefined) continue;
    if (item.type === "agent_message") finished = item.text === FINAL_MESSAGE;
    if (item.type !== "mcp_tool_call") continue;
    toolResult = item.result?.content.map((part) => part.text ?? "").join("");
    toolError = item.error?.message;
  }
  return { output, toolResult, toolError, finished };
}
