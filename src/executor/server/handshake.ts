// The handshake of an executor: reads `initialize` and `initialized` in time, and decides which session the socket
// carries, a new one or one that goes on.

import { FIRST_WINDOW_BYTES } from "../../sockets/limits.js";
import { Close, NO_EVENTS, type Socket, type SocketEvents } from "../../sockets/socket.js";
import { readFrame, renderError, renderResult } from "../wire/frame.js";
import {
  type Agreement,
  EXTENSIONS_VERSION,
  INITIALIZE,
  INITIALIZED,
  isCount,
  type MessageId,
  type Offer,
  REQUEST,
  RpcCode,
} from "../wire/protocol.js";
import { answerOther, ENVIRONMENT } from "./codex-methods.js";
import type { ExecutorSession, ExecutorSessions } from "./session.js";

/** The exec-server's code for a session that another socket holds. */
const ALREADY_ATTACHED = -32_010;

/** Messages before `initialized`: no client needs as many. */
const MAX_MESSAGES = 64;

export class Handshake implements SocketEvents {
  readonly #socket: Socket;
  readonly #sessions: ExecutorSessions;
  readonly #deadline: NodeJS.Timeout;
  #session: ExecutorSession | undefined;
  /** True where the session was made here: one that was never opened is ended with its socket. */
  #isNew: boolean = false;
  #clientReceived = 0;
  #opened: boolean = false;
  #messages = 0;

  constructor(socket: Socket, sessions: ExecutorSessions, handshakeMs: number) {
    this.#socket = socket;
    this.#sessions = sessions;
    this.#deadline = setTimeout(() => this.#refuse(`no initialize and initialized in ${handshakeMs} ms`), handshakeMs);
    socket.attach(this);
  }

  /** The session that this socket was opened for; it may have another one by now, or be over. */
  get sessionId(): string | undefined {
    return this.#opened ? this.#session?.id : undefined;
  }

  onMessage(bytes: Buffer): void {
    if (++this.#messages > MAX_MESSAGES) {
      this.#refuse("too many messages before initialized");
      return;
    }
    const frame = readFrame(bytes);
    if (frame.kind === "request") this.#request(frame.id, frame.method, frame.params);
    else if (frame.kind === "notification" && frame.method === INITIALIZED) this.#initialized();
    // The exec-server answers what has no id under this one.
    else if (frame.kind === "broken")
      this.#fail(-1, RpcCode.invalidRequest, `failed to parse the message: ${frame.why}`);
  }

  onDrain(): void {}

  onClose(): void {
    clearTimeout(this.#deadline);
    if (this.#session !== undefined) this.#giveBack(this.#session);
  }

  #request(id: MessageId, method: string, params: unknown): void {
    const { invalidRequest } = RpcCode;
    if (method === INITIALIZE) {
      if (this.#session === undefined) this.#initialize(id, params);
      else this.#fail(id, invalidRequest, "initialize may only be sent once per connection");
      return;
    }
    const other = method === REQUEST ? undefined : answerOther(method);
    if (other !== undefined && "error" in other) {
      this.#fail(id, other.error.code, other.error.message);
      return;
    }
    const missing = this.#session === undefined ? "call initialize" : "send initialized";
    const kind = method === REQUEST ? "http" : "environment info";
    this.#fail(id, invalidRequest, `client must ${missing} before using ${kind} methods`);
  }

  #initialize(id: MessageId, params: unknown): void {
    const asked = readInitialize(params);
    if (typeof asked === "string") {
      this.#fail(id, RpcCode.invalidParams, asked);
      return;
    }
    const { offer, resume } = asked;
    const old = resume === undefined ? undefined : this.#sessions.find(resume);
    if (offer === undefined) this.#initializePlain(id, resume, old?.isLasting === false ? old : undefined);
    else this.#initializeLasting(id, offer, old?.isLasting === true ? old : undefined);
  }

  /** Does it as the exec-server does: the session's name goes on, and nothing else. */
  #initializePlain(id: MessageId, resume: string | undefined, old: ExecutorSession | undefined): void {
    if (resume !== undefined && old === undefined) {
      this.#fail(id, RpcCode.invalidRequest, `unknown session id ${resume}`);
    } else if (old?.hasSocket === true) {
      this.#fail(id, ALREADY_ATTACHED, `session ${old.id} is already attached to another connection`);
    } else {
      this.#claim(id, old ?? this.#newSession(undefined), undefined);
    }
  }

