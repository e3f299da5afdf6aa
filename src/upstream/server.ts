// One server of the config: its connection, or one for each session, and its lists. Restarting is supervised.ts's.

import type { Caller } from "../caller.js";
import type { ServerStatus } from "../control/status.js";
import { Fault } from "../protocol/errors.js";
import type { NotificationMessage } from "../protocol/message.js";
import type { Listed, ListKind, ServerIntro, ServerSpec, Upstream, UpstreamEvents } from "../upstream.js";
import { type EraMemory, ProcessEras } from "./era.js";
import { EVERY_CAPABILITY } from "./handshake.js";
import { changedKinds, listKinds, readList } from "./lists.js";
import { ServerError } from "./own-call.js";
import { ToolHeaders } from "./param-headers.js";
import { FreshnessReader, Rereads } from "./rereads.js";
import { Supervised, type UpstreamContext } from "./supervised.js";

/** Sessions that may each have a process of their own. Past it, a new session is refused rather than the machine filled. */
const MAX_SESSION_CONNECTIONS = 200;

/** A server that has not shown its lists yet is tried again by itself, since no call can ask for what is not listed. */
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
/** Credentials do not mend themselves: others were seen to ask 8,600 times a day. */
const UNAUTHORIZED_RETRY_MS = 15 * 60_000;

/** Different problems kept for `status`; more would not be read. */
const MAX_PROBLEMS = 20;

const EVERY_LIST: readonly ListKind[] = ["tools", "prompts", "resources", "resourceTemplates"];

export interface ServerDeps {
  readonly context: UpstreamContext;
  readonly events: UpstreamEvents;
  readonly clientInfo: { readonly name: string; readonly version: string };
  /** Where the eras of servers are remembered; absent: for as long as each is in the config. */
  readonly eras?: EraMemory | undefined;
  readonly log: (level: "info" | "warn", text: string) => void;
}

export class Server {
  readonly spec: ServerSpec;
  readonly #deps: ServerDeps;
  /** The connection of all; where each session has its own, the one that reads the lists and is then closed. */
  readonly #shared: Supervised;
  readonly #bySession = new Map<string, Supervised>();
  readonly #stopped = new AbortController();
  readonly #refreshing = new Map<ListKind, { again: boolean }>();
  readonly #eras: EraMemory;
  readonly #toolHeaders = new ToolHeaders();
  readonly #rereads: Rereads;
  /** What is wrong with the server and does not keep it from working: of its tools, and of its connection. */
  #toolProblems: readonly string[] = [];
  readonly #problems = new Set<string>();
  #intro: ServerIntro | undefined;
  #retries = 0;
  #retryTimer: NodeJS.Timeout | undefined;
  #listFault: string | undefined;
  #told: string | undefined;
  /** The lists were read from the server since the gateway started. */
  #listed = false;
  #firstTry: { promise: Promise<void>; resolve: () => void };

  constructor(spec: ServerSpec, deps: ServerDeps) {
    this.spec = spec;
    this.#deps = deps;
    this.#eras = deps.eras ?? new ProcessEras();
    this.#rereads = new Rereads(deps.context.random, (kind) => this.#reread(kind));
    this.#shared = this.#supervise(undefined);
    let resolve = () => {};
    const promise = new Promise<void>((done) => {
      resolve = done;
    });
    this.#firstTry = { promise, resolve };
  }

  get intro(): ServerIntro | undefined {
    return this.#intro;
  }

  /** Starts it in the background. */
  start(): void {
    this.#shared.ensure();
  }

  /** Resolves when the first attempt to read its lists has ended, either way. */
  get firstTry(): Promise<void> {
    return this.#firstTry.promise;
  }

  get listed(): boolean {
    return this.#listed;
  }

  upstream(caller: Caller): Upstream {
    if (this.spec.isolation === "shared") return this.#shared;
    const existing = this.#bySession.get(caller.sessionKey);
    if (existing !== undefined) return existing;
    if (this.#bySession.size >= MAX_SESSION_CONNECTIONS) {
      const message = `Server "${this.spec.name}" has ${MAX_SESSION_CONNECTIONS} sessions with connections of their own; no more are opened. Close some agents, or use "isolation": "shared".`;
      throw new Fault("limit", message);
    }
    const own = this.#supervise(caller);
    this.#bySession.set(caller.sessionKey, own);
    return own;
  }

