// One event stream of a session: its connection, if it has one at the moment, and what can be replayed when the
// client comes back. It neither knows what the messages mean nor to which stream they belong.

import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { SMALL_BYTES } from "../../../runtime/memory/held-bytes.js";
import { KIB } from "../../../runtime/sizes.js";
import { cutConnection } from "../../http/queued-answers.js";
import { AT_ONCE_BYTES, type SlowReaders } from "../../http/slow-readers.js";
import { EVENT_END, EVENT_STREAM_HEADERS, eventHead, KEEP_ALIVE, messageEvent, primingEvent } from "../../http/sse.js";
import { pipeBody } from "../../http/write-reply.js";
import type { EndpointLimits } from "../../session/limits.js";
import { oneLineBytes } from "../../session/one-line.js";
import type { Retained } from "./retained.js";
import { Replay } from "./retained.js";

/** What the streams of one endpoint share. */
export interface StreamContext {
  /** This one, where there are several. */
  readonly gateway?: string | undefined;
  readonly limits: EndpointLimits;
  readonly retained: Retained;
  readonly readers: SlowReaders;
  now(): number;
  /** Open streams, for keep-alive comments. */
  readonly open: Set<EventStream>;
  /** Sessions that servers have asked something: whether their agents are still there is looked at now and then. */
  readonly asked: Set<AskedSession>;
  /** Notifications that slow readers had no room for. */
  readonly leftOut?: { count: number };
}

export interface AskedSession {
  lookForAgent(nowMs: number): void;
}

/** Events up to this size are sent and kept as one buffer; a larger body is not copied to be sent. */
const ONE_BUFFER_BYTES = 64 * KIB;

/** `exhausted` means that the client has had all there is, `gone` that what it lacks is not kept any more. */
export type Resumption = "resumed" | "exhausted" | "gone";

export class EventStream {
  /** Unguessable, and carries the session's tag: what stands before the sequence number in an event id. */
  readonly key: string;
  readonly #context: StreamContext;
  readonly #replay: Replay;
  readonly #primed: boolean;
  /** Whose memory it takes. */
  readonly #owner: string;
  #res: ServerResponse | undefined;
  #seq = 0;
  #finished = false;
  #abandoned = false;
  #finishedAt = 0;
  /** Counts the notifications that were left out and of which the client was not told yet. */
  #leftOut = 0;
  /** While a client that came back has not yet got all it missed: the last event that it was sent. */
  #behind: number | undefined;
  #lastWrite = 0;
  /** Called when the connection is gone, whoever ended it. */
  onDetached: (() => void) | undefined;

  constructor(context: StreamContext, owner: string, key: string, primed: boolean) {
    this.key = key;
    this.#owner = owner;
    this.#context = context;
    this.#primed = primed;
    const { replayEvents, replayBytes } = context.limits;
    this.#replay = new Replay(context.retained, owner, replayEvents, replayBytes);
  }

  get attached(): boolean {
    return this.#res !== undefined;
  }

  /** An event id was sent, by which a client that lost its connection can ask for the rest. */
  get isResumable(): boolean {
    return this.#seq > 0;
  }

  /** The last message has been given to it; it may still be read by a client that comes back. */
  get finished(): boolean {
    return this.#finished;
  }

  expired(nowMs: number): boolean {
    return this.#finished && !this.attached && nowMs - this.#finishedAt > this.#context.limits.replayKeepMs;
  }

  /** Begins the answer of a POST or GET with this stream. */
  open(res: ServerResponse): void {
    this.#attach(res);
    if (this.#primed) {
      const seq = ++this.#seq;
      this.#write(primingEvent(`${this.key}-${seq}`));
    }
  }

