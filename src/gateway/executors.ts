// The gateway's executors: a group for each name of the config, made, changed and closed as the config says. Servers
// are tied to them by the wire that they ask for here.

import type { Duplex } from "node:stream";
import type { ExecutorConfig } from "../config/config.js";
import type { Principal } from "../contracts/caller.js";
import type { GatewayEngine } from "../contracts/engine/engine.js";
import type { ExecutorStatus, PlaceState, Visitor } from "../contracts/executors.js";
import type { ServerStatus } from "../contracts/status.js";
import type { HttpEndpoint } from "../endpoint/server.js";
import { ExecutorGroup, type GroupClient, type GroupOptions, type MakeClient } from "../executor/group/group.js";
import type { PassedClient } from "../executor/passed/passed-client.js";
import type { ExecutorsHere } from "../executor/passed/serve-passed.js";
import type { ExecutorLog } from "../executor/wire/types.js";
import type { Log } from "../observe/log.js";
import { systemClock } from "../runtime/clock.js";
import { resultWithin } from "../runtime/wait.js";
import type { Socket } from "../sockets/socket.js";
import { requestersBy } from "../upstream/http/executor-requester.js";
import type { OpenRequester } from "../upstream/http/requester.js";
import type { UpstreamServer } from "../upstream/server.js";
import type { ExecutorPlaces } from "./engine/executor-places.js";

/** Streams of this kind carry a request each, to the gateway at which an executor dialled in. */
const EXECUTORS = "executors";

/** Makes the clients of executors; loaded with the first one of a config. */
interface ExecutorClients {
  makeClient(name: string, ...more: Parameters<MakeClient>): GroupClient;
  readonly dial: GroupOptions["dial"];
}

/** How what other gateways have is used, and ours by them; loaded with the first executor of a config on an engine. */
interface OtherGateways {
  readonly places: ExecutorPlaces;
  readonly PassedClient: typeof PassedClient;
}

/** The gateway, as executors need it: the servers that are behind them. */
export interface GatewayServers {
  readonly servers: {
    readonly all: Iterable<Pick<UpstreamServer, "spec" | "isFailing" | "isStopped" | "readListsAgain" | "tryNow">>;
  };
  /** Starts a server anew. */
  reloadServer(name: string): Promise<void>;
}

export class Executors {
  readonly #log: Log;
  readonly #gateway: GatewayServers | undefined;
  readonly #isImpatient: boolean | undefined;
  readonly #groups = new Map<string, { readonly group: ExecutorGroup; wasReady: boolean }>();
  #configs: readonly ExecutorConfig[] = [];
  #loading: Promise<void> | undefined;
  #clients: ExecutorClients | undefined;
  readonly #engine: GatewayEngine | undefined;
  #others: OtherGateways | undefined;
  #endpoint: Pick<HttpEndpoint, "admitExecutors"> | undefined;
  readonly #ending = new Set<Promise<void>>();
  /** How servers are reached: through the executor that their entry names, or from here. */
  readonly openRequester: OpenRequester = requestersBy((name) => this.#groups.get(name)?.group);

  constructor(
    log: Log,
    gateway?: GatewayServers,
    options: Pick<GroupOptions, "isImpatient"> & { readonly engine?: GatewayEngine | undefined } = {},
  ) {
    this.#log = log;
    this.#engine = options.engine;
    this.#gateway = gateway;
    this.#isImpatient = options.isImpatient;
  }

  has(name: string): boolean {
    return this.#groups.has(name);
  }

  isOpen(name: string): boolean {
    return this.#configs.some((config) => config.name === name && config.noAuth);
  }

  /** Executors dial in at this endpoint, as long as there are any in the config. */
  acceptOn(endpoint: Pick<HttpEndpoint, "admitExecutors">): void {
    this.#endpoint = endpoint;
    this.#admit();
  }

  apply(configs: readonly ExecutorConfig[]): void {
    this.#configs = configs;
    for (const [name, { group }] of this.#groups) {
      if (configs.some((config) => config.name === name)) continue;
      this.#groups.delete(name);
      this.#end(group);
    }
    this.#publish();
    if (configs.length > 0) this.#configure(configs);
    this.#admit();
  }

  #configure(configs: readonly ExecutorConfig[]): void {
    this.#loading ??= this.#load();
    for (const { name } of configs) if (!this.#groups.has(name)) this.#addGroup(name);
    // Edits count in their order: an older one that waited for the loading must not undo a newer one.
    void this.#loading.then(() => {
      if (this.#configs !== configs || this.#clients === undefined) return;
      for (const { name, urls, token } of configs) this.#groups.get(name)?.group.configure(urls, token);
    });
  }

