// A conversation that outlives its sockets: what is sent is numbered and kept until the peer has it, and sent again on
// the next socket. With a peer that knows nothing of this it is a plain socket. The handshake is its users' business.

import { ACK_BYTES, ACK_MESSAGES, MAX_BACKLOG_BYTES, MAX_UNACKED_BYTES, MESSAGE_COST_BYTES } from "./limits.js";
import { ACK } from "./protocol.js";
import { NO_EVENTS, type SocketEvents } from "./socket.js";

/** What a channel needs of a socket; socket.ts has it. */
export interface Carrier {
  readonly waiting: number;
  send(frame: string | Buffer): void;
  attach(events: SocketEvents): void;
}

export interface ChannelEvents {
  /** The next message of the conversation: each one once, in order. */
  onMessage(bytes: Buffer): void;
  /** It was full, and is not any more. */
  onRoom(): void;
  /** The socket is gone; the conversation goes on with open(), or is over. */
  onLost(why: string): void;
}

const ACK_NAME = Buffer.from(`"${ACK}"`);
/** Far more than an acknowledgement takes, however it is written; longer messages are not looked into. */
const MAX_ACK_BYTES = 256;
/** A power of two, as all lengths of the ring; more than is under way between two acknowledgements. */
const FIRST_UNACKED = 2 * ACK_MESSAGES;

export class Channel {
  readonly #events: ChannelEvents;
  #carrier: Carrier | undefined;
  #lasting: boolean = false;
  /**
   * What was sent and is not acknowledged: a ring of `#kept` messages from `#first` on. It is written in place, since
   * an array that is left for another one keeps what stood in it, and once it is old, until the whole heap is
   * collected.
   */
  #unacked: (string | Buffer | undefined)[] = new Array(FIRST_UNACKED).fill(undefined);
  #first = 0;
  #kept = 0;
  /** The number of the message at `#first`: so many are acknowledged. */
  #acked = 0;
  #unackedBytes = 0;
  /** Messages that were given to some socket, ever. */
  #written = 0;
  #received = 0;
  #receivedBytes = 0;
  #ackedByUs = 0;
  #full: boolean = false;
  /** What was sent since it became full, with what it costs besides. */
  #backlog = 0;

  constructor(events: ChannelEvents) {
    this.#events = events;
  }

  get isOpen(): boolean {
    return this.#carrier !== undefined;
  }

  /** Messages that have arrived: what the peer is told when it is asked to go on. */
  get received(): number {
    return this.#received;
  }

  /** More should wait until onRoom(). Single messages are taken all the same. */
  get isFull(): boolean {
    const waits = this.#lasting ? this.#unackedBytes : (this.#carrier?.waiting ?? 0);
    if (waits > MAX_UNACKED_BYTES) this.#full = true;
    return this.#full;
  }

  /** More was sent though it was full than a peer that reads would ever leave: it is to be given up. */
  get isOverrun(): boolean {
    return this.#backlog > MAX_BACKLOG_BYTES;
  }

  /** A plain conversation on this socket: it ends with it. */
  openPlain(carrier: Carrier): void {
    this.#lasting = false;
    this.#begin(carrier);
    // What filled the socket before went with it.
    this.#tellRoom();
  }

  /** A new conversation, or the next socket of an old one, of which `peerReceived` messages have arrived there. */
  openLasting(carrier: Carrier, peerReceived: number): void {
    this.#lasting = true;
    this.#drop(peerReceived);
    this.#begin(carrier);
    for (let i = 0; i < this.#kept; i++) carrier.send(this.#unacked[this.#placeOf(i)] as string | Buffer);
    this.#written = this.#acked + this.#kept;
    this.#ackedByUs = this.#received;
    this.#receivedBytes = 0;
    this.#tellRoom();
  }

  /** Could the peer that has so many of our messages go on from there? */
  canResume(peerReceived: number): boolean {
    return peerReceived >= this.#acked && peerReceived <= this.#acked + this.#kept;
  }

  /** Returns the message's number. Without a socket it is kept for the next one, where the conversation lasts. */
  send(frame: string | Buffer): number {
    const number = this.#acked + this.#kept;
    if (this.#lasting) {
      if (this.#kept === this.#unacked.length) this.#enlarge();
      this.#unacked[this.#placeOf(this.#kept++)] = frame;
      this.#unackedBytes += frame.length;
    } else {
      this.#acked++;
    }
    if (this.#carrier !== undefined) {
      this.#carrier.send(frame);
      this.#written = number + 1;
    }
    if (this.isFull) this.#backlog += frame.length + MESSAGE_COST_BYTES;
    return number;
  }

  /** Whether any of it can have reached the peer. */
  wasWritten(number: number): boolean {
    return number < this.#written;
  }

  /** No more of this socket is heard. */
  detach(): void {
    this.#carrier?.attach(NO_EVENTS);
    this.#carrier = undefined;
  }

  #begin(carrier: Carrier): void {
    this.detach();
    this.#carrier = carrier;
    carrier.attach({
      onMessage: (bytes) => this.#message(bytes),
      onDrain: () => this.#tellRoom(),
      onClose: (why) => {
        this.#carrier = undefined;
        this.#events.onLost(why);
      },
    });
  }

  #message(bytes: Buffer): void {
    if (!this.#lasting) {
      this.#events.onMessage(bytes);
      return;
    }
    const acknowledged = readAck(bytes);
    if (acknowledged !== undefined) {
      this.#drop(acknowledged);
      this.#tellRoom();
      return;
    }
    this.#received++;
    this.#receivedBytes += bytes.length;
    // It is told before it is acknowledged: an acknowledged message is one that was taken.
    this.#events.onMessage(bytes);
    if (this.#receivedBytes >= ACK_BYTES || this.#received - this.#ackedByUs >= ACK_MESSAGES) this.#acknowledge();
  }

  #acknowledge(): void {
    this.#ackedByUs = this.#received;
    this.#receivedBytes = 0;
    this.#carrier?.send(`{"method":"${ACK}","params":{"received":${this.#received}}}`);
  }

  #drop(received: number): void {
    while (this.#acked < received && this.#kept > 0) {
      this.#unackedBytes -= (this.#unacked[this.#first] as string | Buffer).length;
      this.#unacked[this.#first] = undefined;
      this.#first = this.#placeOf(1);
      this.#kept--;
      this.#acked++;
    }
  }

  /** Where the `index`th of the messages that are kept stands in the ring. */
  #placeOf(index: number): number {
    return (this.#first + index) & (this.#unacked.length - 1);
  }

  #enlarge(): void {
    const before = this.#unacked;
    const unacked = new Array<string | Buffer | undefined>(before.length * 2).fill(undefined);
    for (let i = 0; i < this.#kept; i++) unacked[i] = before[this.#placeOf(i)];
    before.fill(undefined);
    this.#unacked = unacked;
    this.#first = 0;
  }

  #tellRoom(): void {
    if (!this.#full) return;
    const waits = this.#lasting ? this.#unackedBytes : (this.#carrier?.waiting ?? 0);
    if (waits > MAX_UNACKED_BYTES / 2) return;
    this.#full = false;
    this.#backlog = 0;
    this.#events.onRoom();
  }
}

/** How many messages the peer has; undefined for any other message. */
function readAck(bytes: Buffer): number | undefined {
  if (bytes.length > MAX_ACK_BYTES || !bytes.includes(ACK_NAME)) return undefined;
  try {
    const { method, params } = JSON.parse(bytes.toString());
    return method === ACK ? Number(params?.received) : undefined;
  } catch {
    return undefined;
  }
}
