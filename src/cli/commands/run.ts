// `toolway run`: an agent with an endpoint and a secret of its own, for one start. The work is in ../run.

import type { GatewayStatus } from "../../contracts/status.js";
import { nearest } from "../../runtime/nearest.js";
import { type GatewaySource, gatewayPort, runningGateway } from "../gateway/port.js";
import { sourceFor } from "../gateway/source.js";
import { gatewayFor } from "../gateway/which.js";
import { configArg, defineCommand, gatewayOptions, stateOption } from "../line/command.js";
import { Exit, type PassedExit } from "../line/errors.js";
import { note, print } from "../line/io.js";
import { untilStopped } from "./serve.js";

const CLIENTS = ["claude", "codex", "gemini", "opencode", "copilot", "qwen"] as const;

export const run = defineCommand({
  metadata: {
    name: "run",
    summary: "Runs your agent with Toolway's tools: its own endpoint and secret, nothing left behind.",
    description:
      "Starts an agent in the foreground with an endpoint, a principal and a secret of its own, beside the servers that you " +
      `configured for it; none of its files is changed. It knows ${CLIENTS.join(", ")}; any other command gets ` +
      "TOOLWAY_URL, TOOLWAY_SESSION_TOKEN and, in TOOLWAY_MCP_CONFIG, the path of an mcpServers file. It joins the gateway that " +
      "runs for the config, or starts one that ends 10 seconds after its last run. The agent's environment is yours without the " +
      "variables in which the config has its servers' credentials. Its exit code is passed on. What follows -- is the agent's " +
      "own. TOOLWAY_RUN=0 starts it as it is.",
  },
  args: {
    client: {
      required: true,
      description: `${CLIENTS.slice(0, -1).join(", ")} or ${CLIENTS.at(-1)}; any other command after --.`,
      completes: CLIENTS,
    },
    args: { description: "What the agent is given, after --.", rest: { alone: /(?!)/ } },
  },
  options: {
    ...gatewayOptions,
    role: { value: "ROLE", description: "A role of the config that the agent is narrowed to.", completes: "role" },
    as: {
      value: "ID",
      description: "Names the principal: a later run of that id finds its context and its budget. Default: a new one.",
    },
    context: { value: "KEY=VALUE", repeat: true, description: "A fact of its situation, for the menus of the config." },
    keepEnv: { value: "NAME", repeat: true, description: "Keeps a variable in the agent's environment." },
    only: { description: "Hides the client's own servers for this run, where the client can." },
    approve: { description: "The client does not ask before it calls Toolway's tools." },
    fallback: { description: "Where no gateway can be had, starts the client with its own servers alone." },
    dryRun: { description: "Prints arguments, variables and files, and starts nothing." },
  },
  examples: [
    { line: "toolway run claude", note: "Claude Code, with the servers of ./toolway.json" },
    { line: "toolway run codex --role reader -- exec 'what is new?'", note: "narrowed to a role" },
    { line: "toolway run gemini --dry-run", note: "what it would be given" },
    { line: "toolway run -- ./my-agent --fast", note: "any other command" },
  ],
  async handler(input, io) {
    const { runAgent } = await import("../run/run.js");
    const running = async (source: GatewaySource) => (await runningGateway()).find(source);
    const statusOf = async (source: GatewaySource) =>
      (await (await running(source))?.get("/status", io.signal)) as GatewayStatus | undefined;
    return runAgent(input, {
      io,
      source: async () => {
        const source = await gatewayFor(input, io);
        if (!source.stateNamed || input.config !== undefined) return source;
        // The gateway of that directory has a config of its own.
        const configPath = (await statusOf(source))?.config.path ?? source.configPath;
        return { ...source, configPath };
      },
      look: async (source) => {
        const [status, { missingServers }] = await Promise.all([statusOf(source), import("../text/tool-list.js")]);
        return { config: status?.config.path, missing: missingServers(status?.servers ?? []) };
      },
      endpoint: async (source) => (await statusOf(source))?.endpoint,
      say: (text) => note(io, `toolway: ${text}`),
      print: (text) => print(io, text),
      nearest,
    });
  },
});

/** How long it waits for another run. */
const IDLE_MS = 10_000;

export const gatewayForRuns = defineCommand({
  metadata: { name: "__gateway-for-runs", summary: "The gateway that `toolway run` starts.", hidden: true },
  args: { config: configArg("The config.") },
  options: { ...stateOption, port: { value: "PORT", required: true, description: "Where it listens, on loopback." } },
  examples: [],
  async handler(input, io) {
    const { boundLog, EXIT_HELD } = await import("../run/run.js");
    const port = await gatewayPort();
    boundLog();
    const source = await sourceFor({ config: input.config, state: input.state }, io);
    const started = await port
      .start({
        ...source,
        listen: { host: "127.0.0.1", port: Number(input.port) },
        noAuth: false,
        names: undefined,
        tls: undefined,
        logCalls: false,
        forRuns: true,
      })
      .catch((error: { code?: unknown }) => {
        if (error.code !== "held") throw error;
        return undefined;
      });
    if (started === undefined) return EXIT_HELD as PassedExit;
    const stopped = untilStopped(started, undefined, io);
    const isIdle = await Promise.race([stopped.then(() => false), started.withoutRuns(IDLE_MS).then(() => true)]);
    if (isIdle) await started.close({ drainMs: 0, why: `no run for ${IDLE_MS / 1000} s` });
    return Exit.ok;
  },
});