  /** Never rejects. */
  async #load(): Promise<void> {
    try {
      this.#clients = await loadClients(this.#log);
      if (this.#engine !== undefined) await this.#meetOthers(this.#engine);
    } catch (error) {
      // Perhaps it was installed anew meanwhile. The rest of the gateway goes on, and the next edit tries again.
      this.#loading = undefined;
      this.#log.error("executors cannot be used: their part of Toolway was not loaded", { why: String(error) });
    }
  }

  async #meetOthers(engine: GatewayEngine): Promise<void> {
    const [{ placesOf }, { PassedClient: client }, { servePassed }] = await Promise.all([
      import("./engine/executor-places.js"),
      import("../executor/passed/passed-client.js"),
      import("../executor/passed/serve-passed.js"),
    ]);
    if (this.#others !== undefined) return;
    this.#others = { places: placesOf(engine, systemClock.now, () => this.#lookElsewhere()), PassedClient: client };
    const here: ExecutorsHere = (name) => {
      const group = this.#groups.get(name)?.group;
      return group && ((request, handler) => group.startHere(request, handler));
    };
    engine.peers.accept(EXECUTORS, (stream: Duplex) => servePassed(stream, here));
    this.#publish();
    this.#lookElsewhere();
  }

  /** What other gateways have is another now. */
  #lookElsewhere(): void {
    for (const [name, { group }] of this.#groups) group.setElsewhere(this.#others?.places.at(name) ?? new Map());
  }

  /** What dialled in here is told to the others. */
  #publish(): void {
    if (this.#others === undefined) return;
    const executors: Record<string, PlaceState> = {};
    for (const [name, { group }] of this.#groups) {
      const state = group.here;
      if (state !== undefined) executors[name] = state;
    }
    this.#others.places.publish(executors);
  }

