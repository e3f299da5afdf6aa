// One peer's connection to a broker: its hello, then its frames, one after the other. What it may do comes from its
// token; what it says of itself counts for nothing.

import type { SHARER_ROLE as SharerRole } from "../../contracts/settings.js";
import type { Log } from "../../observe/log.js";
import { BODY_COST, type HeldBytes, type Holder, NO_ROOM, SMALL_BYTES } from "../../runtime/memory/held-bytes.js";
import { KIB } from "../../runtime/sizes.js";
import { MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import { Close, type SocketEvents } from "../../sockets/socket.js";
import { ownerOf, wholeAddress } from "../wire/address.js";
import type { MailboxPresence } from "../wire/broker-frames.js";
import { FrameError } from "../wire/frame-error.js";
import {
  type Cancel,
  type ClientFrame,
  type Deliver,
  type Hello,
  type MessageName,
  readFrame,
  type Subscribe,
  textOfFrame,
} from "../wire/frames.js";
import {
  BARE_WINDOW,
  BEAT_MS,
  HELLO_MS,
  MAX_LIVE_WAITING_BYTES,
  MAX_UNDER_WAY,
  MAX_WATCHED,
  MAX_WINDOW,
} from "../wire/limits.js";
import type { Broker } from "./broker.js";
import { DeliveryRefusal } from "./broker-texts.js";
import type { LivePeer, MailSender } from "./live-peers.js";
import { type Answerer, NO_CONSUMER } from "./mailbox.js";
import type { Consumer } from "./queue-terms.js";

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
  /** Who has this token; undefined is nobody, or one that may not be here. Without tokens, the id in the hello is believed. */
  identify(token: string | undefined, hello: Hello): Peer | undefined;
  /** Counts what is held for a principal; without it nothing is counted. */
  readonly held?: HeldBytes | undefined;
  onEnd(): void;
  /** It is sent away: told to the operator, as often as they want to hear it. */
  onRefused(why: string): void;
  /** Makes a code that gives a token for this mailbox, or says why not. Undefined where there are no tokens. */
  pair?(mailbox: string, role: string | undefined): { readonly code: string; readonly expiresInMs: number } | string;
}

/** What is used of a Socket. */
export interface PeerSocket {
  /** Bytes that are not written yet. */
  readonly waiting: number;
  /** Where several connections have one socket: whether there is room for what waits, which is counted once for all of them. */
  hasRoom?(): boolean;
  attach(events: SocketEvents): void;
  beat(everyMs: number): void;
  gather(): void;
  send(frame: string): void;
  close(code: number, reason: string): void;
  destroy(why: string): void;
}

/** By its type alone: the value would be one more file for every start to open. */
const SHARER_ROLE: typeof SharerRole = "sharer";

/** The frames that we speak beyond the bare ones. */
const VERSION = 1;
/**
 * What waits unread for one peer and is less is not counted: for thousands of them together it is a fraction of what their connections take.
 * Few calls have so much to be told in one turn, so that most count nothing.
 */
export const UNREAD_BYTES = 8 * KIB;
/** How often it is looked again how much is held for a connection, while that is much. */
const RECOUNT_MS = 250;
/**
 * How long `delivered` waits for a frame to go with. A write of its own, and a turn at the other end, cost more than all else that
 * is done for a message; whoever has 64 calls out has them back in time for 10,000 a second.
 */
const DELIVERED_MS = 5;
/** How many of them wait at most. */
const MAX_DELIVERED = 256;
/** What may wait for a peer at most. What it is handed stops long before; a peer past this asks, and does not read. */
const MAX_WAITING_BYTES = 2 * MAX_UNACKED_BYTES;

/** A connection that has just come: whoever says no hello in time is refused. The timer is the caller's to stop. */
export function awaitHello(socket: PeerSocket, refuse: (why: string) => void): NodeJS.Timeout {
  socket.beat(BEAT_MS);
  socket.gather();
  return setTimeout(() => refuse(`no hello came within ${HELLO_MS / 1000} s`), HELLO_MS).unref();
}

/** What its first frame says, and who it is by its token, whatever that says. Throws a FrameError. */
export function introduced(
  frame: ClientFrame,
  options: Pick<PeerOptions, "peer" | "identify">,
): { readonly hello: Hello; readonly peer: Peer; readonly address: string } {
  if (frame.kind !== "hello") throw new FrameError(`the first frame is "hello", and this is "${frame.kind}"`);
  const peer = options.peer ?? options.identify(frame.token, frame);
  if (peer === undefined) throw new FrameError("the token is not known here, or has ended, or may not use mailboxes");
  return { hello: frame, peer, address: wholeAddress(peer.id, frame.address) };
}

