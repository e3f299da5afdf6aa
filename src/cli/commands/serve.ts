// `toolway serve`: the gateway, until it is told to stop. Owns what is refused before the start, and the end; what is
// printed at the start is ../text/banner.ts.

import { resolve } from "node:path";
import { DEFAULT_LISTEN, type ListenAddress, parseListen } from "../../config/config.js";
import { isLoopback } from "../../runtime/addresses.js";
import { resultWithin, untilAborted } from "../../runtime/wait.js";
import { gatewayPort, type StartedGateway, type StartOptions } from "../gateway/port.js";
import { sourceFor } from "../gateway/source.js";
import { configArg, defineCommand, fileOption, folderOption } from "../line/command.js";
import { Exit, usageError } from "../line/errors.js";
import { type Io, note, print, Stopped } from "../line/io.js";
import { drainMsOf, drainOption } from "../line/times.js";
import { banner, bannerJson } from "../text/banner.js";

/** What `serve` and `broker` say in their own words of the options that both have. */
interface ServingWords {
  readonly listen: string;
  readonly state: string;
  readonly noAuth: string;
  /** What is spoken with a certificate. */
  readonly scheme: string;
  readonly drain: string;
}

/** The options of what listens until it is stopped. */
export function servingOptions({ listen, state, noAuth, scheme, drain }: ServingWords) {
  return {
    listen: { value: "HOST:PORT", description: listen },
    state: folderOption(state),
    noAuth: { description: `${noAuth} On a loopback address only.` },
    tlsCert: fileOption(`Serves ${scheme} with this certificate (PEM).`),
    tlsKey: fileOption("The certificate's private key (PEM)."),
    ...drainOption(`${drain} Default: 22.`),
    json: { description: "Prints where it listens as one line of JSON, for scripts." },
  } as const;
}

/** How much is logged and in which form. They go before the variables. */
const logOptions = {
  logLevel: {
    value: "LEVEL",
    choices: ["debug", "info", "warn", "error"],
    description: "How much is logged. Default: TOOLWAY_LOG_LEVEL, else info.",
  },
  logFormat: {
    value: "FORM",
    choices: ["text", "json"],
    description: "For people, or for machines. Default: TOOLWAY_LOG_FORMAT, else text.",
  },
} as const;

type Env = Readonly<Record<string, string | undefined>>;

interface LogInput {
  readonly logLevel?: string | undefined;
  readonly logFormat?: string | undefined;
}

/** The environment as it would be had the variables been set. */
export function withLogOptions(env: Env, { logLevel, logFormat }: LogInput): Env {
  return {
    ...env,
    ...(logLevel === undefined ? {} : { TOOLWAY_LOG_LEVEL: logLevel }),
    ...(logFormat === undefined ? {} : { TOOLWAY_LOG_FORMAT: logFormat }),
  };
}

export const serve = defineCommand({
  metadata: {
    name: "serve",
    lasts: true,
    summary: "Starts the gateway: one endpoint over all servers of a config.",
    description:
      "Starts the gateway: one endpoint over all servers of a config. Without a config it takes ./toolway.json, else " +
      "~/.config/toolway/toolway.json, else a built-in demo server. An edit of the config is applied while it runs. " +
      "The default token is taken from TOOLWAY_TOKEN if that is set, else made at the first start. " +
      "SIGHUP reads the config and its env files again where there is no terminal (systemd, nohup). " +
      "Ctrl-C, SIGTERM and the end of the terminal let calls in flight end, for at most 22 seconds (--drain), and everything is over within 30; " +
      "a second Ctrl-C does not wait.",
  },
  args: {
    config: configArg("The config: an mcpServers file, as your clients have it."),
  },
  options: {
    ...servingOptions({
      listen: `Where agents connect. Default: ${DEFAULT_LISTEN}.`,
      state: "Where tokens and lists are kept.",
      noAuth: "Asks for no token.",
      scheme: "HTTPS",
      drain: "How long calls in flight have to end at a stop; 8 seconds more, and all is over.",
    }),
    names: {
      value: "MODE",
      choices: ["prefixed", "plain"],
      description: "How tools are called: server__tool, or by their own names.",
    },
    ...logOptions,
    noCallLog: { description: "Logs no line for each call. By default each has one: who, which tool, how long." },
  },
  examples: [
    { line: "toolway serve", note: "./toolway.json, or the demo, on 127.0.0.1:7420" },
    { line: "toolway serve ~/.cursor/mcp.json", note: "a file of another client, unchanged" },
    { line: "toolway serve --listen 127.0.0.1:0 --json", note: "any free port, printed as JSON" },
  ],
  async handler(input, io) {
    const drainMs = drainMsOf(input.drain);
    const source = await sourceFor({ config: input.config, state: input.state }, io);
    const options: StartOptions = {
      ...source,
      env: withLogOptions(source.env, input),
      listen: listenOption(input.listen),
      noAuth: input.noAuth,
      names: input.names,
      tls: tlsOption(input.tlsCert, input.tlsKey, io),
      logCalls: input.noCallLog ? false : "unless-off",
    };
    if (input.noAuth) await refuseNoAuth(options);
    const port = await gatewayPort();
    const started = await startedOr(port.start(options), io);
    if (started === undefined) return Exit.ok;
    if (input.json) print(io, JSON.stringify(bannerJson(started)));
    else print(io, banner(started, { noAuth: input.noAuth }, io));
    return untilStopped(started, drainMs, io);
  },
});

