// One server of the config: its connection, or one for each session, and when its lists are read. An HTTP server that
// all share may have extra sessions (extra-sessions.ts). driver.ts starts it again, lists/ reads.

import type { AgentProfile, Caller } from "../contracts/caller.js";
import type { OwnName } from "../contracts/names.js";
import type { Isolation, ServerSpec } from "../contracts/server-spec.js";
import type { ServerHandle } from "../contracts/servers.js";
import type { ServerState, ServerStatus } from "../contracts/status.js";
import type { Freshness, Listed, ListKind, ServerIntro, Upstream } from "../contracts/upstream.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import type { NotificationMessage } from "../protocol/message.js";
import type { Redactor } from "../runtime/redact/redactor.js";
import { redactorFor } from "../runtime/redact/secrets-of.js";
import { deferred } from "../runtime/wait.js";
import type { AboutTask } from "./connection/from-server.js";
import { ServerDriver, type ToolsRead } from "./driver.js";
import { declared, EVERY_CAPABILITY, shareable } from "./era/handshake.js";
import { type EraMemory, ProcessEras } from "./era/verdict.js";
import { ExtraSessions } from "./extra-sessions.js";
import type { CallSender } from "./link/own-call.js";
import { cardWithoutSecrets } from "./link/safe-fault.js";
import { listRetryMs, ToldFaults } from "./lists/failed-reads.js";
import { EVERY_LIST, ServerLists } from "./lists/lists.js";
import { changedKinds, hasList, listKinds } from "./lists/read.js";
import { Renewals } from "./lists/renewals.js";
import { hashOf, Rereads } from "./lists/rereads.js";
import { ToolsCheck } from "./lists/tools-check.js";
import { isOwnNotification } from "./modern/side.js";
import { ToolHeaders } from "./modern/tool-headers.js";
import { readCard } from "./server-card.js";
import type { ServerDeps } from "./server-deps.js";
import { statusOf } from "./server-status.js";
import { StateLog } from "./state-log.js";
import { Breaker } from "./supervise/breaker.js";
import { makeRoom } from "./supervise/places.js";
import { noRoom, stopped } from "./supervise/refusals.js";
import { Repeatable } from "./supervise/repeatable.js";
import { StartTurns } from "./supervise/start-turns.js";

/** So many different problems are kept for `status`; more would not be read. */
const MAX_PROBLEMS = 20;

export class UpstreamServer implements ServerHandle {
  readonly spec: ServerSpec;
  readonly name: string;
  readonly isolation: Isolation;
  readonly #deps: ServerDeps;
  readonly #redactor: Redactor;
  /** The connection that all share; where each session has its own, this one reads the lists and is then closed. */
  readonly #shared: ServerDriver;
  readonly #bySession = new Map<string, ServerDriver>();
  /** Undefined where there is one session for all: a child, or an entry that says what agents can be asked. */
  readonly #extra: ExtraSessions | undefined;
  /** The ends of connections whose sessions have ended; stop() waits for them. */
  readonly #ending = new Set<Promise<void>>();
  readonly #lists: ServerLists;
  readonly #eras: EraMemory;
  readonly #toolHeaders = new ToolHeaders();
  readonly #toolsCheck: ToolsCheck;
  readonly #isPinned: boolean;
  readonly #rereads: Rereads;
  readonly #renewals: Renewals;
  readonly #calls: { ended: number; readonly listEvents: ServerDeps["listEvents"] };
  readonly #hashes = new Map<ListKind, string>();
  readonly #breaker: Breaker;
  readonly #repeatable: Repeatable;
  readonly #starts = new StartTurns();
  readonly #after: Promise<void> | undefined;
  #card: ServerStatus["card"];
  #readsCard = false;
  /** True once an agent or a program wanted it; until then it is started for its lists only. */
  #wanted = false;
  /** How many references programs have to it. */
  refs = 0;
  /** What is wrong with its tools and its connection, though it works. */
  #toolProblems: readonly string[] = [];
  readonly #problems = new Set<string>();
  #stopped = false;
  #intro: ServerIntro | undefined;
  #retries = 0;
  #retry: { readonly timer: NodeJS.Timeout; readonly dueMs: number } | undefined;
  readonly #told = new StateLog((level, text, facts) => this.#log(level, text, facts));
  #firstTry = deferred();

