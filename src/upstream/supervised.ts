// Drives one supervisor: keeps one connection to a server alive on demand, and holds calls while it starts.

import type { Caller } from "../caller.js";
import { Fault } from "../protocol/errors.js";
import type { NotificationMessage } from "../protocol/message.js";
import { faultReply } from "../protocol/reply.js";
import type { ListKind, ServerIntro, ServerSpec, Upstream, UpstreamCall } from "../upstream.js";
import { Connection } from "./connection.js";
import type { HandshakeOffer } from "./handshake.js";
import type { Link, LinkDescription, LinkEvents } from "./link.js";
import type { ModernParts } from "./modern-side.js";
import { type Action, Supervisor, type SupervisorState } from "./supervisor.js";

/** Calls that wait for a server to come up. More than this is a queue nobody will live to see served. */
const MAX_WAITING = 1_000;

/** What the drivers of a host share. */
export interface UpstreamContext {
  readonly now: () => number;
  readonly random: () => number;
  readonly makeLink: (spec: ServerSpec, events: LinkEvents) => Link;
}

export interface SupervisedEvents {
  onReady(intro: ServerIntro): void;
  onNotification(message: NotificationMessage, caller: Caller | undefined): void;
  /** Started, failed, died or stopped: `status` has changed. */
  onState(): void;
}

export class Supervised implements Upstream {
  readonly server: string;
  readonly #spec: ServerSpec;
  readonly #owner: Caller | undefined;
  readonly #offer: HandshakeOffer;
  readonly #context: UpstreamContext;
  readonly #events: SupervisedEvents;
  readonly #modern: ModernParts | undefined;
  readonly #supervisor: Supervisor;
  readonly #waiting = new Set<UpstreamCall>();
  /** Calls that a dying child did not take: they wait for its end, and then for the next. */
  readonly #stranded = new Set<UpstreamCall>();
  /** Calls that were given back unsent once: not a second time. */
  readonly #returned = new WeakSet<UpstreamCall>();
  #connection: Connection | undefined;
  #attempt: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Connections that are being closed; stop() waits for them. */
  readonly #closing = new Set<Promise<void>>();
  #lastDescription: LinkDescription | undefined;
  lastFault: Fault | undefined;
  readyAfterMs: number | undefined;
  readonly noise = { count: 0, sample: undefined as string | undefined };

  constructor(
    spec: ServerSpec,
    owner: Caller | undefined,
    offer: HandshakeOffer,
    context: UpstreamContext,
    events: SupervisedEvents,
    modern?: ModernParts,
  ) {
    this.#modern = modern;
    this.server = spec.name;
    this.#spec = spec;
    this.#owner = owner;
    this.#offer = offer;
    this.#context = context;
    this.#events = events;
    this.#supervisor = new Supervisor({ random: context.random });
  }

  get state(): SupervisorState {
    return this.#supervisor.state;
  }

  get restarts(): number {
    return this.#supervisor.restarts;
  }

  /** Failed starts and early deaths in a row. */
  get failures(): number {
    return this.#supervisor.failures;
  }

