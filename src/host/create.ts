// `createHost`: the supervised servers as a library, without an endpoint. A program spawns servers at run time and
// calls their tools by their own names; supervision, policy and cache are the gateway's.

import type { Config } from "../config/config.js";
import type { ConfigInput } from "../config/load.js";
import type { Principal } from "../contracts/caller.js";
import { openGateway } from "../gateway/create.js";
import { type Log, SILENT } from "../observe/log.js";
import type { OpenTelemetryApi } from "../observe/telemetry/opentelemetry.js";
import { type HostDefaults, ToolHost } from "./host.js";

/** The keys of a config that a host has a use for: it has no endpoint, and its servers come by spawn(). */
type HostSettings = Pick<ConfigInput, "roles" | "unlistedRoles" | "cache" | "telemetry" | "executors">;

export interface HostOptions extends HostSettings {
  /** Where pins and last-known lists are kept. Default: in memory, and gone with the host. */
  readonly stateDir?: string;
  /** Who calls where a call names nobody. Default: the program itself, `{ id: "host", role: "host" }`. */
  readonly principal?: Principal;
  /** Where relative paths of specs start. Default: the folder that the process runs in. */
  readonly dir?: string;
  /** Where variables of specs are looked up, and what children see of it. Default: process.env. */
  readonly env?: NodeJS.ProcessEnv;
  readonly home?: string;
  /**
   * Your `@opentelemetry/api`: every call becomes a span of the tracer that you registered. Goes before `telemetry`.
   */
  readonly opentelemetry?: OpenTelemetryApi;
  /** Default: silent. */
  readonly log?: Log;
}

/**
 * The program itself. It is not the gateway's operator, whom no policy binds: a guard binds the program that set it.
 */
const PROGRAM: Principal = { id: "host", role: "host" };

/** Rejects with a ConfigError, or with what is wrong with the state directory. */
export async function createHost(options: HostOptions = {}): Promise<ToolHost> {
  const { env = process.env, log = SILENT, stateDir, principal = PROGRAM, home, dir = process.cwd() } = options;
  const { resolveConfig } = await import("../config/load.js");
  const around = { env, dir, ...(home === undefined ? {} : { home }) };
  const base = resolveConfig({ ...settingsOf(options), mcpServers: {} }, around);
  const defaults: HostDefaults = {
    principal,
    resolve: (name, entry) => {
      const { executors = {} } = options;
      return resolveConfig({ mcpServers: { [name]: entry }, executors }, around).servers[0];
    },
  };
  // Roles that name servers to come are no mistake here.
  let config: Config = { ...base, warnings: [] };
  const gateway = await openGateway({
    config,
    reload: () => config,
    log,
    env,
    noAuth: false,
    startServers: true,
    lazyLists: true,
    stateDir,
    opentelemetry: options.opentelemetry,
  });
  await gateway.sweep();
  return new ToolHost(gateway, defaults, async (servers) => {
    config = { ...config, servers };
    await gateway.reload();
  });
}

function settingsOf({ roles, unlistedRoles, cache, telemetry, executors }: HostOptions): HostSettings {
  const given = Object.entries({ roles, unlistedRoles, cache, telemetry, executors }).filter(
    ([, value]) => value !== undefined,
  );
  return Object.fromEntries(given) as HostSettings;
}
