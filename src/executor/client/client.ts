// The client of one executor: sends requests and brings answers, over a conversation that outlives its sockets where
// the executor can do that. It dials its sockets, or is given them.

import { Channel } from "../../sockets/channel.js";
import { FIRST_WINDOW_BYTES } from "../../sockets/limits.js";
import { Close, type Socket } from "../../sockets/socket.js";
import { RETENTION_MS } from "../wire/limits.js";
import { type Agreement, EXTENSIONS_VERSION } from "../wire/protocol.js";
import {
  type AnswerHandler,
  ExecutorError,
  type ExecutorLog,
  type ExecutorRequest,
  type RequestHandle,
} from "../wire/types.js";
import { type StreamedAnswer, streamedAnswer, type WaitOptions, type WholeAnswer, wholeAnswer } from "./answers.js";
import { executorFetch, type Fetch } from "./fetch.js";
import { beginHandshake, type ClientHandshake, type HandshakeResult } from "./handshake.js";
import { Redial } from "./redial.js";
import { Requests } from "./requests.js";

export interface ExecutorClientOptions {
  /** What the executor knows it by. */
  readonly clientName?: string | undefined;
  /** How long requests wait for a lost executor to come back, where it waits as long. Default: RETENTION_MS. */
  readonly retentionMs?: number | undefined;
  /** Opens a socket, the first one and one after each loss. Without it sockets come by adopt(). */
  readonly dial?: ((signal: AbortSignal) => Promise<Socket>) | undefined;
  readonly log?: ExecutorLog | undefined;
  /** Called when `state` or `lastError` changes. */
  readonly onState?: (() => void) | undefined;
}

export type ClientState =
  /** There is no conversation: none yet, or the last one is lost for good. */
  | "connecting"
  | "ready"
  /** The executor is about to stop: what is under way ends, and it takes nothing more. */
  | "stopping"
  /** It is between two sockets: requests wait, and go on if the executor is found again in time. */
  | "lost"
  | "closed";

interface Session {
  readonly id: string;
  readonly channel: Channel;
  readonly agreement: Agreement | undefined;
  socket: Socket;
  /** True when it has had no socket for as long as it is kept. */
  isOverdue: boolean;
  isStopping: boolean;
}

interface Waiting {
  resolve(): void;
  reject(reason: unknown): void;
}

const DEFAULT_NAME = "toolway";

