// A conversation with one client: its requests, their answers, credit and cancels. It outlives its sockets where both
// ends agreed to that, and is kept for a bounded time and in bounded number. How a socket comes to it is handshake.ts.

import { randomUUID } from "node:crypto";
import { IndexedSet, Table } from "../../runtime/containers/table.js";
import { Channel, type ChannelEvents } from "../../sockets/channel.js";
import { CreditBook } from "../../sockets/credit.js";
import { Close, type Socket } from "../../sockets/socket.js";
import { failure } from "../http/failure.js";
import { checkRequest } from "../http/request-check.js";
import type { HttpRequests } from "../http/requests.js";
import { type Frame, readFrame, renderError, renderNotification, renderResult } from "../wire/frame.js";
import { MAX_REQUESTS, MAX_RETAINED_SESSIONS } from "../wire/limits.js";
import {
  CANCEL,
  CREDIT,
  INITIALIZE,
  INITIALIZED,
  type MessageId,
  REQUEST,
  RpcCode,
  type RpcFailure,
  STOPPING,
  STOPPING_CODE,
} from "../wire/protocol.js";
import type { ExecutorLog } from "../wire/types.js";
import { type Answer, type AnswerOwner, BufferedAnswer, type RoomWaiter, SendQueue } from "./answer.js";
import { answerOther } from "./codex-methods.js";
import { DeltaAnswer } from "./delta-answer.js";
import { UploadBody } from "./upload.js";

/** Refused requests of one session that are logged, so that nobody can fill our disk by asking for them. */
const MAX_TOLD_REFUSALS = 100;

export class ExecutorSession implements AnswerOwner, ChannelEvents {
  readonly id: string;
  readonly #owner: ExecutorSessions;
  /** What an answer may send before it hears of its reader; undefined where the client does not know our extensions. */
  readonly #window: number | undefined;
  readonly #channel: Channel;
  readonly #queue: SendQueue;
  /** What bodies that are uploaded to us may have unread. */
  readonly #uploads = new CreditBook();
  readonly #all = new IndexedSet<Answer>();
  /** The answers by the id that deltas, credit and cancels name. */
  readonly #named = new Table<string, Answer>();
  #socket: Socket | undefined;
  #collected = 0;
  #over: boolean = false;
  #toldOfUnknown: boolean = false;
  #toldStopping: boolean = false;
  #refusals = 0;

  constructor(id: string, window: number | undefined, owner: ExecutorSessions) {
    this.id = id;
    this.#window = window;
    this.#owner = owner;
    this.#channel = new Channel(this);
    this.#queue = new SendQueue(() => this.#channel.isFull);
  }

  /** True where it goes on with the next socket; else a lost socket ends all requests. */
  get isLasting(): boolean {
    return this.#window !== undefined;
  }

  get hasSocket(): boolean {
    return this.#socket !== undefined;
  }

  get openRequests(): number {
    return this.#all.size;
  }

  get received(): number {
    return this.#channel.received;
  }

  canResume(clientReceived: number): boolean {
    return !this.#over && this.isLasting && this.#channel.canResume(clientReceived);
  }

  /**
   * This socket shall carry it. Nothing of the one before is heard from now on: what has been received is about to be
   * told to the client, and must stay true.
   */
  claim(socket: Socket): void {
    const before = this.#socket;
    this.#channel.detach();
    this.#socket = socket;
    before?.close(Close.replaced, "another socket took its place");
  }

