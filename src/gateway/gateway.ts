// Wires the stages into one gateway, and applies changes of the config to it while it runs.

import type { Readable, Writable } from "node:stream";
import { Cache } from "../cache/cache.js";
import { Catalog } from "../catalog/catalog.js";
import type { Config, ListenAddress } from "../config/config.js";
import type { AgentProfile, Principal } from "../contracts/caller.js";
import { ownToolName } from "../contracts/names.js";
import type { CacheStats, GatewayStatus } from "../contracts/status.js";
import { type ToolResult, toToolResult } from "../contracts/tool-result.js";
import type { ControlServer } from "../control/server.js";
import { createStdioEndpoint, type StdioEndpoint } from "../endpoint/stdio/stdio.js";
import { CallLog } from "../observe/call-lines.js";
import { sessionLog } from "../observe/debug-log.js";
import type { Log } from "../observe/log.js";
import { type KeptStderr, keepStderr } from "../observe/server-logs/keep.js";
import type { Telemetry } from "../observe/telemetry.js";
import { OPERATOR } from "../pipeline/access.js";
import { Pipeline } from "../pipeline/pipeline.js";
import { TaskOwners } from "../pipeline/tasks/owners.js";
import { compileBudgets } from "../policy/budget.js";
import type { Guard } from "../policy/guard.js";
import { compilePolicy, unknownRole } from "../policy/policy.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { systemClock } from "../runtime/clock.js";
import { HeldBytes } from "../runtime/memory/held-bytes.js";
import { packageVersion } from "../runtime/version.js";
import { resultWithin } from "../runtime/wait.js";
import { DEFAULT_PRINCIPAL } from "../tokens/tokens.js";
import { linkMaker } from "../upstream/links.js";
import { ServerPool } from "../upstream/servers.js";
import { Reaper, sweepOrphans } from "../upstream/stdio/reaper.js";
import { hashStateDir } from "../upstream/stdio/reaper-marker.js";
import { logApplied, logMisconfigured, type ReloadReport, waitsForRestart } from "./applied.js";
import { openControl, type StopGateway } from "./control-routes.js";
import { Executors } from "./executors.js";
import { idleNames, keepEntries, NOTHING_KEPT } from "./kept-entries.js";
import { endpointSettings, type OpenEndpoint, openEndpoint, questionLimits } from "./listen.js";
import { Mailboxes } from "./mailboxes.js";
import { menusOf } from "./menus.js";
import { ProgramCalls } from "./program-call.js";
import { Readiness } from "./readiness.js";
import { type GatewayState, redactedText } from "./state/state.js";
import { StoredEras } from "./state/stored-eras.js";
import { StoredLists } from "./state/stored-lists.js";
import { StoredPins } from "./state/stored-pins.js";
import { listTools, possibleOwners, quarantinedByServer, type ToolListing, UnusedPatterns } from "./tool-listing.js";

export type { ReloadReport, ToolListing };

/**
 * What is left to do when the calls have ended has so long: servers that do not want to stop take about seven seconds.
 * With the calls' own time it is the 30 s after which orchestrators kill.
 */
const END_MS = 8_000;

/**
 * What a token that has expired holds open is looked for this often: over within 5 s, also on a machine that is busy.
 * One look at the wall clock for all tokens, because a timer for each would not see that the clock was set.
 */
const TOKEN_LOOK_MS = 2_000;

/**
 * True: at once; "listening": once the gateway listens; "agent": once the agent that it is for, over stdio, has said
 * what it can be asked; false: never, for verbs that need tokens or state only.
 */
export type ServerStart = boolean | "listening" | "agent";

/** An agent introduces itself at once. For one that does not, the servers are started all the same. */
const AGENT_WAIT_MS = 2_000;

export interface GatewayParts {
  readonly config: Config;
  readonly state: GatewayState;
  readonly log: Log;
  readonly telemetry?: Telemetry | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** Everybody is let in. For loopback only; checked at listen(). */
  readonly noAuth: boolean;
  readonly startServers: ServerStart;
  /** Reads the config again. Throws what is wrong with it. */
  readonly reload: () => Config;
  /** A lazy server is not even started to read its lists, before somebody wants them. */
  readonly lazyLists?: boolean;
}

