// One peer's connection to a broker: its hello, then its frames, one after the other. What it may do comes from its
// token; what it says of itself counts for nothing.

import type { Log } from "../../observe/log.js";
import { MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import { Close, type Socket, type SocketEvents } from "../../sockets/socket.js";
import {
  type ClientFrame,
  type Deliver,
  FrameError,
  type Hello,
  type MessageName,
  readFrame,
  type Subscribe,
} from "../wire/frames.js";
import { BARE_WINDOW, HELLO_MS, MAX_FRAME_BYTES, MAX_WINDOW } from "../wire/limits.js";
import { type Broker, DeliveryRefusal, type MailSender } from "./broker.js";
import type { Consumer } from "./queue.js";
import { ownerOf } from "./record.js";

/** Who a peer is, by its token. */
export interface Peer {
  readonly id: string;
  readonly role: string;
  /** The mailboxes that it may send to; undefined is any. */
  readonly maySendTo: ReadonlySet<string> | undefined;
}

export interface PeerOptions {
  readonly broker: Broker;
  readonly log: Log;
  /** Who came, where the upgrade had a token. */
  readonly peer: Peer | undefined;
  /** Who has this token; undefined is nobody, or one that may not be here. Without tokens, the hello is believed. */
  identify(token: string | undefined, hello: Hello): Peer | undefined;
  onEnd(): void;
}

/** The frames that we speak beyond the bare ones. */
const VERSION = 1;
/** Deliveries of one connection that are on their way to the disk. */
const MAX_UNDER_WAY = 1_000;

export class PeerConnection implements SocketEvents {
  readonly #socket: Socket;
  readonly #options: PeerOptions;
  readonly #timer: NodeJS.Timeout;
  #sender: MailSender | undefined;
  #hello: Hello | undefined;
  #consumer: Consumer | undefined;
  #isFull: boolean = false;
  #underWay = 0;

  constructor(socket: Socket, options: PeerOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#timer = setTimeout(() => this.#refuse(`no hello came within ${HELLO_MS / 1000} s`), HELLO_MS).unref();
    socket.attach(this);
  }

  /** The id of the token that it came with. */
  get owner(): string | undefined {
    return this.#sender?.owner;
  }

  end(why: string): void {
    this.#socket.close(Close.policy, why);
  }

  onMessage(bytes: Buffer): void {
    let id: string | undefined;
    try {
      if (bytes.length > MAX_FRAME_BYTES) throw new FrameError(`a frame has at most ${MAX_FRAME_BYTES} bytes`);
      const frame = readFrame(bytes.toString());
      if (this.#sender === undefined) this.#greet(frame);
      else this.#take(this.#sender, frame);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      id = error.id;
      if (this.#sender === undefined) this.#refuse(error.message);
      else this.#tellError(error.message, id);
    }
  }

  onDrain(): void {
    this.#isFull = false;
    if (this.#sender !== undefined && this.#consumer !== undefined) {
      this.#options.broker.pause(this.#sender.address, this.#consumer, false);
    }
  }

  onClose(): void {
    clearTimeout(this.#timer);
    if (this.#sender !== undefined && this.#consumer !== undefined) {
      this.#options.broker.unsubscribe(this.#sender.address, this.#consumer);
    }
    this.#options.onEnd();
  }

  // ── Hello ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #greet(frame: ClientFrame): void {
    if (frame.kind !== "hello") throw new FrameError(`the first frame is "hello", and this is "${frame.kind}"`);
    const member = this.#options.peer ?? this.#options.identify(frame.token, frame);
    if (member === undefined)
      throw new FrameError("the token is not known here, or has ended, or may not use mailboxes");
    if (ownerOf(frame.address) !== member.id) {
      throw new FrameError(`this token is "${member.id}": its mailboxes are "${member.id}" and "${member.id}#…"`);
    }
    if (frame.role !== undefined && frame.role !== member.role) {
      throw new FrameError(`this token has the role "${member.role}": leave the role out, or say that one`);
    }
    clearTimeout(this.#timer);
    this.#hello = frame;
    this.#sender = { address: frame.address, owner: member.id, role: member.role, maySendTo: member.maySendTo };
    const { address, role } = this.#sender;
    this.#options.log.debug("a peer came to its mailbox", { mailbox: address, role });
    this.#send({ kind: "welcome", agent: { session_id: address, role }, version: VERSION });
  }

  #refuse(reason: string): void {
    this.#options.log.warn("a peer was refused at the mailboxes", { why: reason });
    this.#tellError(reason);
    this.#socket.close(Close.policy, reason);
  }

  // ── Frames ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #take(sender: MailSender, frame: ClientFrame): void {
    const { broker } = this.#options;
    const { address } = sender;
    switch (frame.kind) {
      case "hello":
        throw new FrameError("this connection has said hello already");
      case "subscribe":
        this.#subscribe(address, frame);
        return;
      case "deliver":
        void this.#deliver(sender, frame);
        return;
      case "ack":
        if (!broker.acknowledge(address, this.#subscribed(), this.#named(frame))) {
          throw new FrameError("this message is not yours: it was acknowledged, or its lease ran out", frame.id);
        }
        return;
      case "cancel": {
        const isRemoved = broker.cancel(sender, frame.to, frame.correlationId);
        if (!this.#isBare) this.#send({ kind: "cancelled", correlation_id: frame.correlationId, removed: isRemoved });
        return;
      }
      case "extend": {
        const kept = broker.extend(
          address,
          this.#subscribed(),
          frame.messages.map((one) => this.#named(one)),
        );
        this.#send({ kind: "extended", ids: kept });
        return;
      }
      case "release":
        broker.release(
          address,
          this.#subscribed(),
          this.#named(frame),
          frame.failed ? { reason: frame.reason } : undefined,
        );
        return;
      case "credit":
        broker.grant(address, this.#subscribed(), frame.messages);
    }
  }

  #subscribe(address: string, { kinds }: Subscribe): void {
    if (this.#consumer !== undefined) throw new FrameError("this connection has subscribed already");
    const isBare = this.#isBare;
    const consumer: Consumer = {
      kinds,
      journal: this.#hello?.journal ?? "",
      window: isBare ? BARE_WINDOW : MAX_WINDOW,
      knowsIdsOnly: isBare,
    };
    this.#consumer = consumer;
    this.#options.broker.subscribe(
      address,
      { consumer, send: (frame) => this.#sendText(frame) },
      isBare ? undefined : 0,
    );
  }

  async #deliver(sender: MailSender, frame: Deliver): Promise<void> {
    const { id } = frame.message;
    if (this.#underWay >= MAX_UNDER_WAY) {
      this.#tellError(`${MAX_UNDER_WAY} deliveries of this connection are under way: wait for one of them`, id);
      return;
    }
    this.#underWay++;
    try {
      await this.#options.broker.deliver(sender, frame);
      this.#sendText(`{"kind":"delivered","id":${JSON.stringify(id)}}`);
    } catch (error) {
      if (!(error instanceof DeliveryRefusal)) throw error;
      this.#tellError(error.message, id);
    } finally {
      this.#underWay--;
    }
  }

  /** It knows the bare frames alone. */
  get #isBare(): boolean {
    return this.#hello?.version === undefined;
  }

  #subscribed(): Consumer {
    if (this.#consumer === undefined) throw new FrameError("this connection has not subscribed");
    return this.#consumer;
  }

  /** Peers that know more than the bare frames say whose message they mean: two senders may use one id. */
  #named(name: MessageName): MessageName {
    if (this.#isBare) return { id: name.id, from: undefined };
    if (name.from === undefined) {
      throw new FrameError('say "from" beside "id": the address of whoever sent it', name.id);
    }
    return name;
  }

  #tellError(reason: string, id?: string): void {
    this.#send({ kind: "error", reason, ...(id === undefined ? {} : { id }) });
  }

  #send(frame: object): void {
    this.#sendText(JSON.stringify(frame));
  }

  /** False: it is full now, and says so when it is not. */
  #sendText(frame: string): boolean {
    this.#socket.send(frame);
    // The socket says when there is room again.
    if (this.#socket.waiting > MAX_UNACKED_BYTES) this.#isFull = true;
    return !this.#isFull;
  }
}
