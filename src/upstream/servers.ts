// All servers of the config: starts them side by side, applies changes of the config, and keeps their time.

import type { MisconfiguredSpec, ServerSpec } from "../contracts/server-spec.js";
import type { ServerHandle, Servers } from "../contracts/servers.js";
import type { ServerStatus } from "../contracts/status.js";
import { Fault } from "../protocol/errors.js";
import { MisconfiguredServer } from "./misconfigured.js";
import { type ProbeResult, probeServer } from "./probe.js";
import { UpstreamServer } from "./server.js";
import type { ServerDeps } from "./server-deps.js";
import { misconfigured } from "./supervise/refusals.js";

/**
 * So many servers start at once: a config of hundreds must not fork them all together. Calls do not wait for their
 * turn.
 */
const MAX_STARTS = 16;

/** How often deadlines are looked at; they are seconds and minutes. */
const TICK_MS = 250;

export class ServerPool implements Servers {
  readonly #deps: ServerDeps;
  #servers = new Map<string, UpstreamServer>();
  #misconfigured = new Map<string, MisconfiguredServer>();
  /** Each list that is asked for walks them all. Undefined once one of them is another. */
  #handles: readonly ServerHandle[] | undefined;
  readonly listEvents = { count: 0 };
  readonly #stopping = new Set<Promise<void>>();
  readonly #toStart: UpstreamServer[] = [];
  #starting = 0;
  #isClosed = false;
  #ticker: NodeJS.Timeout | undefined;

  constructor(deps: ServerDeps) {
    this.#deps = { ...deps, listEvents: this.listEvents };
  }

