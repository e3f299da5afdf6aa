// Implements the port of the CLI's verbs (port.ts, which loads it when it is first needed) with the real gateway.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex, Readable, Writable } from "node:stream";
import { answersIn, keepAnswer } from "../../config/inputs/answers.js";
import type { ConfigInput } from "../../config/load.js";
import type { GatewayStatus } from "../../contracts/status.js";
import { type ControlClient, connectControl, findGateway } from "../../control/client.js";
import { registerGateway } from "../../control/registry.js";
import { ControlError } from "../../control/server.js";
import { SHARE_UPGRADE, STDIO_UPGRADE } from "../../control/upgrades.js";
import { demoConfig } from "../../demo/config.js";
import { openControl } from "../../gateway/control-routes.js";
import { createGateway } from "../../gateway/create.js";
import type { Gateway, ServerStart } from "../../gateway/gateway.js";
import { boundedWrite, type Log } from "../../observe/log.js";
import { Fault } from "../../protocol/errors.js";
import { realPath, StateDirError, stateRootFor } from "../../runtime/state-dir.js";
import { sleep, untilAborted } from "../../runtime/wait.js";
import { keepCodeSoon } from "../code/keep-code.js";
import { UserError } from "../line/errors.js";
import { logOf } from "./log-of.js";
import type {
  GatewayClient,
  GatewayPort,
  GatewaySource,
  LocalGateway,
  ShareEnd,
  ShareOptions,
  StartedGateway,
  StartOptions,
  StdioStreams,
  StopAsked,
} from "./port.js";
import { probe } from "./probe.js";
import { letYoungGrow, makeHeapRoom } from "./room/heap-room.js";
import { clientOf, defaultToken, find, isHeld, list } from "./running.js";

/** A gateway that keeps mailboxes and has no servers of its own. */
const BROKER_CONFIG: ConfigInput = { mcpServers: {}, mailboxes: {} };

/** A verb that is done in a moment says what failed by itself; its log would only repeat it. */
function logFor(env: GatewaySource["env"], quiet: boolean): Log {
  const write = boundedWrite(process.stderr);
  return logOf(env, { write, isTerminal: process.stderr.isTTY === true, usual: quiet ? "error" : "info" });
}

interface OpenMore {
  readonly startServers: ServerStart;
  readonly logCalls?: boolean | "unless-off";
  readonly onDemand?: boolean;
  readonly tellsConfig?: boolean;
}

async function open(
  source: GatewaySource,
  options: Partial<StartOptions>,
  more: OpenMore & { readonly log: Log },
): Promise<Gateway> {
  keepCodeSoon();
  const builtIn = source.config ?? (source.builtIn === "broker" ? BROKER_CONFIG : demoConfig());
  return createGateway(source.configPath ?? builtIn, {
    stateDir: source.stateDir,
    env: { ...source.env },
    home: source.home,
    log: more.log,
    startServers: more.startServers,
    onDemand: more.onDemand ?? false,
    logsRemarks: more.tellsConfig !== true,
    heldWatcher: makeHeapRoom(),
    noAuth: options.noAuth ?? false,
    forRuns: options.forRuns ?? false,
    sweepRun: async (folder) => (await import("../../agents/run/run-folder.js")).endRunFolder(folder),
    ...(more.logCalls === undefined ? {} : { logCalls: more.logCalls }),
    ...(options.engine === undefined ? {} : { engine: options.engine }),
    ...(options.names === undefined ? {} : { names: options.names }),
    ...(options.tls === undefined ? {} : { tls: options.tls }),
  });
}

async function start(options: StartOptions): Promise<StartedGateway> {
  // Whoever waits for the port need not wait for the servers, and where the port is taken none is started in vain.
  const log = logFor(options.env, false);
  const gateway = await open(options, options, { startServers: "listening", log, logCalls: options.logCalls });
  try {
    const { url } = await gateway.listen(options.listen);
    let stop = (_asked: StopAsked) => {};
    const stopAsked = new Promise<StopAsked>((done) => {
      stop = done;
    });
    await gateway.openControl((asked) => stop(asked));
    const leave = enlistGateway(gateway, options, log);
    const { tokens } = gateway.state;
    const fromEnv = (options.env["TOOLWAY_TOKEN"] ?? "") !== "";
    return {
      url,
      stopAsked,
      stateDir: options.stateDir,
      config: gateway.config,
      token: { isNew: tokens.isNew, fromEnv, value: fromEnv ? undefined : tokens.defaultToken() },
      status: () => gateway.status(),
      withoutRuns: (ms) => gateway.runs.absent(ms),
      reload: async () => {
        log.info("SIGHUP: the config is read again");
        await gateway.reload().catch(() => {});
      },
      close: async ({ drainMs, why }) => {
        const seconds = Math.round((drainMs ?? gateway.config.drainMs) / 1000);
        log.info(`${why}: draining; calls in flight have ${seconds} s to end`);
        await gateway.close({ drainMs });
        leave();
        log.info("stopped");
      },
    };
  } catch (error) {
    await gateway.close({ drainMs: 0 });
    throw error;
  }
}