  /** An executor dialled in under this name. */
  adopt(name: string, socket: Socket, visitor: Visitor): void {
    void Promise.resolve(this.#loading).then(() => {
      const group = this.#clients === undefined ? undefined : this.#groups.get(name)?.group;
      if (group === undefined) socket.destroy("there is no such executor any more");
      else group.adopt(socket, visitor);
    });
  }

  status(): ExecutorStatus[] {
    return [...this.#groups.values()].map(({ group }) => group.status());
  }

  /**
   * A server as it is for whoever calls it: where its executor is not there, what it was when it last was is of no use.
   * One that is being dialled for the first time may be there in a moment.
   */
  seen(server: ServerStatus): ServerStatus {
    if (server.via === undefined || (server.state !== "ready" && server.state !== "starting")) return server;
    const executor = this.#groups.get(server.via)?.group.status();
    if (executor === undefined || executor.ready) return server;
    const isDialled = executor.members.some(
      ({ state, lastError }) => state === "connecting" && lastError === undefined,
    );
    if (isDialled && server.state === "starting") return server;
    return { ...server, state: "waiting", lastError: executor.problem, nextTryInMs: undefined };
  }

  dropPrincipals(ended: (principal: Principal) => boolean): void {
    for (const { group } of this.#groups.values()) group.dropPrincipals(ended);
  }

  /**
   * Of several gateways: those that dialled in here are to come back at another one, as soon as they are quiet. The others go on
   * passing requests here until then. Where there is no other, nothing is done.
   */
  leave(): void {
    if (!this.#hasOthers) return;
    this.#others?.places.leave();
    for (const { group } of this.#groups.values()) group.leave();
  }

  /** Takes nothing more of other gateways. Resolves when what they have under way here has ended, or the time is over. */
  async rest(drainMs: number): Promise<void> {
    if (!this.#hasOthers) return;
    this.#others?.places.leave();
    const quiet = [...this.#groups.values()].map(({ group }) => group.shut());
    await resultWithin(Promise.all(quiet), drainMs);
  }

  /** The servers are about to end: what they are told by executors goes at once, or not at all. */
  giveUp(): void {
    if (this.#engine !== undefined) for (const { group } of this.#groups.values()) group.giveUp();
  }

  get #hasOthers(): boolean {
    const { self, partitions } = this.#engine ?? {};
    return partitions?.gateways().some(({ gateway, isLeaving }) => gateway !== self && !isLeaving) === true;
  }

  async close(): Promise<void> {
    for (const { group } of this.#groups.values()) this.#end(group);
    this.#groups.clear();
    await Promise.all(this.#ending);
  }

  #addGroup(name: string): void {
    const clients = (): ExecutorClients => {
      if (this.#clients === undefined) throw new Error("An executor was wanted before its client was loaded.");
      return this.#clients;
    };
    const group: ExecutorGroup = new ExecutorGroup({
      name,
      makeClient: (dial, onState) => clients().makeClient(name, dial, onState),
      dial: (url, token, signal) => clients().dial(url, token, signal),
      wall: systemClock.wall,
      onState: () => this.#changed(name),
      isImpatient: this.#isImpatient,
      makePassed: this.#engine && ((gateway, onState) => this.#passedTo(name, gateway, onState)),
    });
    this.#groups.set(name, { group, wasReady: false });
    if (this.#others !== undefined) group.setElsewhere(this.#others.places.at(name));
  }

  #passedTo(name: string, gateway: string, onState: () => void): PassedClient {
    const [engine, others] = [this.#engine, this.#others];
    if (engine === undefined || others === undefined) throw new Error("Another gateway was known before it was met.");
    return new others.PassedClient({ name, onState, connect: () => engine.peers.connect(gateway, EXECUTORS) });
  }

  #changed(name: string): void {
    const entry = this.#groups.get(name);
    if (entry === undefined) return;
    this.#publish();
    const { ready } = entry.group.status();
    if (ready === entry.wasReady) return;
    entry.wasReady = ready;
    if (ready) this.#wakeServers(name);
  }

  /** Servers that failed for want of an executor need not wait for their next try. */
  #wakeServers(name: string): void {
    for (const server of this.#gateway?.servers.all ?? []) {
      const { spec, isFailing, isStopped } = server;
      if (isStopped || !("via" in spec.target) || spec.target.via !== name) continue;
      if (isFailing) void this.#gateway?.reloadServer(spec.name).catch(() => {});
      else {
        server.tryNow();
        // Another executor may be there now, which reaches other addresses.
        server.readListsAgain();
      }
    }
  }

  #admit(): void {
    this.#endpoint?.admitExecutors(this.#groups.size === 0 ? undefined : this);
  }

  #end(group: ExecutorGroup): void {
    const ending = group.close().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}

async function loadClients(log: Log): Promise<ExecutorClients> {
  const [{ SocketClient }, { dialSocket }] = await Promise.all([
    import("../executor/client/client.js"),
    import("../sockets/dial.js"),
  ]);
  return {
    makeClient: (name, dial, onState) => new SocketClient({ dial, onState, log: named(log, name) }),
    dial: (url, token, signal) => dialSocket(url, { token, signal }),
  };
}

/** Which executor it is stands first, as the name of a server does in what is told of that. */
function named(log: Log, executor: string): ExecutorLog {
  const of = (text: string) => text.replace(/^executor: /, () => `executor ${JSON.stringify(executor)}: `);
  return {
    debug: (text, fields) => log.debug(of(text), fields),
    info: (text, fields) => log.info(of(text), fields),
    warn: (text, fields) => log.warn(of(text), fields),
  };
}