  /**
   * Applies a config: what is new is started, what is gone is stopped, what changed is restarted, the rest goes on.
   * Those whose entry cannot be used are known by name, and say why.
   */
  apply(
    specs: readonly ServerSpec[],
    wrong: readonly MisconfiguredSpec[] = [],
  ): { added: string[]; changed: string[]; removed: string[] } {
    const before = this.#servers;
    const known = this.names;
    this.#misconfigured = new Map(
      wrong.map((spec) => [spec.name, new MisconfiguredServer(spec, this.#misconfigured.get(spec.name))]),
    );
    const added: string[] = [];
    const changed: string[] = [];
    this.#servers = new Map();
    for (const spec of specs) {
      const old = before.get(spec.name);
      if (old !== undefined && identity(old.spec) === identity(spec)) {
        this.#servers.set(spec.name, old);
        continue;
      }
      (old === undefined ? added : changed).push(spec.name);
      const gone = old === undefined ? undefined : this.#stop(old);
      const server = new UpstreamServer(spec, this.#deps, gone);
      server.refs = old?.refs ?? 0;
      this.#servers.set(spec.name, server);
      this.#toStart.push(server);
    }
    this.#handles = undefined;
    for (const [name, old] of before) if (!this.#servers.has(name)) void this.#stop(old);
    const removed = known.filter((name) => this.get(name) === undefined);
    this.#ticker ??= setInterval(() => this.#tick(), TICK_MS).unref();
    this.#startNext();
    return { added, changed, removed };
  }

  get names(): string[] {
    return [...this.#servers.keys(), ...this.#misconfigured.keys()];
  }

  /** Those that can run. */
  get all(): Iterable<UpstreamServer> {
    return this.#servers.values();
  }

  get handles(): readonly ServerHandle[] {
    this.#handles ??= [...this.#servers.values(), ...this.#misconfigured.values()];
    return this.#handles;
  }

  get(name: string): ServerHandle | undefined {
    return this.#servers.get(name) ?? this.#misconfigured.get(name);
  }

  /** Undefined also for one whose entry cannot be used. */
  supervised(name: string): UpstreamServer | undefined {
    return this.#servers.get(name);
  }

  /**
   * Starts a server anew, whatever became of it: its process and its connections end first, its failures are
   * forgotten. Resolves when the first attempt has ended, either way; `status` says which.
   */
  async reload(name: string): Promise<void> {
    if (this.#isClosed) throw new Fault("closing", "The gateway is closing.");
    const old = this.#demand(name);
    const server = new UpstreamServer(old.spec, this.#deps, this.#stop(old));
    server.refs = old.refs;
    this.#servers.set(name, server);
    this.#handles = undefined;
    server.ensure();
    await server.firstTry;
  }

  /**
   * Tries a server at an address by a connection of its own, beside those that are there, and says how that went.
   * Executors that dial in are reached by nobody else. A program is not started a second time.
   */
  async probe(name: string, signal: AbortSignal): Promise<ProbeResult> {
    const { spec } = this.#demand(name);
    if (spec.target.kind === "stdio") throw new Fault("invalid", `Server "${name}" is a program, and has no address.`);
    const { context, clientInfo } = this.#deps;
    return probeServer(spec, { makeLink: context.makeLink, clientInfo, now: context.now }, signal);
  }

  /** Stops a server until it is started, reloaded or its entry changes. Resolves when nothing of it runs. */
  async stopServer(name: string): Promise<void> {
    await this.#stop(this.#demand(name));
  }

  /** Starts a server that was stopped; one that is up goes on. */
  async startServer(name: string): Promise<void> {
    const server = this.#demand(name);
    if (server.isStopped) {
      await this.reload(name);
      return;
    }
    server.ensure();
    await server.firstTry;
  }

  /** Somebody is about to use a server: one whose lists were not read is started for them, lazy or not. */
  want(name: string): UpstreamServer {
    const server = this.#demand(name);
    if (!server.listed) server.ensure();
    return server;
  }

  /** One reference of a program more; what follows from that is gateway/hosting's. */
  retain(name: string): void {
    const server = this.#servers.get(name);
    if (server !== undefined) server.refs++;
  }

  /** One reference less. Returns how many are left. */
  release(name: string): number {
    const server = this.#servers.get(name);
    if (server !== undefined && server.refs > 0) server.refs--;
    return server?.refs ?? 0;
  }

  sessionClosed(sessionKey: string): void {
    for (const server of this.#servers.values()) server.sessionClosed(sessionKey);
  }

  /** In the order of `glances`; of those alone that are wanted, where it is said which. */
  status(counts: (server: string) => ServerStatus["counts"], isWanted?: (server: string) => boolean): ServerStatus[] {
    const all = [...this.#servers.values(), ...this.#misconfigured.values()];
    const wanted = isWanted === undefined ? all : all.filter(({ name }) => isWanted(name));
    return wanted.map((server) => server.status(counts(server.name)));
  }

  /** Each server with a word that is another when it is in another state: to see that costs next to nothing. */
  *glances(): IterableIterator<[server: string, glance: string]> {
    for (const server of this.#servers.values()) yield [server.name, glanceAt(server)];
    for (const { name, trouble } of this.#misconfigured.values()) yield [name, trouble];
  }

  /** They stay known, as stopped: the operator may look until the gateway itself has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#ticker);
    this.#toStart.length = 0;
    for (const server of this.#servers.values()) void this.#stop(server);
    await Promise.all(this.#stopping);
  }

  #demand(name: string): UpstreamServer {
    const server = this.#servers.get(name);
    const wrong = this.#misconfigured.get(name);
    if (wrong !== undefined) throw misconfigured(name, wrong.spec.why);
    if (server === undefined) throw new Fault("not-found", `There is no server "${name}" in the config.`);
    return server;
  }

  #stop(server: UpstreamServer): Promise<void> {
    const stopping = server.stop().finally(() => this.#stopping.delete(stopping));
    this.#stopping.add(stopping);
    return stopping;
  }

  #startNext(): void {
    while (this.#starting < MAX_STARTS) {
      const server = this.#toStart.shift();
      if (server === undefined) return;
      if (this.#servers.get(server.spec.name) !== server) continue;
      this.#starting++;
      server.start();
      void server.firstTry.then(() => {
        this.#starting--;
        this.#startNext();
      });
    }
  }

  #tick(): void {
    const nowMs = this.#deps.context.now();
    for (const server of this.#servers.values()) server.tick(nowMs);
  }
}

/** The part of an entry whose change means another process or another connection. */
function identity(spec: ServerSpec): string {
  const { target, isolation, era, declare, connectTimeoutMs, callTimeoutMs, supervision, trust } = spec;
  const { repeatable, placement, card } = spec;
  return JSON.stringify([
    target,
    isolation,
    era,
    declare,
    connectTimeoutMs,
    callTimeoutMs,
    supervision,
    trust,
    [...repeatable],
    placement,
    card,
  ]);
}

/** What is counted is not in it: that is another with each call. */
function glanceAt({ connections, isFailing, isStopped, listed, trouble = "" }: UpstreamServer): string {
  const [shared] = connections;
  return `${shared?.state} ${isFailing} ${isStopped} ${listed} ${trouble}`;
}