export class Gateway {
  readonly #state: GatewayState;
  readonly #log: Log;
  readonly #env: NodeJS.ProcessEnv;
  readonly #noAuth: boolean;
  #startServers: ServerStart;
  readonly #readConfig: () => Config;
  readonly #telemetry: Telemetry | undefined;
  readonly #onClose: (() => void)[] = [];
  readonly #catalog: Catalog;
  readonly #cache: Cache;
  readonly #reaper: Reaper;
  /** All that comes in and goes out is counted by this one. */
  readonly #held: HeldBytes;
  readonly #startedAt = new Date(systemClock.wall()).toISOString();
  readonly #lists: StoredLists;
  readonly #executors: Executors;
  readonly #mailboxes: Mailboxes;
  /** As it was when what needs a restart was made of it. */
  readonly #startConfig: Config;
  #config: Config;
  #configError: string | undefined;
  /** Servers that go on by the entry that they had, and what is wrong with the new one. */
  #kept = NOTHING_KEPT;
  #soleAgent: AgentProfile | undefined;
  #endpoint: OpenEndpoint | undefined;
  #control: ControlServer | undefined;
  readonly #stdio = new Set<StdioEndpoint>();
  readonly #callLog: CallLog;
  readonly #stderr: KeptStderr;
  #tokenTimer: NodeJS.Timeout | undefined;
  readonly patterns: UnusedPatterns;
  #closing: Promise<void> | undefined;
  #swept: Promise<unknown> | undefined;
  readonly #readiness = new Readiness();
  readonly pipeline: Pipeline;
  /** Calls of the program and the operator. */
  readonly calls: ProgramCalls;
  readonly pins: StoredPins;
  readonly servers: ServerPool;

