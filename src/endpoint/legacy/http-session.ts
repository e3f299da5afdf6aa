// A session over HTTP: its event streams, which of them a message takes, and what waits while none is open.

import { createHash, randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { NotificationText, Principal, SubscribedUris } from "../../contracts/caller.js";
import type { SessionSettings } from "../../contracts/session-record.js";
import type { Fault } from "../../protocol/errors.js";
import type { SlowReaders } from "../http/slow-readers.js";
import { hasPriming } from "../session/initialize.js";
import { LegacySession } from "../session/session.js";
import type { SessionFacts } from "../session/session-id.js";
import { type AskedSession, EventStream, type Resumption, type StreamContext } from "./streams/event-stream.js";
import { Pending } from "./streams/retained.js";

/** `listen` is the stream of a GET, for what is unasked; `call` is that of a POST, and ends with its reply. */
export type StreamKind = "listen" | "call";

const KIND_LETTER: Readonly<Record<StreamKind, string>> = { listen: "l", call: "c" };

/** An id longer than this is not repeated in event ids; agents use small numbers or UUIDs. */
const MAX_ID_IN_KEY = 64;

/** Ends the id of a message that was made up for a stream that is gone: there is nothing behind it. */
export const FINAL_SEQ = 999_999_999_999_999;

export interface EventId {
  readonly key: string;
  readonly kind: StreamKind;
  readonly seq: number;
  /** The JSON-RPC id, as JSON, of the request whose stream it was. */
  readonly request: string | undefined;
}

/** Resolves when what the session asked for is on disk, or cannot be; undefined where nothing is kept. */
type KeepSettings = (session: HttpSession) => Promise<void> | undefined;

export class HttpSession extends LegacySession implements AskedSession {
  /** When its id was made, by the wall clock. */
  readonly createdAt: number;
  subscribed: SubscribedUris;
  /** It was open before the gateway started, or before others made it give way, and has had no stream since. */
  mayHaveMissed = false;
  /** What it asked for last is being written down: who asked is answered afterwards. Undefined when it is on disk. */
  keeping: Promise<void> | undefined;
  readonly #keep: KeepSettings | undefined;
  readonly #context: StreamContext;
  /** All streams that can be resumed, oldest first. */
  readonly #streams = new Map<string, EventStream>();
  /** Open GET streams, oldest first. */
  #listeners: EventStream[] = [];
  #pending: Pending | undefined;
  #tag: string | undefined;
  /** Since when no stream leads to the agent, while servers wait for its answers. */
  #aloneSinceMs: number | undefined;

  /** `settings`: what it asked for before it was restored; `keep`: what it asks for is to be kept. */
  constructor(
    principal: Principal,
    facts: SessionFacts,
    context: StreamContext,
    { level, subscribed = {} }: SessionSettings = {},
    keep?: KeepSettings,
  ) {
    super(principal, facts, context.limits, context.now());
    this.createdAt = facts.createdAt;
    this.#context = context;
    this.logLevel = level;
    this.subscribed = new Map(Object.entries(subscribed).map(([server, uris]) => [server, new Set(uris)]));
    this.#keep = keep;
  }

  protected override get gateway(): string | undefined {
    return this.#context.gateway;
  }

  override setLogLevel(level: string): void {
    if (level === this.logLevel) return;
    super.setLogLevel(level);
    this.#keepSettings();
  }

  setSubscribed(subscribed: SubscribedUris): void {
    this.subscribed = subscribed;
    this.#keepSettings();
  }

  #keepSettings(): void {
    const keeping = this.#keep?.(this);
    this.keeping = keeping;
    void keeping?.then(() => {
      if (this.keeping === keeping) this.keeping = undefined;
    });
  }

  get readers(): SlowReaders {
    return this.#context.readers;
  }

  override get idle(): boolean {
    return super.idle && this.#listeners.length === 0;
  }

  get listening(): boolean {
    return this.#listeners.length > 0;
  }

  override askBy(...[request, signal, send]: Parameters<LegacySession["askBy"]>): ReturnType<LegacySession["askBy"]> {
    this.#context.asked.add(this);
    return super.askBy(request, signal, send);
  }

  /** An agent that no stream has led to for long counts as one that does not answer. It may come back all the same. */
  lookForAgent(nowMs: number): void {
    const { goneMs } = this.limits;
    if (!this.isAsked) this.#context.asked.delete(this);
    if (!this.isAsked || this.#isReached()) this.#aloneSinceMs = undefined;
    else {
      this.#aloneSinceMs ??= nowMs;
      if (nowMs - this.#aloneSinceMs < goneMs) return;
      this.unanswerable(`The agent has gone: none of its streams was open for ${goneMs / 1000} s.`);
    }
  }

  #isReached(): boolean {
    if (this.listening) return true;
    for (const stream of this.#streams.values()) if (stream.attached) return true;
    return false;
  }

  /** It stands in event ids, is the same after a restart, and is different for every other session. */
  get #sessionTag(): string {
    this.#tag ??= createHash("sha256").update(this.sessionKey).digest("base64url").slice(0, 12);
    return this.#tag;
  }

  override notify({ text }: NotificationText): void {
    const listener = this.closed ? undefined : this.#listeners.at(-1);
    if (listener !== undefined) listener.notify(text);
    else this.tell(text);
  }

  /** Goes onto the newest of the GET streams, or is kept until there is one. */
  tell(text: string): void {
    if (this.closed) return;
    const listener = this.#listeners.at(-1);
    if (listener !== undefined) listener.send(text);
    else {
      this.#pending ??= new Pending(
        this.#context.retained,
        this.principal.id,
        this.limits.pendingMessages,
        this.limits.pendingBytes,
      );
      this.#pending.add(text);
    }
  }

  /** Begins the stream of a GET. False where there are too many already. */
  listen(res: ServerResponse): boolean {
    if (this.#listeners.length >= this.limits.listenersPerSession) return false;
    const stream = this.#newStream("listen", undefined);
    stream.open(res);
    // Before there is anything to say: a proxy, or a client that waits for the first byte, sees that it is open.
    stream.keepAlive(Number.MAX_SAFE_INTEGER);
    this.#listening(stream);
    return true;
  }

  #listening(stream: EventStream): void {
    this.#listeners.push(stream);
    stream.onDetached = () => {
      this.#listeners = this.#listeners.filter((other) => other !== stream);
    };
    for (const text of this.#pending?.take() ?? []) stream.send(text);
  }

  /** Begins the stream of a POST that turned out to need one. */
  callStream(res: ServerResponse, requestId: string | undefined): EventStream {
    const stream = this.#newStream("call", requestId);
    stream.open(res);
    return stream;
  }

  #newStream(kind: StreamKind, requestId: string | undefined): EventStream {
    this.sweepStreams(this.#context.now());
    if (this.#streams.size >= this.limits.streamsPerSession) this.#dropOne();
    const known = requestId !== undefined && requestId.length <= MAX_ID_IN_KEY;
    const suffix = known ? `.${Buffer.from(requestId).toString("base64url")}` : "";
    const random = randomBytes(12).toString("hex");
    const key = `${KIND_LETTER[kind]}.${this.#sessionTag}.${random}${suffix}`;
    const stream = new EventStream(this.#context, this.principal.id, key, hasPriming(this.version));
    this.#streams.set(key, stream);
    return stream;
  }

  /** Makes room: a finished stream goes first, then one without a reader, then the oldest, which is only not kept. */
  #dropOne(): void {
    const all = [...this.#streams.values()];
    const victim = all.find((s) => s.finished) ?? all.find((s) => !s.attached) ?? all[0];
    if (victim !== undefined) this.#drop(victim);
  }

  #drop(stream: EventStream): void {
    this.#streams.delete(stream.key);
    stream.release();
  }

  sweepStreams(nowMs: number): void {
    for (const stream of this.#streams.values()) {
      if (stream.expired(nowMs)) this.#drop(stream);
    }
  }

  /** Reads a Last-Event-ID; undefined where it is none of this session's. */
  parseEventId(text: string): EventId | undefined {
    const match = /^(([lc])\.([\w-]{12})\.[0-9a-f]{24}(?:\.([\w-]+))?)-(\d{1,15})$/.exec(text);
    if (match === null || match[3] !== this.#sessionTag) return undefined;
    return {
      key: match[1] ?? "",
      kind: match[2] === "l" ? "listen" : "call",
      seq: Number(match[5]),
      request: match[4] === undefined ? undefined : readRequestId(match[4]),
    };
  }

  /** Goes on with a stream of this session. */
  resume(res: ServerResponse, id: EventId): Resumption {
    if (id.seq === FINAL_SEQ) return "exhausted";
    const resumption = this.#streams.get(id.key)?.resume(res, id.seq) ?? "gone";
    const stream = this.#streams.get(id.key);
    if (resumption === "resumed" && stream !== undefined && id.kind === "listen") this.#listening(stream);
    return resumption;
  }

  override close(fault: Fault): void {
    if (this.closed) return;
    super.close(fault);
    for (const stream of this.#streams.values()) {
      // A call's stream has just got its reply, and ends by itself.
      if (!stream.finished) stream.abandon();
      stream.release();
    }
    this.#streams.clear();
    this.#pending?.release();
  }
}

/** What comes back is the client's word: nothing but an id may come out of it. */
function readRequestId(encoded: string): string | undefined {
  try {
    const id: unknown = JSON.parse(Buffer.from(encoded, "base64url").toString());
    return typeof id === "string" || typeof id === "number" ? JSON.stringify(id) : undefined;
  } catch {
    return undefined;
  }
}