  /** False where yet another socket has taken its place meanwhile, or it is over. */
  open(socket: Socket, clientReceived: number): boolean {
    if (this.#over || this.#socket !== socket) return false;
    if (this.isLasting) this.#channel.openLasting(socket, clientReceived);
    else this.#channel.openPlain(socket);
    if (this.#owner.isStopping) this.tellStopping();
    return true;
  }

  /** Tells the client, where it knows our extensions, that nothing more is taken. */
  tellStopping(): void {
    if (this.#toldStopping || !this.isLasting) return;
    this.#toldStopping = true;
    this.send(renderNotification(STOPPING, {}));
  }

  /** Requests under way that come to an end by themselves. */
  get endingRequests(): number {
    let ending = 0;
    for (const answer of this.#all.all()) if (!answer.isEndless) ending++;
    return ending;
  }

  /** The socket that claimed it was lost before it was opened. */
  unclaim(socket: Socket): void {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    if (!this.#over) this.#owner.lost(this);
  }

  close(code: number, why: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#abortAll();
    this.#channel.detach();
    this.#socket?.close(code, why);
    this.#socket = undefined;
    this.#owner.closed(this);
  }

  // What the channel tells.

  onMessage(bytes: Buffer): void {
    if (this.#over) return;
    const frame = readFrame(bytes);
    switch (frame.kind) {
      case "request":
        this.#request(frame);
        return;
      case "delta":
      case "notification":
        this.#notification(frame);
        return;
      case "broken":
        // The exec-server answers what has no id under this one.
        this.#refuse(-1, { code: RpcCode.invalidRequest, message: `failed to parse the message: ${frame.why}` });
        return;
      default:
        this.#unknown(`an answer (${frame.kind}) to nothing that was asked`);
    }
  }

  onRoom(): void {
    this.#queue.wake();
  }

  onLost(why: string): void {
    const goodbye = this.#socket?.saidGoodbye === true;
    this.#socket = undefined;
    this.#owner.log.debug("executor: a connection ended", { session: this.id, why });
    if (goodbye && this.isLasting) {
      this.close(Close.normal, why);
      return;
    }
    if (!this.isLasting) this.#abortAll();
    this.#owner.lost(this);
  }

  // What answers use.

  get isFull(): boolean {
    return this.#channel.isFull;
  }

  send(frame: string | Buffer): void {
    if (this.#over) return;
    this.#channel.send(frame);
    if (!this.#channel.isOverrun) return;
    this.#owner.log.warn("executor: a client asks for more than it reads; its session is ended", { session: this.id });
    const socket = this.#socket;
    this.close(Close.policy, "more was asked for than was read");
    socket?.destroy("more was asked for than was read");
  }

  waitForRoom(waiter: RoomWaiter): void {
    this.#queue.join(waiter);
  }

  collected(by: number): number {
    this.#collected += by;
    return this.#collected;
  }

  leave(answer: Answer): void {
    this.#all.delete(answer);
    if (this.#named.get(answer.requestId) === answer) this.#named.delete(answer.requestId);
  }

  forbidden(host: string, why: string): void {
    if (++this.#refusals <= MAX_TOLD_REFUSALS) this.#owner.log.warn("executor: a request was refused", { host, why });
    if (this.#refusals !== MAX_TOLD_REFUSALS) return;
    this.#owner.log.warn("executor: more requests of this connection that are refused are not told of", {
      session: this.id,
    });
  }

  #grant(requestId: string, bytes: number): void {
    this.send(renderNotification(CREDIT, { requestId, bytes }));
  }

  #request(frame: Extract<Frame, { kind: "request" }>): void {
    const { id, method, params } = frame;
    if (method === REQUEST) {
      this.#httpRequest(id, params);
      return;
    }
    if (method === INITIALIZE) {
      const message = "initialize may only be sent once per connection";
      this.#refuse(id, { code: RpcCode.invalidRequest, message });
      return;
    }
    const other = answerOther(method);
    if ("error" in other) this.#refuse(id, other.error);
    else this.send(renderResult(id, other.result));
  }

  #httpRequest(id: MessageId, params: unknown): void {
    const checked = checkRequest(params);
    if (!checked.ok) {
      this.#refuse(id, checked.error);
      return;
    }
    const { requestId, streamResponse, streamRequest } = checked;
    // The exec-server takes the id of a stream for a buffered request as well, and knows no cancel that would name it.
    const isNamed = streamResponse || this.isLasting;
    if (isNamed && this.#named.get(requestId) !== undefined) {
      const message = `http/request streamResponse requestId \`${requestId}\` is already active`;
      this.#refuse(id, { code: RpcCode.invalidParams, message });
      return;
    }
    if (streamRequest && !this.isLasting) {
      const message = "http/request streamRequest needs `toolway` at initialize; send bodyBase64";
      this.#refuse(id, { code: RpcCode.invalidParams, message });
      return;
    }
    if (this.#owner.isStopping) {
      const { rpcCode: code, message, data } = failure(STOPPING_CODE, "the executor stops", false);
      this.#refuse(id, { code, message, data });
      return;
    }
    if (this.#all.size >= MAX_REQUESTS) {
      const { rpcCode: code, message, data } = failure("busy", `${MAX_REQUESTS} requests are under way already`, false);
      this.#refuse(id, { code, message, data });
      return;
    }
    const upload = streamRequest ? new UploadBody(this.#uploads, (bytes) => this.#grant(requestId, bytes)) : undefined;
    const answer = streamResponse
      ? new DeltaAnswer(this, id, requestId, upload, this.#window ?? Number.POSITIVE_INFINITY)
      : new BufferedAnswer(this, id, requestId, upload);
    this.#all.add(answer);
    if (isNamed) this.#named.set(requestId, answer);
    answer.begin(this.#owner.http, upload === undefined ? checked.request : { ...checked.request, body: upload });
  }

  #notification(frame: Extract<Frame, { kind: "delta" | "notification" }>): void {
    if (!this.isLasting) {
      if (frame.method !== INITIALIZED) this.#unknown(frame.method);
      return;
    }
    if (frame.kind === "delta") {
      this.#delta(frame);
      return;
    }
    const params = frame.params as { requestId?: unknown; bytes?: unknown } | null | undefined;
    const requestId = params?.requestId;
    if (typeof requestId !== "string" || (frame.method !== CANCEL && frame.method !== CREDIT)) {
      if (frame.method !== INITIALIZED) this.#unknown(frame.method);
      return;
    }
    // An answer that is not there any more is no mistake: it ended while this was on its way.
    const answer = this.#named.get(requestId);
    if (frame.method === CANCEL) {
      answer?.cancel();
      return;
    }
    const bytes = params?.bytes;
    if (!Number.isSafeInteger(bytes) || (bytes as number) <= 0) this.#unknown(`${CREDIT} without bytes`);
    else if (answer instanceof DeltaAnswer) answer.grant(bytes as number);
  }

  #delta(frame: Extract<Frame, { kind: "delta" }>): void {
    const answer = this.#named.get(frame.delta.requestId);
    const upload = answer?.upload;
    if (answer === undefined || upload === undefined) return;
    const wrong = upload.accept(frame.delta);
    if (wrong === undefined) return;
    // The client broke it off itself, or broke the rules.
    const code = frame.delta.error === undefined ? "limit" : "cancelled";
    answer.fail(failure(code, wrong, true));
  }

  #refuse(id: MessageId, error: RpcFailure): void {
    this.send(renderError(id, error));
  }

  #unknown(what: string): void {
    if (this.#toldOfUnknown) return;
    this.#toldOfUnknown = true;
    this.#owner.log.debug("executor: a message means nothing here and is passed over", {
      session: this.id,
      what: what.slice(0, 80),
    });
  }

  #abortAll(): void {
    this.#queue.clear();
    for (const answer of this.#all.all()) answer.abort();
  }
}

export interface ExecutorSessionsOptions {
  readonly http: HttpRequests;
  readonly log: ExecutorLog;
  readonly retentionMs: number;
}

/** All of an executor: those that have a socket, and those that are kept for theirs to come back. */
export class ExecutorSessions {
  readonly http: HttpRequests;
  readonly log: ExecutorLog;
  readonly retentionMs: number;
  readonly #byId = new Map<string, ExecutorSession>();
  /** Those without a socket, each with the timer that ends it; the one that has waited longest comes first. */
  readonly #retained = new Map<ExecutorSession, NodeJS.Timeout>();

  constructor(options: ExecutorSessionsOptions) {
    this.http = options.http;
    this.log = options.log;
    this.retentionMs = options.retentionMs;
  }

  /** The executor is about to stop. */
  isStopping = false;

  get size(): number {
    return this.#byId.size;
  }

  get retained(): number {
    return this.#retained.size;
  }

  get openRequests(): number {
    let open = 0;
    for (const session of this.#byId.values()) open += session.openRequests;
    return open;
  }

  get endingRequests(): number {
    let ending = 0;
    for (const session of this.#byId.values()) ending += session.endingRequests;
    return ending;
  }

  /** Nothing more is taken from here on; the clients are told. */
  stopTaking(): void {
    this.isStopping = true;
    for (const session of this.#byId.values()) session.tellStopping();
  }

  /** `window` is what the client offered; undefined where it does not know our extensions. */
  create(window: number | undefined): ExecutorSession {
    const session = new ExecutorSession(randomUUID(), window, this);
    this.#byId.set(session.id, session);
    return session;
  }

  find(id: string): ExecutorSession | undefined {
    return this.#byId.get(id);
  }

  /** It has a socket again. */
  taken(session: ExecutorSession): void {
    clearTimeout(this.#retained.get(session));
    this.#retained.delete(session);
  }

  /** It has no socket any more. */
  lost(session: ExecutorSession): void {
    this.taken(session);
    if (this.#retained.size >= MAX_RETAINED_SESSIONS) this.#giveUpOne();
    const over = (): void => {
      this.log.info("executor: a client did not come back; its requests are ended", { session: session.id });
      session.close(Close.goingAway, "it was kept long enough");
    };
    this.#retained.set(session, setTimeout(over, this.retentionMs));
  }

  /** It is over, and aborted what was under way. */
  closed(session: ExecutorSession): void {
    this.taken(session);
    this.#byId.delete(session.id);
  }

  close(): void {
    for (const session of [...this.#byId.values()]) session.close(Close.goingAway, "the executor stops");
  }

  /** Ends the session that is worth least. Of plain clients only the name is kept, so theirs go first. */
  #giveUpOne(): void {
    let first: ExecutorSession | undefined;
    for (const session of this.#retained.keys()) {
      first ??= session;
      if (session.isLasting) continue;
      first = session;
      break;
    }
    first?.close(Close.goingAway, "too many wait for their clients");
  }
}
