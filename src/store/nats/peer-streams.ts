// Streams of bytes between gateways over the engine's core, which keeps nothing and may lose what is on its way: pieces have
// numbers, so that a loss is an error at both ends and never a hole; and a sender has credit, so that a slow reader holds up
// its own stream alone. Messages of one gateway to another come in the order in which they left: a look at the numbers now
// and then finds the loss of a last piece, and the end of a gateway.

import { Duplex } from "node:stream";
import { PeerError } from "../../contracts/engine/peers.js";
import { KIB } from "../../runtime/sizes.js";

/** What a sender may have on its way, and so about what a stream that nobody reads holds. */
const WINDOW_BYTES = 64 * KIB;
/** Credit is given back in steps of this: one message for many small pieces. */
const GRANT_BYTES = WINDOW_BYTES / 2;
/** Of one gateway, to and from all others: with nobody reading they hold 256 MiB. */
const MAX_STREAMS = 4_096;
/** How often the numbers are compared. A gateway that was killed is noticed after two of these at most. */
const LOOK_MS = 4_000;
/** So many numbers are in one comparison: about 16 KiB, which any engine takes. */
const MAX_COMPARED = 512;
/** To begin a stream, and to compare numbers: both are answered at once. */
const ANSWER_MS = 5_000;

/** What stands at the head of a message of a stream. */
export interface StreamHead {
  readonly id: string;
  readonly stream: "open" | "data" | "credit" | "end" | "reset" | "look";
  /** Of `open`. */
  readonly kind?: string;
  /** Which of the sender's messages on this stream it is, from 1; 0 for what is not of one stream. */
  readonly number: number;
  /** Of `credit`: bytes that may be sent beyond those before. */
  readonly bytes?: number;
}

/** What streams need of the connection to other gateways. */
export interface StreamWire {
  /** False where the engine is away: nothing was sent. */
  send(peer: string, head: StreamHead, body: Uint8Array): boolean;
  /** Rejects with a PeerError. */
  ask(peer: string, head: StreamHead, body: Uint8Array, timeoutMs: number): Promise<Uint8Array>;
  /** What one message may carry. */
  maxBytes(): number;
  newId(): string;
}

type Taken = (stream: Duplex, from: string) => void;

export class PeerStreams {
  readonly #wire: StreamWire;
  /**
   * By the ids that this end drew at random. Each end has one of its own for a stream, so that messages of an earlier one,
   * which somebody kept and sends anew, are about nothing.
   */
  readonly #open = new Map<string, PeerStream>();
  readonly #kinds = new Map<string, Taken>();
  #timer: NodeJS.Timeout | undefined;

  constructor(wire: StreamWire) {
    this.#wire = wire;
  }

