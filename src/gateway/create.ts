// `createGateway`: from what a program or the CLI has to a running gateway, with its config watched.

import type { Config, ServerConfig } from "../config/config.js";
import { watchConfig } from "../config/edit/watch.js";
import { answersIn } from "../config/inputs/answers.js";
import { type ConfigInput, loadConfig, resolveConfig } from "../config/load.js";
import type { EngineSettings, NameMode } from "../contracts/settings.js";
import { type Log, SILENT } from "../observe/log.js";
import { MetricReader } from "../observe/metrics/metric-reader.js";
import { ServerEvents } from "../observe/server-events.js";
import type { OpenTelemetryApi } from "../observe/telemetry/opentelemetry.js";
import { openTelemetry } from "../observe/telemetry/telemetry.js";
import { systemClock } from "../runtime/clock.js";
import type { HeldWatcher } from "../runtime/memory/held-bytes.js";
import { packageVersion } from "../runtime/version.js";
import { Gateway, type GatewayParts, type ServerStart } from "./gateway.js";
import type { SweepRun } from "./runs/runs.js";
import { openSharedState, openState } from "./state/state.js";

/** The path of a config file, or what would be in one. */
export type GatewayInput = string | ConfigInput;

export interface GatewayOptions {
  /**
   * Where tokens, sessions' key and last-known lists are kept; goes before the config's own. Default: in memory, and
   * gone with the gateway.
   */
  readonly stateDir?: string;
  /** Asks for no token; on a loopback address only. */
  readonly noAuth?: boolean;
  /** Goes before the config's own. */
  readonly names?: NameMode;
  /** Paths of PEM files; go before the config's own. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Apply edits of the config file while the gateway runs. Default: true for a file. */
  readonly watch?: boolean;
  /**
   * Start the servers at once (true), as soon as the gateway listens ("listening"), as soon as an agent over stdio has
   * said what it can be asked ("agent"), or never. Default: true.
   */
  readonly startServers?: ServerStart;
  /** Starts each server by the first call that needs it, whatever its entry says: for a program of one call. */
  readonly onDemand?: boolean;
  /** Where variables of the config are looked up, and what children see of it. Default: process.env. */
  readonly env?: NodeJS.ProcessEnv;
  readonly home?: string;
  /**
   * Your `@opentelemetry/api`: every call becomes a span of the tracer that you registered. Goes before `telemetry`.
   */
  readonly opentelemetry?: OpenTelemetryApi;
  /**
   * One line of the log for each call. True and false go before the config's `log.calls`; "unless-off": where the
   * config does not say no. Default: where the config says so.
   */
  readonly logCalls?: boolean | "unless-off";
  /** Default: silent. */
  readonly log?: Log;
  /** @internal for the command line: it runs for runs alone. */
  readonly forRuns?: boolean;
  /** @internal for the command line: what is done with what a run that was killed has left. */
  readonly sweepRun?: SweepRun;
  /** @internal for the command line: an engine in place of the config's own. */
  readonly engine?: EngineSettings | undefined;
  /** @internal for the command line: false where the verb itself tells what is wrong with the config. */
  readonly logsRemarks?: boolean;
  /** @internal for the command line: is told how much the gateway holds for others. */
  readonly heldWatcher?: HeldWatcher;
}

/**
 * Starts the servers of a config. One whose entry is wrong in itself is `misconfigured` in `status()`, and the others
 * run. Rejects with a ConfigError for what is wrong elsewhere, or with what is wrong with the state directory.
 */
export async function createGateway(input: GatewayInput, options: GatewayOptions = {}): Promise<Gateway> {
  const { env = process.env, log = SILENT, noAuth = false, startServers = true, opentelemetry } = options;
  let text: string | undefined;
  const reload = configReader(input, options, (read) => {
    text = read;
  });
  const config = reload();
  const stateDir = options.stateDir ?? config.stateDir;
  const gateway = await openGateway({
    config,
    reload,
    lastText: () => text,
    log,
    env,
    noAuth,
    startServers,
    stateDir,
    opentelemetry,
    lazyLists: options.onDemand === true,
    forRuns: options.forRuns === true,
    sweepRun: options.sweepRun,
    heldWatcher: options.heldWatcher,
    logsRemarks: options.logsRemarks,
  });
  if (typeof input === "string" && options.watch !== false) {
    const watcher = watchConfig(input, () => void gateway.reload().catch(() => {}));
    gateway.onClose(() => watcher.close());
  }
  return gateway;
}

/** What a gateway is made of, but for what has to be opened first. */
interface ClosedParts extends Omit<GatewayParts, "state" | "telemetry" | "audit" | "serverEvents"> {
  readonly stateDir: string | undefined;
  readonly opentelemetry: OpenTelemetryApi | undefined;
}

/** Opens state and telemetry, and makes a gateway over them; where that fails, nothing stays open. */
export async function openGateway({ stateDir, opentelemetry, ...closed }: ClosedParts): Promise<Gateway> {
  const serverEvents = new ServerEvents(systemClock.wall);
  const parts = { ...closed, log: serverEvents.keeping(closed.log), serverEvents };
  const { config, env, log } = parts;
  const { engine } = config;
  const state =
    engine === undefined
      ? await openState(stateDir, env)
      : await openSharedState(stateDir, env, async () =>
          // Loaded by those alone who have one.
          (await import("./engine/open.js")).openGatewayEngine(engine, env, log),
        );
  try {
    const telemetry = await openTelemetry({
      config: config.telemetry,
      api: opentelemetry,
      version: packageVersion(),
      clock: systemClock,
      env,
      log: (level, text) => log[level](text),
    });
    const audit =
      config.audit && (await (await import("./diagnostics/open-audit.js")).openAudit(config.audit, state, log));
    const gateway = new Gateway({ ...parts, state, telemetry, audit });
    // Whoever moves what we are on has seen nobody, and we came in that moment: two must not deliver the same.
    state.onMarked((why) => {
      log.error(why);
      void gateway.close({ drainMs: 0 }).catch(() => {});
    });
    await telemetry?.takeMetrics(
      new MetricReader(gateway.diagnostics.records, () => gateway.metricFacts(), systemClock),
    );
    return gateway;
  } catch (error) {
    await state.close();
    throw error;
  }
}

function configReader(input: GatewayInput, options: GatewayOptions, onText: (text: string) => void): () => Config {
  const { env = process.env, home, names, tls, logCalls, onDemand, stateDir, forRuns } = options;
  const around = { env, onText, wrongEntries: "keep" as const, ...(home === undefined ? {} : { home }) };
  const read = (answersDir: string | undefined): Config => {
    const all = { ...around, answers: answersDir === undefined ? undefined : () => answersIn(answersDir) };
    return typeof input === "string" ? loadConfig(input, all) : resolveConfig(input, all);
  };
  return () => {
    const first = read(stateDir);
    // The config itself says where answers to its inputs are kept.
    const isAnswered = first.unanswered.length === 0 || stateDir !== undefined || first.stateDir === undefined;
    const config = isAnswered ? first : read(first.stateDir);
    const calls = typeof logCalls === "boolean" ? logCalls : (config.log.calls ?? logCalls === "unless-off");
    const servers = onDemand === true ? config.servers.map(lazy) : config.servers;
    return {
      ...config,
      servers,
      names: names ?? config.names,
      tls: forRuns === true ? undefined : (tls ?? config.tls),
      log: { calls },
      engine: options.engine ?? config.engine,
    };
  };
}

function lazy(server: ServerConfig): ServerConfig {
  return { ...server, supervision: { ...server.supervision, lazy: true } };
}
