// Drives one supervisor: keeps one connection to a server alive on demand, and holds calls while it starts.

import type { Caller } from "../contracts/caller.js";
import type { ServerSpec } from "../contracts/server-spec.js";
import type { ServerConnection } from "../contracts/servers.js";
import type { ListKind, ServerIntro, UpstreamCall } from "../contracts/upstream.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import type { NotificationMessage } from "../protocol/message.js";
import { faultReply } from "../protocol/reply.js";
import { systemClock } from "../runtime/clock.js";
import { isRedacted } from "../runtime/redact/redactor.js";
import { errorLine } from "../runtime/words/error-lines.js";
import { Connection } from "./connection/connection.js";
import type { AboutTask } from "./connection/from-server.js";
import type { CallCount } from "./connection/in-flight.js";
import type { HandshakeOffer } from "./era/handshake.js";
import { takenBack } from "./link/cancelled-call.js";
import type { LinkDescription } from "./link/link.js";
import { ask } from "./link/own-call.js";
import type { ModernParts } from "./modern/side.js";
import type { UpstreamContext } from "./server-deps.js";
import { Breaker, type LateCall } from "./supervise/breaker.js";
import { BreakerTrial } from "./supervise/breaker-trial.js";
import { goesBack, HeldCalls } from "./supervise/held-calls.js";
import { Idleness, Liveness } from "./supervise/liveness.js";
import { down, ejected, moved, stopped, unchecked } from "./supervise/refusals.js";
import { Repeatable } from "./supervise/repeatable.js";
import type { StartTurns } from "./supervise/start-turns.js";
import { Supervisor, type SupervisorState } from "./supervise/supervisor.js";

/** Resolves, never rejects, when the tools have been read: with why they could not be. */
export type ToolsRead = Promise<string | undefined>;

export interface DriverEvents {
  /** Returns what calls of tools wait for; undefined where they need not. */
  onReady(intro: ServerIntro): ToolsRead | undefined;
  /** The tools could not be read, and are called: they are read again. */
  readTools?(): ToolsRead;
  onNotification(message: NotificationMessage, caller: Caller | undefined): void;
  readonly aboutTask?: AboutTask | undefined;
  /** The server started, failed, died or was stopped: `status` has changed. */
  onState(): void;
  /** An attempt to start it failed. */
  onFailed?(fault: Fault): void;
  /** It was up, and its connection ended. */
  onClosed?(fault: Fault): void;
}

/** What the connections of one server share. */
export interface DriverParts {
  readonly modern?: ModernParts | undefined;
  readonly breaker?: Breaker;
  readonly repeatable?: Repeatable;
  /** Who may start now, where many may want to at once. */
  readonly starts?: StartTurns;
  readonly calls?: CallCount;
  /** Resolves at the end of what ran before in its place: nothing is started until then. */
  readonly after?: Promise<void> | undefined;
  /** What the server is told that agents can do, by whose call starts it; without it, what the offer says. */
  readonly capabilities?: (starter: Caller | undefined) => JsonObject;
  /** Takes the calls that this one cannot be started for. */
  readonly instead?: ServerDriver;
}

export class ServerDriver implements ServerConnection {
  readonly server: string;
  readonly #spec: ServerSpec;
  readonly #owner: Caller | undefined;
  readonly #offer: HandshakeOffer;
  readonly #context: UpstreamContext;
  readonly #events: DriverEvents;
  readonly #modern: ModernParts | undefined;
  readonly #supervisor: Supervisor;
  #since: { readonly ms: number; readonly at: string } | undefined;
  readonly #breaker: Breaker;
  readonly #trial: BreakerTrial;
  readonly #repeatable: Repeatable;
  readonly #starts: StartTurns | undefined;
  readonly #calls: CallCount | undefined;
  readonly #idleness: Idleness;
  readonly #capabilities: DriverParts["capabilities"];
  readonly #instead: ServerDriver | undefined;
  #gaveWay = false;
  #uses = 0;
  readonly #held: HeldCalls;
  #connection: Connection | undefined;
  /** The connection, once every call may be sent on it: it is up, and its tools are known where they are pinned. */
  #checked: Connection | undefined;
  /** The connection whose tools are being read. */
  #checking: Connection | undefined;
  #liveness = new Liveness();
  #attempt: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Connections that are being closed; stop() waits for them. */
  readonly #closing = new Set<Promise<void>>();
  #lastDescription: LinkDescription | undefined;
  lastFault: Fault | undefined;
  /** Since when the connection is up; undefined while none is. */
  #readyMs: number | undefined;
  readyAfterMs: number | undefined;
  readonly noise = { count: 0, sample: undefined as string | undefined };