  #initializeLasting(id: MessageId, offer: Offer, old: ExecutorSession | undefined): void {
    const resumed = old?.canResume(offer.received) === true;
    // The client asked for what we cannot give, and begins anew: nobody comes for the old one.
    if (!resumed) old?.close(Close.replaced, "its client began anew");
    const session = resumed && old !== undefined ? old : this.#newSession(offer.window);
    this.#clientReceived = resumed ? offer.received : 0;
    this.#claim(id, session, resumed);
  }

  #newSession(window: number | undefined): ExecutorSession {
    this.#isNew = true;
    return this.#sessions.create(window);
  }

  /** `resumed` is undefined with a client that knows nothing of our extensions. */
  #claim(id: MessageId, session: ExecutorSession, resumed: boolean | undefined): void {
    this.#session = session;
    this.#sessions.taken(session);
    session.claim(this.#socket);
    const result = { sessionId: session.id, environmentInfo: ENVIRONMENT };
    if (resumed === undefined) {
      this.#socket.send(renderResult(id, result));
      return;
    }
    const toolway: Agreement = {
      version: EXTENSIONS_VERSION,
      window: FIRST_WINDOW_BYTES,
      retentionMs: this.#sessions.retentionMs,
      resumed,
      received: session.received,
    };
    this.#socket.send(renderResult(id, { ...result, toolway }));
  }

  #initialized(): void {
    if (this.#session === undefined) {
      this.#refuse("initialized before initialize");
      return;
    }
    clearTimeout(this.#deadline);
    this.#opened = this.#session.open(this.#socket, this.#clientReceived);
    // Another socket, or the session's end, closed this one already.
    if (!this.#opened) this.#socket.attach(NO_EVENTS);
  }

  #refuse(why: string): void {
    clearTimeout(this.#deadline);
    this.#socket.attach(NO_EVENTS);
    this.#socket.close(Close.policy, why);
    if (this.#session !== undefined) this.#giveBack(this.#session);
  }

  #giveBack(session: ExecutorSession): void {
    if (this.#isNew) session.close(Close.goingAway, "it never began");
    else session.unclaim(this.#socket);
  }

  #fail(id: MessageId, code: number, message: string): void {
    this.#socket.send(renderError(id, { code, message }));
  }
}

/** A text says what is wrong, in the exec-server's words. An offer of another version counts as none. */
function readInitialize(params: unknown): { resume: string | undefined; offer: Offer | undefined } | string {
  if (typeof params !== "object" || params === null || Array.isArray(params)) {
    return "invalid type: expected struct InitializeParams";
  }
  const { clientName, resumeSessionId: resume, toolway } = params as Record<string, unknown>;
  if (typeof clientName !== "string") return "missing field `clientName`";
  if (resume !== undefined && resume !== null && typeof resume !== "string") return "invalid type: resumeSessionId";
  const offer = readOffer(toolway);
  if (typeof offer === "string") return offer;
  return { resume: resume ?? undefined, offer };
}

function readOffer(toolway: unknown): Offer | undefined | string {
  if (typeof toolway !== "object" || toolway === null) return undefined;
  const { version, window, received } = toolway as Record<string, unknown>;
  if (version !== EXTENSIONS_VERSION) return undefined;
  if (!isCount(window) || window === 0) return "invalid toolway.window: expected bytes, more than 0";
  if (!isCount(received)) return "invalid toolway.received: expected a number of messages";
  return { version, window, received };
}
