// A stream of bytes between two brokers as a socket of a peer: its frames, and a goodbye as a WebSocket has it.

import type { Duplex } from "node:stream";
import { KIB } from "../../runtime/sizes.js";
import { FrameBytes, frameHead } from "../../sockets/framing.js";
import { MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import { NO_EVENTS, type SocketEvents } from "../../sockets/socket.js";
import type { PeerSocket } from "../broker/peer-connection.js";
import { MAX_FRAME_BYTES } from "../wire/limits.js";

/** A frame of a peer, with room for what a broker puts around its message. */
const MAX_BYTES = MAX_FRAME_BYTES + 64 * KIB;
/** Types of frames. */
const TEXT = 0;
const CLOSE = 1;
/** Shorter ones leave in one piece with their head: a copy costs less than a second write. */
const JOINED_BYTES = 16 * KIB;
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
  readonly #bytes = new FrameBytes();
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

  #write(type: number, text: Buffer): void {
    const head = frameHead(type, text.length);
    if (text.length < JOINED_BYTES) this.#stream.write(Buffer.concat([head, text]));
    else {
      this.#stream.write(head);
      this.#stream.write(text);
    }
    if (this.waiting > 2 * MAX_UNACKED_BYTES) this.destroy("the other broker does not read");
  }

  #take(chunk: Buffer): void {
    this.#bytes.push(chunk);
    while (!this.#isOver) {
      const head = this.#bytes.head();
      if (head === undefined) return;
      if (head.length > MAX_BYTES) {
        this.destroy("a frame of another broker is too long");
        return;
      }
      const text = this.#bytes.takeFrame(head.length);
      if (text === undefined) return;
      if (head.type === CLOSE) {
        const { code, reason } = JSON.parse(text.toString()) as Goodbye;
        this.#events.onGoodbye?.(code, reason);
        this.#stream.end();
        this.#end(reason);
        return;
      }
      this.#events.onMessage(text);
    }
  }

  #end(why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#bytes.clear();
    this.#events.onClose(why);
  }
}