  constructor(
    spec: ServerSpec,
    owner: Caller | undefined,
    offer: HandshakeOffer,
    context: UpstreamContext,
    events: DriverEvents,
    parts: DriverParts = {},
  ) {
    this.#modern = parts.modern;
    this.server = spec.name;
    this.#held = new HeldCalls(spec.name);
    this.#spec = spec;
    this.#owner = owner;
    this.#offer = offer;
    this.#context = context;
    this.#events = events;
    this.#supervisor = new Supervisor(spec.supervision, context.random);
    this.#breaker = parts.breaker ?? new Breaker(spec.supervision.breaker);
    this.#trial = new BreakerTrial(spec.name, this.#breaker, context.now, () => events.onState());
    this.#repeatable = parts.repeatable ?? new Repeatable(spec);
    this.#starts = parts.starts;
    this.#calls = parts.calls;
    this.#idleness = new Idleness(spec.supervision, context.now());
    this.#capabilities = parts.capabilities;
    this.#instead = parts.instead;
    if (parts.after !== undefined) this.#track(parts.after);
  }

  /** Since when it is ready, or is not though it was wanted: by the wall, worked out once for each change. */
  get since(): string | undefined {
    const ms = this.#supervisor.sinceMs;
    if (ms === undefined) return undefined;
    if (this.#since?.ms !== ms) {
      this.#since = { ms, at: new Date(systemClock.wall() + ms - this.#context.now()).toISOString() };
    }
    return this.#since.at;
  }

  get state(): SupervisorState {
    return this.#supervisor.state;
  }

  get isReady(): boolean {
    return this.#supervisor.state === "ready";
  }

  /** A process or a connection is there, or is being started. */
  get isAlive(): boolean {
    return this.#connection !== undefined;
  }

  /** When it was last used. */
  get usedMs(): number {
    return this.#idleness.usedAt(this.#context.now(), this.#uses);
  }

  /** Whose it is, where it is not shared. */
  get principal(): string {
    return this.#owner?.principal.id ?? "";
  }

  get restarts(): number {
    return this.#supervisor.restarts;
  }

  /** Counts failed starts and early deaths in a row. */
  get failedStarts(): number {
    return this.#supervisor.failedStarts;
  }

  /** Counts the calls of agents. */
  get uses(): number {
    return this.#uses;
  }

  /** Of those in flight, how many wait for the server to come up. */
  get waiting(): number {
    return this.#held.size;
  }