export class PeerConnection implements SocketEvents {
  readonly #socket: PeerSocket;
  readonly #options: PeerOptions;
  readonly #timer: NodeJS.Timeout;
  #sender: MailSender | undefined;
  #live: LivePeer | undefined;
  #hello: Hello | undefined;
  #consumer: Consumer | undefined;
  /** As what it answers. */
  #answerer: Answerer = NO_CONSUMER;
  #isFull: boolean = false;
  /** It was sent away: nothing that it says counts, though the socket may take a while to close. */
  #isSentAway: boolean = false;
  /** It was full when somebody came or left whom it watches. */
  #missedPresence: boolean = false;
  #underWay = 0;
  /** On disk, and not said yet: not more than MAX_DELIVERED. */
  #delivered: string[] = [];
  #deliveredTimer: NodeJS.Timeout | undefined;
  /** Bytes of deliveries that are on their way to the disk. */
  #underWayBytes = 0;
  #holder: Holder | undefined;
  #recount: NodeJS.Timeout | undefined;

  constructor(socket: PeerSocket, options: PeerOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#timer = awaitHello(socket, (why) => this.#refuse(why));
    socket.attach(this);
  }

  /** The id of the token that it came with. */
  get owner(): string | undefined {
    return this.#sender?.owner;
  }