  /** Goes on where a client stopped reading. Nothing is written unless it is `resumed`. */
  resume(res: ServerResponse, seq: number): Resumption {
    if (this.#abandoned || (this.#finished && seq === this.#seq)) return "exhausted";
    if (seq > this.#seq || (this.#finished && !this.#replay.endsWith(this.#seq))) return "gone";
    this.#res?.destroy();
    this.#detached();
    this.#attach(res);
    this.#catchUp(res, seq);
    return "resumed";
  }

  /** Writes what was missed, as fast as it is read; what comes meanwhile queues up behind it in the replay buffer. */
  #catchUp(res: ServerResponse, seq: number): void {
    this.#behind = seq;
    for (let next = this.#replay.next(seq); next !== undefined; next = this.#replay.next(this.#behind)) {
      this.#sayMissing(res, next.seq - this.#behind - 1);
      this.#behind = next.seq;
      if (res.write(next.event)) continue;
      this.#watch(res);
      const { seq: reached } = next;
      res.once("drain", () => {
        if (this.#res === res && this.#behind === reached) this.#catchUp(res, reached);
      });
      return;
    }
    this.#sayMissing(res, this.#seq - this.#behind);
    this.#behind = undefined;
    if (this.#finished) this.#end();
  }

  /** A client that came back is told of what it missed and is not kept. */
  #sayMissing(res: ServerResponse, count: number): void {
    if (count > 0)
      res.write(messageEvent(undefined, leftOutText(count, "so much is not kept for a client that is away")));
  }

  #attach(res: ServerResponse): void {
    this.#res = res;
    res.writeHead(200, EVENT_STREAM_HEADERS as string[]);
    res.flushHeaders();
    res.on("close", () => {
      if (this.#res === res) this.#detached();
    });
    this.#lastWrite = this.#context.now();
    this.#context.open.add(this);
  }

  #detached(): void {
    if (this.#res === undefined) return;
    this.#res = undefined;
    this.#behind = undefined;
    this.#context.open.delete(this);
    this.onDetached?.();
  }

  /**
   * Sends a notification, or leaves it out where it does not fit beside what waits for the reader. To cut the reader would
   * cost it the reply to its call, and a server decides how much it says before that. That something was left out is
   * said as soon as there is room.
   */
  notify(text: string): void {
    if (this.#finished) return;
    if (this.#hasRoom(text)) {
      this.#sayLeftOut();
      this.send(text);
      return;
    }
    this.#leftOut++;
    if (this.#context.leftOut !== undefined) this.#context.leftOut.count++;
  }

  /** One for whom nothing waits takes a message of any size. What is kept for one who is away has its own bound. */
  #hasRoom(text: string): boolean {
    const res = this.#res;
    if (res === undefined || this.#behind !== undefined) return true;
    const waiting = res.writableLength;
    if (waiting < AT_ONCE_BYTES && text.length < SMALL_BYTES) return true;
    const bytes = Buffer.byteLength(text);
    const { limits, readers } = this.#context;
    if (waiting >= AT_ONCE_BYTES && waiting + bytes > limits.slowReaderBytes) return false;
    return readers.held.fits(this.#owner, bytes);
  }

  #sayLeftOut(): void {
    if (this.#leftOut === 0) return;
    const text = leftOutText(this.#leftOut, "too much waited for this stream to be read");
    this.#leftOut = 0;
    this.send(text);
  }

  /** Sends what must not be left out: a server's question, a reply. */
  send(text: string): void {
    if (this.#finished) return;
    const seq = ++this.#seq;
    const line = messageEvent(`${this.key}-${seq}`, text);
    // A long one is kept and written as the same bytes: as a string it would be copied for each.
    const event = line.length < SMALL_BYTES ? line : Buffer.from(line);
    this.#replay.add(seq, event);
    this.#write(event);
  }

  /** Sends the last message, keeps it for a client that comes back, and ends the stream. */
  finish(bytes: Buffer): void {
    if (this.#finished) return;
    this.#sayLeftOut();
    this.#last();
    const seq = ++this.#seq;
    const head = eventHead(`${this.key}-${seq}`);
    const body = oneLineBytes(bytes);
    const kept = body.length + head.length + EVENT_END.length <= this.#context.limits.replayBytes;
    if (body.length < ONE_BUFFER_BYTES || (kept && (!this.attached || this.#behind !== undefined))) {
      const event = Buffer.concat([Buffer.from(head), body, Buffer.from(EVENT_END)]);
      this.#replay.add(seq, event);
      this.#write(event);
    } else {
      if (kept) this.#replay.add(seq, Buffer.concat([Buffer.from(head), body, Buffer.from(EVENT_END)]));
      else this.#replay.release();
      this.#behind = undefined;
      const res = this.#res;
      if (res !== undefined) {
        res.cork();
        res.write(head);
        res.write(body);
        res.write(EVENT_END);
        res.uncork();
        res.setTimeout(this.#context.limits.stallMs);
        this.#watch(res);
      }
    }
    if (this.#behind === undefined) this.#end();
  }

  /** Sends the last message, which is too large to be kept, as it lies in memory. */
  finishPieces(pieces: readonly Buffer[]): void {
    if (this.#finished) return;
    this.#sayLeftOut();
    this.#last();
    const seq = ++this.#seq;
    this.#replay.release();
    this.#behind = undefined;
    const res = this.#res;
    if (res !== undefined) {
      res.cork();
      res.write(eventHead(`${this.key}-${seq}`));
      for (const piece of pieces) res.write(oneLineBytes(piece));
      res.write(EVENT_END);
      res.uncork();
      res.setTimeout(this.#context.limits.stallMs);
      this.#watch(res);
    }
    this.#end();
  }

  #watch(res: ServerResponse): void {
    if (!this.#context.readers.watch(res, this.#owner)) this.cut();
  }

  /** Counts what waits for the reader; one for whom there is no room is cut. */
  watchReader(): void {
    if (this.#res !== undefined) this.#watch(this.#res);
  }

  /** Sends the last message from a stream, which is not kept. A reader must be attached. */
  finishStream(body: Readable): void {
    const res = this.#res;
    if (this.#finished || res === undefined) {
      body.destroy();
      return;
    }
    this.#sayLeftOut();
    this.#last();
    const seq = ++this.#seq;
    this.#replay.release();
    this.#behind = undefined;
    res.write(eventHead(`${this.key}-${seq}`));
    // From here on nothing else may be written into the event.
    this.#context.open.delete(this);
    pipeBody(body, res, this.#context.readers, this.#owner, EVENT_END);
  }

  #last(): void {
    this.#finished = true;
    this.#finishedAt = this.#context.now();
  }

  #write(event: string | Buffer): void {
    const res = this.#res;
    if (res === undefined || this.#behind !== undefined) return;
    this.#lastWrite = this.#context.now();
    res.write(event);
    if (res.writableLength >= AT_ONCE_BYTES) this.#watch(res);
  }

  /** Breaks the connection off; the stream can be resumed. */
  cut(): void {
    if (this.#res !== undefined) cutConnection(this.#res);
    this.#detached();
  }

  #end(): void {
    const res = this.#res;
    this.#detached();
    res?.end();
    if (res !== undefined && res.writableLength > 0 && !this.#context.readers.watch(res, this.#owner))
      cutConnection(res);
  }

  /** Ends the stream: what was sent was all. It stays for a client that did not get it. */
  complete(): void {
    this.#sayLeftOut();
    this.#last();
    if (this.#behind === undefined) this.#end();
  }

  /** Ends the stream without a reply: the call was cancelled, or the session is over. */
  abandon(): void {
    this.#last();
    this.#abandoned = true;
    this.#replay.release();
    this.#end();
  }

  keepAlive(nowMs: number): void {
    if (this.#leftOut > 0 && this.#hasRoom("")) this.#sayLeftOut();
    if (nowMs - this.#lastWrite < this.#context.limits.quietMs) return;
    this.#write(KEEP_ALIVE);
  }

  release(): void {
    this.#replay.release();
  }
}

/** What an agent is told in place of notifications that it does not get; `why` is a clause. */
function leftOutText(count: number, why: string): string {
  const data = `${count} ${count === 1 ? "message was" : "messages were"} left out, because ${why}.`;
  const params = { level: "error", logger: "toolway", data };
  return JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params });
}
