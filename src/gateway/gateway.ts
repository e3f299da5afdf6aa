// A gateway while it lives: when it starts, listens and ends, and what programs and the operator may ask of it. Its
// stages are made in stages.ts; what the config says to them is config-in-use.ts.

import type { Duplex, Readable, Writable } from "node:stream";
import type { Config, ListenAddress } from "../config/config.js";
import type { AgentProfile, Principal } from "../contracts/caller.js";
import { ownToolName } from "../contracts/names.js";
import type { CacheStats, GatewayStatus } from "../contracts/status.js";
import type { ToolResult } from "../contracts/tool-result.js";
import type { ControlServer } from "../control/server.js";
import type { StdioEndpointOptions } from "../endpoint/stdio/stdio.js";
import type { Log } from "../observe/log.js";
import type { GatewayFacts } from "../observe/metrics/gateway-metrics.js";
import type { Telemetry } from "../observe/telemetry/telemetry.js";
import { OPERATOR } from "../pipeline/access.js";
import type { Pipeline } from "../pipeline/pipeline.js";
import type { ContextChanges } from "../policy/contexts.js";
import type { Guard } from "../policy/guard.js";
import { unknownRole } from "../policy/policy.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { systemClock } from "../runtime/clock.js";
import { sweepOrphans } from "../runtime/processes/reaper.js";
import { hashStateDir } from "../runtime/processes/reaper-marker.js";
import { packageVersion } from "../runtime/version.js";
import { resultWithin } from "../runtime/wait.js";
import type { ServerPool } from "../upstream/servers.js";
import type { ReloadReport } from "./applied.js";
import { ConfigInUse } from "./config-in-use.js";
import { openControl, outboxStatus, type StopGateway } from "./control-routes.js";
import type { Diagnostics } from "./diagnostics/diagnostics.js";
import { endpointSettings, type OpenEndpoint, openEndpoint, questionLimits } from "./listen.js";
import { Logins } from "./logins/logins.js";
import type { Mailboxes } from "./mailboxes/mailboxes.js";
import { hearingOf, type ProgramCalls, toToolResult } from "./program-call.js";
import { isThereForAgents, Readiness } from "./readiness.js";
import { serveRun } from "./runs/run-socket.js";
import { Runs, type SweepRun } from "./runs/runs.js";
import { type StageParts, type Stages, wireStages } from "./stages.js";
import { KeptContexts } from "./state/kept-contexts.js";
import { type GatewayState, redactedText, safeLine } from "./state/state.js";
import type { StoredPins } from "./state/stored-pins.js";
import { engineSeen, serverRows, storeSeen } from "./status.js";
import { type StdioAgent, StdioAgents, stdioPrincipal } from "./stdio-agents.js";
import { hiddenReason, listTools, possibleOwners, type ToolListing, type UnusedPatterns } from "./tool-listing.js";

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

/** An agent introduces itself at once. For one that does not, the servers are started all the same. */
const AGENT_WAIT_MS = 2_000;

/**
 * True: at once; "listening": once the gateway listens; "agent": once the agent that it is for, over stdio, has said
 * what it can be asked; false: never, for verbs that need tokens or state only.
 */
export type ServerStart = boolean | "listening" | "agent";

export interface GatewayParts extends StageParts {
  /** Everybody is let in. For loopback only; checked at listen(). */
  readonly noAuth: boolean;
  readonly startServers: ServerStart;
  /** Reads the config again, and throws what is wrong with it; `lastText` is what it read, where there is a file. */
  readonly reload: () => Config;
  readonly lastText?: () => string | undefined;
  /** False where whoever made it tells what is wrong with the config. Default: it is in the log. */
  readonly logsRemarks?: boolean | undefined;
  /** It runs for runs alone, and whoever made it ends it after the last of them. */
  readonly forRuns?: boolean;
  /** Gives back what a run that was killed has left. Default: its folder is removed. */
  readonly sweepRun?: SweepRun | undefined;
}

