// `toolway run` at work: takes hold of a gateway, gives the agent what its client wants, runs it in the foreground, and
// leaves nothing behind. What each client wants is src/agents/run.

import { readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { CLIENT_WORDS, clientNamed, planForCommand } from "../../agents/run/clients.js";
import { agentEnvironment, credentialVariables } from "../../agents/run/environment.js";
import { type AgentPlan, type RunClient, type RunFacts, SECRET_VARIABLE } from "../../agents/run/plan.js";
import { endRunFolder, makeRunFolder } from "../../agents/run/run-folder.js";
import type { RunRequest } from "../../contracts/runs.js";
import { findProgram } from "../../runtime/processes/find-program.js";
import { ownMark } from "../../runtime/processes/life.js";
import { sleep } from "../../runtime/wait.js";
import type { GatewaySource } from "../gateway/port.js";
import type { ExitCode } from "../line/errors.js";
import type { Io } from "../line/io.js";
import { runChild } from "./child.js";
import { contextOf } from "./context.js";
import { reachOrStart, reachRun } from "./gateway-for-runs.js";
import { type ConnectRun, RunHold, RunRefused } from "./hold.js";
import { RunError } from "./run-error.js";
import { closingLine, dryRunAsItIs, dryRunText } from "./text.js";

export { boundLog, EXIT_HELD } from "./gateway-for-runs.js";
// From here, so that a start has one file less to look at.

export interface RunInput {
  readonly client: string;
  readonly args: readonly string[];
  readonly config: string | undefined;
  readonly state: string | undefined;
  readonly role: string | undefined;
  readonly as: string | undefined;
  readonly context: readonly string[];
  readonly keepEnv: readonly string[];
  readonly only: boolean;
  readonly approve: boolean;
  readonly fallback: boolean;
  readonly dryRun: boolean;
}

interface GatewaySeen {
  /** The config that it runs with: it may be another than was named. */
  readonly config: string | undefined;
  /** What is to be said of servers that did not come up. */
  readonly missing: readonly string[];
}

/** What the verb has and a run needs. It is given, so that a start of anything else has no file more to open. */
export interface RunSurroundings {
  readonly io: Io;
  /** Which gateway is meant. Rejects where that is unclear. */
  readonly source: () => Promise<GatewaySource>;
  /** What the gateway of this state directory says of itself, where one runs. */
  readonly look: (source: GatewaySource) => Promise<GatewaySeen>;
  /** Where the gateway listens that runs; undefined where none does. */
  readonly endpoint: (source: GatewaySource) => Promise<string | undefined>;
  readonly say: (text: string) => void;
  readonly print: (text: string) => void;
  readonly nearest: (word: string, words: readonly string[]) => string | undefined;
}

const OK = 0;

/** A gateway that is just ending takes no new run: the next one does. It has calls that may end within 22 s, and is gone within 30. */
const NEXT_GATEWAY_MS = 40_000;
const LOOK_MS = 200;

export async function runAgent(input: RunInput, around: RunSurroundings): Promise<ExitCode> {
  const { io, say } = around;
  if (process.platform === "win32") {
    throw new RunError("`toolway run` works on Linux and macOS.", { hint: "On Windows, use it inside WSL." });
  }
  const client = clientNamed(input.client);
  const program = programFor(input.client, client, around);
  if (/^(?:0|false|off)$/i.test(io.env["TOOLWAY_RUN"] ?? "")) {
    const off = `TOOLWAY_RUN is ${io.env["TOOLWAY_RUN"]}: ${input.client} is started as it is, without Toolway.`;
    if (input.dryRun) {
      around.print(dryRunAsItIs(off, program, input.args));
      return OK;
    }
    say(off);
    return runChild(program, input.args, { env: definedIn(io.env), io });
  }
  const source = await around.source();
  const request = requestFor(input, around);
  if (input.dryRun) {
    around.print(await dryRun({ input, client, source, program }, around));
    return OK;
  }
  let hold: RunHold;
  try {
    // What stands against any plan is told before a gateway is started for it.
    planFor(input, client, notYet(source), io);
    hold = await takeHold(source, request, io);
  } catch (error) {
    if (!input.fallback || io.signal.aborted) throw error;
    const { message } = error as Error;
    // Its own servers may need what Toolway's have credentials in.
    say(`${message}\nStarting ${input.client} with its own servers alone: nothing of it is resilient.`);
    return runChild(program, input.args, { env: definedIn(io.env), io });
  }
  return runHeld(hold, { input, client, source, program }, around);
}

interface RunParts {
  readonly input: RunInput;
  readonly client: RunClient | undefined;
  readonly source: GatewaySource;
  readonly program: string;
}

async function runHeld(
  hold: RunHold,
  { input, client, source, program }: RunParts,
  around: RunSurroundings,
): Promise<ExitCode> {
  const { io, say } = around;
  const { run, url, secret = "", principal, noAuth } = hold.first;
  const folder = folderOf(source, run);
  try {
    const plan = planFor(input, client, { url, folder }, io);
    const { config: inUse, missing } = await around.look(source);
    const { env, left, notes } = environmentFor(input, [source.configPath, inUse], io);
    if (inUse !== undefined && source.configPath !== undefined && inUse !== source.configPath) {
      say(`the gateway of this state directory runs with another config, which counts: ${inUse}.`);
    }
    makeRunFolder(folder, plan, secret);
    for (const text of [...withoutConfig(source, inUse), ...plan.notes, ...notes]) say(text);
    if (left.length > 0) say(`left out of the agent's environment: ${left.join(", ")} (--keep-env NAME keeps one).`);
    for (const text of missing) say(text);
    if (noAuth) say("the gateway asks for no token (--no-auth): role, context and figures of this run do not count.");
    const code = await runChild(program, plan.args, { env: { ...env, ...plan.env, [SECRET_VARIABLE]: secret }, io });
    giveBack(folder, say);
    const summary = await hold.end();
    for (const text of hold.problems) say(text);
    if (summary !== undefined) say(closingLine(principal, summary, hold.restarts));
    return code;
  } catch (error) {
    giveBack(folder, say);
    await hold.end();
    throw error;
  }
}

/** What cannot be given back stays, for the gateway's own sweep. */
function giveBack(folder: string, say: RunSurroundings["say"]): void {
  try {
    for (const text of endRunFolder(folder)) say(text);
  } catch (error) {
    say(`${folder} could not be put away, and is tried again later: ${(error as Error).message}`);
  }
}

function folderOf({ stateDir }: GatewaySource, run: string): string {
  return join(stateDir, "runs", run);
}

async function takeHold(source: GatewaySource, request: RunRequest, io: Io): Promise<RunHold> {
  const connect: ConnectRun = (before) =>
    // One that the user runs is the user's to start again.
    before?.forRuns === false
      ? reachRun(source)
      : // Once the agent runs, Ctrl-C is its own.
        reachOrStart(source, before, io.cwd, before === undefined ? io.signal : undefined);
  const untilMs = performance.now() + NEXT_GATEWAY_MS;
  do {
    io.signal.throwIfAborted();
    try {
      const hold = await RunHold.begin(connect, request, io.signal);
      if (hold !== undefined) return hold;
    } catch (error) {
      if (!(error instanceof RunRefused)) throw error;
      throw new RunError(error.message, { isUsage: error.code === "invalid" });
    }
    await sleep(LOOK_MS);
  } while (performance.now() < untilMs);
  throw new RunError("The gateway for this config keeps going away.", { hint: "`toolway ps` lists those that run." });
}

function programFor(word: string, client: RunClient | undefined, { io, nearest }: RunSurroundings): string {
  const program = findProgram(word, io);
  if (program !== undefined) return program;
  if (client !== undefined) {
    const message = `${client.title} is not installed, or not on the PATH: there is no "${word}" there.`;
    throw new RunError(message, { hint: `Install it: ${client.install}`, isUsage: true });
  }
  const near = nearest(word, CLIENT_WORDS);
  const hint = near === undefined ? `Clients that are known: ${CLIENT_WORDS.join(", ")}.` : `Did you mean ${near}?`;
  throw new RunError(`There is no program "${word}"${word.includes("/") ? "" : " on the PATH"}.`, {
    hint,
    isUsage: true,
  });
}

function requestFor(input: RunInput, { io, say }: RunSurroundings): RunRequest {
  const client = basename(input.client);
  const { as, role } = input;
  const { context, notes } = contextOf({ client, cwd: io.cwd, said: input.context, read: readText });
  for (const text of notes) say(text);
  return { kind: "begin", client, as, role, context, process: ownMark() };
}

/** Where the agent would come in, while no gateway was asked. */
function notYet(source: GatewaySource): Pick<RunFacts, "url" | "folder"> {
  return { url: "http://127.0.0.1:PORT/mcp", folder: folderOf(source, "RUN") };
}

/** Throws a RunError where the client cannot be given our entry. */
function planFor(
  input: RunInput,
  client: RunClient | undefined,
  place: Pick<RunFacts, "url" | "folder">,
  io: Io,
): AgentPlan {
  const { args, only, approve } = input;
  const { home, cwd, env } = io;
  const isPiped = !io.isTTY;
  const facts = { ...place, args, only, approve, home, cwd, env, isPiped, platform: process.platform, read: readText };
  const plan = (client?.plan ?? planForCommand)(facts);
  if (plan.mistake !== undefined) throw new RunError(plan.mistake.message, { hint: plan.mistake.hint, isUsage: true });
  return plan;
}

/** The config that was named and the one that the gateway has may be two: what either refers to is not for the agent. */
function environmentFor({ keepEnv }: RunInput, configs: readonly (string | undefined)[], io: Io) {
  const texts = configs.flatMap((path) => (path === undefined ? [] : (readText(path) ?? [])));
  const names = new Set(texts.flatMap((text) => [...credentialVariables(text)]));
  const unset = keepEnv.filter((name) => io.env[name] === undefined);
  const notes = unset.map((name) => `--keep-env ${name}: this variable is not set here, so the agent has none.`);
  return { ...agentEnvironment(io.env, names, keepEnv), notes };
}

async function dryRun(
  { input, client, source, program }: RunParts,
  { io, endpoint, look }: RunSurroundings,
): Promise<string> {
  const url = await endpoint(source);
  const place = notYet(source);
  const { folder } = place;
  const plan = planFor(input, client, { ...place, ...(url === undefined ? {} : { url }) }, io);
  const { config: inUse } = await look(source);
  const { left, notes: ofEnvironment } = environmentFor(input, [source.configPath, inUse], io);
  const notes = [...withoutConfig(source, inUse), ...plan.notes, ...ofEnvironment];
  return dryRunText({ program, plan: { ...plan, notes }, left, folder, isRunning: url !== undefined });
}

/** Whoever is in another folder than they think would wonder whose tools these are. */
function withoutConfig({ configPath, stateNamed }: GatewaySource, inUse: string | undefined): string[] {
  // A gateway that is named by its state directory may be a program's, which has none.
  if (configPath !== undefined || inUse !== undefined || stateNamed) return [];
  return [
    "no config is named here or found: the agent gets the tools of Toolway's built-in demo. `toolway import --write` makes one " +
      "of your clients' servers.",
  ];
}

/** Undefined where there is none, it may not be read, or it is no ordinary file: a pipe would be waited for. */
function readText(path: string): string | undefined {
  try {
    return statSync(path).isFile() ? readFileSync(path, "utf8") : undefined;
  } catch {
    return undefined;
  }
}

function definedIn(env: Io["env"]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