export class SocketClient {
  readonly #options: ExecutorClientOptions;
  readonly #requests = new Requests(
    () => this.#whyNone(),
    () => this.#stopping(),
  );
  readonly #redial: Redial | undefined;
  #state: ClientState = "connecting";
  #lastError: ExecutorError | undefined;
  #toldWhy: string | undefined;
  #session: Session | undefined;
  #handshake: ClientHandshake | undefined;
  #giveUp: NodeJS.Timeout | undefined;
  #waiting: Waiting[] = [];
  #closing: Promise<void> | undefined;

  constructor(options: ExecutorClientOptions = {}) {
    this.#options = options;
    const { dial } = options;
    if (dial === undefined) return;
    this.#redial = new Redial(
      dial,
      (socket) => this.adopt(socket),
      (error) => this.#failed(error),
    );
    this.#redial.need();
  }

  get state(): ClientState {
    return this.#state;
  }

  get sessionId(): string | undefined {
    return this.#session?.id;
  }

  /** The executor speaks our extensions: credit, cancel, uploads, resume. */
  get extended(): boolean {
    return this.#session?.agreement !== undefined;
  }

  /** Requests under way, and answers that are not read to their end. */
  get inFlight(): number {
    return this.#requests.inFlight;
  }

  /** Why there is no connection, or why there was none last. */
  get lastError(): ExecutorError | undefined {
    return this.#lastError;
  }

  /** Resolves when requests reach the executor; rejects when the client is closed, or `signal` says so. */
  ready(signal?: AbortSignal): Promise<void> {
    if (this.#state === "ready") return Promise.resolve();
    if (this.#state === "closed") return Promise.reject(closed());
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        resolve() {
          signal?.removeEventListener("abort", abort);
          resolve();
        },
        reject(reason) {
          signal?.removeEventListener("abort", abort);
          reject(reason);
        },
      };
      const abort = (): void => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiting.push(waiting);
    });
  }

  /** Never throws; the handler hears of errors later. With `whole`, the body comes in one message. */
  start(request: ExecutorRequest, handler: AnswerHandler, whole = false): RequestHandle {
    return this.#requests.start(request, handler, whole);
  }

  /** The whole answer; for bodies that fit into memory. */
  request(request: ExecutorRequest, options: WaitOptions = {}): Promise<WholeAnswer> {
    return wholeAnswer(this, request, options);
  }

  /** Resolves with the answer's head; its body is read as it comes, no faster than its reader. */
  requestStream(request: ExecutorRequest, options: WaitOptions = {}): Promise<StreamedAnswer> {
    return streamedAnswer(this, request, options);
  }

  /** As the global fetch(), through the executor's network. */
  readonly fetch: Fetch = (input, init) => executorFetch(this, input, init);

  /** A socket that the executor opened, or that was dialled; it takes the place of the one there is. */
  adopt(socket: Socket): void {
    if (this.#state === "closed") {
      socket.close(Close.goingAway, "the client was closed");
      return;
    }
    this.#handshake?.cancel();
    // This comes before `received` is told: nothing may be heard on the old socket that is sent again on the new one.
    this.#replace();
    const session = this.#session;
    const resume = session?.agreement === undefined ? {} : { resumeSessionId: session.id };
    const received = session?.agreement === undefined ? 0 : session.channel.received;
    const params = {
      clientName: this.#options.clientName ?? DEFAULT_NAME,
      ...resume,
      toolway: { version: EXTENSIONS_VERSION, window: FIRST_WINDOW_BYTES, received },
    };
    this.#handshake = beginHandshake(socket, params, {
      onReady: (result) => {
        this.#handshake = undefined;
        this.#begin(socket, result);
      },
      onFailed: (error) => {
        this.#handshake = undefined;
        this.#failed(error);
      },
    });
  }

  /** A lost executor will not come back: what was under way there is not waited for. */
  abandon(why: string): void {
    // It is just coming back.
    if (this.#state !== "lost" || this.#handshake !== undefined) return;
    this.#end("disconnected", `the executor is lost: ${why}`);
    this.#lost(why);
  }

  /** Says goodbye. Every request that is not answered in full ends with `closed`. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #begin(socket: Socket, { sessionId, agreement }: HandshakeResult): void {
    const before = this.#session;
    const goesOn = before?.agreement !== undefined && agreement?.resumed === true && before.id === sessionId;
    if (goesOn && !before.channel.canResume(agreement.received)) {
      socket.destroy("the executor goes on from where we never were");
      this.#end("disconnected", "the executor lost track of the session");
      this.#lost("the executor lost track of the session");
      return;
    }
    this.#redial?.worked();
    clearTimeout(this.#giveUp);
    this.#lastError = undefined;
    this.#toldWhy = undefined;
    if (goesOn) {
      before.socket = socket;
      // This comes before anybody hears of it, so that they do not find it full of what has arrived.
      before.channel.openLasting(socket, agreement.received);
      this.#setState(before.isStopping ? "stopping" : "ready");
      this.#options.log?.info("executor: connected again; the session goes on");
      return;
    }
    this.#end("disconnected", "the executor was lost, and knows nothing of the session any more");
    const channel = new Channel({
      onMessage: (bytes) => this.#message(session, bytes),
      onRoom: () => this.#requests.hasRoom(),
      onLost: (why) => this.#socketGone(session, why),
    });
    const session: Session = { id: sessionId, channel, agreement, socket, isOverdue: false, isStopping: false };
    this.#session = session;
    if (agreement === undefined) channel.openPlain(socket);
    else channel.openLasting(socket, 0);
    this.#requests.begin(session);
    this.#setState("ready");
    this.#options.log?.info("executor: connected", { extended: agreement !== undefined });
  }

  #stopping(): void {
    const session = this.#session;
    if (session === undefined || session.isStopping) return;
    session.isStopping = true;
    this.#options.log?.info("executor: it is about to stop, and takes nothing more");
    if (this.#state === "ready") this.#setState("stopping");
  }

  #message(session: Session, bytes: Buffer): void {
    if (session !== this.#session) return;
    const broken = this.#requests.received(bytes);
    if (broken === undefined) return;
    // What the two ends know of each other is in doubt: nothing of it goes on.
    const why = `the executor sent what is no message: ${broken}`;
    session.channel.detach();
    session.socket.close(Close.policy, "not a message");
    this.#end("protocol", why);
    this.#lost(why);
  }

  #socketGone(session: Session, why: string): void {
    if (session !== this.#session) return;
    const { agreement, socket } = session;
    if (agreement === undefined || socket.saidGoodbye) {
      this.#end("disconnected", `the executor disconnected: ${why}`);
    } else {
      this.#keep(session, agreement);
    }
    this.#lost(why);
  }

  /** Another socket takes the place of the one there is, which may be dead without knowing it. */
  #replace(): void {
    const session = this.#session;
    if (session === undefined || !session.channel.isOpen) return;
    session.channel.detach();
    session.socket.close(Close.replaced, "another connection took its place");
    if (session.agreement === undefined) {
      this.#end("disconnected", "the executor disconnected: another connection took its place");
      this.#setState("connecting");
      return;
    }
    this.#keep(session, session.agreement);
    this.#setState("lost");
  }

  /** Keeps the session for a while, with its requests. */
  #keep(session: Session, agreement: Agreement): void {
    const ms = Math.min(agreement.retentionMs, this.#options.retentionMs ?? RETENTION_MS);
    session.isOverdue = false;
    clearTimeout(this.#giveUp);
    // The timer says that it fired; by the clock, it often fires a little too early.
    this.#giveUp = setTimeout(() => {
      session.isOverdue = true;
      this.#checkKept();
    }, ms).unref();
  }

  #checkKept(): void {
    const session = this.#session;
    // A handshake that is under way decides.
    if (session === undefined || session.channel.isOpen || this.#handshake !== undefined) return;
    if (!session.isOverdue) return;
    this.#end("disconnected", `the executor is lost: ${this.#lastError?.message ?? "it did not come back in time"}`);
    this.#setState("connecting");
  }

  /** There is no socket: another is sought. */
  #lost(why: string): void {
    this.#lastError = new ExecutorError("disconnected", `the executor disconnected: ${why}`, { sent: false });
    this.#options.log?.warn("executor: disconnected", { why });
    this.#setState(this.#session === undefined ? "connecting" : "lost");
    this.#redial?.need();
  }

  /** An attempt came to nothing. */
  #failed(error: ExecutorError): void {
    this.#lastError = error;
    // Dialling goes on for ever; the same reason is told once, until it was connected.
    const isNew = this.#toldWhy !== error.message;
    this.#toldWhy = error.message;
    this.#options.log?.[isNew ? "warn" : "debug"]("executor: not connected; it is tried again", { why: error.message });
    this.#checkKept();
    this.#options.onState?.();
    this.#redial?.need();
  }

  #end(code: "disconnected" | "protocol" | "closed", message: string): void {
    if (this.#session === undefined) return;
    clearTimeout(this.#giveUp);
    this.#requests.end(code, message);
    this.#session = undefined;
  }

  #setState(state: ClientState): void {
    if (this.#state === state || this.#state === "closed") return;
    this.#state = state;
    if (state === "ready") for (const { resolve } of this.#takeWaiting()) resolve();
    if (state === "closed") for (const { reject } of this.#takeWaiting()) reject(closed());
    this.#options.onState?.();
  }

  #takeWaiting(): Waiting[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }

  #whyNone(): ExecutorError {
    if (this.#state === "closed") return closed();
    const why = this.#lastError?.message ?? "it has not been reached yet";
    return new ExecutorError("unavailable", `no executor is connected: ${why}`, { sent: false });
  }

  async #close(): Promise<void> {
    this.#redial?.close();
    this.#handshake?.cancel();
    this.#handshake = undefined;
    const session = this.#session;
    const socket = session?.channel.isOpen === true ? session.socket : undefined;
    session?.channel.detach();
    this.#end("closed", "the client was closed");
    this.#setState("closed");
    if (socket === undefined) return;
    await new Promise<void>((resolve) => {
      socket.attach({ onMessage() {}, onDrain() {}, onClose: () => resolve() });
      socket.close(Close.normal, "the client is done");
    });
  }
}

function closed(): ExecutorError {
  return new ExecutorError("closed", "the client was closed", { sent: false });
}