  /** `after` resolves at the end of the server whose place it takes; nothing is started before. */
  constructor(spec: ServerSpec, deps: ServerDeps, after?: Promise<void>) {
    this.spec = spec;
    this.name = spec.name;
    this.isolation = spec.isolation;
    this.#isPinned = spec.trust === "pinned";
    this.#deps = deps;
    this.#calls = { ended: 0, listEvents: deps.listEvents };
    this.#redactor = redactorFor(spec.target);
    this.#after = after;
    this.#breaker = new Breaker(spec.supervision.breaker, {
      onTurn: (circuit, text) => {
        deps.context.lifecycle?.turned?.(spec.name, circuit);
        this.#log(circuit === "open" ? "warn" : "info", text, { circuit });
      },
      onAnswers: () => deps.context.lifecycle?.answers?.(spec.name),
    });
    this.#repeatable = new Repeatable(spec);
    this.#eras = deps.eras ?? new ProcessEras();
    this.#rereads = new Rereads(deps.context.random, (kind) => this.#reread(kind));
    const faults = new ToldFaults({
      tell: (text, facts) => this.#log("warn", text, facts),
      retryInMs: () => this.#retryInMs,
    });
    this.#lists = new ServerLists({
      onBegin: (kind) => this.#renewals.begun(kind),
      refusal: (kind, items) => deps.events.listRefusal?.(spec.name, kind, items),
      onList: (kind, items, freshness, promisedMs) => this.#wasRead(kind, items, freshness, promisedMs),
      onFailed: (kind) => this.#renewals.failed(kind),
      onFault: (kind, reason) => faults.failed(kind, reason),
    });
    this.#renewals = new Renewals({
      lists: this.#lists,
      now: deps.context.now,
      calls: this.#calls,
      reader: (kind) => this.#readerOf(kind),
      read: (reader, kind, isAwaited) => this.#read(reader, [kind], isAwaited),
      isAnnounced: (kind) => this.#isAnnounced(kind),
      isGateway: spec.target.kind === "mailbox",
      gaps: (kind) => this.#listerOf(kind).gaps,
    });
    this.#toolsCheck = new ToolsCheck({
      lists: this.#lists,
      shownHash: () => this.#hashes.get("tools"),
      readShown: () => this.#readShown(),
      forAgents: (reason) => this.#redactor.forAgents(reason),
    });
    this.#shared = this.#drive(undefined);
    const { target, isolation, era, declare } = spec;
    const isByProfile = target.kind !== "stdio" && isolation === "shared" && era !== "modern" && declare === undefined;
    if (isByProfile) this.#extra = this.#makeExtra();
  }

  get intro(): ServerIntro | undefined {
    return this.#intro;
  }

  mayRepeat(method: string, subject: OwnName | undefined): boolean {
    return this.#repeatable.has({ method, subject });
  }

  /** Starts it in the background. A lazy one is started only where nothing is known of it. */
  start(): void {
    if (this.spec.card !== undefined) void this.#learnCard();
    if (this.#mayWait) this.#firstTry.resolve();
    else this.#shared.ensure();
  }

  /** Somebody wants it up, lazy or not. */
  ensure(): void {
    if (this.#stopped) throw stopped(this.spec.name);
    if (!this.listed && this.#mayWait) this.#expectFirstTry();
    this.#wanted = true;
    this.#shared.ensure();
  }

  /** What was left alone for being lazy has not been tried: the attempt that now begins is the first. */
  #expectFirstTry(): void {
    const { resolve } = this.#firstTry;
    this.#firstTry = deferred();
    void this.#firstTry.promise.then(resolve);
  }

  get #mayWait(): boolean {
    const { name, supervision } = this.spec;
    return supervision.lazy && !this.#wanted && (this.listed || this.#deps.isKnown?.(name) === true);
  }

  /** Resolves when the first attempt to read its lists has ended, either way. */
  get firstTry(): Promise<void> {
    return this.#firstTry.promise;
  }

  /** The lists were read from the server since the gateway started, and are good. */
  get listed(): boolean {
    return this.#lists.complete;
  }

  renew(kind: ListKind, why: "asked" | "missed", nowMs?: number): Promise<void> | undefined {
    return this.#renewals.renew(kind, why, nowMs);
  }

  /**
   * The connection to read a list from that the server has, if it is up and does well. What the process of one session
   * has come to list is that session's, and is read when it announces it, not because somebody else asks.
   */
  #readerOf(kind: ListKind): ServerDriver | undefined {
    const { capabilities } = this.#intro ?? {};
    if (capabilities === undefined || !hasList(capabilities, kind)) return undefined;
    if (this.#stopped || this.#breaker.circuit !== "closed") return undefined;
    const lister = this.#listerOf(kind);
    return lister.isReady ? lister : undefined;
  }

  /** The connection whose list is the server's: the shared one, unless a session beside it told of one of its own. */
  #listerOf(kind: ListKind): ServerDriver {
    return this.#extra?.listerOf(kind) ?? this.#shared;
  }

  /** Whether changes of the list are told, and heard. Legacy servers are taken at their word. */
  #isAnnounced(kind: ListKind): boolean {
    if (!this.#listerOf(kind).hears(kind)) return false;
    if (this.#intro?.era === "modern") return true;
    const capability = this.#intro?.capabilities[kind === "resourceTemplates" ? "resources" : kind];
    return isObject(capability) && capability["listChanged"] === true;
  }

  /** Why it is not up, or has not shown what it has, as agents may hear it. */
  get trouble(): string | undefined {
    const { fault } = this.#lists;
    return this.#shared.lastFault?.message ?? (fault === undefined ? undefined : this.#redactor.forAgents(fault));
  }

  /** Its last starts or calls failed, and nothing of it is under way that a new start would end. */
  get isFailing(): boolean {
    const { state } = this.#shared;
    // Each list asks it of each server, nearly all of which are up and do well.
    if (state === "ready" && this.#breaker.circuit === "closed") return false;
    const { failedStarts, inFlight } = this.#shared;
    if (inFlight > 0 || state === "starting") return false;
    return state === "ready" || failedStarts > 0 || state === "ejected";
  }

  /** What its calls failed for is mended: the next one is tried, however long others were to be refused. */
  tryNow(): void {
    this.#breaker.tryNow(this.#deps.context.now());
  }

  /** Its way or our credential is another now: whether it is still reached, and what it shows, is seen by its lists. */
  readListsAgain(): void {
    if (this.#intro === undefined || this.#shared.state !== "ready") return;
    for (const kind of listKinds(this.#intro.capabilities)) void this.#read(this.#listerOf(kind), [kind], true);
  }

  get isStopped(): boolean {
    return this.#stopped;
  }

  upstream(caller: Caller): Upstream {
    this.#wanted = true;
    if (this.spec.isolation === "shared") return this.#extra === undefined ? this.#shared : this.#sessionFor(caller);
    if (this.#stopped) throw stopped(this.spec.name);
    const existing = this.#bySession.get(caller.sessionKey);
    if (existing !== undefined && (existing.isAlive || existing.inFlight > 0)) return existing;
    this.#makeRoom(caller);
    if (existing !== undefined) return existing;
    const own = this.#drive(caller);
    this.#bySession.set(caller.sessionKey, own);
    return own;
  }

  /** Room for a connection of this caller's: what is idle gives way. Throws a Fault where there is none. */
  #makeRoom({ principal, sessionKey }: Caller): void {
    const { name, supervision } = this.spec;
    const { sessionConnections } = supervision;
    const others = [...this.#bySession].filter(([key]) => key !== sessionKey);
    const drivers = others.map(([, driver]) => driver);
    const ends = makeRoom(drivers, principal.id, sessionConnections, this.#deps.context.now());
    if (ends === undefined) throw noRoom(name, sessionConnections);
    if (ends.length === 0) return;
    for (const [key, driver] of others) if (ends.includes(driver)) this.sessionClosed(key);
  }

  /** An HTTP server's session for this caller: of its profile, opened if need be, or the shared one. */
  #sessionFor(caller: Caller): ServerDriver {
    const profile = this.#ownProfile(caller);
    if (profile === undefined || this.#stopped) return this.#shared;
    const session = this.#extra?.obtain(profile) ?? this.#shared;
    // The lists are read by the shared one, which nobody may have called.
    if (session.uses === 0 && !this.listed) this.#shared.ensure();
    return session;
  }

  /** The profile by which a caller has another session than the shared one; undefined where it has not. */
  #ownProfile(caller: Caller): AgentProfile | undefined {
    const intro = this.#intro;
    // A modern agent says with each call to a modern server what it can be asked.
    if (caller.era === "modern" && (intro === undefined || intro.era === "modern")) return undefined;
    const { profile } = caller;
    const isShared = intro !== undefined && intro.era === undefined && profile === this.#deps.soleAgent?.();
    return isShared ? undefined : profile;
  }

  /** The connections that are there now, for what goes to all of them. */
  get connections(): Iterable<ServerDriver> {
    if (this.spec.isolation === "session") return this.#bySession.values();
    return this.#extra === undefined ? [this.#shared] : [this.#shared, ...this.#extra.all];
  }

  sessionConnection(session: Caller): ServerDriver | undefined {
    if (this.spec.isolation === "session") return this.#bySession.get(session.sessionKey);
    const profile = this.#extra === undefined ? undefined : this.#ownProfile(session);
    return (profile === undefined ? undefined : this.#extra?.find(profile)) ?? this.#shared;
  }

  sessionClosed(sessionKey: string): void {
    const own = this.#bySession.get(sessionKey);
    if (own === undefined) return;
    this.#bySession.delete(sessionKey);
    this.#end(own);
  }

  #end(own: ServerDriver): void {
    const ending = own.stop().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  tick(nowMs: number): void {
    this.#shared.tick(nowMs);
    for (const own of this.#bySession.values()) own.tick(nowMs);
    this.#renewals.tick(nowMs);
    this.#extra?.tick(nowMs);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#lists.stop();
    this.#rereads.stop();
    clearTimeout(this.#retry?.timer);
    this.#retry = undefined;
    this.#firstTry.resolve();
    for (const sessionKey of [...this.#bySession.keys()]) this.sessionClosed(sessionKey);
    for (const extra of this.#extra?.all ?? []) this.#end(extra);
    await Promise.all([this.#shared.stop(), ...this.#ending]);
  }

  status(counts: ServerStatus["counts"]): ServerStatus {
    const own = [this.#shared, ...this.#bySession.values()];
    return statusOf(
      {
        spec: this.spec,
        own,
        all: [...own, ...(this.#extra?.all ?? [])],
        intro: this.#intro,
        lists: this.#lists,
        breaker: this.#breaker,
        redactor: this.#redactor,
        retryInMs: this.#retryInMs,
        refs: this.refs,
        card: this.#card,
        problems: [...this.#toolProblems, ...this.#problems, ...(this.#extra?.problems ?? [])],
      },
      counts,
      this.#deps.context.now(),
    );
  }

  /** What the server is told that agents can be asked; `starter` is whose call starts it. */
  #capabilitiesFor(owner: Caller | undefined, starter: Caller | undefined): JsonObject {
    const { declare, supervision, target } = this.spec;
    if (declare !== undefined) return declared(declare);
    // A modern agent says with each request what it can be asked, so its connection is told as little as a shared one.
    if (owner !== undefined && owner.era === "legacy") return owner.capabilities;
    const sole = owner === undefined ? this.#deps.soleAgent?.() : undefined;
    if (sole !== undefined) return shareable(sole.capabilities);
    const isForStarter =
      owner === undefined && supervision.lazy && target.kind === "stdio" && starter?.era === "legacy";
    const isAlike = isForStarter && this.#deps.agents?.areAllLike(starter) === true;
    return isAlike ? shareable(starter.capabilities) : EVERY_CAPABILITY;
  }

  #makeExtra(): ExtraSessions {
    const { agents, clientInfo, context, events } = this.#deps;
    const { name } = this.spec;
    return new ExtraSessions({
      spec: this.spec,
      clientInfo,
      context,
      shared: this.#shared,
      parts: { breaker: this.#breaker, calls: this.#calls, repeatable: this.#repeatable, after: this.#after },
      aboutTask: this.#aboutTask,
      hasAgents: (profile) => agents?.hasProfile(profile) ?? true,
      onReady: (intro, session) => {
        events.onSession?.(name, intro, session);
        return this.#isPinned ? this.#toolsCheck.again() : undefined;
      },
      readTools: () => this.#toolsCheck.again(),
      onNotification: (session, message, caller) => this.#notified(session, message, caller),
      onState: () => events.onState(name),
      onListsLeft: (kinds) => this.#listsLeft(kinds),
      onUnused: (session) => this.#end(session),
      warn: (text) => this.#log("warn", text),
    });
  }

  readonly #aboutTask: AboutTask = (message, caller) => {
    const { events } = this.#deps;
    return events.aboutTask === undefined ? message : events.aboutTask(this.spec.name, message, caller);
  };

  #drive(owner: Caller | undefined): ServerDriver {
    const { clientInfo, context, events } = this.#deps;
    let from: ServerState = "idle";
    const driver: ServerDriver = new ServerDriver(
      this.spec,
      owner,
      { clientInfo, capabilities: EVERY_CAPABILITY },
      context,
      {
        onReady: (intro) => this.#ready(driver, intro, owner),
        readTools: () => (owner === undefined ? this.#toolsCheck.again() : this.#toolsCheck.ofSession(driver)),
        onNotification: (message, caller) => this.#notified(driver, message, caller ?? owner),
        aboutTask: this.#aboutTask,
        onClosed: (fault) => this.#extra?.closed(driver, fault),
        onState: () => {
          events.onState(this.spec.name);
          if (driver === this.#shared) this.#scheduleRetry();
          const [before, retryInMs] = [from, driver === this.#shared ? this.#retryInMs : undefined];
          from = driver.state;
          this.#told.changed(driver, before, driver.nextTryInMs ?? retryInMs);
        },
      },
      {
        modern: {
          eras: this.#eras,
          toolHeaders: this.#toolHeaders,
          random: context.random,
          onProblem: (text) => this.#problem(text),
        },
        breaker: this.#breaker,
        calls: this.#calls,
        repeatable: this.#repeatable,
        starts: this.#starts,
        after: this.#after,
        capabilities: (starter) => this.#capabilitiesFor(owner, starter),
      },
    );
    return driver;
  }

  /** Whatever a server had a part in is logged without its secrets. */
  #log(level: "info" | "warn", text: string, facts?: object): void {
    const { name } = this.spec;
    this.#deps.log(level, `server "${name}": ${this.#redactor.redact(text)}`, { server: name, ...facts });
  }

  /** Returns what calls of tools wait for. */
  #ready(driver: ServerDriver, intro: ServerIntro, owner: Caller | undefined): ToolsRead | undefined {
    this.#intro = intro;
    this.#extra?.sharedIsUp();
    this.#problems.clear();
    if (!this.#readsCard) void this.#learnCard();
    this.#deps.events.onIntro(this.spec.name, intro, driver, owner);
    const tools = owner === undefined || !this.listed ? this.#readAll(driver, intro) : undefined;
    if (!this.#isPinned) return undefined;
    return owner === undefined ? this.#toolsCheck.after(tools) : this.#toolsCheck.ofSession(driver, tools);
  }

  /** Returns the reading of the tools. */
  #readAll(driver: ServerDriver, intro: ServerIntro): Promise<void> {
    const has = listKinds(intro.capabilities);
    const lister = (kind: ListKind) => (driver === this.#shared ? this.#listerOf(kind) : driver);
    const read = (kind: ListKind, isAwaited?: boolean) =>
      this.#lists.read(lister(kind), kind, has.includes(kind), isAwaited);
    const tools = read("tools", this.#isPinned);
    void this.#afterAll([tools, ...EVERY_LIST.filter((kind) => kind !== "tools").map((kind) => read(kind))]);
    return tools;
  }

  async #afterAll(readings: readonly Promise<void>[]): Promise<void> {
    await Promise.all(readings);
    this.#firstTry.resolve();
    this.#deps.events.onState(this.spec.name);
    this.#afterReading();
  }

  /** The list that agents are shown, once more and at once; once again where its connection was lost by that. */
  async #readShown(): Promise<void> {
    const has = this.#intro === undefined || hasList(this.#intro.capabilities, "tools");
    const lister = this.#listerOf("tools");
    await this.#lists.read(lister, "tools", has, true);
    const isLost = !this.#lists.isRead("tools") && !lister.isReady;
    if (isLost) await this.#lists.read(this.#listerOf("tools"), "tools", has, true);
    this.#afterReading();
  }

  async #read(driver: CallSender, kinds: readonly ListKind[], isAwaited = false): Promise<void> {
    await Promise.all(kinds.map((kind) => this.#lists.read(driver, kind, true, isAwaited)));
    this.#afterReading();
  }

  async #readFailed(): Promise<void> {
    await Promise.all(this.#lists.failed.map((kind) => this.#lists.read(this.#listerOf(kind), kind)));
    this.#afterReading();
  }

  #afterReading(): void {
    if (this.listed) {
      this.#retries = 0;
      clearTimeout(this.#retry?.timer);
      this.#retry = undefined;
    } else this.#scheduleRetry();
    // It was started for the lists alone: each session has its own connection, or nobody wants it yet.
    const isLazy = this.spec.supervision.lazy && !this.#wanted && this.listed;
    if (this.spec.isolation === "session" || isLazy) void this.#shared.rest();
  }

  /** `freshness` is what the server said of the list; undefined for a list that it does not have. */
  #wasRead(
    kind: ListKind,
    items: readonly Listed[],
    freshness: Freshness | undefined,
    promisedMs: number | undefined,
  ): void {
    const { name, target } = this.spec;
    const hash = hashOf(items);
    const isModern = this.#intro?.era === "modern";
    this.#renewals.ended(kind, this.#hashes.get(kind) !== hash, isModern ? promisedMs : undefined);
    this.#hashes.set(kind, hash);
    if (kind === "tools") this.#repeatable.learn(items);
    if (!isModern) {
      this.#toolProblems = [];
      this.#deps.events.onList(name, kind, items);
      return;
    }
    let kept = items;
    if (kind === "tools" && target.kind === "http") {
      const checked = this.#toolHeaders.learn(items);
      kept = checked.kept;
      for (const problem of checked.problems) {
        if (!this.#toolProblems.includes(problem)) this.#log("warn", problem);
      }
      this.#toolProblems = checked.problems;
    }
    if (freshness !== undefined) this.#rereads.wasRead(kind, hash, freshness.ttlMs);
    this.#deps.events.onList(name, kind, kept, freshness);
  }

  /** A list's time is over; it is read again where nothing else would tell of a change. */
  #reread(kind: ListKind): void {
    if (this.#intro?.era !== "modern" || this.#shared.state !== "ready" || this.#shared.hears(kind)) return;
    void this.#read(this.#shared, [kind]);
  }

  #problem(text: string): void {
    if (this.#problems.has(text) || this.#problems.size >= MAX_PROBLEMS) return;
    this.#problems.add(text);
    this.#log("warn", text);
  }

  /** The reading may be paused for; until it begins, whoever asks is to know that what we have is old. */
  #readChanged(driver: CallSender, kinds: readonly ListKind[]): Promise<void> {
    for (const kind of kinds) this.#renewals.changed(kind);
    return this.#read(driver, kinds);
  }

  #notified(driver: ServerDriver, message: NotificationMessage, caller: Caller | undefined): void {
    const kinds = changedKinds(message.method);
    if (kinds.length > 0) {
      if (!isOwnNotification(message)) this.#deps.events.onListChanged?.(this.spec.name, kinds);
      if (this.#extra === undefined) void this.#readChanged(driver, kinds);
      else {
        const isModern = this.#intro?.era === "modern";
        this.#extra.changed(driver, kinds, isModern, (reader, some) => this.#readChanged(reader, some));
      }
    } else this.#deps.events.onNotification(this.spec.name, message, caller, driver);
  }

  /** What a session had listed of its own is gone with it. One that is not up reads all its lists once it is. */
  #listsLeft(kinds: readonly ListKind[]): void {
    if (!this.#stopped && this.#shared.isReady) void this.#readChanged(this.#shared, kinds);
  }

  get #retryInMs(): number | undefined {
    return this.#retry === undefined ? undefined : Math.max(0, this.#retry.dueMs - this.#deps.context.now());
  }

  /**
   * A server that has not been up since the gateway started, or did not give its lists, is tried again without a call.
   */
  #scheduleRetry(): void {
    const { state, lastFault } = this.#shared;
    if (state === "backoff" || state === "ejected") this.#firstTry.resolve();
    const isDue = this.#lists.failed.length > 0 || (state === "backoff" && !this.listed);
    if (!isDue || state === "ejected" || this.#mayWait || this.#retry !== undefined || this.#stopped) return;
    const isRefused = lastFault?.code === "unauthorized";
    const wait = listRetryMs(this.spec.supervision, this.#retries, lastFault?.code);
    if (!isRefused) this.#retries++;
    const timer = setTimeout(() => this.#tryAgain(), wait);
    timer.unref();
    this.#retry = { timer, dueMs: this.#deps.context.now() + wait };
  }

  async #learnCard(): Promise<void> {
    this.#readsCard = true;
    const card = await readCard(this.spec, this.#deps.openRequester);
    this.#card = card === undefined ? undefined : cardWithoutSecrets(card, this.#redactor);
  }

  #tryAgain(): void {
    this.#retry = undefined;
    if (this.#shared.state === "ready") void this.#readFailed();
    else if (!this.listed) this.#shared.ensure();
  }
}