export class Gateway {
  readonly #state: GatewayState;
  readonly log: Log;
  readonly #env: NodeJS.ProcessEnv;
  readonly #noAuth: boolean;
  #startServers: ServerStart;
  readonly #telemetry: Telemetry | undefined;
  readonly #onClose: (() => void)[] = [];
  readonly #startedAt = new Date(systemClock.wall()).toISOString();
  readonly #stages: Stages;
  readonly #contexts: KeptContexts;
  readonly inUse: ConfigInUse;
  #soleAgent: AgentProfile | undefined;
  #endpoint: OpenEndpoint | undefined;
  #listening: Promise<unknown> | undefined;
  #control: ControlServer | undefined;
  readonly #stdio = new StdioAgents();
  #tokenTimer: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;
  #swept: Promise<unknown> | undefined;
  readonly readiness = new Readiness();
  readonly patterns: UnusedPatterns;
  readonly pipeline: Pipeline;
  /** Calls of the program and the operator. */
  readonly calls: ProgramCalls;
  readonly pins: StoredPins;
  readonly servers: ServerPool;
  readonly diagnostics: Diagnostics;
  /** Agents that `toolway run` started. */
  readonly runs: Runs;
  #forRuns: "gateway" | "endpoint" | undefined;
  readonly logins: Logins;

