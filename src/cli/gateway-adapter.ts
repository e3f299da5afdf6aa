// Fits the gateway to the port that the CLI's verbs are written against. Loaded by gateway-port.ts when first needed.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { type ControlClient, findGateway } from "../control/client.js";
import { createGateway } from "../create-gateway.js";
import { DRAIN_MS, type Gateway } from "../gateway.js";
import { STDIO_UPGRADE } from "../gateway-control.js";
import { createLog, type Log, type LogLevel } from "../observe/log.js";
import { systemClock } from "../runtime/clock.js";
import { stateDirFor } from "../runtime/state-dir.js";
import { packageVersion } from "../runtime/version.js";
import { linkMaker } from "../upstream/links.js";
import { probeServer } from "../upstream/probe.js";
import { Reaper } from "../upstream/reaper.js";
import { hashStateDir } from "../upstream/reaper-marker.js";
import type { ServerSpec } from "../upstream.js";
import { demoConfig } from "./default-config.js";
import type {
  GatewayClient,
  GatewayPort,
  GatewaySource,
  LocalGateway,
  Probe,
  StartedGateway,
  StartOptions,
  StdioStreams,
} from "./gateway-port.js";

function logFor(env: GatewaySource["env"], quiet: boolean): Log {
  const level = (env["TOOLWAY_LOG_LEVEL"] ?? (quiet ? "error" : "info")) as LogLevel;
  const format = env["TOOLWAY_LOG_FORMAT"] === "json" ? "json" : "text";
  return createLog({ write: (line) => void process.stderr.write(line), level, format });
}

function stateDirOf({ configPath, stateDir, env, home }: GatewaySource): string {
  return stateDir ?? stateDirFor(configPath, env, home);
}

async function open(
  source: GatewaySource,
  options: Partial<StartOptions>,
  more: { startServers: boolean; quiet: boolean },
): Promise<Gateway> {
  return createGateway(source.configPath ?? demoConfig(), {
    stateDir: stateDirOf(source),
    env: { ...source.env },
    home: source.home,
    log: logFor(source.env, more.quiet),
    startServers: more.startServers,
    noAuth: options.noAuth ?? false,
    ...(options.names === undefined ? {} : { names: options.names }),
    ...(options.tls === undefined ? {} : { tls: options.tls }),
  });
}

async function start(options: StartOptions): Promise<StartedGateway> {
  const gateway = await open(options, options, { startServers: true, quiet: false });
  try {
    const { url } = await gateway.listen(options.listen);
    await gateway.openControl();
    const { tokens } = gateway.state;
    const fromEnv = options.env["TOOLWAY_TOKEN"] !== undefined;
    return {
      url,
      stateDir: stateDirOf(options),
      config: gateway.config,
      token: { isNew: tokens.isNew, fromEnv, value: fromEnv ? undefined : tokens.defaultToken() },
      status: () => gateway.status(),
      close: ({ drainMs }) => gateway.close({ drainMs }),
      ended: new Promise(() => {}),
    };
  } catch (error) {
    await gateway.close({ drainMs: 0 });
    throw error;
  }
}

function clientOf(control: ControlClient): GatewayClient {
  const with_ = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });
  return {
    get: (path, signal) => control.get(path, with_(signal)),
    post: (path, body, signal) => control.post(path, body, with_(signal)),
    delete: (path, signal) => control.delete(path, with_(signal)),
    async *lines(path, signal) {
      for await (const value of control.lines(path, with_(signal))) yield JSON.stringify(value);
    },
  };
}

async function find(source: GatewaySource): Promise<GatewayClient | undefined> {
  const control = await findGateway(stateDirOf(source));
  return control === undefined ? undefined : clientOf(control);
}

/** Talks to it by its own control socket: one way for every verb, and a second verb at the same time finds it too. */
async function local(source: GatewaySource, { servers }: { servers: boolean }): Promise<LocalGateway> {
  const gateway = await open(source, {}, { startServers: servers, quiet: true });
  try {
    await gateway.openControl();
    const client = await find(source);
    if (client === undefined) throw new Error("the gateway's own control socket cannot be reached");
    return { ...client, close: () => gateway.close({ drainMs: 0 }) };
  } catch (error) {
    await gateway.close({ drainMs: 0 });
    throw error;
  }
}

async function stdio(source: GatewaySource, { input, output, signal }: StdioStreams): Promise<void> {
  const running = await findGateway(stateDirOf(source));
  if (running !== undefined) {
    const socket = await running.upgrade(STDIO_UPGRADE);
    signal.addEventListener("abort", () => socket.destroy(), { once: true });
    input.pipe(socket);
    socket.pipe(output);
    await new Promise<void>((done) => {
      socket.once("close", done).once("error", () => done());
    });
    return;
  }
  const gateway = await open(source, {}, { startServers: true, quiet: false });
  try {
    await gateway.openControl();
    const gone = gateway.serveStdio(input as Readable, output as Writable);
    await Promise.race([gone, new Promise((done) => signal.addEventListener("abort", done, { once: true }))]);
  } finally {
    await gateway.close({ drainMs: DRAIN_MS });
  }
}

async function probe(spec: ServerSpec, { signal }: { signal: AbortSignal }): Promise<Probe> {
  const reaper = new Reaper({ stateHash: hashStateDir(`probe ${process.pid}`), env: process.env });
  try {
    const makeLink = linkMaker({ reaper, env: process.env });
    const clientInfo = { name: "toolway", version: packageVersion() };
    return await probeServer(spec, { makeLink, clientInfo, now: systemClock.now }, signal);
  } finally {
    await reaper.close();
  }
}

async function defaultToken(source: GatewaySource): Promise<string | undefined> {
  try {
    return (await readFile(join(stateDirOf(source), "token"), "utf8")).trim();
  } catch {
    return undefined;
  }
}

export const adapter: GatewayPort = { find, start, local, stdio, probe, defaultToken };