  /** The connections that are there now, for what goes to all of them. */
  get connections(): Iterable<Supervised> {
    return this.spec.isolation === "shared" ? [this.#shared] : this.#bySession.values();
  }

  sessionConnection(sessionKey: string): Supervised | undefined {
    return this.spec.isolation === "shared" ? this.#shared : this.#bySession.get(sessionKey);
  }

  sessionClosed(sessionKey: string): void {
    const own = this.#bySession.get(sessionKey);
    if (own === undefined) return;
    this.#bySession.delete(sessionKey);
    void own.stop();
  }

  tick(nowMs: number): void {
    this.#shared.tick(nowMs);
    for (const own of this.#bySession.values()) own.tick(nowMs);
  }

  async stop(): Promise<void> {
    this.#stopped.abort(new Fault("closing", `Server "${this.spec.name}" was stopped.`));
    clearTimeout(this.#retryTimer);
    this.#rereads.stop();
    this.#firstTry.resolve();
    await Promise.all([this.#shared.stop(), ...[...this.#bySession.values()].map((own) => own.stop())]);
    this.#bySession.clear();
  }

  status(counts: ServerStatus["counts"]): ServerStatus {
    const all = [this.#shared, ...this.#bySession.values()];
    const shown = all.find((one) => one.state === "ready") ?? this.#shared;
    const link = shown.describe();
    const info = this.#intro?.serverInfo;
    return {
      name: this.spec.name,
      kind: link?.kind ?? this.spec.target.kind,
      isolation: this.spec.isolation,
      state: shown.state,
      version: this.#intro?.version,
      serverInfo: info === undefined ? undefined : pickInfo(info),
      counts,
      listsFromBefore: !this.#listed,
      connections: all.filter((one) => one.state === "ready").length,
      inFlight: sum(all, (one) => one.inFlight),
      restarts: sum(all, (one) => one.restarts),
      readyAfterMs: shown.readyAfterMs,
      lastError: shown.lastFault?.message ?? this.#listFault,
      nextTryInMs: shown.nextTryInMs,
      pid: link?.pid,
      url: link?.url,
      noise: { count: sum(all, (one) => one.noise.count), sample: all.find((one) => one.noise.sample)?.noise.sample },
      stderr: link?.stderr ?? [],
      problems: [...this.#toolProblems, ...this.#problems],
    };
  }

  #supervise(owner: Caller | undefined): Supervised {
    const { clientInfo, context, events } = this.#deps;
    const offer =
      owner === undefined
        ? { clientInfo, capabilities: EVERY_CAPABILITY }
        : { clientInfo, capabilities: owner.capabilities };
    const supervised: Supervised = new Supervised(
      this.spec,
      owner,
      offer,
      context,
      {
        onReady: (intro) => this.#ready(supervised, intro, owner),
        onNotification: (message, caller) => this.#notified(supervised, message, caller ?? owner),
        onState: () => {
          events.onState(this.spec.name);
          this.#tell(supervised);
          if (supervised === this.#shared) this.#scheduleRetry();
        },
      },
      {
        eras: this.#eras,
        toolHeaders: this.#toolHeaders,
        random: context.random,
        onProblem: (text) => this.#problem(text),
      },
    );
    return supervised;
  }

  /** What an operator wants to know without asking: that a server is up, that it is down, and why. Once each. */
  #tell(supervised: Supervised): void {
    const { state, lastFault, readyAfterMs } = supervised;
    const what = state === "ready" ? `ready after ${readyAfterMs} ms` : (lastFault?.message ?? "");
    if (what === "" || what === this.#told || (state !== "ready" && state !== "backoff" && state !== "idle")) return;
    this.#told = what;
    this.#deps.log(state === "ready" ? "info" : "warn", `server "${this.spec.name}": ${what}`);
  }

  #ready(supervised: Supervised, intro: ServerIntro, owner: Caller | undefined): void {
    this.#intro = intro;
    this.#retries = 0;
    this.#problems.clear();
    this.#deps.events.onIntro(this.spec.name, intro, supervised, owner);
    if (owner === undefined || !this.#listed) void this.#readAll(supervised, intro);
  }

  async #readAll(supervised: Supervised, intro: ServerIntro): Promise<void> {
    const has = listKinds(intro.capabilities);
    await Promise.all(EVERY_LIST.map((kind) => this.#refresh(supervised, kind, has.includes(kind))));
    this.#listed = this.#listFault === undefined;
    this.#firstTry.resolve();
    this.#deps.events.onState(this.spec.name);
    // Where each session has its own connection, this one was for the lists alone.
    if (this.spec.isolation === "session" && supervised === this.#shared) await supervised.rest();
  }

  /** One reading of a list at a time; a change during it makes it read once more. */
  async #refresh(supervised: Supervised, kind: ListKind, has = true): Promise<void> {
    const running = this.#refreshing.get(kind);
    if (running !== undefined) {
      running.again = true;
      return;
    }
    const mark = { again: false };
    this.#refreshing.set(kind, mark);
    try {
      do {
        mark.again = false;
        const reader = new FreshnessReader();
        const items = has
          ? await readList(supervised, kind, this.#stopped.signal, (result) => reader.page(result))
          : [];
        if (!this.#stopped.signal.aborted) this.#wasRead(kind, items, reader, has);
      } while (mark.again);
      this.#listFault = undefined;
    } catch (error) {
      this.#listFailed(kind, error);
    } finally {
      this.#refreshing.delete(kind);
    }
  }

  #wasRead(kind: ListKind, items: readonly Listed[], reader: FreshnessReader, has: boolean): void {
    const { name, target } = this.spec;
    if (this.#intro?.era !== "modern") {
      this.#toolProblems = [];
      this.#deps.events.onList(name, kind, items);
      return;
    }
    let kept = items;
    if (kind === "tools" && target.kind === "http") {
      const checked = this.#toolHeaders.learn(items);
      kept = checked.kept;
      for (const problem of checked.problems) {
        if (!this.#toolProblems.includes(problem)) this.#deps.log("warn", `server "${name}": ${problem}`);
      }
      this.#toolProblems = checked.problems;
    }
    if (has) this.#rereads.wasRead(kind, items, reader.freshness.ttlMs);
    this.#deps.events.onList(name, kind, kept, reader.freshness);
  }

  /** A list's time is over; it is read again where nothing else would tell of a change. */
  #reread(kind: ListKind): void {
    if (this.#intro?.era !== "modern" || this.#shared.state !== "ready" || this.#shared.hears(kind)) return;
    void this.#refresh(this.#shared, kind);
  }

  #problem(text: string): void {
    if (this.#problems.has(text) || this.#problems.size >= MAX_PROBLEMS) return;
    this.#problems.add(text);
    this.#deps.log("warn", `server "${this.spec.name}": ${text}`);
  }

  #listFailed(kind: ListKind, error: unknown): void {
    if (this.#stopped.signal.aborted) return;
    const { onList } = this.#deps.events;
    // Some servers declare `resources` and know nothing of templates: an empty list, not a fault.
    if (error instanceof ServerError && error.code === -32601) {
      onList.call(this.#deps.events, this.spec.name, kind, []);
      return;
    }
    this.#listFault = `Its ${kind} could not be read: ${error instanceof Error ? error.message : String(error)}`;
    this.#deps.log("warn", `server "${this.spec.name}": ${this.#listFault}`);
  }

  #notified(supervised: Supervised, message: NotificationMessage, caller: Caller | undefined): void {
    const kinds = changedKinds(message.method);
    for (const kind of kinds) void this.#refresh(supervised, kind);
    if (kinds.length === 0) this.#deps.events.onNotification(this.spec.name, message, caller);
  }

  /** A server that has never been up in this life is tried again without a call. */
  #scheduleRetry(): void {
    const { state, lastFault } = this.#shared;
    if (state !== "backoff") return;
    this.#firstTry.resolve();
    if (this.#listed || this.#retryTimer !== undefined || this.#stopped.signal.aborted) return;
    const wait =
      lastFault?.code === "unauthorized"
        ? UNAUTHORIZED_RETRY_MS
        : Math.min(FIRST_RETRY_MS * 2 ** this.#retries++, LAST_RETRY_MS);
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = undefined;
      this.#shared.ensure();
    }, wait);
    this.#retryTimer.unref();
  }
}

function pickInfo(info: Record<string, unknown>): { name?: string; version?: string } {
  const { name, version } = info;
  return {
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof version === "string" ? { version } : {}),
  };
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
