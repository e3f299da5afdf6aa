// What `createHost` gives: spawn, call, tools, discover, pins, status, reload, stop. Ties the spawned servers (spawned.ts) to
// a gateway that has no endpoint. Who may do what, how calls are made and end, and when a lazy server is started is the
// gateway's to decide.

import type { ServerConfig } from "../config/config.js";
import type { ConfigInput } from "../config/load.js";
import type { Principal } from "../contracts/caller.js";
import { exposedName } from "../contracts/names.js";
import type { CacheStats, ServerStatus } from "../contracts/status.js";
import type { ToolResult } from "../contracts/tool-result.js";
import type { Gateway } from "../gateway/gateway.js";
import { ProgramServers } from "../gateway/hosting/program-servers.js";
import { CallError, toToolResult } from "../gateway/program-call.js";
import type { Guard } from "../policy/guard.js";
import { Fault, type FaultCode } from "../protocol/errors.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { type CallState, HostCallError, hostError } from "./errors.js";
import { HostPins } from "./pins.js";
import { SpawnedServers } from "./spawned.js";

type ServerEntry = NonNullable<ConfigInput["mcpServers"]>[string];

/** An entry of `mcpServers`, and the name that it would stand under. */
export type HostSpec = ServerEntry & { readonly name: string };
/** Our keys of such an entry (`lazy`, `restarts`, `breaker` …); they go before the spec's own. */
export type SpawnOptions = ServerEntry;

export interface HostCallOptions {
  /** Who calls: roles, budgets, the guard and private cache entries go by it. Default: the host's own. */
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

/** A server as spawn() gives it: one of perhaps several references to it. */
export interface SpawnedServer extends AsyncDisposable {
  readonly name: string;
  /** Releases this reference, once; host.stop(name) in other words. */
  stop(): Promise<void>;
}

/** As `toolway status --json` has it. */
export type HostedStatus = ServerStatus;

export interface HostDefaults {
  readonly principal: Principal;
  /** Throws a ConfigError; undefined for an entry that is switched off. */
  resolve(name: string, entry: ServerEntry): ServerConfig | undefined;
}

/** A healthy server lists its tools in well under a second; a chat does not wait longer than this for a menu. */
const DISCOVER_MS = 5_000;

export class ToolHost implements AsyncDisposable {
  /** Tools whose definition changed, or cannot be compared, are hidden until somebody accepts them. */
  readonly pins: HostPins;
  readonly #gateway: Gateway;
  readonly #defaults: HostDefaults;
  /** What the gateway makes of the servers; which there are is said below. */
  readonly #hosting: ProgramServers;
  readonly #servers: SpawnedServers;
  #closing: Promise<void> | undefined;