/** What has nearly started by then is stopped in its order; what waits for an engine or a disk may wait for long. */
const STOPPED_START_MS = 2_000;

/** A start, or why there is none, in words of whoever reads them here. Undefined where it was told to stop before it was up. */
export function startedOr(starting: Promise<StartedGateway>, io: Io): Promise<StartedGateway | undefined> {
  const started = starting.catch(async (error) => {
    throw await (await import("../gateway/taken-address.js")).namingWhoListens(error, io);
  });
  const stopped = untilAborted(io.signal).then(async () => {
    const late = await resultWithin(started, STOPPED_START_MS);
    if (late === undefined) note(io, "Stopped before it was up.");
    return late;
  });
  return Promise.race([started, stopped]);
}

export async function untilStopped(started: StartedGateway, drainMs: number | undefined, io: Io): Promise<0> {
  io.onHangUp?.(() => void started.reload());
  const asked = await Promise.race([started.stopAsked, untilAborted(io.signal)]);
  noteStopping(io);
  const { reason } = io.signal;
  const why = asked === undefined ? (reason instanceof Stopped ? reason.by : "stopped") : "toolway down";
  await started.close({ drainMs: asked?.drainMs ?? drainMs, why });
  return Exit.ok;
}

/** To whoever has just typed Ctrl-C: calls may take long to end, and nothing would be seen until then. */
export function noteStopping(io: Io): void {
  if (io.isErrTTY) note(io, "\nStopping as soon as the calls in flight have ended; Ctrl-C again stops at once.");
}

export function listenOption(text: string | undefined): ListenAddress | undefined {
  if (text === undefined) return undefined;
  // A port alone is what many type; it means this machine only.
  const address = parseListen(/^:?\d+$/.test(text) ? `127.0.0.1:${text.replace(":", "")}` : text);
  if (address === undefined) {
    throw usageError(
      `--listen ${text}: expected HOST:PORT, with a port from 0 to 65535.`,
      "For instance 127.0.0.1:7420, or [::1]:7420.",
    );
  }
  return address;
}

export function tlsOption(cert: string | undefined, key: string | undefined, io: Io): StartOptions["tls"] {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined) {
    throw usageError(
      `--tls-${cert === undefined ? "cert" : "key"} is missing: HTTPS needs the certificate and its key.`,
    );
  }
  return { cert: resolve(io.cwd, cert), key: resolve(io.cwd, key) };
}

/** Without a token, whoever reaches the port has the tools: never beyond this machine. */
async function refuseNoAuth(options: StartOptions): Promise<void> {
  let { listen } = options;
  if (listen === undefined && options.configPath !== undefined) {
    const { loadConfig } = await import("../../config/load.js");
    listen = loadConfig(options.configPath, {
      env: options.env,
      home: options.home,
      wrongEntries: "keep",
    }).listen;
  }
  if (listen !== undefined && !isLoopback(listen.host)) {
    throw usageError(
      `--no-auth is refused on ${listen.host}: anybody who reaches it could use the tools.`,
      "Listen on 127.0.0.1, or leave --no-auth out.",
    );
  }
}