  get inFlight(): number {
    return (this.#connection?.inFlight ?? 0) + this.#waiting.size + this.#stranded.size;
  }

  /** Whether the server, as it is connected now, tells of changes of this list. */
  hears(kind: ListKind): boolean {
    return this.#connection?.hears(kind) ?? true;
  }

  get nextTryInMs(): number | undefined {
    const due = this.#supervisor.nextWakeMs;
    return due === undefined ? undefined : Math.max(0, due - this.#context.now());
  }

  describe(): LinkDescription | undefined {
    return this.#connection?.describe() ?? this.#lastDescription;
  }

  send(call: UpstreamCall): void {
    const connection = this.#connection;
    // The hot path: a ready server needs no verdict.
    if (connection !== undefined && this.#supervisor.state === "ready") {
      connection.send(call);
      return;
    }
    this.#queue(call);
  }

  /** Starts the server if nothing runs yet, for nobody's call. */
  ensure(): void {
    if (this.#supervisor.wanted(this.#context.now()) === "start") this.#start();
    else this.#setTimer();
  }

  cancel(call: UpstreamCall, reason: string | undefined): void {
    if (this.#waiting.delete(call) || this.#stranded.delete(call))
      call.reply(faultReply(new Fault("cancelled", reason ?? "Cancelled.")));
    else this.#connection?.cancel(call, reason);
  }

  notify(text: string): void {
    if (this.#supervisor.state === "ready") this.#connection?.notify(text);
  }

  agentProgress(sessionKey: string, message: NotificationMessage): boolean {
    return this.#connection?.agentProgress(sessionKey, message) ?? false;
  }

  tick(nowMs: number): void {
    this.#connection?.expire(nowMs);
  }

  /** Closes the connection for now; the next call opens it again. */
  async rest(): Promise<void> {
    const connection = this.#connection;
    if (connection === undefined || this.#supervisor.state !== "ready" || connection.inFlight > 0) return;
    this.#supervisor.rested();
    this.#lastDescription = { ...connection.describe() };
    this.#connection = undefined;
    this.#track(connection.close());
    await Promise.all(this.#closing);
    this.#events.onState();
  }

  /** For good. Resolves when the process or the connection is gone. */
  async stop(): Promise<void> {
    this.#perform(this.#supervisor.stop());
    this.#failWaiting(new Fault("closing", `Server "${this.server}" was stopped.`));
    await Promise.all(this.#closing);
    this.#events.onState();
  }

  #queue(call: UpstreamCall): void {
    if (this.#waiting.size >= MAX_WAITING) {
      const message = `Server "${this.server}" is not up, and ${MAX_WAITING} calls wait for it already.`;
      call.reply(faultReply(new Fault("limit", message)));
      return;
    }
    const verdict = this.#supervisor.wanted(this.#context.now());
    if (verdict === "refused") {
      call.reply(faultReply(new Fault("unavailable", `Server "${this.server}" is stopped.`)));
      return;
    }
    this.#waiting.add(call);
    if (verdict === "start") this.#start();
    else this.#setTimer();
  }

  #start(): void {
    const { name, connectTimeoutMs } = this.#spec;
    const startedMs = this.#context.now();
    const attempt = new AbortController();
    this.#attempt = attempt;
    const late = new Fault("timeout", `Server "${name}" was not ready within ${connectTimeoutMs} ms.`);
    const deadline = setTimeout(() => attempt.abort(late), connectTimeoutMs);
    const connection = this.#connect();
    this.#connection = connection;
    this.#events.onState();
    const opened = connection
      .open(attempt.signal)
      .then(
        (intro) => this.#started(connection, intro, startedMs),
        (error: unknown) => this.#failed(connection, error),
      )
      .finally(() => clearTimeout(deadline));
    this.#track(opened);
  }

  #connect(): Connection {
    const connection: Connection = new Connection(
      {
        spec: this.#spec,
        owner: this.#owner,
        offer: this.#offer,
        now: this.#context.now,
        noise: this.noise,
        makeLink: (events) => this.#context.makeLink(this.#spec, events),
        modern: this.#modern,
      },
      {
        onNotification: (message, caller) => this.#events.onNotification(message, caller),
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
    this.#supervisor.started(nowMs);
    this.readyAfterMs = Math.round(nowMs - startedMs);
    this.lastFault = undefined;
    this.#events.onReady(intro);
    this.#events.onState();
    for (const call of this.#waiting) connection.send(call);
    this.#waiting.clear();
    return undefined;
  }

  /** Resolves when nothing is left of the attempt. */
  #failed(connection: Connection, error: unknown): Promise<void> {
    this.#attempt = undefined;
    const fault = error instanceof Fault ? error : new Fault("unavailable", String(error), { cause: error });
    const gone = this.#drop(connection, fault);
    const action = this.#supervisor.failed(this.#context.now());
    // Where it is started anew at once, the calls wait on; else they learn what happened.
    if (action !== "start") this.#failWaiting(this.#whyDown(fault));
    this.#perform(action);
    this.#events.onState();
    return gone;
  }

  #closed(connection: Connection, fault: Fault): void {
    // While it starts, open() rejects as well, and that is the one that counts.
    if (this.#connection !== connection || this.#supervisor.state === "starting") return;
    void this.#drop(connection, fault);
    this.#perform(this.#supervisor.closed(this.#context.now()));
    for (const call of this.#stranded) this.#queue(call);
    this.#stranded.clear();
    this.#events.onState();
  }

  #drop(connection: Connection, fault: Fault): Promise<void> {
    this.lastFault = fault;
    this.#lastDescription = { ...connection.describe() };
    this.#connection = undefined;
    const gone = connection.close();
    this.#track(gone);
    return gone;
  }

  /**
   * The call never reached the server. Where the connection goes with it (a session that the server forgot, a child
   * that is dying), it waits for the next one; once only. Links report the call first; the end of the connection
   * follows in the same turn, but for a child, whose last output is read before.
   */
  #unsent(call: UpstreamCall, fault: Fault): void {
    if (this.#returned.has(call)) {
      call.reply(faultReply(fault));
      return;
    }
    this.#returned.add(call);
    if (this.#spec.target.kind === "stdio" && fault.code === "unavailable" && this.#connection !== undefined) {
      this.#stranded.add(call);
      return;
    }
    queueMicrotask(() => {
      if (this.#supervisor.state === "ready" || this.#supervisor.state === "stopped") call.reply(faultReply(fault));
      else this.#queue(call);
    });
  }

  #whyDown(fault: Fault): Fault {
    const wait = this.nextTryInMs;
    const again =
      wait === undefined ? "" : ` It is tried again on the next call, in ${Math.ceil(wait / 1000)} s at the latest.`;
    const stderr = this.describe()?.stderr?.at(-1);
    const said = stderr === undefined || fault.message.includes(stderr) ? "" : ` Its last words: ${stderr}`;
    return new Fault(
      fault.code === "unauthorized" ? "unauthorized" : "unavailable",
      `Server "${this.server}" is not available: ${fault.message}${said}${again}`,
      { cause: fault },
    );
  }

  #failWaiting(fault: Fault): void {
    for (const call of [...this.#waiting, ...this.#stranded]) call.reply(faultReply(fault));
    this.#waiting.clear();
    this.#stranded.clear();
  }

  #perform(action: Action): void {
    if (action === "start") this.#start();
    if (action === "close") {
      if (this.#attempt !== undefined) this.#attempt.abort(new Fault("closing", "The attempt was given up."));
      else if (this.#connection !== undefined) {
        const connection = this.#connection;
        void this.#drop(connection, new Fault("closing", "Stopped."));
        this.#perform(this.#supervisor.closed(this.#context.now()));
      }
    }
    this.#setTimer();
  }

  #setTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const wait = this.nextTryInMs;
    if (wait === undefined) return;
    this.#timer = setTimeout(() => this.#perform(this.#supervisor.wake(this.#context.now())), wait);
  }

  #track(closing: Promise<void>): void {
    this.#closing.add(closing);
    void closing.finally(() => this.#closing.delete(closing));
  }
}