  get inFlight(): number {
    return (this.#connection?.inFlight ?? 0) + this.#held.size;
  }

  /** Whether the server, as it is connected now, tells of changes of this list. */
  hears(kind: ListKind): boolean {
    return this.#connection?.hears(kind) ?? true;
  }

  /** Counts the times in which the server, as it is connected now, could not be heard. */
  get gaps(): number {
    return this.#connection?.gaps ?? 0;
  }

  get journal(): string | undefined {
    return this.#connection?.journal;
  }

  get nextTryInMs(): number | undefined {
    const due = this.#supervisor.nextWakeMs;
    return due === undefined ? undefined : Math.max(0, due - this.#context.now());
  }

  describe(): LinkDescription | undefined {
    return this.#connection?.describe() ?? this.#lastDescription;
  }

  send(call: UpstreamCall): void {
    if (call.caller !== undefined) {
      this.#uses++;
      if (this.#breaker.circuit !== "closed") {
        this.#tryOne(call);
        return;
      }
    }
    this.#dispatch(call);
  }

  /** Starts the server if nothing runs yet, though nobody calls. */
  ensure(): void {
    if (this.#supervisor.wanted(this.#context.now()) === "start") this.#start();
    else this.#setTimer();
  }

  cancel(call: UpstreamCall, reason: string | undefined): void {
    this.#cancelSent(this.#trial.sent(call), reason);
  }

  #cancelSent(sent: UpstreamCall, reason: string | undefined): void {
    if (this.#held.delete(sent)) {
      sent.reply(faultReply(takenBack(reason, sent.wasSent !== true)));
      return;
    }
    this.#connection?.cancel(sent, reason);
    if (this.#instead !== undefined) this.#instead.#cancelSent(sent, reason);
  }

  /** It opens no connection any more: what waits for one goes out where the others do. */
  giveWay(): void {
    this.#gaveWay = true;
    for (const call of this.#held.takeWaiting(true)) this.#queue(call);
  }

  notify(message: NotificationMessage, from: Caller): void {
    if (this.#supervisor.state === "ready") this.#connection?.notify(message, from);
  }

  async request(method: string, params: JsonObject): Promise<JsonObject> {
    return (await ask(this, method, params, undefined)).result;
  }

  agentProgress(sessionKey: string, message: NotificationMessage): boolean {
    if (this.#connection?.agentProgress(sessionKey, message) === true) return true;
    return this.#instead?.agentProgress(sessionKey, message) ?? false;
  }

  tick(nowMs: number): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    const late = connection.expire(nowMs);
    if (this.#held.size > 0) this.#refuseUnchecked(nowMs);
    if (this.#supervisor.state !== "ready") {
      // Nothing is asked of one that does not stand yet.
      if (late !== undefined) this.#blame(late, true);
      return;
    }
    if (late !== undefined) void this.#judgeLate(connection, late);
    const isBusy = this.inFlight > 0;
    const todo = this.#idleness.look(nowMs, this.#uses, connection.received, isBusy);
    if (todo === "rest") void this.rest();
    if (todo === "ping") void this.#checkPulse(connection);
  }

  /** Closes the connection for now; the next call opens it again. */
  async rest(): Promise<void> {
    const connection = this.#connection;
    if (connection === undefined || this.#supervisor.state !== "ready" || this.inFlight > 0) return;
    this.#supervisor.rested();
    void this.#drop(connection, undefined);
    await Promise.all(this.#closing);
    this.#events.onState();
  }

  /** Stops the server for good. Resolves when the process or the connection is gone. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#supervisor.stop(this.#context.now()) === "close") {
      if (this.#attempt !== undefined) this.#attempt.abort(new Fault("closing", "The attempt was given up."));
      else if (this.#connection !== undefined) void this.#drop(this.#connection, undefined);
    }
    this.#held.refuseAll(new Fault("closing", `Server "${this.server}" was stopped.`));
    await Promise.all(this.#closing);
    this.#events.onState();
  }

  #dispatch(call: UpstreamCall): void {
    // This is the hot path: a ready server whose tools are known needs no verdict.
    if (this.#checked !== undefined) this.#checked.send(call);
    else if (this.#connection === undefined || this.#supervisor.state !== "ready") this.#queue(call);
    else if (call.isOfTool === true) this.#holdForTools(call, this.#connection);
    else this.#connection.send(call);
  }

  #holdForTools(call: UpstreamCall, connection: Connection): void {
    if (this.#held.refusedAsFull(call)) return;
    const nowMs = this.#context.now();
    call.notes?.enter("starting", nowMs);
    this.#held.wait(call, nowMs + this.#spec.callTimeoutMs);
    if (this.#checking !== connection)
      this.#check(connection, this.#events.readTools?.() ?? Promise.resolve(undefined));
  }

  /** Calls of tools go out when the tools of this connection are known: each is judged by them once more. */
  #check(connection: Connection, reading: ToolsRead | undefined): void {
    if (reading === undefined) {
      this.#checked = connection;
      return;
    }
    this.#checking = connection;
    void reading.then((why) => {
      if (this.#checking === connection) this.#checking = undefined;
      if (this.#connection !== connection || this.#supervisor.state !== "ready") return;
      // What could not be read there is read at the next, and calls wait for that.
      if (why !== undefined && connection.isLeaving) return;
      if (why === undefined) this.#checked = connection;
      for (const call of this.#held.takeWaiting(true)) {
        const fault = why === undefined ? call.refusal?.() : unchecked(this.server, why);
        if (fault === undefined) connection.send(call);
        else this.#held.refuse(call, fault);
      }
    });
  }

  /** Calls that waited for the tools as long as a call may take. The list may still come, for those who call later. */
  #refuseUnchecked(nowMs: number): void {
    const fault = unchecked(this.server, `it was not there within ${this.#spec.callTimeoutMs} ms`);
    for (const call of this.#held.takeLate(nowMs)) this.#held.refuse(call, fault);
  }

  /**
   * The breaker is not closed, so one call is tried. Where nothing is started at all, the reason for that says more.
   */
  #tryOne(call: UpstreamCall): void {
    const { state } = this.#supervisor;
    const passed = state === "ejected" || state === "stopped" ? call : this.#trial.admit(call);
    if (passed !== undefined) this.#dispatch(passed);
  }

  #queue(call: UpstreamCall): void {
    if (this.#held.refusedAsFull(call)) return;
    const nowMs = this.#context.now();
    call.notes?.enter("starting", nowMs);
    const verdict = this.#gaveWay ? "refused" : this.#supervisor.wanted(nowMs);
    if (verdict === "refused" && this.#instead !== undefined && (this.#gaveWay || !this.#held.hasReturned(call))) {
      this.#instead.#dispatch(call);
      return;
    }
    if (verdict === "refused") {
      this.#held.refuse(call, this.#supervisor.state === "ejected" ? this.#whyEjected() : stopped(this.server));
      return;
    }
    this.#held.wait(call);
    // What it waits for is no first start, and no rest that it ends.
    if (this.#supervisor.isRestart) call.notes?.mended("restart");
    if (verdict === "start") this.#start();
    else this.#setTimer();
  }

  #start(): void {
    const attempt = new AbortController();
    this.#attempt = attempt;
    const again = this.readyAfterMs === undefined ? "first" : "idle";
    this.#context.lifecycle?.started(this.server, this.#supervisor.isRestart ? "restart" : again);
    const connection = this.#connect();
    this.#connection = connection;
    this.#liveness = new Liveness();
    const startedMs = this.#context.now();
    const opened = this.#open(connection, attempt).then(
      (intro) => this.#started(connection, intro, startedMs),
      (error: unknown) => this.#failed(connection, error),
    );
    this.#track(opened);
    this.#events.onState();
  }

  /**
   * One server never runs twice at once: what ran before is gone, process group and all, before the next one starts.
   */
  async #open(connection: Connection, attempt: AbortController): Promise<ServerIntro> {
    const { connectTimeoutMs } = this.#spec;
    if (this.#closing.size > 0) await Promise.all(this.#closing);
    const late = new Fault("timeout", `It was not ready within ${connectTimeoutMs} ms.`, {
      remedy: 'Is it slow to start, or does it hang? "connectTimeoutMs" in its entry gives it more time.',
    });
    const deadline = setTimeout(() => attempt.abort(late), connectTimeoutMs);
    let done: (() => void) | undefined;
    try {
      done = await this.#starts?.turn(attempt.signal);
      attempt.signal.throwIfAborted();
      return await connection.open(attempt.signal);
    } finally {
      done?.();
      clearTimeout(deadline);
    }
  }

  #connect(): Connection {
    const { held } = this.#context;
    const capabilities = this.#capabilities?.(this.#held.first?.caller);
    const connection: Connection = new Connection(
      {
        spec: this.#spec,
        owner: this.#owner,
        offer: capabilities === undefined ? this.#offer : { ...this.#offer, capabilities },
        now: this.#context.now,
        noise: this.noise,
        makeLink: (events) => this.#context.makeLink(this.#spec, events),
        modern: this.#modern,
        breaker: this.#breaker,
        calls: this.#calls,
        newHolder: held && (() => held.serverHolder(this.server)),
      },
      {
        isRepeatable: (call) => this.#repeatable.has(call),
        onLost: (call, fault) => this.#lost(call, fault),
        onNotification: (message, caller) => this.#events.onNotification(message, caller),
        aboutTask: this.#events.aboutTask,
        onUnsent: (call, fault) => this.#unsent(call, fault),
        onClosed: (fault) => this.#closed(connection, fault),
      },
    );
    return connection;
  }

  #started(connection: Connection, intro: ServerIntro, startedMs: number): Promise<void> | undefined {
    // It was stopped, or went away, in the moment between the handshake and now.
    if (this.#supervisor.state !== "starting") return this.#failed(connection, new Fault("closing", "Stopped."));
    if (connection.closed) {
      return this.#failed(connection, new Fault("unavailable", "The server went away right after the handshake."));
    }
    this.#attempt = undefined;
    const nowMs = this.#context.now();
    if (this.#supervisor.isRestart && this.readyAfterMs !== undefined) this.#context.lifecycle?.cameBack?.(this.server);
    this.#supervisor.started(nowMs);
    this.readyAfterMs = Math.round(nowMs - startedMs);
    this.#readyMs = nowMs;
    this.lastFault = undefined;
    // No call says so yet; but the next may find out.
    this.#breaker.tryNow(nowMs);
    this.#check(connection, this.#events.onReady(intro));
    this.#events.onState();
    for (const call of this.#held.takeWaiting(this.#checked !== undefined)) connection.send(call);
    this.#held.waitUntil(nowMs + this.#spec.callTimeoutMs);
    return undefined;
  }

  /** Resolves when nothing is left of the attempt. */
  #failed(connection: Connection, error: unknown): Promise<void> {
    this.#attempt = undefined;
    // A start is no call: nobody asks what became of it.
    const fault =
      error instanceof Fault ? error.withoutOutcome() : new Fault("unavailable", String(error), { cause: error });
    const gone = this.#drop(connection, fault);
    this.#supervisor.failed(this.#context.now());
    const isEjected = this.#supervisor.state === "ejected";
    const said = errorLine(this.describe()?.stderr?.filter((line) => !isRedacted(line)) ?? []);
    this.#events.onFailed?.(fault);
    if (this.#instead !== undefined) for (const call of this.#held.takeFresh()) this.#instead.#dispatch(call);
    if (fault.reason === "moved") for (const call of this.#held.takeWaiting(true)) this.#requeue(call, fault);
    else this.#held.refuseAll(isEjected ? this.#whyEjected() : down(this.server, fault, said, this.nextTryInMs));
    this.#setTimer();
    this.#events.onState();
    return gone;
  }

  #closed(connection: Connection, fault: Fault): void {
    // While it starts, open() rejects as well, and that is the one that counts.
    if (this.#connection !== connection || this.#supervisor.state === "starting") return;
    // They waited for the tools of a server that died of being asked for them, as far as one can tell.
    const unread = this.#held.takeWaiting(true);
    void this.#drop(connection, fault);
    this.#supervisor.closed(this.#context.now());
    this.#events.onClosed?.(fault);
    this.#setTimer();
    for (const call of this.#held.takeStranded()) this.#queue(call);
    for (const call of unread) this.#requeue(call, fault);
    this.#events.onState();
  }

  /** A call that never left waits for the next connection, or goes back to whoever passed it on. */
  #requeue(call: UpstreamCall, fault: Fault): void {
    if (goesBack(call, fault)) this.#held.refuse(call, moved());
    else if (this.#held.mayReturn(call, fault)) this.#queue(call);
    else this.#held.refuse(call, down(this.server, fault, undefined, this.nextTryInMs));
  }

  /** `fault` is undefined where we close it by our own will. */
  #drop(connection: Connection, fault: Fault | undefined): Promise<void> {
    if (fault !== undefined) this.lastFault = fault;
    if (this.#readyMs !== undefined) {
      this.#context.lifecycle?.disconnected(this.server, this.#context.now() - this.#readyMs, fault?.code);
      this.#readyMs = undefined;
    }
    this.#lastDescription = { ...connection.describe() };
    this.#connection = undefined;
    this.#checked = undefined;
    const gone = connection.close(fault);
    this.#track(gone);
    return gone;
  }

  /** Calls ran out of time. A ping tells whether the server is at fault, or its tools are slow. */
  async #judgeLate(connection: Connection, late: readonly LateCall[]): Promise<void> {
    const isGone = await this.#liveness.isGone(connection, false);
    this.#blame(late, isGone);
    if (isGone) this.#gone(connection);
  }

  #blame(late: readonly LateCall[], isGone: boolean): void {
    const nowMs = this.#context.now();
    for (const call of late) {
      if (isGone) this.#breaker.faulted(call.startedMs, nowMs);
      else this.#breaker.late(call, nowMs);
    }
    this.#trial.pinged(isGone);
  }

  /** Nothing was heard for long: a server that no longer answers a ping, and did before, is closed. */
  async #checkPulse(connection: Connection): Promise<void> {
    if (await this.#liveness.isGone(connection, true)) this.#gone(connection);
  }

  #gone(connection: Connection): void {
    if (this.#connection !== connection || this.#supervisor.state !== "ready") return;
    const message = "It hung: it answered neither its calls nor a ping, and was stopped to be started anew.";
    this.#closed(connection, new Fault("timeout", message));
  }

  /**
   * The call never reached the server. Where the connection goes with it (a session that the server forgot, a child
   * that is dying), it waits for the next one, once only. Links report the call first; the end of the connection
   * follows in the same turn, but for a child, whose last output is read before.
   */
  #unsent(call: UpstreamCall, fault: Fault): void {
    if (goesBack(call, fault) || !this.#held.mayReturn(call, fault)) {
      this.#held.refuse(call, fault);
      return;
    }
    if (this.#spec.target.kind === "stdio" && fault.code === "unavailable" && this.#connection !== undefined) {
      this.#held.strand(call);
      return;
    }
    queueMicrotask(() => {
      if (this.#supervisor.state === "ready" || this.#supervisor.state === "stopped") call.reply(faultReply(fault));
      else this.#queue(call);
    });
  }

  /** A call that may be made twice was lost with its connection: it goes out on the next one, once only. */
  #lost(call: UpstreamCall, fault: Fault): void {
    if (this.#held.hasReturned(call) || this.#supervisor.state === "stopped") {
      call.reply(faultReply(fault));
      return;
    }
    this.#held.returned(call, fault);
    call.repeated?.();
    this.#held.strand(call);
    // The end of the connection follows in the same turn; over HTTP it may well live on.
    queueMicrotask(() => {
      if (this.#held.unstrand(call)) this.#dispatch(call);
    });
  }

  #whyEjected(): Fault {
    return ejected(this.server, this.#spec.supervision.restarts, this.lastFault, this.nextTryInMs);
  }

  #setTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const wait = this.nextTryInMs;
    // A session's own is tried by that session's next call: sessions that nobody uses must not start processes.
    if (wait === undefined || (this.#owner !== undefined && this.#supervisor.state === "ejected")) return;
    this.#timer = setTimeout(() => {
      if (this.#supervisor.wake(this.#context.now()) === "start") this.#start();
      this.#setTimer();
    }, wait);
  }

  #track(closing: Promise<void>): void {
    this.#closing.add(closing);
    void closing.finally(() => this.#closing.delete(closing));
  }
}
