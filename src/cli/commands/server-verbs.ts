// `toolway reload`, `toolway stop` and `toolway start`: what an operator does to one server of the gateway that runs, or
// to its config. Asks the gateway, waits for what comes of it, and says so.

import type { GatewayStatus, ServerStatus } from "../../contracts/status.js";
import { nearest } from "../../runtime/nearest.js";
import { sleep } from "../../runtime/wait.js";
import { sentence } from "../../runtime/words/sentence.js";
import { shellWord } from "../../runtime/words/shell-word.js";
import type { ReloadAnswer } from "../edit/reload-report.js";
import type { GatewayClient } from "../gateway/port.js";
import { demandGateway } from "../gateway/which.js";
import { IDLE_GRACE_MS, isPending, noteIfSlow, POLL_MS, SETTLE_MS } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit, type ExitCode, UserError } from "../line/errors.js";
import { hinted, type Io, note, print, printJson } from "../line/io.js";
import { count, oneLine } from "../text/print.js";
import { quarantineText } from "../text/status.js";

export const reload = defineCommand({
  metadata: {
    name: "reload",
    summary: "Starts a server anew and forgives it its failures, or reads the config again.",
    description:
      "Stops a server of the running gateway and starts it again, also one that was ejected after too many " +
      "restarts: its count of restarts and failures begins anew, and its cached results are dropped. Waits " +
      "until it is up; exits 1 when it does not come up. Without a server it reads the config and its env files " +
      "again and says what changed, and which entries cannot be used: where a server goes on by the one that it had it exits " +
      "1. An edit of the config itself is applied without it.",
  },
  args: { server: { description: "Its name in the config. Default: the config is read again.", completes: "server" } },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway reload github", note: "after its cause was fixed" },
    { line: "toolway reload", note: "after an env file was edited: says what changed" },
    { line: "toolway reload github --json", note: "in a script" },
  ],
  handler: ({ server, ...input }, io) =>
    server === undefined ? reloadConfig(input, io) : actOnServer("reload", { server, ...input }, io),
});

export const stop = defineCommand({
  metadata: {
    name: "stop",
    summary: "Stops a server; calls to it are refused until it is started.",
    description:
      "Stops a server of the running gateway. Its tools stay listed, and calls to them are refused until " +
      "`toolway start`, `toolway reload` or the gateway's next start.",
  },
  args: { server: { required: true, description: "Its name in the config.", completes: "server" } },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway stop github", note: "while it is being worked on" },
    { line: "toolway stop github --json", note: "in a script" },
  ],
  handler: (input, io) => actOnServer("stop", input, io),
});

export const start = defineCommand({
  metadata: {
    name: "start",
    summary: "Starts a server that was stopped.",
    description:
      "Starts a server of the running gateway that was stopped. Waits until it is up; exits 1 when it does " +
      "not come up.",
  },
  args: { server: { required: true, description: "Its name in the config.", completes: "server" } },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway start github", note: "again after toolway stop" },
    { line: "toolway start github --json", note: "in a script" },
  ],
  handler: (input, io) => actOnServer("start", input, io),
});

/** An error in one line; `status --json` has the whole. */
const ERROR_WIDTH = 320;

interface GatewayInput {
  readonly config: string | undefined;
  readonly state: string | undefined;
  readonly json: boolean;
}

interface Input extends GatewayInput {
  readonly server: string;
}

async function reloadConfig(input: GatewayInput, io: Io): Promise<ExitCode> {
  const client = await demandGateway(input, io);
  const answer = (await client.post("/reload", {}, io.signal)) as ReloadAnswer;
  const { tellReload } = await import("../edit/index.js");
  return tellReload(answer, input.json, io);
}

async function actOnServer(verb: "reload" | "stop" | "start", input: Input, io: Io): Promise<ExitCode> {
  const client = await demandGateway(input, io);
  const { servers } = (await client.get("/status", io.signal)) as GatewayStatus;
  const names = servers.map(({ name }) => name);
  if (!names.includes(input.server)) {
    const near = nearest(input.server, names);
    throw new UserError(`The gateway has no server ${input.server}.`, {
      kind: "usage",
      hint: near === undefined ? `It has ${names.join(", ") || "none"}.` : `Did you mean ${near}?`,
    });
  }
  await client.post(`/servers/${encodeURIComponent(input.server)}/${verb}`, {}, io.signal);
  const waiting = settled(client, input.server, verb === "stop", io);
  const server = await noteIfSlow(io, `Waiting for ${input.server} …`, waiting);
  const failed = verb !== "stop" && server.state !== "ready" && server.state !== "idle";
  if (input.json) {
    const { name, state, lastError, counts, quarantined = 0 } = server;
    const trouble = lastError === undefined ? {} : { lastError };
    printJson(io, { server: name, state, tools: counts.tools, quarantined, ...trouble });
  } else if (failed) {
    throw new UserError(`${server.name} ${NOT_UP[server.state]}${why(server)}`, {
      hint: "`toolway status` shows what it wrote, `toolway doctor` what to fix.",
    });
  } else {
    print(io, hinted(io, outcome(verb, server)));
    if (verb !== "stop" && server.quarantined > 0) note(io, quarantineText(server));
  }
  return failed ? Exit.failure : Exit.ok;
}

/** What became of a server that was to come up, by its state. */
const NOT_UP: Readonly<Record<ServerStatus["state"], string>> = {
  idle: "is idle",
  starting: "is still starting",
  waiting: "waits for its executor",
  ready: "is ready",
  backoff: "did not come up",
  ejected: "was restarted too often, and is left alone",
  stopped: "is stopped",
  misconfigured: "is misconfigured",
};

function why({ lastError }: ServerStatus): string {
  return lastError === undefined ? "." : `: ${sentence(oneLine(lastError, ERROR_WIDTH))}`;
}

function outcome(verb: "reload" | "stop" | "start", { name, state, counts }: ServerStatus): string {
  if (verb === "stop")
    return `Stopped ${name}, until \`toolway start ${shellWord(name)}\` or the gateway's next start.`;
  const done = verb === "reload" ? "Reloaded" : "Started";
  return state === "ready"
    ? `${done} ${name}: ready, with ${count(counts.tools, "tool")}.`
    : `${done} ${name}: it is idle, and starts with its first call.`;
}

/** Until it is up or has failed, with its lists read; or, of one that is to stop, until it has. */
async function settled(client: GatewayClient, name: string, stops: boolean, io: Io): Promise<ServerStatus> {
  const started = Date.now();
  for (;;) {
    io.signal.throwIfAborted();
    const { servers } = (await client.get("/status", io.signal)) as GatewayStatus;
    const server = servers.find((one) => one.name === name);
    if (server === undefined) throw new UserError(`${name} is no longer in the config.`);
    const waited = Date.now() - started;
    if (waited > SETTLE_MS || !(stops ? isStopping(server) : isStarting(server, waited))) return server;
    await sleep(POLL_MS);
  }
}

function isStopping({ state }: ServerStatus): boolean {
  return state !== "stopped";
}

/** One that was stopped may still be so for a moment. */
function isStarting(server: ServerStatus, waitedMs: number): boolean {
  return isPending(server, waitedMs) || (server.state === "stopped" && waitedMs < IDLE_GRACE_MS);
}
