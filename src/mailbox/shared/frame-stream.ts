// Frames on a stream of bytes between two brokers: one byte for what it is, four for its length, and its text. A stream that loses
// something ends by itself, so that there is nothing to check here but lengths.

import type { Duplex } from "node:stream";
import { KIB } from "../../runtime/sizes.js";
import { MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import { NO_EVENTS, type SocketEvents } from "../../sockets/socket.js";
import type { PeerSocket } from "../broker/peer-connection.js";
import { MAX_FRAME_BYTES } from "../wire/limits.js";

/** A frame of a peer, with room for what a broker puts around its message. */
const MAX_BYTES = MAX_FRAME_BYTES + 64 * KIB;
const HEAD_BYTES = 5;
const TEXT = 0;
const CLOSE = 1;
/** What was said last has so long to leave. */
const GOODBYE_MS = 2_000;

interface Goodbye {
  readonly code: number;
  readonly reason: string;
}

/** How the other end said goodbye: `code` is that of a WebSocket. */
export interface FrameStreamEvents extends SocketEvents {
  onGoodbye?(code: number, reason: string): void;
}

/** One end of such a stream, as a socket of a peer. */
export class FrameStream implements PeerSocket {
  readonly #stream: Duplex;
  #events: FrameStreamEvents = NO_EVENTS;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isOver = false;
  #isPaused = false;

  constructor(stream: Duplex) {
    this.#stream = stream;
    stream.on("data", (chunk: Buffer) => this.#take(chunk));
    stream.on("drain", () => {
      if (!this.#isOver) this.#events.onDrain();
    });
    stream.on("error", (error: Error) => this.#end(error.message));
    stream.on("end", () => this.#end("the other broker ended it"));
    stream.on("close", () => this.#end("the other broker is gone"));
  }

  get waiting(): number {
    return this.#stream.writableLength;
  }

  attach(events: FrameStreamEvents): void {
    this.#events = events;
  }

  /** The stream notices by itself that the other end is gone. */
  beat(): void {}

  gather(): void {}

  send(frame: string): void {
    if (!this.#isOver) this.#write(TEXT, Buffer.from(frame));
  }

  /** Nothing is read while whoever it is for does not read. */
  pause(isPaused: boolean): void {
    if (this.#isPaused === isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#stream.pause();
    else this.#stream.resume();
  }

  close(code: number, reason: string): void {
    if (this.#isOver) return;
    const goodbye: Goodbye = { code, reason };
    this.#write(CLOSE, Buffer.from(JSON.stringify(goodbye)));
    this.#stream.end();
    this.#end(reason);
    setTimeout(() => this.#stream.destroy(), GOODBYE_MS).unref();
  }

  destroy(why: string): void {
    this.#stream.destroy();
    this.#end(why);
  }

  #write(what: number, text: Buffer): void {
    const head = Buffer.allocUnsafe(HEAD_BYTES);
    head[0] = what;
    head.writeUInt32BE(text.length, 1);
    this.#stream.write(text.length < 16 * KIB ? Buffer.concat([head, text]) : head);
    if (text.length >= 16 * KIB) this.#stream.write(text);
    if (this.waiting > 2 * MAX_UNACKED_BYTES) this.destroy("the other broker does not read");
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    for (;;) {
      if (this.#isOver || this.#bytes < HEAD_BYTES) return;
      const first = this.#first(HEAD_BYTES);
      const length = first.readUInt32BE(1);
      if (length > MAX_BYTES) {
        this.destroy("a frame of another broker is too long");
        return;
      }
      if (this.#bytes < HEAD_BYTES + length) return;
      const all = this.#first(HEAD_BYTES + length);
      const text = all.subarray(HEAD_BYTES, HEAD_BYTES + length);
      this.#chunks[0] = all.subarray(HEAD_BYTES + length);
      this.#bytes -= HEAD_BYTES + length;
      if (all[0] === CLOSE) {
        const { code, reason } = JSON.parse(text.toString()) as Goodbye;
        this.#events.onGoodbye?.(code, reason);
        this.#stream.end();
        this.#end(reason);
        return;
      }
      this.#events.onMessage(text);
    }
  }

  /** The first of what came, with at least so many bytes in one piece. */
  #first(bytes: number): Buffer {
    const [only = EMPTY] = this.#chunks;
    if (only.length >= bytes) return only;
    const joined = Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined;
  }

  #end(why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#chunks = [];
    this.#events.onClose(why);
  }
}

const EMPTY = Buffer.alloc(0);
