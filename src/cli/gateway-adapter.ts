// Fits the gateway to the port that the CLI's verbs are written against. Loaded by gateway-port.ts when first needed.

import { createGateway } from "../create-gateway.js";
import type { Gateway } from "../gateway.js";
import { createLog, type Log, type LogLevel } from "../observe/log.js";
import { stateDirFor } from "../runtime/state-dir.js";
import { demoConfig } from "./default-config.js";
import { UserError } from "./errors.js";
import type { GatewayPort, GatewaySource, StartedGateway, StartOptions } from "./gateway-port.js";

function logFor(env: GatewaySource["env"], quiet: boolean): Log {
  const level = (env["TOOLWAY_LOG_LEVEL"] ?? (quiet ? "error" : "info")) as LogLevel;
  const format = env["TOOLWAY_LOG_FORMAT"] === "json" ? "json" : "text";
  return createLog({ write: (line) => void process.stderr.write(line), level, format });
}

function stateDirOf({ configPath, stateDir, env, home }: GatewaySource): string {
  return stateDir ?? stateDirFor(configPath, env, home);
}

async function open(source: GatewaySource, options: Partial<StartOptions>, more: { startServers: boolean; quiet: boolean }): Promise<Gateway> {
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

function missing(): never {
  throw new UserError("This build has no gateway yet.");
}

export const adapter: GatewayPort = {
  find: async () => undefined,
  start,
  local: async () => missing(),
  stdio: async () => missing(),
  probe: async () => missing(),
  defaultToken: async () => undefined,
};