  /** The broker goes: the peer may come back. */
  end(why: string): void {
    if (this.#delivered.length > 0) this.#tellAllDelivered();
    this.#socket.close(Close.goingAway, why);
  }

  /** Its token is good for nothing any more: it need not come back. */
  expel(why: string): void {
    this.#isSentAway = true;
    this.#leave();
    this.#socket.close(Close.policy, why);
  }

  onMessage(bytes: Buffer): void {
    this.#onFrame(bytes.length, () => readFrame(textOfFrame(bytes)));
  }

  /** A frame that was read already. */
  onFrame(frame: ClientFrame, bytes: number): void {
    this.#onFrame(bytes, () => frame);
  }

  #onFrame(bytes: number, read: () => ClientFrame): void {
    if (this.#isSentAway) return;
    let kind: string | undefined;
    try {
      const frame = read();
      kind = frame.kind;
      if (this.#sender === undefined) this.#greet(frame);
      else this.#take(this.#sender, frame, bytes);
    } catch (error) {
      // There may be no room for one more mailbox.
      const isRefusal = error instanceof FrameError || error instanceof DeliveryRefusal;
      if (!isRefusal) throw error;
      if (this.#sender === undefined) this.#refuse(error.message);
      else if (error instanceof FrameError) this.#tellError(error.message, error.id, kind ?? error.frameKind);
      else this.#tellError(error.message, undefined, kind);
    }
  }

  onDrain(): void {
    this.#isFull = false;
    if (this.#missedPresence && this.#live !== undefined) {
      this.#missedPresence = false;
      this.#options.broker.peers.retell(this.#live);
    }
    if (this.#sender !== undefined && this.#consumer !== undefined) {
      this.#options.broker.pause(this.#sender.address, this.#consumer, false);
    }
  }

  onClose(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#deliveredTimer);
    clearTimeout(this.#recount);
    this.#holder?.release();
    this.#holder = undefined;
    this.#leave();
    this.#options.onEnd();
  }

  /** Nobody is there any more, and what it had is for the next. */
  #leave(): void {
    const { broker } = this.#options;
    if (this.#live !== undefined) broker.peers.leave(this.#live);
    if (this.#sender !== undefined && this.#consumer !== undefined) {
      broker.unsubscribe(this.#sender.address, this.#consumer);
    }
    this.#live = undefined;
    this.#consumer = undefined;
  }

  // ── Hello ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #greet(frame: ClientFrame): void {
    const { hello, peer: member, address } = introduced(frame, this.#options);
    if (ownerOf(address) !== member.id) {
      throw new FrameError(`this token is "${member.id}": its mailboxes are "${member.id}" and "${member.id}#…"`);
    }
    if (hello.role !== undefined && hello.role !== member.role) {
      throw new FrameError(`"${member.id}" has the role "${member.role}" here: leave the role out, or say that one`);
    }
    clearTimeout(this.#timer);
    this.#hello = hello;
    this.#answerer = { consumer: undefined, journal: hello.journal };
    this.#sender = { address, owner: member.id, role: member.role, maySendTo: member.maySendTo };
    this.#holder = this.#options.held?.holder(member.id);
    this.#live = this.#livePeer(this.#sender, hello.version);
    this.#options.broker.peers.arrive(this.#live);
    const { role } = this.#sender;
    this.#options.log.debug("a peer came to its mailbox", { mailbox: address, role });
    this.#send({ kind: "welcome", agent: { session_id: address, role }, version: VERSION });
  }

  #livePeer(sender: MailSender, version: number | undefined): LivePeer {
    const connection = this;
    return {
      sender,
      version,
      get consumer() {
        return connection.#consumer;
      },
      pass: (frame) => this.#pass(frame),
      tellPresence: (presence) => this.#tellPresence(presence),
    };
  }

  #refuse(reason: string): void {
    this.#isSentAway = true;
    this.#options.onRefused(reason);
    this.#tellError(reason);
    this.#socket.close(Close.policy, reason);
  }

  // ── Frames ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #take(sender: MailSender, frame: ClientFrame, bytes: number): void {
    const { broker } = this.#options;
    const { address } = sender;
    switch (frame.kind) {
      case "hello":
        throw new FrameError("this connection has said hello already");
      case "subscribe":
        this.#subscribe(address, frame);
        return;
      case "deliver":
        void this.#deliver(sender, frame, bytes);
        return;
      case "ack":
        this.#acknowledge(address, frame.messages);
        return;
      case "cancel":
        void this.#cancel(sender, frame);
        return;
      case "extend": {
        const kept = broker.extend(
          address,
          this.#subscribed(),
          frame.messages.map((one) => this.#named(one)),
          frame.isRepeatable,
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
        return;
      case "live":
        broker.live(sender, frame);
        return;
      case "presence":
        this.#watch(sender, frame.mailbox);
        return;
      case "pair":
        this.#pair(sender, frame.role);
    }
  }

  async #cancel(sender: MailSender, { to, correlationId }: Cancel): Promise<void> {
    const isRemoved = await this.#options.broker.cancel(sender, to, correlationId);
    if (!this.#isBare) this.#send({ kind: "cancelled", correlation_id: correlationId, removed: isRemoved });
  }

  #subscribe(address: string, { kinds }: Subscribe): void {
    if (this.#consumer !== undefined) throw new FrameError("this connection has subscribed already");
    const isBare = this.#isBare;
    const consumer: Consumer = {
      kinds,
      journal: this.#hello?.journal,
      window: isBare ? BARE_WINDOW : MAX_WINDOW,
      knowsIdsOnly: isBare,
    };
    const { broker } = this.#options;
    broker.subscribe(address, consumer, (frame) => this.#sendText(frame), isBare ? undefined : 0);
    this.#consumer = consumer;
    this.#answerer = { consumer, journal: consumer.journal };
    broker.peers.changed(address);
  }

  #watch({ owner, maySendTo }: MailSender, mailbox: string): void {
    if (maySendTo?.has(mailbox) === false) {
      throw new FrameError(`"${owner}" may not send to "${mailbox}", and does not hear who is there`);
    }
    if (this.#live !== undefined && !this.#options.broker.peers.watch(this.#live, mailbox)) {
      throw new FrameError(`a connection watches at most ${MAX_WATCHED} mailboxes`);
    }
  }

  #pair({ address, owner, role }: MailSender, workerRole: string | undefined): void {
    const { pair } = this.#options;
    if (pair === undefined || role !== SHARER_ROLE || address !== owner) {
      throw new FrameError(
        `a code is for the token of a sharer, at its own mailbox; this is "${role}" at "${address}"`,
      );
    }
    const made = pair(owner, workerRole);
    if (typeof made === "string") throw new FrameError(made);
    this.#send({ kind: "pair", code: made.code, expires_in_ms: made.expiresInMs });
  }

  /** A live frame waits for nobody: where much waits already, it is dropped. */
  #pass(frame: string): void {
    if (this.#socket.waiting <= MAX_LIVE_WAITING_BYTES) this.#sendText(frame);
  }

  #tellPresence({ mailbox, connected, since, version, journal }: MailboxPresence): void {
    if (this.#isFull) this.#missedPresence = true;
    else this.#send({ kind: "presence", mailbox, connected, since, version, journal });
  }

  async #deliver(sender: MailSender, frame: Deliver, size: number): Promise<void> {
    const { id } = frame.message;
    // Its text, the record that is made of it, and that as it leaves for the disk or the engine.
    const bytes = size * BODY_COST;
    if (this.#underWay >= MAX_UNDER_WAY) {
      this.#tellError(
        `${MAX_UNDER_WAY} deliveries of this connection are under way: wait for one of them`,
        id,
        "deliver",
      );
      return;
    }
    this.#underWayBytes += bytes;
    if (!this.#count()) {
      this.#underWayBytes -= bytes;
      this.#tellError(`it could not be taken: ${NO_ROOM}`, id, "deliver");
      return;
    }
    this.#underWay++;
    try {
      await this.#options.broker.deliver(sender, frame, this.#answerer);
      this.#tellDelivered(id);
    } catch (error) {
      if (!(error instanceof DeliveryRefusal)) throw error;
      this.#tellError(error.message, id, "deliver");
    } finally {
      this.#underWay--;
      this.#underWayBytes -= bytes;
      if (this.#holder !== undefined && this.#holder.bytes > 0) this.#count();
    }
  }

  /** Nobody waits for it but those who know the bare frames alone: to others it goes with what they are told next. */
  #tellDelivered(id: string): void {
    if (this.#isBare) {
      this.#sendText(deliveredText(id));
      return;
    }
    if (this.#delivered.length === 0) this.#deliveredTimer = setTimeout(this.#tellAllDelivered, DELIVERED_MS).unref();
    this.#delivered.push(id);
    if (this.#delivered.length >= MAX_DELIVERED) this.#tellAllDelivered();
  }

  /** One function for all times. */
  readonly #tellAllDelivered = (): void => {
    clearTimeout(this.#deliveredTimer);
    const ids = this.#delivered;
    const [first = ""] = ids;
    this.#delivered = [];
    this.#sendText(ids.length === 1 ? deliveredText(first) : `{"kind":"delivered","ids":${JSON.stringify(ids)}}`);
  };

  #acknowledge(address: string, messages: readonly MessageName[]): void {
    const names = messages.map((name) => this.#named(name));
    for (const { id } of this.#options.broker.acknowledge(address, this.#subscribed(), names)) {
      this.#tellError("this message is not yours: it was acknowledged, or its lease ran out", id, "ack");
    }
  }

  /** Counts what is held for this peer: what comes from it, and what it has not read. False: there is no room for that. */
  #count(): boolean {
    if (this.#holder === undefined) return true;
    const { hasRoom, waiting } = this.#socket;
    const bytes = this.#underWayBytes + (hasRoom === undefined ? waiting : 0);
    const isRoomy = hasRoom?.() ?? true;
    if (bytes < SMALL_BYTES && (hasRoom !== undefined || waiting < UNREAD_BYTES)) {
      this.#holder.release();
      return isRoomy;
    }
    this.#recount ??= setTimeout(() => this.#countAgain(), RECOUNT_MS).unref();
    return this.#holder.hold(bytes) && isRoomy;
  }

  /** A socket does not say that all was written, unless much was. */
  #countAgain(): void {
    this.#recount = undefined;
    const isRoomy = this.#count() && this.#socket.waiting <= MAX_UNACKED_BYTES / 2;
    if (this.#isFull && isRoomy) this.onDrain();
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

  /** `of` is the kind of the frame that it is about: an id alone may be that of several. */
  #tellError(reason: string, id?: string, of?: string): void {
    this.#send({ kind: "error", reason, id, of: this.#isBare ? undefined : of });
  }

  #send(frame: object): void {
    this.#sendText(JSON.stringify(frame));
  }

  /** False: it is full now, and says so when it is not. */
  #sendText(frame: string): boolean {
    if (this.#delivered.length > 0) this.#tellAllDelivered();
    this.#socket.send(frame);
    // The socket says when there is room again.
    const { waiting } = this.#socket;
    if (waiting > MAX_UNACKED_BYTES || (waiting >= UNREAD_BYTES && !this.#count())) this.#isFull = true;
    if (waiting > MAX_WAITING_BYTES) this.#socket.destroy("it asks, and does not read what it is told");
    return !this.#isFull;
  }
}

function deliveredText(id: string): string {
  return `{"kind":"delivered","id":${JSON.stringify(id)}}`;
}
