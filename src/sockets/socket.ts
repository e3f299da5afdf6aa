// A WebSocket as its users need it: it brings whole messages, sends frames, tells when there is room again, and gives
// up a peer that went silent. What the messages mean is not known here.

import type { EventEmitter } from "node:events";
import { KIB, MIB } from "../runtime/sizes.js";
import { messageTurns } from "../runtime/turns/message-turns.js";
import { turns } from "../runtime/turns/turns.js";
import { MAX_MESSAGE_BYTES, MAX_UNACKED_BYTES, PING_MS, SILENCE_MS } from "./limits.js";

/** What is used of a WebSocket of `ws`. Its own types would have to be installed beside ours. */
interface OpenWebSocket extends EventEmitter {
  readonly bufferedAmount: number;
  readonly readyState: number;
  pause(): void;
  resume(): void;
  ping(): void;
  pong(data: Buffer, mask: undefined, written: () => void): void;
  send(data: string | Buffer, options: { binary: boolean; fin?: boolean }, written: () => void): void;
  close(code: number, reason: string): void;
  terminate(): void;
}

/** How a WebSocket that is to become a Socket is made, whichever side it is. */
export const SOCKET_OPTIONS = {
  perMessageDeflate: false,
  // The socket answers pings, one at a time.
  autoPong: false,
  maxPayload: MAX_MESSAGE_BYTES,
  // What is not UTF-8 is not JSON that means anything to us, and most of the bytes are base64.
  skipUTF8Validation: true,
} as const;

export interface SocketEvents {
  onMessage(bytes: Buffer): void;
  /** What was sent has been written: there is room again. */
  onDrain(): void;
  /** It is gone; `why` is for people. Nothing comes after it. */
  onClose(why: string): void;
}

/** WebSocket close codes that we send. */
export const Close = { normal: 1000, goingAway: 1001, policy: 1008, replaced: 4000 } as const;

/** After these the conversation is over; after any other end the peer may come back to it. */
const GOODBYES: ReadonlySet<number> = new Set([Close.normal, Close.goingAway, Close.policy]);

/** How long the peer may take to say goodbye in return. */
const GOODBYE_MS = 2_000;

/** The code of a socket that ended without a goodbye. */
const BROKE_OFF = 1006;

/** The exec-server closes a connection on which a frame is larger than 16 MiB; a message may be made of several. */
const MAX_FRAME_BYTES = 8 * MIB;

/** What fits into a close frame, in bytes. */
const MAX_REASON_BYTES = 123;

/** Pings without a sign of life after them. */
const MAX_SILENT_PINGS = SILENCE_MS / PING_MS;

/** For a socket that nobody wants to hear of. */
export const NO_EVENTS: SocketEvents = { onMessage() {}, onDrain() {}, onClose() {} };

/** The connection that carries a WebSocket, as far as it is used here. */
interface Wire {
  readonly bytesRead: number;
  write(text: string, encoding: "latin1", written: () => void): boolean;
  cork(): void;
  uncork(): void;
  destroy(error: Error): unknown;
}

/**
 * How frames are masked that this side sends. A server's are not. A client's are, against those between who would take
 * what is in them for something else: where nobody is between, who listens on loopback or behind TLS, a mask of zeros will do,
 * which is no work for either end.
 */
export type FrameMask = "none" | "zeros" | "random";

/** Of `readyState`: frames may be sent. */
const OPEN = 1;
/** The first byte of a frame that is a whole text. */
const TEXT_FRAME = "\x81";
const MASKED = 0x80;
const ZERO_MASK = "\0\0\0\0";
/** A frame that is longer has more bytes of length than are written here. It is not small, and the library sends it. */
const MAX_SMALL_FRAME = 0xffff;

/** What is gathered leaves at once when it is so much: more in one write saves nothing. */
const MAX_GATHERED_BYTES = 64 * KIB;

export class Socket {
  readonly #ws: OpenWebSocket;
  readonly #wire: Wire;
  #pings: NodeJS.Timeout;
  #beatMs = PING_MS;
  #maxSilentPings = MAX_SILENT_PINGS;
  #events: SocketEvents = NO_EVENTS;
  /** Bytes that had been read at the last look: a large message is a sign of life long before it is whole. */
  #heardBytes: number;
  #silentPings = 0;
  #crowded: boolean = false;
  #gone: boolean = false;
  #gathers: boolean = false;
  /** Characters that wait for the end of this turn; undefined where none do. */
  #gathered: number | undefined;
  #isCorked: boolean = false;
  readonly #mask: FrameMask;
  /** Small frames of this turn, one after the other, a byte a character: they are not with the connection yet. */
  #frames = "";
  /** A pong is on its way; the pings behind it need none of their own. */
  #ponging: boolean = false;
  #goodbye: NodeJS.Timeout | undefined;
  #closedBefore: string | undefined;
  #saidGoodbye: boolean = false;
  #wasRefused: boolean = false;
  #whenGone: ((why: string) => void) | undefined;
  /** What came with the last reads and is for the next turns. No more is read meanwhile, so it is not more than those brought. */
  #late: Buffer[] = [];
  /** The end came behind it. */
  #lateClose: (() => void) | undefined;