  constructor(gateway: Gateway, defaults: HostDefaults, apply: (servers: readonly ServerConfig[]) => Promise<void>) {
    this.#gateway = gateway;
    this.pins = new HostPins(gateway.pins);
    this.#defaults = defaults;
    const hosting = new ProgramServers(gateway.servers);
    this.#hosting = hosting;
    this.#servers = new SpawnedServers({
      apply,
      whenUp: (name) => this.#whenUp(name),
      gone: (name) => hosting.gone(name),
      retain: (name) => hosting.retain(name),
      release: (name, later) => hosting.release(name, later),
      refs: (name) => hosting.refs(name),
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
    this.#asked(name, () => this.#pipeline.access.demandByGuard(this.#defaults.principal, name, undefined));
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
  async call(server: string, tool: string, args: JsonObject = {}, options: HostCallOptions = {}): Promise<ToolResult> {
    const { principal = this.#defaults.principal, signal } = options;
    this.#hosted(server);
    // The guard is asked before a lazy server is started, and before anybody learns whether there is such a tool.
    this.#asked(server, () => this.#pipeline.demandUnlisted(principal, server, exposedName(tool)));
    this.#hosting.want(server);
    return toToolResult(await this.#ask(principal, server, "tools/call", { name: tool, arguments: args }, signal));
  }

  /**
   * What this principal may call of a server, all pages of it. Answered from what was read last; a server that was
   * never read is waited for. Rejects with a HostCallError where nothing is known of its tools.
   */
  async tools(server: string, options: HostCallOptions = {}): Promise<HostTool[]> {
    const { principal = this.#defaults.principal, signal } = options;
    this.#hosted(server);
    this.#asked(server, () => this.#pipeline.access.demandVisible(principal, server));
    const lack = await this.#hosting.wantTools(server, signal);
    const tools = await this.#list(principal, server, signal);
    const fault = tools.length === 0 ? lack() : undefined;
    if (fault !== undefined) throw hostError(server, fault, this.#stateOf(server));
    return tools;
  }

  /** The tools of every server that this principal may see, all asked at once. What fails is told beside the others. */
  async discover(options: DiscoverOptions = {}): Promise<DiscoveredServer[]> {
    this.#refuseIfClosing();
    const { principal = this.#defaults.principal } = options;
    const seen = this.#servers.configs.filter(({ name }) => this.#pipeline.access.sees(principal, name));
    return await Promise.all(seen.map(({ name }) => this.#discoverOne(name, principal, options)));
  }

  /** Every hosted server, as `toolway status --json` has it, how many references it has, and what the cache has of it. */
  status(): HostedStatus[] {
    return [...this.#gateway.status().servers];
  }

  /** Hits, misses and what is kept, by server. */
  cacheStats(): ReadonlyMap<string, CacheStats> {
    return this.#gateway.cacheStats();
  }

  /**
   * Ends what runs and starts it anew, also after it was ejected. Rejects where it does not come up; it stays hosted.
   */
  async reload(server: string): Promise<void> {
    this.#hosted(server);
    await this.#gateway.reloadServer(server);
    await this.#whenUp(server);
  }

  /**
   * Releases one reference. With the last one the server goes: at once, or after its `keepAliveMs`. `force`: at once, with
   * all of its references.
   */
  async stop(server: string, options: { force?: boolean } = {}): Promise<void> {
    this.#hosted(server);
    if (options.force === true) await this.#servers.remove(server);
    else await this.#servers.release(server);
  }

  /**
   * The program's own say in who may use what, for spawns, lists and calls, beside the rules of roles: either may deny.
   * `undefined` leaves the rules of roles alone.
   */
  setGuard(guard: Guard | undefined): void {
    this.#gateway.setGuard(guard);
  }

  /** Lets calls in flight end, at most `drainMs`, then stops every server. */
  close(options: { drainMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(options);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────

  #close(options: { drainMs?: number }): Promise<void> {
    this.#hosting.close();
    this.#servers.clear();
    return this.#gateway.close(options);
  }

  async #discoverOne(
    name: string,
    principal: Principal,
    { deadlineMs = DISCOVER_MS, startLazy = false, signal }: DiscoverOptions,
  ): Promise<DiscoveredServer> {
    const lack = await this.#hosting.lookAt(name, { deadlineMs, startLazy, signal });
    let tools: HostTool[] = [];
    let error: HostCallError | undefined;
    try {
      tools = await this.#list(principal, name, signal);
    } catch (thrown) {
      if (!(thrown instanceof HostCallError)) throw thrown;
      error = thrown;
    }
    const fault = lack();
    if (fault !== undefined) error ??= hostError(name, fault, this.#stateOf(name));
    return { server: name, state: this.#stateOf(name)?.state ?? "stopped", tools, error: describe(error) };
  }

  async #list(principal: Principal, server: string, signal: AbortSignal | undefined): Promise<HostTool[]> {
    this.#hosted(server);
    const tools: HostTool[] = [];
    let cursor: unknown;
    do {
      const page = await this.#ask(principal, server, "tools/list", cursor === undefined ? {} : { cursor }, signal);
      for (const tool of Array.isArray(page["tools"]) ? page["tools"] : []) {
        if (!isObject(tool) || typeof tool["name"] !== "string") continue;
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
    try {
      return await this.#gateway.calls.send({ principal, scope: server, method, params, signal });
    } catch (error) {
      if (error instanceof CallError) throw new HostCallError(server, error, error.fault, this.#stateOf(server));
      throw error;
    }
  }

  async #whenUp(name: string): Promise<void> {
    try {
      await this.#hosting.whenUp(name);
    } catch (error) {
      throw error instanceof Fault ? hostError(name, error, this.#stateOf(name)) : error;
    }
  }

  #stateOf(name: string): CallState | undefined {
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

  get #pipeline(): Gateway["pipeline"] {
    return this.#gateway.pipeline;
  }

  /** What the gateway refuses is told as an error of the server. */
  #asked(server: string, demand: () => void): void {
    try {
      demand();
    } catch (error) {
      throw error instanceof Fault ? hostError(server, error, this.#stateOf(server)) : error;
    }
  }
}

function describe(error: HostCallError | undefined): DiscoveredServer["error"] {
  if (error === undefined) return undefined;
  const { fault, message, retryInMs } = error;
  return { fault, message, ...(retryInMs === undefined ? {} : { retryInMs }) };
}