  constructor(parts: GatewayParts) {
    const { config, state, log, env } = parts;
    this.#config = config;
    this.#startConfig = config;
    this.#state = state;
    this.#log = log;
    this.#env = env;
    this.#noAuth = parts.noAuth;
    this.#startServers = parts.startServers;
    this.#readConfig = parts.reload;
    this.#telemetry = parts.telemetry;
    const version = packageVersion();
    this.#held = new HeldBytes(config.limits.heldBytes);
    this.#catalog = new Catalog({
      names: config.names,
      menu: config.menu,
      pageSize: config.pageSize,
      serverInfo: { name: "toolway", title: "Toolway", version },
      seal: (value) => state.sealer.seal("cursor", value),
      unseal: (text) => {
        const value = state.sealer.unseal("cursor", text);
        return typeof value === "string" ? value : undefined;
      },
    });
    this.patterns = new UnusedPatterns(this.#catalog, (text) => log.warn(text));
    this.#lists = new StoredLists({ map: state.known, snapshot: (server) => this.#catalog.snapshot(server), log });
    this.pins = new StoredPins({
      map: state.pins,
      wall: systemClock.wall,
      onChange: (server) => this.pipeline.pinsChanged(server),
      log: (level, text) => log[level](text),
      redact: (server, text) => this.redact(server, text),
    });
    this.#cache = new Cache(config.cache, systemClock);
    this.#setCached(config);
    this.pipeline = new Pipeline({
      cache: this.#cache,
      pins: this.pins,
      now: systemClock.now,
      catalog: this.#catalog,
      policy: this.#policyOf(config),
      version,
      taskIds: state.taskIds,
      taskOwners: new TaskOwners({
        map: state.tasks,
        wall: systemClock.wall,
        failed: (error) => log.warn(`what is kept of tasks could not be written: ${(error as Error).message}`),
      }),
      tracer: parts.telemetry?.tracer,
      onSession: sessionLog(log),
      onKnown: (server) => {
        this.#lists.saveSoon(server);
        this.patterns.tellSoon(() => this.#config);
      },
      log: (level, text, error) => log[level](text, error === undefined ? undefined : { error }),
      redact: (server, text) => this.redact(server, text),
    });
    this.calls = new ProgramCalls(this.pipeline);
    this.#reaper = new Reaper({
      stateHash: hashStateDir(state.dir ?? `memory ${process.pid} ${this.#startedAt}`),
      env,
      onProblem: (text) => log.warn(text),
    });
    this.#callLog = new CallLog(log, systemClock);
    this.#stderr = keepStderr(state.dir, log, systemClock.wall);
    this.#executors = new Executors(log, this);
    this.#mailboxes = new Mailboxes(state, log);
    const { openWire } = this.#executors;
    const { take: onStderr } = this.#stderr;
    const swept = () => this.sweep();
    this.servers = new ServerPool({
      context: {
        now: systemClock.now,
        random: Math.random,
        makeLink: linkMaker({ reaper: this.#reaper, env, swept, openWire, held: this.#held, onStderr }),
      },
      openWire,
      events: this.pipeline,
      clientInfo: { name: "toolway", version },
      eras: new StoredEras(state.eras, systemClock.wall, (error) =>
        log.warn(`the era of a server could not be kept for the next start: ${(error as Error).message}`),
      ),
      isKnown: (server) => parts.lazyLists === true || state.known.get(server) !== undefined,
      agents: this.pipeline.sessions,
      soleAgent: () => this.#soleAgent,
      log: (level, text) => log[level](text),
    });
    this.pipeline.attach(this.servers);
    this.#catalog.setServers(menusOf(config));
    this.pins.configure(config.servers, idleNames(config));
    for (const { name, isShown } of menusOf(config)) {
      if (!isShown) continue;
      this.#catalog.restore(name, state.known.get(name));
      this.#checkPins(name);
    }
    this.patterns.tell(config);
    this.pipeline.setBudgets(compileBudgets(config, undefined));
    this.pipeline.setCallEnds(this.#callLog.ends(config.log.calls));
    // At once, without waiting for the next look.
    state.tokens.onRevoked(() => this.#endHeld());
    if (parts.startServers === true) this.#start();
    if (parts.startServers === "agent") setTimeout(() => this.#startFor(undefined), AGENT_WAIT_MS).unref();
  }

  get config(): Config {
    return this.#config;
  }

  /** A text of a server's, without the secrets of its entry. */
  redact(server: string, text: string): string {
    return redactedText(this.#config.servers, server, text);
  }

  get state(): GatewayState {
    return this.#state;
  }

  /** What an agent shows at the endpoint to be let in, with the role of the default. */
  get token(): string {
    return this.#state.tokens.defaultToken();
  }

  /** Opens the endpoint for agents. Resolves with its address once it accepts connections. */
  async listen(address: Partial<ListenAddress> = {}): Promise<{ url: string }> {
    this.#refuseIfClosing();
    if (this.#endpoint !== undefined) {
      throw new Fault("invalid", `The gateway already listens at ${this.#endpoint.url}.`);
    }
    const endpoint = await openEndpoint({
      config: this.#config,
      address: { ...this.#config.listen, ...address },
      service: this.pipeline,
      state: this.#state,
      noAuth: this.#noAuth,
      held: this.#held,
      log: this.#log,
      ready: () => this.#readiness.isReady(systemClock.now()),
    });
    if (this.#closing !== undefined) await endpoint.http.close({ drainMs: 0 });
    this.#refuseIfClosing();
    this.#endpoint = endpoint;
    this.#executors.acceptOn(endpoint.http);
    this.#mailboxes.acceptOn(endpoint.http);
    this.#mailboxes.apply(this.#config.mailboxes);
    this.#tokenTimer = setInterval(() => this.#endHeld(), TOKEN_LOOK_MS).unref();
    // It still is the turn in which it began to listen: no request has been read, so none finds the servers missing.
    if (this.#startServers === "listening") this.#start();
    return { url: endpoint.url };
  }

  /**
   * Opens the control socket: a Unix socket in the state directory, for the operator. `stop` is called when they ask
   * the whole gateway to end; without it they are told that this one does not end by itself.
   */
  async openControl(stop?: StopGateway): Promise<void> {
    const { dir } = this.#state;
    if (dir === undefined) throw new Error("Without a state directory there is no place for a control socket.");
    this.#control = await openControl(this, dir, this.#env, stop);
  }

  /**
   * Serves an agent that speaks over a pair of streams, as the default principal, or narrowed to a role of the config.
   * Resolves when it is gone.
   */
  async serveStdio(input: Readable, output: Writable, role?: string): Promise<void> {
    if (this.#closing !== undefined) return;
    const stdio = createStdioEndpoint({
      service: this.pipeline,
      introduced: (profile) => this.#startFor(profile),
      input,
      output,
      // No token's id has a slash: what is private to somebody is not this one's.
      principal: role === undefined ? DEFAULT_PRINCIPAL : { id: `stdio/${role}`, role },
      sealer: this.#state.sealer,
      limits: questionLimits(this.#config),
      held: this.#held,
      log: (event) => this.#log.warn(`stdio: ${event.kind === "failed" ? String(event.error) : event.why}`),
    });
    this.#stdio.add(stdio);
    await stdio.closed;
    this.#stdio.delete(stdio);
  }

  /** Throws where the config has no such role: a misspelt one would be one without rules. */
  demandRole(role: string): void {
    const fault = unknownRole(role, Object.keys(this.#config.roles));
    if (fault !== undefined) throw fault;
  }

  /** Calls a tool by the name that agents see. Rejects with a CallError where there is no result. */
  async call(tool: string, args: JsonObject = {}, options: { signal?: AbortSignal } = {}): Promise<ToolResult> {
    this.#refuseIfClosing();
    const params = { name: tool, arguments: args };
    const result = await this.calls.send({
      principal: OPERATOR,
      scope: undefined,
      method: "tools/call",
      params,
      signal: options.signal,
    });
    return toToolResult(result);
  }

  /** Every tool there is, whatever the menu shows, as current as an agent's list. */
  async tools(): Promise<ToolListing[]> {
    await this.pipeline.renewTools();
    return listTools(this.#catalog, this.pins);
  }

  possibleOwners(tool: string): string[] {
    return possibleOwners(this.#catalog, this.servers.names, tool);
  }

  /** The program's own say in who may use what; undefined leaves the rules of roles alone. */
  setGuard(guard: Guard | undefined): void {
    this.pipeline.setGuard(guard);
  }

  /** Hits, misses and what is kept, by server. */
  cacheStats(): ReadonlyMap<string, CacheStats> {
    return this.#cache.stats();
  }

  /** Ends what runs of a server and starts it anew, also after it was ejected. What was kept of it goes. */
  async reloadServer(name: string): Promise<void> {
    if (this.#isWrong(name)) {
      await this.reload();
      // Its new entry has started it, or still says why it does not.
      if (!this.#isWrong(name) || this.servers.supervised(name) === undefined) return this.servers.startServer(name);
    }
    this.#cache.invalidate(name);
    await this.servers.reload(name);
  }

  async stopServer(name: string): Promise<void> {
    this.#cache.invalidate(name);
    await this.servers.stopServer(name);
  }

  async startServer(name: string): Promise<void> {
    if (this.#isWrong(name)) await this.reload();
    await this.servers.startServer(name);
  }

  status(): GatewayStatus {
    const { path, warnings, names, menu } = this.#config;
    const quarantined = quarantinedByServer(this.#catalog, this.pins);
    return {
      toolway: packageVersion(),
      pid: process.pid,
      startedAt: this.#startedAt,
      endpoint: this.#endpoint?.url,
      stateDir: this.#state.dir,
      config: {
        path,
        error: this.#configError,
        warnings,
        unusedPatterns: this.patterns.now(this.#config),
        waitsForRestart: waitsForRestart(this.#startConfig, this.#config),
      },
      certificate: this.#endpoint?.certificate?.status,
      names,
      menu,
      sessions: this.pipeline.sessions.count("legacy") - this.calls.sessions,
      presences: this.pipeline.sessions.count("modern"),
      draining: this.#closing !== undefined,
      memory: { heldBytes: this.#held.used, limitBytes: this.#held.limit },
      servers: this.servers
        .status((server) => this.#catalog.counts(server))
        .map((one) => ({
          ...this.#executors.seen(one),
          quarantined: quarantined.get(one.name) ?? 0,
          cache: this.#cache.statsOf(one.name),
          problems: [...this.#keptText(one.name), ...one.problems, ...this.#catalog.problems(one.name)].map((text) =>
            this.redact(one.name, text),
          ),
        })),
      mailboxes: this.#config.mailboxes,
      executors: this.#executors.status(),
      conflicts: this.#catalog.conflicts(),
      notes: this.#catalog.notes(),
    };
  }

  /** Its entry in the file cannot be used, as it was last read. */
  #isWrong(name: string): boolean {
    return this.#kept.has(name) || this.#config.misconfigured.some((one) => one.name === name);
  }

  #keptText(name: string): string[] {
    const wrong = this.#kept.get(name);
    return wrong === undefined ? [] : [`its new entry is not used, the one before goes on: ${wrong}`];
  }

  /**
   * Reads the config again and takes it on: only servers whose entry changed are restarted. Resolves with what changed.
   * An entry that is wrong in itself concerns its server alone, which goes on by the one before. A config that cannot be
   * used changes nothing; `status` and the log say why, and the promise rejects with it.
   */
  async reload(): Promise<ReloadReport> {
    this.#refuseIfClosing();
    let config: Config;
    try {
      config = this.#readConfig();
    } catch (error) {
      this.#configError = (error as Error).message;
      this.#log.error(`the config was not applied, the one before goes on: ${this.#configError}`);
      throw error;
    }
    return this.#apply(config);
  }

  onClose(act: () => void): void {
    this.#onClose.push(act);
  }

  /** Lets calls in flight end, at most `drainMs` (default: the config's), then stops every server. */
  close(options: { drainMs?: number | undefined } = {}): Promise<void> {
    this.#closing ??= this.#close(options.drainMs ?? this.#config.drainMs);
    return this.#closing;
  }

  async #close(drainMs: number): Promise<void> {
    const endBy = systemClock.now() + drainMs + END_MS;
    for (const act of this.#onClose) act();
    this.#endpoint?.certificate?.close();
    await Promise.all([
      this.#endpoint?.http.close({ drainMs }),
      ...[...this.#stdio].map((stdio) => stdio.close({ drainMs })),
      this.calls.ended(drainMs),
    ]);
    clearInterval(this.#tokenTimer);
    this.patterns.close();
    try {
      const ended = await resultWithin(this.#end(), endBy - systemClock.now());
      if (ended === undefined) this.#log.warn("not everything stopped in time; the gateway ends without it");
    } finally {
      // The directory's lock must not outlive us, whatever went wrong.
      await this.#state.close();
    }
  }

  async #end(): Promise<true> {
    // First, because it is quick and what follows may not come to its end.
    await this.#lists.save();
    await this.servers.close();
    this.pins.flush();
    this.#callLog.flush();
    await this.#stderr.close();
    // The servers behind them are closed first: they say goodbye through them.
    await this.#executors.close();
    await this.#mailboxes.close();
    await this.#control?.close();
    await this.#reaper.close();
    await this.#telemetry?.close();
    return true;
  }

  /** Ends what is held open by tokens that have expired or were revoked. */
  #endHeld(): void {
    // Nobody was asked for one.
    if (this.#noAuth) return;
    const nowMs = systemClock.wall();
    const { tokens } = this.#state;
    const ended = (principal: Principal) => !tokens.isCurrent(principal, nowMs);
    this.#endpoint?.http.closePrincipals(ended);
    this.#executors.dropPrincipals(ended);
    this.#mailboxes.dropPrincipals(ended);
  }

  #refuseIfClosing(): void {
    if (this.#closing !== undefined) throw new Fault("closing", "The gateway is closing.");
  }

  #apply(read: Config): ReloadReport {
    const before = this.#config;
    const { config, kept } = keepEntries(read, before);
    this.#kept = kept;
    this.#config = config;
    this.#configError = undefined;
    const rules = ({ roles, unlistedRoles }: Config) => JSON.stringify([roles, unlistedRoles]);
    if (rules(before) !== rules(config)) this.pipeline.setPolicy(this.#policyOf(config));
    this.pipeline.setBudgets(compileBudgets(config, this.pipeline.budgets));
    this.pipeline.setCallEnds(this.#callLog.ends(config.log.calls));
    this.#setCached(config);
    this.#held.setLimit(config.limits.heldBytes);
    this.#endpoint?.http.configure(endpointSettings(config));
    if (config.tls !== undefined) this.#endpoint?.certificate?.reload(config.tls);
    if (this.#endpoint !== undefined) this.#mailboxes.apply(config.mailboxes);
    const lists = new Set([
      ...this.#catalog.setServers(menusOf(config)),
      ...this.#catalog.setModes(config.names, config.menu),
    ]);
    if (this.#startServers === true) this.#executors.apply(config.executors);
    const { added, changed, removed } =
      this.#startServers === true
        ? this.servers.apply(config.servers, config.misconfigured)
        : { added: [], changed: [], removed: [] };
    for (const server of changed) this.#cache.invalidate(server);
    for (const server of removed) {
      this.#cache.removeServer(server);
      this.#lists.forget(server);
    }
    for (const server of this.pins.configure(config.servers, idleNames(config))) this.#checkPins(server);
    for (const kind of lists) this.pipeline.sessions.listChanged(kind, [...this.servers.names, ...removed]);
    const report = logApplied(this.#log, { before, after: config, added, changed, removed });
    logMisconfigured(this.#log, config, kept);
    this.patterns.tell(config);
    return report;
  }

  /** Starts the servers if they wait for the agent that the gateway is for, which can be asked this. */
  #startFor(profile: AgentProfile | undefined): void {
    if (this.#startServers !== "agent" || this.#closing !== undefined) return;
    this.#soleAgent = profile;
    this.#start();
  }

  #start(): void {
    this.#startServers = true;
    this.#executors.apply(this.#config.executors);
    this.servers.apply(this.#config.servers, this.#config.misconfigured);
    logMisconfigured(this.#log, this.#config, this.#kept);
    this.#awaitServers();
    // This is done also where no server is a child any more.
    void this.sweep();
  }

  /** Lazy servers do not count, nor those whose lists are known from before: agents find what they have. */
  #awaitServers(): void {
    const untried = this.#config.servers
      .filter(({ name, supervision }) => !supervision.lazy && this.#state.known.get(name) === undefined)
      .map(({ name }) => name);
    this.#readiness.begin(untried, systemClock.now());
    for (const name of untried) void this.servers.get(name)?.firstTry.then(() => this.#readiness.tried(name));
  }

  /** Kills what an earlier gateway of this directory left behind, if it was killed together with its reaper; once. */
  sweep(): Promise<unknown> {
    const { dir } = this.#state;
    this.#swept ??= dir === undefined ? Promise.resolve() : sweepOrphans(hashStateDir(dir), this.#reaper.instance);
    return this.#swept;
  }

  #policyOf(config: Config): ReturnType<typeof compilePolicy> {
    const policy = compilePolicy({ roles: config.roles, unlistedRoles: config.unlistedRoles });
    for (const problem of policy.problems) this.#log.warn(problem);
    return policy;
  }

  /** Tells the cache its bounds, and which tools of which server it may answer. */
  #setCached(config: Config): void {
    this.#cache.setLimits(config.cache);
    for (const { name, tools } of config.servers) {
      const cached = Object.keys(tools).filter((tool) => tools[tool]?.cache === true);
      this.#cache.setServer(name, new Set(cached.map(ownToolName)));
    }
  }

  /** Checks the list that the catalog has, read or restored: what agents are shown, which may be less than there is. */
  #checkPins(server: string): void {
    const tools = this.#catalog.tools().filter((tool) => tool.server === server);
    if (tools.length === 0) return;
    const items = tools.map(({ item }) => item);
    if (this.pins.check(server, items, false).differs) this.pipeline.pinsChanged(server);
  }
}