  constructor(parts: GatewayParts) {
    const { state, log, env, telemetry } = parts;
    this.#state = state;
    this.log = log;
    this.#env = env;
    this.#noAuth = parts.noAuth;
    this.#startServers = parts.startServers;
    this.#telemetry = telemetry;
    const stages = wireStages(parts, {
      startedAt: this.#startedAt,
      config: () => this.config,
      soleAgent: () => this.#soleAgent,
      sweep: () => this.sweep(),
      reloadServer: (name) => this.reloadServer(name),
    });
    this.#stages = stages;
    this.patterns = stages.patterns;
    this.pipeline = stages.pipeline;
    this.#contexts = new KeptContexts(stages.pipeline, state.contexts, (text) => log.warn(text));
    this.calls = stages.calls;
    this.pins = stages.pins;
    this.servers = stages.servers;
    this.diagnostics = stages.diagnostics;
    this.logins = new Logins(stages, () => this.config.servers, { endpoint: () => this.#endpoint?.url, log });
    this.inUse = new ConfigInUse({
      ...parts,
      stages,
      read: parts.reload,
      toEndpoint: (now) => this.#configureEndpoint(now),
    });
    this.inUse.begin();
    this.#forRuns = parts.forRuns === true ? "gateway" : undefined;
    this.runs = new Runs({
      map: state.runs,
      home: state.engine && state.inbox,
      tokens: state.tokens,
      stateDir: state.dir,
      now: systemClock.now,
      wall: systemClock.wall,
      sweep: parts.sweepRun,
      onForgotten: (principal) => void this.#contexts.forget(principal),
      log: (text) => log.warn(text),
    });
    // At once, without waiting for the next look.
    state.tokens.onRevoked(() => this.#endHeld());
    if (parts.startServers === true) this.#start();
    if (parts.startServers === "agent") setTimeout(() => this.#startFor(undefined), AGENT_WAIT_MS).unref();
  }

  get config(): Config {
    return this.inUse.current;
  }

  /** A text of a server's, without the secrets of its entry. */
  redact(server: string, text: string): string {
    return redactedText(this.config.servers, server, text);
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
      config: this.config,
      address: { ...this.config.listen, ...address },
      service: this.pipeline,
      state: this.#state,
      noAuth: this.#noAuth,
      stages: this.#stages,
      log: this.log,
      ready: () => this.readiness.isReady(systemClock.now()) && isThereForAgents(this.#state.engine),
    });
    if (this.#closing !== undefined) await endpoint.http.close({ drainMs: 0 });
    this.#refuseIfClosing();
    this.#endpoint = endpoint;
    this.#stages.marks?.listensAt(endpoint.url);
    this.#stages.executors.acceptOn(endpoint.http);
    this.#stages.mailboxes.acceptOn(endpoint.http);
    this.#stages.mailboxes.apply(this.config.mailboxes);
    this.#stages.sharing.apply(this.config.share, this.config.drainMs);
    this.#tokenTimer ??= setInterval(() => this.#endHeld(), TOKEN_LOOK_MS).unref();
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
    this.#control = await openControl(this, dir, this.#env, { stop });
  }

  /**
   * Serves an agent that speaks over a pair of streams: as the default principal, narrowed to a role of the config, or as
   * whom a token is for, until that ends. Resolves when it is gone.
   */
  serveStdio(input: Readable, output: Writable, { role, as }: StdioAgent = {}): Promise<void> {
    const principal = as === undefined ? stdioPrincipal(role) : this.demandPrincipal(as);
    const introduced = (profile: AgentProfile | undefined) => this.#startFor(profile);
    return this.#servePipe({ service: this.pipeline, introduced, input, output, principal }, as !== undefined);
  }

  /**
   * The same for the operator, who may use everything, sees all names and hears of one server what is said outside a
   * call. Resolves when they are gone.
   */
  serveOperator(input: Readable, output: Writable, server: string): Promise<void> {
    return this.#servePipe({
      service: hearingOf(this.pipeline, server),
      input,
      output,
      principal: OPERATOR,
      takesAnyOutput: true,
    });
  }

  async #servePipe(
    options: Pick<StdioEndpointOptions, "service" | "introduced" | "input" | "output" | "principal" | "takesAnyOutput">,
    endsWithToken = false,
  ): Promise<void> {
    if (this.#closing !== undefined) return;
    if (endsWithToken) this.#tokenTimer ??= setInterval(() => this.#endHeld(), TOKEN_LOOK_MS).unref();
    const log: StdioEndpointOptions["log"] = (event) =>
      this.log.warn(`stdio: ${event.kind === "failed" ? String(event.error) : event.why}`);
    const { sealer } = this.#state;
    const limits = questionLimits(this.config);
    await this.#stdio.serve({ ...options, sealer, limits, held: this.#stages.held, log }, endsWithToken);
  }

  /** Shares the tools for as long as the socket is open, with whom and where it says. */
  serveShare(socket: Duplex): void {
    const { sharing } = this.#stages;
    // It is the way in, as an endpoint is: the servers are wanted.
    if (this.#startServers !== true && this.#closing === undefined) this.#start();
    void import("./sharing/share-socket.js").then(({ serveShare, planOf, PLAN_WAIT_MS }) => {
      serveShare(socket, {
        begin: (settings, hooks) => sharing.begin(settings, hooks),
        end: (share, drainMs) => sharing.end(share, drainMs),
        plan: async () => {
          const tried = this.servers.names.map((name) => this.servers.get(name)?.firstTry);
          await resultWithin(Promise.all(tried), PLAN_WAIT_MS);
          return planOf(this.config, this.servers.names, await this.tools(), this.pipeline.access);
        },
        drainMs: this.config.drainMs,
      });
    });
  }

  /** Gives a run its secret for as long as the socket is open. */
  serveRun(socket: Duplex): void {
    // It is the way in, as for those who share.
    if (this.#startServers !== true && this.#closing === undefined) this.#start();
    serveRun(socket, {
      runs: this.runs,
      endpoint: () => this.#endpointForRuns(),
      firstTries: () => this.#unknownServers().map((name) => this.servers.get(name)?.firstTry),
      demandRole: (role) => this.demandRole(role),
      setContext: (principal, changes) => this.setContext(principal, changes),
      restarts: () => this.#stages.comeBacks(),
      forRuns: this.#forRuns === "gateway",
      noAuth: this.#noAuth,
    });
  }

  /** One over stdio listens when the first run comes, for it alone: on loopback, at any port. */
  async #endpointForRuns(): Promise<string> {
    if (this.#endpoint === undefined) {
      this.#forRuns ??= "endpoint";
      this.#listening ??= this.listen({ host: "127.0.0.1", port: 0 }).finally(() => {
        this.#listening = undefined;
      });
      await this.#listening;
    }
    return this.#endpoint?.url ?? "";
  }

  /** Whom a token of this id is for. Throws where there is none that is good. */
  demandPrincipal(id: string): Principal {
    const principal = this.#state.tokens.principal(id, systemClock.wall());
    if (principal !== undefined) return principal;
    throw new Fault("not-found", `There is no token for "${id}" (\`toolway token list\`).`);
  }

  /** Throws where the config has no such role: a misspelt one would be one without rules. */
  demandRole(role: string): void {
    const fault = unknownRole(role, Object.keys(this.config.roles));
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
    return listTools(this.#stages.catalog, this.pins);
  }

  /** Why a tool that a server has is not listed, where its entry hides it. */
  hiddenReason(tool: string): string | undefined {
    return hiddenReason(this.#stages.catalog, this.config.servers, tool);
  }

  possibleOwners(tool: string): string[] {
    return possibleOwners(this.#stages.catalog, this.servers.names, tool);
  }

  /** The program's own say in who may use what; undefined leaves the rules of roles alone. */
  setGuard(guard: Guard | undefined): void {
    this.pipeline.setGuard(guard);
  }

  /** The tools that are left to a principal: by its role, its context and the guard, without those in quarantine. */
  async toolsOf(principal: Principal): Promise<ToolListing[]> {
    const isAllowed = ({ server, ownName }: ToolListing) =>
      this.pipeline.access.decide(principal, server, ownToolName(ownName)).kind === "allow";
    return (await this.tools()).filter((tool) => tool.quarantined === undefined && isAllowed(tool));
  }

  /** What is known of a principal's situation: keys and values, by which menus are narrowed. */
  contextOf(principal: string): Readonly<Record<string, string>> {
    return this.#contexts.of(principal);
  }

  /**
   * Changes it; null unsets a key. What the principal sees changes at once, and sessions whose lists are others then are
   * told. Resolves when it is on disk, with the whole of it. Rejects with a Fault where it cannot be one.
   */
  setContext(principal: string, changes: ContextChanges): Promise<Readonly<Record<string, string>>> {
    return this.#contexts.set(principal, changes);
  }

  /** Hits, misses and what is kept, by server. */
  cacheStats(): ReadonlyMap<string, CacheStats> {
    return this.#stages.cache.stats();
  }

  /** Ends what runs of a server and starts it anew, also after it was ejected. What was kept of it goes. */
  async reloadServer(name: string): Promise<void> {
    if (this.inUse.isWrong(name)) {
      await this.reload();
      // Its new entry has started it, or still says why it does not.
      if (!this.inUse.isWrong(name) || this.servers.supervised(name) === undefined)
        return this.servers.startServer(name);
    }
    this.#stages.cache.invalidate(name);
    await this.servers.reload(name);
  }

  async stopServer(name: string): Promise<void> {
    this.#stages.cache.invalidate(name);
    await this.servers.stopServer(name);
  }

  async startServer(name: string): Promise<void> {
    if (this.inUse.isWrong(name)) await this.reload();
    await this.servers.startServer(name);
  }

  /** Undefined where no calls are kept. */
  get outbox(): Stages["outbox"]["operator"] {
    return this.#stages.outbox.operator;
  }

  get mailboxes(): Mailboxes {
    return this.#stages.mailboxes;
  }

  /** @internal What is counted beside its records and its status. */
  metricFacts(): GatewayFacts {
    const { engine } = this.#state;
    return {
      status: this.status(),
      runs: this.runs.list().length,
      outbox: this.outbox?.own,
      endpoint: this.#endpoint?.http.stats(),
      partitions: engine?.partitions.gateways().find(({ gateway }) => gateway === engine.self)?.partitions,
    };
  }

  /** `isWanted`: which of the servers are looked at; all, where it is left out. */
  status(isWanted?: (server: string) => boolean): GatewayStatus {
    const { catalog, executors, held, sharing } = this.#stages;
    return {
      toolway: packageVersion(),
      pid: process.pid,
      startedAt: this.#startedAt,
      endpoint: this.#endpoint?.url,
      forRuns: this.#forRuns !== undefined,
      stateDir: this.#state.dir,
      config: this.inUse.status(),
      certificate: this.#endpoint?.certificate?.status,
      names: this.config.names,
      menu: this.config.menu,
      sessions: this.pipeline.sessions.count("legacy") - this.calls.sessions,
      presences: this.pipeline.sessions.count("modern"),
      draining: this.#closing !== undefined || this.readiness.isLeaving,
      memory: { heldBytes: held.used, limitBytes: held.limit },
      servers: serverRows(
        this.servers,
        this.#stages,
        this.pins,
        (name) => this.inUse.keptText(name),
        this.config.servers,
        isWanted,
      ),
      shares: sharing.status(),
      mailboxes: this.#stages.mailboxes.status(),
      outbox: this.outbox === undefined ? undefined : outboxStatus(this.outbox),
      store: storeSeen(this.#state),
      engine: engineSeen(this.#state.engine, this.#stages.marks, systemClock),
      executors: executors.status(),
      ...this.diagnostics.status(),
      conflicts: catalog.conflicts().map((text) => safeLine(this.config.servers, text)),
      notes: catalog.notes().map((text) => safeLine(this.config.servers, text)),
    };
  }

  /**
   * Reads the config again and takes it on: only servers whose entry changed are restarted. Resolves with what changed.
   * An entry that is wrong in itself concerns its server alone, which goes on by the one before. A config that cannot be
   * used changes nothing; `status` and the log say why, and the promise rejects with it.
   */
  async reload(): Promise<ReloadReport> {
    this.#refuseIfClosing();
    return this.inUse.reload();
  }

  onClose(act: () => void): void {
    this.#onClose.push(act);
  }

  /** Of several gateways: hands over what it has in hand, while it goes on answering. Resolves when the others may take it. */
  async leave(): Promise<void> {
    this.readiness.leave();
    this.#stages.executors.leave();
    await Promise.all([this.#state.engine?.partitions.release(), this.#stages.mailboxes.leave()]);
  }

  /** Lets calls in flight end, at most `drainMs` (default: the config's), then stops every server. */
  close(options: { drainMs?: number | undefined } = {}): Promise<void> {
    this.#closing ??= this.#close(options.drainMs ?? this.config.drainMs);
    return this.#closing;
  }

  async #close(drainMs: number): Promise<void> {
    const endBy = systemClock.now() + drainMs + END_MS;
    for (const act of this.#onClose) act();
    this.runs.close();
    this.#endpoint?.certificate?.close();
    await Promise.all([
      this.#stages.outbox.stop(drainMs),
      this.#endpoint?.http.close({ drainMs }),
      this.#stdio.close(drainMs),
      this.#stages.sharing.close(drainMs),
      this.#stages.executors.rest(drainMs),
      this.calls.ended(drainMs),
    ]);
    clearInterval(this.#tokenTimer);
    this.patterns.close();
    try {
      const ended = await resultWithin(this.#end(), endBy - systemClock.now());
      if (ended === undefined) this.log.warn("not everything stopped in time; the gateway ends without it");
    } finally {
      // The directory's lock must not outlive us, whatever went wrong.
      await this.#state.close();
    }
  }

  async #end(): Promise<true> {
    const metrics = this.#telemetry?.endMetrics();
    // First, because it is quick and what follows may not come to its end.
    await this.#stages.lists.save();
    this.#stages.executors.giveUp();
    await this.servers.close().finally(() => this.#stages.outbox.close());
    this.pins.flush();
    await this.#stages.diagnostics.close();
    await this.#stages.stderr.close();
    // The servers behind them are closed first: they say goodbye through them.
    await this.#stages.credentials.close();
    await this.#stages.executors.close();
    await this.#stages.mailboxes.close();
    await this.#control?.close();
    await this.#stages.reaper.close();
    await Promise.all([metrics, this.#telemetry?.close()]);
    return true;
  }

  /** Ends what is held open by tokens that have expired or were revoked. */
  #endHeld(): void {
    const nowMs = systemClock.wall();
    const { tokens, engine } = this.#state;
    const isStale = engine?.staleForMs() !== undefined;
    const ended = (principal: Principal) => isStale || !tokens.isCurrent(principal, nowMs);
    this.#stdio.closePrincipals(ended);
    // Nobody was asked for one at the endpoint.
    if (this.#noAuth) return;
    tokens.dropOldSecrets(nowMs);
    this.#endpoint?.http.closePrincipals(ended);
    this.#stages.executors.dropPrincipals(ended);
    this.#stages.mailboxes.dropPrincipals(ended);
  }

  #refuseIfClosing(): void {
    if (this.#closing !== undefined) throw new Fault("closing", "The gateway is closing.");
  }

  /** What listens is told of another config. */
  #configureEndpoint(config: Config): void {
    const endpoint = this.#endpoint;
    if (endpoint === undefined) return;
    endpoint.http.configure(endpointSettings(config));
    if (config.tls !== undefined) endpoint.certificate?.reload(config.tls);
    this.#stages.mailboxes.apply(config.mailboxes);
    this.#stages.sharing.apply(config.share, config.drainMs);
  }

  /** Starts the servers if they wait for the agent that the gateway is for, which can be asked this. */
  #startFor(profile: AgentProfile | undefined): void {
    if (this.#startServers !== "agent" || this.#closing !== undefined) return;
    this.#soleAgent = profile;
    this.#start();
  }

  #start(): void {
    this.#startServers = true;
    this.inUse.startServers();
    this.#awaitServers();
    // This is done also where no server is a child any more.
    void this.sweep();
  }

  /** Lazy servers do not count, nor those whose lists are known from before: agents find what they have. */
  #awaitServers(): void {
    const untried = this.#unknownServers();
    this.readiness.begin(untried, systemClock.now());
    for (const name of untried) void this.servers.get(name)?.firstTry.then(() => this.readiness.tried(name));
  }

  #unknownServers(): string[] {
    return this.config.servers
      .filter(({ name, supervision }) => !supervision.lazy && this.#state.known.get(name) === undefined)
      .map(({ name }) => name);
  }

  /** Kills what an earlier gateway of this directory left behind, if it was killed together with its reaper; once. */
  sweep(): Promise<unknown> {
    const { dir } = this.#state;
    this.#swept ??=
      dir === undefined ? Promise.resolve() : sweepOrphans(hashStateDir(dir), this.#stages.reaper.instance);
    return this.#swept;
  }
}
