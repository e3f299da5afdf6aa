// The real Claude Code, Codex, Gemini CLI and opencode, offline against a scripted model: each calls a tool of a server
// behind the gateway by `toolway run --approve`, and after `toolway setup`, and its model reads the receipt of a write whose
// server is away. In the full runs only; without a client they fail.

import { execFile } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ClientWord, clientOfFullRuns, FETCH_MS } from "../clients/binaries.js";
import { FINAL_MESSAGE, type ScriptedModel, startScriptedModel } from "../clients/scripted-model.js";
import {
  cli,
  type Gateway,
  startGateway,
  startHttpFixture,
  stdioFixture,
  temporaryDirectory,
  until,
} from "../e2e/harness.js";
import { effectsIn } from "../fixtures/ledger.js";
import { start } from "../fixtures/processes.js";
import { full } from "./length.js";

const PROMPT = "Call the tool.";
/** What the tool gives back, and nobody else says. */
const WORD = "hello-from-the-ledger";

interface Scene {
  readonly model: string;
  readonly home: string;
  readonly work: string;
}

interface Client {
  readonly word: ClientWord;
  /** How it is started without a terminal. */
  readonly args: readonly string[];
  /** By which it may call the tools of a set-up that nobody approved: its own words. */
  readonly approved: readonly string[];
  /** How it is pointed at the model, and kept from everybody else. */
  env(scene: Scene): Record<string, string>;
  prepare?(scene: Scene): void;
}