  async connect(peer: string, kind: string): Promise<Duplex> {
    if (this.#open.size >= MAX_STREAMS) throw new PeerError("busy", FULL);
    const id = this.#wire.newId();
    // The other end may write before we are told that it is there.
    const stream = this.#add(peer, id);
    try {
      const there = await this.#wire.ask(peer, { id, stream: "open", kind, number: 0 }, NOTHING, ANSWER_MS);
      stream.there = Buffer.from(there).toString();
      // It was lost again while we were told that it is there.
      if (stream.destroyed) throw stream.errored ?? lost(peer);
      return stream;
    } catch (error) {
      stream.destroy();
      throw error;
    }
  }

  accept(kind: string, taken: Taken): () => void {
    this.#kinds.set(kind, taken);
    return () => {
      if (this.#kinds.get(kind) === taken) this.#kinds.delete(kind);
    };
  }

  /** A message of a stream that another gateway sent. What it returns is the answer, where one is waited for; throws why not. */
  onMessage(from: string, head: StreamHead, body: Uint8Array): Uint8Array | undefined {
    if (head.stream === "look") return this.#compare(from, body);
    if (head.stream === "open") return this.#begin(from, head);
    const stream = this.#open.get(head.id);
    if (stream !== undefined && stream.peer === from) stream.onMessage(head, body);
    return undefined;
  }

  close(): void {
    for (const stream of [...this.#open.values()]) stream.destroy(new PeerError("away", "This gateway is closing."));
  }

  #begin(from: string, { id, kind = "" }: StreamHead): Uint8Array {
    const taken = this.#kinds.get(kind);
    if (taken === undefined) throw new Error(`It takes no streams of "${kind}".`);
    if (this.#open.size >= MAX_STREAMS) throw new Error(FULL);
    const here = this.#wire.newId();
    const stream = this.#add(from, here);
    stream.there = id;
    taken(stream, from);
    return Buffer.from(here);
  }

  #add(peer: string, id: string): PeerStream {
    const stream: PeerStream = new PeerStream(peer, {
      send: (head, body) => this.#wire.send(peer, { ...head, id: stream.there ?? "" }, body),
      maxBytes: () => this.#wire.maxBytes(),
      ended: () => {
        this.#open.delete(id);
        if (this.#open.size > 0) return;
        clearInterval(this.#timer);
        this.#timer = undefined;
      },
    });
    this.#open.set(id, stream);
    // Until somebody has it in hand nobody else listens, and an error that nobody hears ends the process.
    stream.on("error", () => {});
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref();
    return stream;
  }

  /** How far each of them got, told to the gateway at its other end. */
  #look(): void {
    const byPeer = new Map<string, Map<string, PeerStream>>();
    for (const stream of this.#open.values()) {
      // One that is still being begun has a time of its own.
      if (stream.there === undefined) continue;
      const known = byPeer.get(stream.peer) ?? new Map<string, PeerStream>();
      byPeer.set(stream.peer, known);
      known.set(stream.there, stream);
    }
    for (const [peer, streams] of byPeer) {
      const all = [...streams];
      for (let at = 0; at < all.length; at += MAX_COMPARED) {
        void this.#lookAt(peer, new Map(all.slice(at, at + MAX_COMPARED)));
      }
    }
  }

  async #lookAt(peer: string, streams: ReadonlyMap<string, PeerStream>): Promise<void> {
    let broken: readonly string[];
    const numbers = [...streams].map(([id, { sent }]) => [id, sent]);
    try {
      const body = Buffer.from(JSON.stringify(numbers));
      const answer = await this.#wire.ask(peer, { id: this.#wire.newId(), stream: "look", number: 0 }, body, ANSWER_MS);
      broken = JSON.parse(Buffer.from(answer).toString()) as string[];
    } catch {
      broken = [...streams.keys()];
    }
    for (const id of broken) {
      const stream = streams.get(id);
      if (stream === undefined || stream.isOver) continue;
      stream.destroy(new PeerError("late", `The stream to gateway ${peer} is broken.`));
    }
  }

  /** All that the other end sent before this has come: what is missing now is lost. */
  #compare(from: string, body: Uint8Array): Uint8Array {
    const numbers = JSON.parse(Buffer.from(body).toString()) as [string, number][];
    const broken = numbers.flatMap(([id, sent]) => {
      const stream = this.#open.get(id);
      return stream?.peer === from && stream.received === sent ? [] : [id];
    });
    for (const id of broken) {
      const stream = this.#open.get(id);
      if (stream?.peer === from && !stream.isOver) stream.destroy(lost(from));
    }
    return Buffer.from(JSON.stringify(broken));
  }
}

interface StreamParts {
  send(head: Omit<StreamHead, "id">, body: Uint8Array): boolean;
  maxBytes(): number;
  ended(): void;
}

class PeerStream extends Duplex {
  readonly peer: string;
  /** What the other end calls it; undefined until it has told. */
  there: string | undefined;
  readonly #parts: StreamParts;
  #sent = 0;
  #received = 0;
  #credit = WINDOW_BYTES;
  /** Bytes that came, and for which no credit was given back yet. */
  #ungranted = 0;
  /** What waits for credit, and whom to tell when it has left. */
  #waiting: { rest: Buffer; readonly done: (error?: Error) => void } | undefined;
  /** We have sent all of ours; and all of theirs has come, read or not. */
  #hasEnded = false;
  #isAllIn = false;
  #still: NodeJS.Timeout | undefined;

  constructor(peer: string, parts: StreamParts) {
    super({ allowHalfOpen: true, readableHighWaterMark: WINDOW_BYTES / 4, writableHighWaterMark: WINDOW_BYTES / 4 });
    this.peer = peer;
    this.#parts = parts;
  }

  /** Messages that were sent and that came, for who compares. */
  get sent(): number {
    return this.#sent;
  }

  get received(): number {
    return this.#received;
  }

  /** The other end may have forgotten it: nothing is to come any more, either way. */
  get isOver(): boolean {
    return this.#hasEnded && this.#isAllIn;
  }

  /** As a socket has it, because Node's HTTP asks for it: "timeout" where nothing went or came for so long; 0 for never. */
  setTimeout(ms: number): this {
    clearTimeout(this.#still);
    this.#still = ms > 0 && !this.destroyed ? setTimeout(() => this.emit("timeout"), ms).unref() : undefined;
    return this;
  }

  onMessage({ stream, number, bytes = 0 }: StreamHead, body: Uint8Array): void {
    if (this.destroyed) return;
    this.#still?.refresh();
    if (stream === "reset") {
      this.destroy(new PeerError("late", `Gateway ${this.peer} ended the stream.`));
      return;
    }
    if (number !== this.#received + 1) {
      this.destroy(lost(this.peer));
      return;
    }
    this.#received = number;
    if (stream === "credit") {
      this.#credit += bytes;
      this.#flush();
    } else if (stream === "end") {
      this.#isAllIn = true;
      this.push(null);
    } else {
      this.#ungranted += body.length;
      this.push(body);
    }
  }

  override _read(): void {
    if (this.#ungranted < GRANT_BYTES) return;
    const bytes = this.#ungranted;
    this.#ungranted = 0;
    this.#send({ stream: "credit", bytes }, NOTHING);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.#waiting = { rest: chunk, done };
    this.#flush();
  }

  override _final(done: (error?: Error) => void): void {
    this.#send({ stream: "end" }, NOTHING);
    this.#hasEnded = true;
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.isOver) this.#parts.send({ stream: "reset", number: 0 }, NOTHING);
    this.#waiting = undefined;
    clearTimeout(this.#still);
    this.#still = undefined;
    this.#parts.ended();
    done(error);
  }

  #flush(): void {
    const waiting = this.#waiting;
    while (waiting !== undefined && this.#credit > 0 && !this.destroyed) {
      const piece = waiting.rest.subarray(0, Math.min(this.#credit, this.#parts.maxBytes()));
      this.#credit -= piece.length;
      waiting.rest = waiting.rest.subarray(piece.length);
      if (!this.#send({ stream: "data" }, piece)) return;
      if (waiting.rest.length > 0) continue;
      this.#waiting = undefined;
      waiting.done();
      return;
    }
  }

  #send(head: Omit<StreamHead, "id" | "number">, body: Uint8Array): boolean {
    this.#still?.refresh();
    if (this.#parts.send({ ...head, number: ++this.#sent }, body)) return true;
    this.destroy(new PeerError("away", `The engine is away, and with it gateway ${this.peer}.`));
    return false;
  }
}

const NOTHING = new Uint8Array(0);
const FULL = `${MAX_STREAMS} streams to and from other gateways are open: no more are begun.`;

function lost(peer: string): PeerError {
  return new PeerError("late", `A piece of the stream from gateway ${peer} was lost on its way.`);
}
