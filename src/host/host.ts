// What `createHost` gives: spawn, call, tools, discover, status, reload, stop. Ties the spawned servers (host-servers.ts)
// to a gateway that has no endpoint; decides nothing that the gateway decides.

import type { CacheStats } from "../cache/response-cache.js";
import type { ServerConfig } from "../config/config.js";
import type { ConfigInput } from "../config/load.js";
import type { Principal } from "../contracts/caller.js";
import { type OwnToolName, ownToolName } from "../contracts/names.js";
import type { RoleRules, UnlistedRoles } from "../contracts/settings.js";
import type { ServerStatus } from "../contracts/status.js";
import type { Gateway } from "../gateway/gateway.js";
import type { Log } from "../observe/log.js";
import { type Guard, GuardPost } from "../policy/guard.js";
import { compilePolicy, type Policy, seesServer } from "../policy/policy.js";
import { Fault, type FaultCode } from "../protocol/errors.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { abortable, doneWithin, resultWithin } from "../runtime/wait.js";
import type { UpstreamServer } from "../upstream/server.js";
import { ask, HostCallError, HostCaller, hostError, type Standing, sessionKeyOf } from "./program-call.js";
import { HostServers } from "./spawned.js";
import { statusAsleep } from "./status.js";

type ServerEntry = NonNullable<ConfigInput["mcpServers"]>[string];

/** An entry of `mcpServers`, and the name that it would stand under. */
export type HostSpec = ServerEntry & { readonly name: string };
/** Our keys of such an entry (`lazy`, `restarts`, `breaker` …); they go before the spec's own. */
export type SpawnOptions = ServerEntry;

export interface HostCallOptions {
  /** For whom: roles, budgets, the guard and private cache entries go by it. Default: the host's own. */
  readonly principal?: Principal;
  readonly signal?: AbortSignal;
}

export interface DiscoverOptions extends HostCallOptions {
  /** How long each server may take; all are asked at once. */
  readonly deadlineMs?: number;
  /** Start lazy servers whose tools are not known yet. */
  readonly startLazy?: boolean;
}

/** A tool as its server defines it. `_mcp_server` is ours: a server cannot claim another's name. */
export type HostTool = JsonObject & { readonly name: string; readonly _mcp_server: string };

export interface DiscoveredServer {
  readonly server: string;
  readonly state: ServerStatus["state"];
  /** What this principal may call; from before, where the server is away now. */
  readonly tools: readonly HostTool[];
  /** Why the tools may be missing or out of date. */
  readonly error:
    | { readonly fault: FaultCode | undefined; readonly message: string; readonly retryInMs?: number }
    | undefined;
}

/** A server as spawn() gives it: one of perhaps several holds on it. */
export interface SpawnedServer extends AsyncDisposable {
  readonly name: string;
  /** Lets this hold go, once; host.stop(name) in other words. */
  stop(): Promise<void>;
}

export interface HostedStatus extends ServerStatus {
  /** Spawns that have not been stopped. */
  readonly refs: number;
  readonly cache: CacheStats | undefined;
}

export interface HostDefaults {
  readonly principal: Principal;
  readonly policy: { readonly roles: Readonly<Record<string, RoleRules>>; readonly unlistedRoles: UnlistedRoles };
  readonly log: Log;
  /** Throws a ConfigError; undefined for an entry that is switched off. */
  resolve(name: string, entry: ServerEntry): ServerConfig | undefined;
}

/** A healthy server lists its tools in well under a second; a chat does not wait longer than this for a menu. */
const DISCOVER_MS = 5_000;

/** Principals with calls of late: each is a session, which may have a process of its own. */
const MAX_CALLERS = 1_000;

/** How long close() lets calls in flight end, as the gateway does. */
const DRAIN_MS = 30_000;