/** So that `toolway ps`, and verbs in other folders, know of it. Returns what takes it off the list. */
function enlistGateway(
  gateway: Gateway,
  { configPath, builtIn, stateDir, env, home }: GatewaySource,
  log: Log,
): () => void {
  const { pid, endpoint, startedAt } = gateway.status();
  const config = configPath === undefined ? undefined : realPath(configPath);
  try {
    return registerGateway(stateRootFor(env, home), { pid, config, builtIn, stateDir, endpoint, startedAt });
  } catch (error) {
    // A home that cannot be written, as services have it, keeps nobody from serving.
    log.info(`\`toolway ps\` will not list this gateway: ${(error as Error).message}`);
    return () => {};
  }
}

interface VerbNeeds {
  readonly servers: boolean | "called";
  readonly tellsConfig?: boolean;
}

/**
 * Talks to it by a control socket that nobody else finds: it ends with this verb, and another verb must not lose its
 * call by that.
 */
async function local(source: GatewaySource, { servers, tellsConfig }: VerbNeeds): Promise<LocalGateway> {
  const onDemand = servers === "called";
  const startServers = onDemand || servers;
  const log = logFor(source.env, true);
  const told = tellsConfig === undefined ? {} : { tellsConfig };
  const gateway = await open(source, {}, { startServers, log, logCalls: false, onDemand, ...told });
  const folder = await mkdtemp(join(tmpdir(), "toolway-"));
  const closeAll = async (): Promise<void> => {
    await gateway.close({ drainMs: 0 });
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const control = await openControl(gateway, folder, { ...source.env }, { hasDoor: false });
    gateway.onClose(() => void control.close());
    return { ...clientOf(connectControl(control.path)), close: closeAll };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Two clients that start `toolway stdio` at once: the second finds the first when that is up. */
const HELD_RETRY_MS = 100;

/** As long as a verb may hold the directory for itself: its servers' start and a call. */
const HELD_LIMIT_MS = 60_000;

/** The gateway that runs, else one that `make` makes; waits where another process is just about either. */
async function findOr<T>(
  source: GatewaySource,
  make: () => Promise<T>,
  signal: AbortSignal,
): Promise<ControlClient | T> {
  const deadline = performance.now() + HELD_LIMIT_MS;
  for (;;) {
    signal.throwIfAborted();
    const running = await findGateway(source.stateDir);
    if (running !== undefined) return running;
    try {
      return await make();
    } catch (error) {
      const held = error instanceof StateDirError && error.code === "held";
      if (!held || performance.now() > deadline) throw error;
    }
    await sleep(HELD_RETRY_MS);
  }
}

async function connect(
  source: GatewaySource,
  options: VerbNeeds & { readonly signal: AbortSignal },
): Promise<{ readonly client: GatewayClient; readonly own: LocalGateway | undefined }> {
  const found = await findOr(source, () => local(source, options), options.signal);
  if ("close" in found) return { client: found, own: found };
  return { client: clientOf(found), own: undefined };
}

/** A gateway of our own, which others can find and stop. */
async function becomeGateway(
  source: GatewaySource,
  more: OpenMore,
  stop: AbortController,
  check: (gateway: Gateway) => void = () => {},
): Promise<Gateway> {
  const log = logFor(source.env, false);
  const gateway = await open(source, {}, { ...more, log });
  try {
    check(gateway);
    await gateway.openControl(() => stop.abort());
    gateway.onClose(enlistGateway(gateway, source, log));
    return gateway;
  } catch (error) {
    await gateway.close({ drainMs: 0 });
    throw error;
  }
}

/** Joins the gateway that runs; where none runs it is one. One that it joined may be restarted meanwhile. */
async function stdio(source: GatewaySource, streams: StdioStreams): Promise<void> {
  const { role, as } = streams;
  const stop = new AbortController();
  const signal = AbortSignal.any([streams.signal, stop.signal]);
  const query: Readonly<Record<string, string>> = {
    ...(role === undefined ? {} : { role }),
    ...(as === undefined ? {} : { as }),
  };
  const more: OpenMore = { startServers: "agent", ...(streams.logCalls ? { logCalls: true } : {}) };
  const make = () =>
    becomeGateway(source, more, stop, (gateway) => {
      if (role !== undefined) gateway.demandRole(role);
      if (as !== undefined) gateway.demandPrincipal(as);
    });
  const found = await findOr(source, make, signal);
  if (!("upgrade" in found)) {
    await serveOwn(
      found,
      signal,
      found.serveStdio(streams.input as Readable, streams.output as Writable, { role, as }),
    );
    return;
  }
  letYoungGrow();
  if (role !== undefined) await found.get(`/roles/${encodeURIComponent(role)}`);
  if (as !== undefined) await found.get(`/tokens/${encodeURIComponent(as)}`);
  const { joinGateway } = await import("./stdio-join.js");
  let own: Gateway | undefined;
  const joined = joinGateway({
    input: streams.input as Readable,
    output: streams.output as Writable,
    signal,
    connect: async () => {
      const socket = await reach(source, query, signal);
      if (socket !== undefined) return socket;
      // It does not come back: this is the gateway now, for itself and for others that were joined to the old one.
      const made = await findOr(source, make, signal);
      if (!("upgrade" in made)) own = made;
      const control = "upgrade" in made ? made : await findGateway(source.stateDir);
      if (control === undefined) throw new Fault("unavailable", "The gateway's own control socket cannot be reached.");
      return control.upgrade(STDIO_UPGRADE, query);
    },
  });
  try {
    await joined;
  } finally {
    if (own !== undefined) await serveOwn(own, signal, Promise.resolve());
  }
}

/** Shares the tools of the gateway that runs; where none runs it is one. One that it joined may be restarted meanwhile. */
async function share(named: GatewaySource, options: ShareOptions): Promise<ShareEnd> {
  // The token is the broker's: it opens no door of this gateway, and no child sees it.
  const { TOOLWAY_TOKEN: _, ...env } = named.env;
  const source = { ...named, env };
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const { shareOn } = await import("./share-join.js");
  let own: Gateway | undefined;
  const make = () => becomeGateway(source, { startServers: true, logCalls: "unless-off" }, stop);
  try {
    while (!signal.aborted) {
      const found = await findOr(source, make, signal);
      if (!("upgrade" in found)) {
        own = found;
        options.onOwn?.();
      } else letYoungGrow();
      const control = "upgrade" in found ? found : await findGateway(source.stateDir);
      const socket = await control?.upgrade(SHARE_UPGRADE, {}, { signal }).catch(onlyDying);
      const end = socket === undefined ? "gone" : await shareOn(socket, { ...options, signal });
      if (end !== "gone") return end;
      await sleep(HELD_RETRY_MS);
    }
    return "stopped";
  } catch (error) {
    if (signal.aborted) return "stopped";
    throw error;
  } finally {
    await own?.close();
  }
}

/** One that is just dying still takes connections, and does not answer. One that answers so does not know what is asked. */
function onlyDying(error: unknown): undefined {
  if (!(error instanceof ControlError) || error.code !== "no-route") return undefined;
  throw new UserError("The gateway that runs for this config is of an older Toolway, which shares no tools.", {
    hint: "Stop it and start it again with this version; `toolway ps` shows it.",
  });
}

/** A gateway that is restarted is back within this; an agent's call waits so long. */
const REJOIN_MS = 5_000;

/** A connection to the gateway that runs, or to the next one, if one comes in time. */
async function reach(
  source: GatewaySource,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Duplex | undefined> {
  const deadline = performance.now() + REJOIN_MS;
  while (!signal.aborted && performance.now() < deadline) {
    const running = await findGateway(source.stateDir);
    // One that is just dying still takes connections, and does not answer.
    const socket = await running?.upgrade(STDIO_UPGRADE, query, { signal }).catch(() => undefined);
    if (socket !== undefined) {
      // Where its token was revoked, the socket is closed at once, each time anew: this says so instead.
      if (query["as"] !== undefined) await running?.get(`/tokens/${encodeURIComponent(query["as"])}`);
      return socket;
    }
    await sleep(HELD_RETRY_MS);
  }
  return undefined;
}

/** How often it is looked whether somebody is still there. */
const LOOK_MS = 200;

/** Is the gateway, until its own agent has gone, and with it all that joined meanwhile. */
async function serveOwn(gateway: Gateway, signal: AbortSignal, agent: Promise<void>): Promise<void> {
  const stopped = untilAborted(signal);
  try {
    await Promise.race([agent, stopped]);
    while (!signal.aborted && (gateway.runs.size > 0 || isUsed(gateway.status()))) {
      await Promise.race([stopped, sleep(LOOK_MS)]);
    }
  } finally {
    await gateway.close();
  }
}

function isUsed({ sessions, presences }: GatewayStatus): boolean {
  return sessions + presences > 0;
}

async function answers({ stateDir }: Pick<GatewaySource, "stateDir">): Promise<ReadonlyMap<string, string>> {
  return answersIn(stateDir);
}

async function keep({ stateDir }: Pick<GatewaySource, "stateDir">, id: string, answer: string): Promise<void> {
  keepAnswer(stateDir, id, answer);
}

export const adapter: GatewayPort = {
  find,
  list,
  isHeld,
  start,
  connect,
  stdio,
  share,
  probe,
  defaultToken,
  answers,
  keepAnswer: keep,
};