  /** Takes a WebSocket that is open, and the connection that carries it. Nothing is read before attach(). */
  constructor(ws: OpenWebSocket, wire: Wire, mask: FrameMask) {
    this.#ws = ws;
    this.#wire = wire;
    this.#mask = mask;
    this.#heardBytes = wire.bytesRead;
    ws.pause();
    ws.on("message", (data: Buffer) => this.#onMessage(data));
    // The library's own pongs would pile up where a peer sends pings and does not read.
    ws.on("ping", (data: Buffer) => {
      if (this.#ponging || this.#gone) return;
      this.#ponging = true;
      ws.pong(data, undefined, () => {
        this.#ponging = false;
      });
    });
    // `close` follows, and is told.
    ws.on("error", (error: Error) => {
      this.#closedBefore ??= error.message;
    });
    ws.on("close", (code: number, reason: Buffer) => this.#close(code, reason));
    this.#pings = setInterval(() => this.#ping(), PING_MS).unref();
  }

  /** Asks for a sign of life this often, and gives up a peer that gave none until it is asked again. */
  beat(everyMs: number): void {
    if (this.#gone) return;
    clearInterval(this.#pings);
    this.#beatMs = everyMs;
    this.#maxSilentPings = 1;
    this.#pings = setInterval(() => this.#ping(), everyMs).unref();
  }

  /**
   * From now on what is sent within one turn of the event loop leaves in one write. It is for many small messages: a write
   * of its own costs each of them more than all else that is done for it.
   */
  gather(): void {
    this.#gathers = true;
  }

  /** Who hears of it from now on. */
  attach(events: SocketEvents): void {
    this.#events = events;
    if (!this.#gone) {
      this.#ws.resume();
      return;
    }
    queueMicrotask(() => {
      // Another may have been attached meanwhile.
      if (this.#events === events) events.onClose(this.#closedBefore ?? "it is closed");
    });
  }

  /** For whoever counts sockets: hears of the end before those who are attached do, or at once where it is over. */
  whenGone(listener: (why: string) => void): void {
    if (this.#gone) listener(this.#closedBefore ?? "it is closed");
    else this.#whenGone = listener;
  }

  /** The peer ended it of its own will: it does not come back to what was said here. */
  get saidGoodbye(): boolean {
    return this.#saidGoodbye;
  }

  /** The peer ended it because of who we are or what we said: it would do so again. */
  get wasRefused(): boolean {
    return this.#wasRefused;
  }

  /** Never throws; what cannot be sent is lost with the socket. */
  send(frame: string | Buffer): void {
    if (this.#gone) return;
    if (this.#gathers) this.#hold(frame.length);
    if (this.#gathers && typeof frame === "string" && this.#isOwn(frame)) {
      this.#frames += headOf(frame.length, this.#mask) + frame;
    } else {
      if (this.#gathers) this.#cork();
      this.#writeFrames();
      if (frame.length > MAX_FRAME_BYTES) this.#sendInFrames(typeof frame === "string" ? Buffer.from(frame) : frame);
      else this.#ws.send(frame, TEXT, this.#written);
    }
    if (this.waiting > MAX_UNACKED_BYTES) this.#crowded = true;
  }

  /** Bytes that are not written yet. */
  get waiting(): number {
    return this.#ws.bufferedAmount + this.#frames.length;
  }

  /** Says goodbye, and does not wait for long. */
  close(code: number, reason: string): void {
    if (this.#gone || this.#goodbye !== undefined) return;
    this.#goodbye = setTimeout(() => this.#terminate("it said no goodbye"), GOODBYE_MS).unref();
    this.#writeFrames();
    // The peer's goodbye is read even where nobody was attached.
    this.#ws.resume();
    const bytes = Buffer.from(reason).subarray(0, MAX_REASON_BYTES);
    // Half a letter at the cut is left out.
    this.#ws.close(code, bytes.toString().replace(/\uFFFD+$/, ""));
  }

  /** Ends it at once, as a broken network would. */
  destroy(why: string): void {
    this.#closedBefore ??= why;
    this.#late = [];
    this.#terminate(why);
  }

  /**
   * Node tells each write that was waiting, of which there may be a hundred thousand, of an error of its own, unless there is one
   * for all: making them took a second of one turn of the event loop.
   */
  #terminate(why: string): void {
    this.#wire.destroy(new Error(why));
    this.#ws.terminate();
  }

  /** One read may bring thousands of small messages: those for which this turn has no time come in the next ones. */
  #onMessage(data: Buffer): void {
    if (this.#late.length === 0 && messageTurns.take(data.length)) {
      this.#take(data);
      return;
    }
    // Also where it was read on for a goodbye.
    this.#ws.pause();
    if (this.#late.push(data) === 1) messageTurns.wait(this.#takeLate);
  }

  /**
   * One turn of the event loop would read some large messages of each connection that has them. So who sent one is read on when the
   * large ones of others had their turns.
   */
  #take(data: Buffer): void {
    this.#events.onMessage(data);
    if (turns.take(data.length, this.#readOn) || this.#gone || this.#goodbye !== undefined) return;
    this.#ws.pause();
  }

  /** One function for all turns. */
  readonly #readOn = (): void => {
    if (this.#late.length === 0) this.#ws.resume();
  };

  /** One function for all turns. */
  readonly #takeLate = (): void => {
    const late = this.#late;
    let taken = 0;
    for (const data of late) {
      if (!messageTurns.take(data.length)) break;
      taken++;
      this.#take(data);
      // It was destroyed for what it said.
      if (this.#late !== late) break;
    }
    late.splice(0, taken);
    if (this.#late.length > 0) {
      messageTurns.wait(this.#takeLate);
      return;
    }
    this.#ws.resume();
    this.#lateClose?.();
  };

  /** The callback of every send; one function for all messages. */
  readonly #written = (): void => {
    if (!this.#crowded || this.waiting > MAX_UNACKED_BYTES / 2) return;
    this.#crowded = false;
    this.#events.onDrain();
  };

  /** What is sent next waits for the end of this turn. */
  #hold(length: number): void {
    if (this.#gathered === undefined) {
      this.#gathered = 0;
      setImmediate(this.#release);
    } else if (this.#gathered >= MAX_GATHERED_BYTES) {
      this.#gathered = 0;
      this.#write();
    }
    this.#gathered += length;
  }

  /** What the library writes is several pieces, which leave together. */
  #cork(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.#wire.cork();
  }

  #write(): void {
    this.#writeFrames();
    if (!this.#isCorked) return;
    this.#isCorked = false;
    this.#wire.uncork();
  }

  /** It is put together here: the library would make two buffers of it, and the connection a list of all of them. */
  #isOwn(frame: string): boolean {
    // What is ASCII has as many bytes as characters.
    return this.#mask !== "random" && frame.length <= MAX_SMALL_FRAME && Buffer.byteLength(frame) === frame.length;
  }

  #writeFrames(): void {
    if (this.#frames === "") return;
    const frames = this.#frames;
    this.#frames = "";
    // After a goodbye nothing may follow.
    if (this.#ws.readyState === OPEN) this.#wire.write(frames, "latin1", this.#written);
  }

  /** One function for all turns. */
  readonly #release = (): void => {
    this.#gathered = undefined;
    this.#write();
  };

  /** It is one message all the same: nothing but pings is sent between its frames. */
  #sendInFrames(message: Buffer): void {
    for (let at = 0; at < message.length; at += MAX_FRAME_BYTES) {
      const end = at + MAX_FRAME_BYTES;
      const fin = end >= message.length;
      this.#ws.send(message.subarray(at, end), fin ? TEXT : MORE_TEXT, this.#written);
    }
  }

  #ping(): void {
    const { bytesRead } = this.#wire;
    this.#silentPings = bytesRead === this.#heardBytes ? this.#silentPings + 1 : 0;
    this.#heardBytes = bytesRead;
    if (this.#silentPings < this.#maxSilentPings) this.#ws.ping();
    else this.destroy(`nothing was heard for ${(this.#maxSilentPings * this.#beatMs) / 1000} s`);
  }

  #close(code: number, reason: Buffer): void {
    if (this.#gone) return;
    if (this.#late.length > 0) {
      this.#lateClose = () => this.#close(code, reason);
      return;
    }
    this.#gone = true;
    clearInterval(this.#pings);
    clearTimeout(this.#goodbye);
    this.#closedBefore ??= reason.length > 0 ? reason.toString() : meaningOf(code);
    this.#saidGoodbye = GOODBYES.has(code);
    this.#wasRefused = code === Close.policy;
    this.#whenGone?.(this.#closedBefore);
    this.#events.onClose(this.#closedBefore);
  }
}

/** What stands before the bytes of a frame. */
function headOf(length: number, mask: FrameMask): string {
  const bit = mask === "none" ? 0 : MASKED;
  const key = mask === "none" ? "" : ZERO_MASK;
  if (length < 126) return TEXT_FRAME + String.fromCharCode(bit | length) + key;
  return TEXT_FRAME + String.fromCharCode(bit | 126, length >> 8, length & 0xff) + key;
}

function meaningOf(code: number): string {
  if (code === BROKE_OFF) return "the connection broke off";
  return code === Close.normal ? "the peer closed it" : `the peer closed it with code ${code}`;
}

const TEXT = { binary: false };
const MORE_TEXT = { binary: false, fin: false };