const CLIENTS: readonly Client[] = [
  {
    word: "claude",
    args: ["-p", PROMPT],
    approved: ["--allowedTools=mcp__toolway"],
    env: ({ model }) => ({
      ANTHROPIC_BASE_URL: model,
      ANTHROPIC_API_KEY: "none",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      // Else it looks for tools by a tool of its own first.
      ENABLE_TOOL_SEARCH: "false",
    }),
  },
  {
    word: "codex",
    args: ["exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only", PROMPT],
    approved: ["-c", 'mcp_servers.toolway.default_tools_approval_mode="approve"'],
    env: ({ home }) => ({ CODEX_HOME: join(home, ".codex") }),
    prepare({ home, model }) {
      mkdirSync(join(home, ".codex"));
      const provider = ['model = "fake"', 'model_provider = "fake"', "[model_providers.fake]", 'name = "fake"'];
      const config = [...provider, `base_url = ${JSON.stringify(`${model}/v1`)}`, 'wire_api = "responses"', ""];
      writeFileSync(join(home, ".codex", "config.toml"), config.join("\n"));
    },
  },
  {
    word: "gemini",
    args: ["--skip-trust", "-m", "gemini-2.5-flash", "-p", PROMPT],
    approved: ["--approval-mode", "yolo"],
    env: ({ model }) => ({ GOOGLE_GEMINI_BASE_URL: model, GEMINI_API_KEY: "none" }),
    prepare({ home }) {
      mkdirSync(join(home, ".gemini"));
      const settings = {
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
      };
      writeFileSync(join(home, ".gemini", "settings.json"), JSON.stringify(settings));
    },
  },
  {
    word: "opencode",
    args: ["run", PROMPT],
    approved: [],
    env: () => ({ OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" }),
    prepare({ home, model }) {
      mkdirSync(join(home, ".config", "opencode"), { recursive: true });
      const fake = {
        npm: "@ai-sdk/openai-compatible",
        name: "fake",
        options: { baseURL: `${model}/v1`, apiKey: "none" },
        models: { fake: { name: "fake", tool_call: true } },
      };
      const config = {
        provider: { fake },
        model: "fake/fake",
        small_model: "fake/fake",
        autoupdate: false,
        share: "disabled",
      };
      writeFileSync(join(home, ".config", "opencode", "opencode.json"), JSON.stringify(config));
    },
  },
];

/** A client in a home of its own, and how it is started in its folder. */
async function clientAt(client: Client, model: string) {
  const path = await clientOfFullRuns(client.word);
  const home = await temporaryDirectory();
  const work = join(home, "work");
  for (const folder of ["bin", "work"]) mkdirSync(join(home, folder));
  symlinkSync(path ?? "", join(home, "bin", client.word));
  const scene = { model, home, work };
  client.prepare?.(scene);
  const env = { PATH: `${join(home, "bin")}:${process.env["PATH"]}`, HOME: home, ...client.env(scene) };
  const inWork = (what: string, words: readonly string[], more = {}) => {
    // The client's folder is its own; nothing of it reads what the tests are started with.
    const one = start(what, "/bin/sh", ["-c", 'cd "$1" && shift && exec "$@"', "sh", work, ...words], {
      ...env,
      ...more,
    });
    one.child.stdin.end();
    return one;
  };
  return { env, work, inWork };
}

const placeOf = ({ configPath, stateDir }: Gateway) => ["--config", configPath, "--state", stateDir];

describe.skipIf(!full || process.env["TOOLWAY_WITHOUT_CLIENTS"] === "1")("the real clients", () => {
  let gateway: Gateway;
  let model: ScriptedModel;

  let fromMs: number;

  beforeAll(async () => {
    // What npm downloads is none of the clients' time.
    for (const { word } of CLIENTS) await clientOfFullRuns(word);
    fromMs = performance.now();
    gateway = await startGateway({ mcpServers: { ledger: stdioFixture("ledger") } }, { auth: true });
    model = await startScriptedModel({ tool: "echo", args: { text: WORD }, result: `"${WORD}` });
  }, CLIENTS.length * FETCH_MS);
  afterAll(() => model.close());

  it.each(CLIENTS)(
    "$word calls a tool by toolway run --approve, and after toolway setup, each with a token of its own [run-own] [run-secret] [setup-keeps]",
    async (client) => {
      const { env, work, inWork } = await clientAt(client, model.origin);
      const at = placeOf(gateway);
      const from = performance.now();
      const run = inWork("run", [process.execPath, cli, "run", client.word, ...at, "--approve", "--", ...client.args]);
      const code = await run.closed;
      expect(run.log(), model.asked.join("\n")).toContain(FINAL_MESSAGE);
      expect(run.log()).toMatch(/run-[0-9a-f]{12}: 1 call, none refused/);
      expect(code).toBe(0);
      const between = performance.now();

      const toolway = async (...words: string[]) =>
        (await promisify(execFile)(process.execPath, [cli, ...words, ...at], { env, cwd: work })).stdout;
      await toolway("setup", client.word, "--yes");
      const token = (await toolway("token", "show", "--id", `setup-${client.word}`)).trim();
      const variable = { [`TOOLWAY_${client.word.toUpperCase()}_TOKEN`]: token };
      const alone = inWork("alone", [client.word, ...client.approved, ...client.args], variable);
      const ended = await alone.closed;
      expect(alone.log(), model.asked.join("\n")).toContain(FINAL_MESSAGE);
      expect(ended).toBe(0);
      const took = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
      const [first, second] = [between - from, performance.now() - between];
      console.log(`faults · the real ${client.word}: a call by run in ${took(first)}, after setup in ${took(second)}`);
    },
    300_000,
  );

  it.each(CLIENTS)(
    "the model of $word reads the receipt of a write that is kept, of a tool with an output schema [ack-is-durable]",
    async (client) => {
      const ledger = join(await temporaryDirectory(), "ledger.jsonl");
      const server = await startHttpFixture("tracker", ["--ledger", ledger]);
      const tools = { create_issue: { outbox: { key: "arguments.request_id" } } };
      const kept = await startGateway({ mcpServers: { tracker: { ...server.entry, tools } } }, { auth: true });
      await until("the tools", () => kept.log().includes("pinned at first sight"));
      await server.kill();
      // These words are in the receipt alone, in its text and in its structured content.
      const script = { tool: "create_issue", args: { project: "p", title: WORD }, result: "Queued, not done yet" };
      const scripted = await startScriptedModel(script);
      try {
        const { inWork } = await clientAt(client, scripted.origin);
        const words = ["run", client.word, ...placeOf(kept), "--approve", "--", ...client.args];
        const run = inWork("run", [process.execPath, cli, ...words]);
        const code = await run.closed;
        expect(run.log(), scripted.asked.join("\n")).toContain(FINAL_MESSAGE);
        expect(code).toBe(0);
        console.log(`faults · the real ${client.word}: its model reads the receipt of a kept write`);
        await startHttpFixture("tracker", ["--ledger", ledger], server.port);
        await until("its delivery", () => effectsIn(ledger).length > 0);
        expect(effectsIn(ledger).map(({ title }) => title)).toEqual([WORD]);
      } finally {
        await scripted.close();
        await kept.stop();
      }
    },
    300_000,
  );

  it("all of that takes ten minutes at most", () => {
    const minutes = (performance.now() - fromMs) / 60_000;
    console.log(`faults · the real clients: all of them in ${minutes.toFixed(1)} min`);
    expect(minutes).toBeLessThanOrEqual(10);
  });
});