export class ToolHost implements AsyncDisposable {
  readonly #gateway: Gateway;
  readonly #defaults: HostDefaults;
  readonly #policy: Policy;
  readonly #guard: GuardPost;
  readonly #servers: HostServers;
  /** The one used last is last. */
  readonly #callers = new Map<string, HostCaller>();
  readonly #calls = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  constructor(gateway: Gateway, defaults: HostDefaults, apply: (servers: readonly ServerConfig[]) => Promise<void>) {
    this.#gateway = gateway;
    this.#defaults = defaults;
    this.#policy = compilePolicy(defaults.policy);
    this.#guard = new GuardPost((text, error) => defaults.log.error(text, error === undefined ? undefined : { error }));
    this.#servers = new HostServers({
      apply,
      whenUp: (name) => this.#whenUp(name),
      gone: (name) => {
        const server = this.#gateway.servers.get(name);
        return async () => server?.stop();
      },
    });
  }

  /**
   * Starts a server and supervises it until it is stopped. Resolves when it is up, a lazy one at once; rejects with a
   * ConfigError or a HostCallError, and then nothing of it is left. The same spec again is the same server, held twice.
   */
  async spawn(spec: HostSpec, options: SpawnOptions = {}): Promise<SpawnedServer> {
    this.#refuseIfClosing();
    const { name: wanted, ...entry } = { ...spec, ...options };
    const config = this.#defaults.resolve(wanted, entry);
    if (config === undefined) throw new Fault("invalid", `Server "${wanted}" is switched off by its own spec.`);
    const { name } = config;
    this.#demand(this.#defaults.principal, name, undefined);
    await this.#servers.add(config);
    let held = true;
    const stop = async () => {
      if (!held) return;
      held = false;
      await this.stop(name);
    };
    return { name, stop, [Symbol.asyncDispose]: stop };
  }

  /** Calls a tool by the server's own name of it. Rejects with a HostCallError where there is no result. */
  async call(server: string, tool: string, args: JsonObject = {}, options: HostCallOptions = {}): Promise<JsonObject> {
    const { principal = this.#defaults.principal, signal } = options;
    const config = this.#hosted(server);
    this.#demand(principal, server, ownNameOf(config, tool));
    if (this.#servers.isAsleep(server)) await this.#servers.wake(server);
    return await this.#ask(principal, server, "tools/call", { name: tool, arguments: args }, signal);
  }

  /**
   * What this principal may call of a server, all pages of it. Answered from what was read last; a server that was
   * never read is waited for. Rejects with a HostCallError where nothing is known of its tools.
   */
  async tools(server: string, options: HostCallOptions = {}): Promise<HostTool[]> {
    const { principal = this.#defaults.principal, signal } = options;
    this.#hosted(server);
    this.#demandSight(principal, server);
    await this.#servers.wake(server);
    const hosted = this.#gateway.servers.get(server);
    if (hosted?.listed === false) {
      hosted.ensure();
      await abortable(hosted.firstTry, signal);
    }
    const tools = await this.#list(principal, server, signal);
    if (tools.length === 0 && hosted?.listed === false) throw this.#unavailable(server, hosted);
    return tools;
  }

  /** The tools of every server that this principal may see, all asked at once. What fails is told beside the others. */
  async discover(options: DiscoverOptions = {}): Promise<DiscoveredServer[]> {
    this.#refuseIfClosing();
    const { principal = this.#defaults.principal } = options;
    const seen = this.#servers.configs.filter(({ name }) => this.#sees(principal, name));
    return await Promise.all(seen.map((config) => this.#discoverOne(config, principal, options)));
  }

  /** Every hosted server, as `toolway status --json` has it, how many hold it, and what the cache has of it. */
  status(): HostedStatus[] {
    const known = new Map(this.#gateway.status().servers.map((server) => [server.name, server]));
    const cached = this.cacheStats();
    return this.#servers.configs.map((config) => ({
      ...(known.get(config.name) ?? statusAsleep(config)),
      refs: this.#servers.references(config.name),
      cache: cached.get(config.name),
    }));
  }

  /** Hits, misses and what is kept, by server. */
  cacheStats(): ReadonlyMap<string, CacheStats> {
    return this.#gateway.cacheStats();
  }

  /** Ends what runs and starts it anew, also after it was ejected. Rejects where it does not come up; it stays hosted. */
  async reload(server: string): Promise<void> {
    this.#hosted(server);
    await this.#servers.wake(server);
    await this.#gateway.reloadServer(server);
    await this.#whenUp(server);
  }

  /** Lets one hold go. With the last one the server goes: at once, or after its `keepAliveMs`. `force`: whoever holds it. */
  async stop(server: string, options: { force?: boolean } = {}): Promise<void> {
    const config = this.#hosted(server);
    if (options.force === true) await this.#servers.remove(server);
    else await this.#servers.release(server, config.supervision.keepAliveMs);
  }

  /**
   * A say of the program's own in who may use what, asked before everything else, for spawns, lists and calls.
   * `undefined`: the rules of roles alone, which hold in any case.
   */
  setGuard(guard: Guard | undefined): void {
    this.#guard.set(guard);
  }

  /** Lets calls in flight end, at most `drainMs`, then stops every server. */
  close(options: { drainMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(options.drainMs ?? DRAIN_MS);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────

  async #close(drainMs: number): Promise<void> {
    await resultWithin(Promise.allSettled(this.#calls), drainMs);
    this.#servers.clear();
    await this.#gateway.close({ drainMs: 0 });
  }

  async #discoverOne(
    { name, supervision }: ServerConfig,
    principal: Principal,
    { deadlineMs = DISCOVER_MS, startLazy = false, signal }: DiscoverOptions,
  ): Promise<DiscoveredServer> {
    if (startLazy) await this.#servers.wake(name);
    if (this.#servers.isAsleep(name)) return { server: name, state: "idle", tools: [], error: undefined };
    const server = this.#gateway.servers.get(name);
    const maySleep = supervision.lazy && !startLazy;
    let late = false;
    if (server?.listed === false && !maySleep) {
      server.ensure();
      late = !(await doneWithin(server.firstTry, deadlineMs, signal));
    }
    let tools: HostTool[] = [];
    let error: HostCallError | undefined;
    try {
      tools = await this.#list(principal, name, signal);
    } catch (thrown) {
      if (!(thrown instanceof HostCallError)) throw thrown;
      error = thrown;
    }
    if (late) {
      const fault = new Fault("timeout", `Server "${name}" has not told its tools within ${deadlineMs} ms.`);
      error ??= hostError(name, fault, this.#standing(name));
    } else if (!maySleep && server !== undefined && (!server.listed || server.trouble !== undefined)) {
      error ??= this.#unavailable(name, server);
    }
    return { server: name, state: this.#standing(name)?.state ?? "stopped", tools, error: describe(error) };
  }

  async #list(principal: Principal, server: string, signal: AbortSignal | undefined): Promise<HostTool[]> {
    const config = this.#hosted(server);
    const tools: HostTool[] = [];
    let cursor: unknown;
    do {
      const page = await this.#ask(principal, server, "tools/list", cursor === undefined ? {} : { cursor }, signal);
      for (const tool of Array.isArray(page["tools"]) ? page["tools"] : []) {
        if (!isObject(tool) || typeof tool["name"] !== "string") continue;
        const own = ownNameOf(config, tool["name"]);
        if (this.#guard.decide(principal, server, own).kind === "deny") continue;
        tools.push({ ...tool, name: tool["name"], _mcp_server: server });
      }
      cursor = page["nextCursor"];
    } while (typeof cursor === "string");
    return tools;
  }

  async #ask(
    principal: Principal,
    server: string,
    method: string,
    params: JsonObject,
    signal: AbortSignal | undefined,
  ): Promise<JsonObject> {
    const caller = this.#callerOf(principal);
    const standing = () => this.#standing(server);
    const asked = ask({ service: this.#gateway.pipeline, caller, server, method, params, signal, standing });
    caller.inFlight++;
    this.#calls.add(asked);
    try {
      return await asked;
    } finally {
      caller.inFlight--;
      this.#calls.delete(asked);
    }
  }

  #callerOf(principal: Principal): HostCaller {
    const key = sessionKeyOf(principal);
    let caller = this.#callers.get(key);
    if (caller === undefined) {
      if (this.#callers.size >= MAX_CALLERS) this.#dropOne();
      caller = new HostCaller(principal);
      this.#gateway.pipeline.sessionOpened(caller, undefined);
    }
    this.#callers.delete(key);
    this.#callers.set(key, caller);
    return caller;
  }

  #dropOne(): void {
    for (const [key, caller] of this.#callers) {
      if (caller.inFlight > 0) continue;
      this.#callers.delete(key);
      this.#gateway.pipeline.sessionClosed(caller);
      return;
    }
    throw new Fault("limit", `${MAX_CALLERS} principals have calls in flight; no more are let in.`);
  }

  async #whenUp(name: string): Promise<void> {
    const server = this.#gateway.servers.get(name);
    if (server === undefined) throw hostError(name, new Fault("closing", `Server "${name}" was stopped.`), undefined);
    await server.firstTry;
    if (!server.listed) throw this.#unavailable(name, server);
  }

  #unavailable(name: string, server: UpstreamServer): HostCallError {
    const why = server.trouble ?? "it was stopped, or has not been started";
    return hostError(name, new Fault("unavailable", `Server "${name}" is not available: ${why}`), this.#standing(name));
  }

  #standing(name: string): Standing | undefined {
    return this.#gateway.status().servers.find((server) => server.name === name);
  }

  #hosted(server: string): ServerConfig {
    this.#refuseIfClosing();
    const config = this.#servers.get(server);
    if (config !== undefined) return config;
    throw hostError(server, new Fault("not-found", `No server "${server}" is hosted.`), undefined);
  }

  #refuseIfClosing(): void {
    if (this.#closing !== undefined) throw new Fault("closing", "The host is closing.");
  }

  /** The guard's word; the pipeline has the roles'. */
  #demand(principal: Principal, server: string, tool: OwnToolName | undefined): void {
    const decision = this.#guard.decide(principal, server, tool);
    if (decision.kind === "allow") return;
    const what = tool === undefined ? `server "${server}"` : `tool "${tool}" of server "${server}"`;
    const fault = new Fault("denied", `You may not use ${what}: ${decision.rule}.`);
    throw hostError(server, fault, this.#standing(server));
  }

  #demandSight(principal: Principal, server: string): void {
    this.#demand(principal, server, undefined);
    if (seesServer(this.#policy, principal, server)) return;
    const fault = new Fault("denied", `Role "${principal.role}" may not use anything of server "${server}".`);
    throw hostError(server, fault, this.#standing(server));
  }

  #sees(principal: Principal, server: string): boolean {
    return (
      seesServer(this.#policy, principal, server) && this.#guard.decide(principal, server, undefined).kind === "allow"
    );
  }
}

/** A spec may rename a tool; who may use it is decided by what the server itself calls it. */
function ownNameOf({ tools }: ServerConfig, name: string): OwnToolName {
  for (const own of Object.keys(tools)) if (tools[own]?.name === name) return ownToolName(own);
  return ownToolName(name);
}

function describe(error: HostCallError | undefined): DiscoveredServer["error"] {
  if (error === undefined) return undefined;
  const { fault, message, retryInMs } = error;
  return { fault, message, ...(retryInMs === undefined ? {} : { retryInMs }) };
}
