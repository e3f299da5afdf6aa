// A peer's connection to one of several brokers, whoever of them has the mailboxes in hand that it speaks with. A conversation
// is kept where its requests are for: a request, what is said live about it, its reply and its end are in the partition of the
// mailbox that it went to, so that each of them is decided, and written, in one place. So a peer has a line to the partition of
// its own mailbox, its home, and one to that of each mailbox that it sends to; all of them look like one connection to it.

import { BODY_COST, type HeldBytes, type Holder, NO_ROOM, SMALL_BYTES } from "../../runtime/memory/held-bytes.js";
import { MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import { Close, type SocketEvents } from "../../sockets/socket.js";
import { awaitHello, introduced, type Peer, type PeerSocket, UNREAD_BYTES } from "../broker/peer-connection.js";
import { REPLY, REQUEST } from "../broker/record.js";
import { ownerOf } from "../wire/address.js";
import { FrameError } from "../wire/frame-error.js";
import {
  type ClientFrame,
  type Deliver,
  type Extend,
  type Hello,
  type MessageName,
  readFrame,
  textOfFrame,
} from "../wire/frames.js";
import { MAX_FRAME_BYTES, MAX_UNDER_WAY } from "../wire/limits.js";
import type { PartitionLine, PeerIntroduction } from "./partition-line.js";
import type { SharedBroker } from "./shared-broker.js";

/** Messages that it was handed elsewhere than at its home, and those who wrote to it there: it may have that many in hand. */
const MAX_KNOWN = 10_000;
/** What does not leave: a peer past this asks, and does not read. */
const MAX_WAITING_BYTES = 2 * MAX_UNACKED_BYTES;
/** How often it is looked again how much is held for a connection, while that is much. */
const RECOUNT_MS = 250;

export interface SharedPeerConnectionOptions {
  /** What a connection needs of the broker that took it in. */
  readonly broker: Pick<SharedBroker, "partitionOf" | "line" | "subscribed" | "left">;
  readonly peer: Peer | undefined;
  identify(token: string | undefined, hello: Hello): Peer | undefined;
  /** Counts what is held for a principal; without it nothing is counted. */
  readonly held?: HeldBytes | undefined;
  onEnd(): void;
  onRefused(why: string): void;
}

/** What a delivery finishes in another partition, when that has taken it. */
interface Finishing {
  readonly partition: number;
  readonly name: MessageName;
}

/** An `extend`, in as many parts as there are partitions that have some of its messages. */
interface Extending {
  parts: number;
  readonly names: unknown[];
  error: string | undefined;
}

export class SharedPeerConnection implements SocketEvents {
  readonly #socket: PeerSocket;
  readonly #options: SharedPeerConnectionOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #lines = new Map<number, PartitionLine>();
  /** Credit that each of them has left, of those that know of it. */
  readonly #given = new Map<number, number>();
  #intro: PeerIntroduction | undefined;
  #address = "";
  #home = -1;
  #subscribe: string | undefined;
  #credit = 0;
  /** Which partition, of messages that were handed out elsewhere than at home. Not more than MAX_KNOWN. */
  readonly #held = new Map<string, number>();
  /** Those who began to speak with it: what it says to them is said at home. Not more than MAX_KNOWN. */
  readonly #callers = new Set<string>();
  /** Answered in the order in which they were asked. Not more than MAX_UNDER_WAY. */
  #extending: Extending[] = [];
  readonly #extendingAt = new Map<number, Extending[]>();
  /** By the partition and the id of a delivery that is under way. Not more than MAX_UNDER_WAY. */
  readonly #finishing = new Map<string, Finishing>();
  /** Of what was said on lines that are not open yet. */
  #earlyBytes = 0;
  #holder: Holder | undefined;
  #recount: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(socket: PeerSocket, options: SharedPeerConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#timer = awaitHello(socket, (why) => this.#refuse(why));
    socket.attach(this);
  }

  /** Where it takes messages. */
  get address(): string {
    return this.#address;
  }

  /** It knows the bare frames alone, and does not say what it waits for. */
  get isBare(): boolean {
    return this.#intro?.hello.version === undefined;
  }

  end(why: string): void {
    this.#socket.close(Close.goingAway, why);
  }

  expel(why: string): void {
    this.#sendAway(why);
  }

  /** Something is for it in that partition. */
  openAt(partition: number): void {
    if (this.#subscribe !== undefined && !this.#isOver) this.#lineTo(partition);
  }

  // ── What the peer says ───────────────────────────────────────────────────────────────────────────────────────────

  onMessage(bytes: Buffer): void {
    if (this.#isOver) return;
    let text: string;
    let frame: ClientFrame;
    try {
      text = textOfFrame(bytes);
      frame = readFrame(text);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      if (this.#intro === undefined) this.#refuse(error.message);
      else if (bytes.length > MAX_FRAME_BYTES) this.#tell({ kind: "error", reason: error.message });
      // Its broker says what is wrong with it, as it does where it is alone.
      else this.#lineTo(this.#home).send(bytes.toString());
      return;
    }
    if (this.#intro === undefined) this.#greet(frame);
    else this.#route(frame, text);
  }

  #greet(frame: ClientFrame): void {
    let came: ReturnType<typeof introduced>;
    try {
      came = introduced(frame, this.#options);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#refuse(error.message);
      return;
    }
    const { hello, peer } = came;
    this.#address = came.address;
    clearTimeout(this.#timer);
    this.#holder = this.#options.held?.holder(peer.id);
    this.#intro = { peer, hello };
    this.#home = this.#options.broker.partitionOf(peer.id);
    this.#lineTo(this.#home);
  }

  #route(frame: ClientFrame, text: string): void {
    const home = this.#home;
    switch (frame.kind) {
      case "subscribe":
        this.#onSubscribe(frame, text);
        return;
      case "deliver":
        this.#onDeliver(frame, text);
        return;
      case "cancel":
        this.#lineTo(this.#of(frame.to)).send(text, frame);
        return;
      case "presence":
        this.#lineTo(this.#of(frame.mailbox)).send(text, frame);
        return;
      case "live":
        this.#lineTo(this.#callers.has(frame.to) ? home : this.#of(frame.to)).send(text, frame);
        return;
      case "ack":
        this.#eachPartition(frame.messages, (partition, names, isAll) => {
          for (const name of names) this.#held.delete(this.#keyOf(name));
          this.#lineTo(partition).send(isAll ? text : JSON.stringify({ kind: "ack", ids: names }));
        });
        return;
      case "extend":
        this.#onExtend(frame, text);
        return;
      case "release": {
        const key = this.#keyOf(frame);
        const partition = this.#held.get(key) ?? home;
        this.#held.delete(key);
        this.#lineTo(partition).send(text, frame);
        return;
      }
      case "credit":
        this.#credit += frame.messages;
        for (const partition of this.#lines.keys()) this.#grant(partition);
        return;
      default:
        this.#lineTo(home).send(text, frame);
    }
  }

  /**
   * What it finishes may be in another partition than where it goes to: that cannot be one commit. It is acknowledged there when the
   * delivery was taken; where that is not told any more, the message comes again, and its repeated answer is recognised.
   */
  #onDeliver(frame: Deliver, text: string): void {
    const partition = this.#partitionOf(frame);
    const name = frame.acknowledges;
    const finishes = name === undefined ? partition : (this.#held.get(this.#keyOf(name)) ?? this.#home);
    if (name !== undefined && finishes !== partition) {
      if (this.#finishing.size >= MAX_UNDER_WAY) {
        const reason = `${MAX_UNDER_WAY} deliveries of this connection are under way: wait for one of them`;
        this.#tell({ kind: "error", reason, id: frame.message.id, of: this.isBare ? undefined : "deliver" });
        return;
      }
      this.#finishing.set(`${partition} ${frame.message.id}`, { partition: finishes, name });
    }
    this.#lineTo(partition).send(text, frame);
  }

  /** What became of deliveries that finish something elsewhere. */
  #delivered(partition: number, text: string): void {
    const { kind, id, ids } = JSON.parse(text) as { kind: string; id?: string; ids?: string[] };
    for (const one of ids ?? [id]) {
      const key = `${partition} ${one}`;
      const finishing = this.#finishing.get(key);
      if (finishing === undefined) continue;
      this.#finishing.delete(key);
      if (kind !== "delivered") continue;
      const { name } = finishing;
      this.#held.delete(this.#keyOf(name));
      this.#lineTo(finishing.partition).send(JSON.stringify({ kind: "ack", ids: [name] }));
    }
  }

  #onSubscribe(frame: ClientFrame, text: string): void {
    if (this.#subscribe !== undefined) {
      // It is told that it has done so already.
      this.#lineTo(this.#home).send(text, frame);
      return;
    }
    this.#subscribe = text;
    for (const line of this.#lines.values()) line.send(text, frame);
    this.#options.broker.subscribed(this);
  }

  /** Answers are said where they were asked for, which is at home; all else where it goes to. */
  #partitionOf({ to, message }: Deliver): number {
    const isAnswer =
      message.kind.endsWith(REPLY) ||
      (message.correlationId !== undefined &&
        !message.kind.endsWith(REQUEST) &&
        this.#intro?.peer.maySendTo?.has(to) === false);
    return isAnswer ? this.#home : this.#of(to);
  }

  /** Whom it may not send to, its own broker tells it: no line to another is opened for that. */
  #of(address: string): number {
    if (this.#intro?.peer.maySendTo?.has(address) === false) return this.#home;
    return this.#options.broker.partitionOf(ownerOf(address));
  }

  #eachPartition(
    messages: readonly MessageName[],
    act: (partition: number, names: readonly MessageName[], isAll: boolean) => void,
  ): void {
    const partitions = new Map<number, MessageName[]>();
    for (const name of messages) {
      const partition = this.#held.get(this.#keyOf(name)) ?? this.#home;
      const names = partitions.get(partition);
      if (names === undefined) partitions.set(partition, [name]);
      else names.push(name);
    }
    if (partitions.size === 0) act(this.#home, messages, true);
    for (const [partition, names] of partitions) act(partition, names, partitions.size === 1);
  }

  #onExtend({ messages, isRepeatable }: Extend, text: string): void {
    if (this.#extending.length >= MAX_UNDER_WAY) {
      this.#socket.destroy("it asks, and does not wait for answers");
      return;
    }
    const one: Extending = { parts: 0, names: [], error: this.#wrongExtend(messages) };
    this.#extending.push(one);
    if (one.error !== undefined) {
      this.#tellExtended();
      return;
    }
    // One part more until all are asked: a broker in this process may answer at once.
    one.parts = 1;
    this.#eachPartition(messages, (partition, names, isAll) => {
      one.parts++;
      const waiting = this.#extendingAt.get(partition);
      if (waiting === undefined) this.#extendingAt.set(partition, [one]);
      else waiting.push(one);
      this.#lineTo(partition).send(
        isAll ? text : JSON.stringify({ kind: "extend", ids: names, repeatable: isRepeatable }),
      );
    });
    one.parts--;
    this.#tellExtended();
  }

  /** What no broker would answer in its turn is told here: the answers to others would be taken for its own. */
  #wrongExtend(messages: readonly MessageName[]): string | undefined {
    const of = this.isBare ? undefined : "extend";
    if (this.#subscribe === undefined) {
      return JSON.stringify({ kind: "error", reason: "this connection has not subscribed", of });
    }
    const nameless = this.isBare ? undefined : messages.find(({ from }) => from === undefined);
    if (nameless === undefined) return undefined;
    const reason = 'say "from" beside "id": the address of whoever sent it';
    return JSON.stringify({ kind: "error", reason, id: nameless.id, of });
  }

  #grant(partition: number): void {
    const given = this.#given.get(partition) ?? 0;
    const messages = this.#credit - given;
    if (messages <= 0) return;
    this.#given.set(partition, this.#credit);
    this.#lines.get(partition)?.send(JSON.stringify({ kind: "credit", messages }));
  }

  /** Peers that know more than the bare frames say whose message they mean. */
  #keyOf({ id, from }: MessageName): string {
    return this.isBare ? id : `${from}\0${id}`;
  }

  // ── What the brokers say ─────────────────────────────────────────────────────────────────────────────────────────

  #lineTo(partition: number): PartitionLine {
    const known = this.#lines.get(partition);
    if (known !== undefined) return known;
    const connection = this;
    const line = this.#options.broker.line(partition, this.#intro as PeerIntroduction, {
      onFrame: (text) => this.#onFrame(partition, text),
      onClose: (code, reason) => this.#onLineClosed(code, reason),
      get waiting() {
        return connection.#socket.waiting;
      },
      early: (bytes) => {
        this.#earlyBytes += bytes;
        return bytes < 0 || this.#count() ? undefined : NO_ROOM;
      },
      hasRoom: () => this.#count(),
    });
    this.#lines.set(partition, line);
    if (this.#subscribe !== undefined) {
      line.send(this.#subscribe);
      this.#grant(partition);
    }
    return line;
  }

  #onFrame(partition: number, text: string): void {
    if (this.#isOver) return;
    const isHome = partition === this.#home;
    if (text.startsWith('{"kind":"message"')) this.#handedOut(partition, text);
    else if (text.startsWith('{"kind":"live"')) {
      const from = isHome ? LIVE.exec(text)?.[1] : undefined;
      if (from !== undefined) this.#knowCaller(JSON.parse(from) as string);
    } else if (text.startsWith('{"kind":"welcome"')) {
      if (!isHome) return;
    } else if (text.startsWith('{"kind":"extended"')) {
      this.#extended(partition, (JSON.parse(text) as { ids: unknown[] }).ids, undefined);
      return;
    } else if (text.startsWith('{"kind":"error"') && text.endsWith('"of":"extend"}')) {
      this.#extended(partition, [], text);
      return;
    } else if (
      this.#finishing.size > 0 &&
      (text.startsWith('{"kind":"delivered"') || text.startsWith('{"kind":"error"'))
    ) {
      this.#delivered(partition, text);
    }
    this.#socket.send(text);
    if (this.#socket.waiting >= UNREAD_BYTES) this.#count();
    if (this.#socket.waiting > MAX_WAITING_BYTES) this.#socket.destroy("it asks, and does not read what it is told");
  }

  #handedOut(partition: number, text: string): void {
    // Below 0 where several partitions handed out at once: what comes back of it is no credit more.
    this.#credit--;
    const given = this.#given.get(partition) ?? 0;
    if (given > 0) this.#given.set(partition, given - 1);
    const found = MESSAGE.exec(text);
    if (found === null) return;
    const [id, from] = [JSON.parse(found[1] as string) as string, JSON.parse(found[2] as string) as string];
    if (partition === this.#home) {
      this.#knowCaller(from);
      if (this.#held.size > 0) this.#held.delete(this.#keyOf({ id, from }));
      return;
    }
    this.#held.set(this.#keyOf({ id, from }), partition);
    const [oldest] = this.#held.keys();
    if (this.#held.size > MAX_KNOWN && oldest !== undefined) this.#held.delete(oldest);
  }

  #knowCaller(address: string): void {
    if (this.#callers.has(address)) return;
    this.#callers.add(address);
    const [oldest] = this.#callers;
    if (this.#callers.size > MAX_KNOWN && oldest !== undefined) this.#callers.delete(oldest);
  }

  #extended(partition: number, names: readonly unknown[], error: string | undefined): void {
    const one = this.#extendingAt.get(partition)?.shift();
    if (one === undefined) return;
    one.parts--;
    one.names.push(...names);
    one.error ??= error;
    this.#tellExtended();
  }

  #tellExtended(): void {
    while (this.#extending[0]?.parts === 0) {
      const [first] = this.#extending.splice(0, 1);
      if (first?.error !== undefined) this.#socket.send(first.error);
      else this.#tell({ kind: "extended", ids: first?.names });
    }
  }

  /** Counts what is held for this peer, of all its lines at once. False: there is no room for that. */
  #count(): boolean {
    if (this.#holder === undefined || this.#isOver) return true;
    // What is said becomes what is delivered, and has the same room.
    const { waiting } = this.#socket;
    const bytes = this.#earlyBytes * BODY_COST + waiting;
    if (bytes < SMALL_BYTES && waiting < UNREAD_BYTES) {
      this.#holder.release();
      return true;
    }
    // A socket does not say that all was written, unless much was.
    this.#recount ??= setTimeout(() => {
      this.#recount = undefined;
      this.#count();
    }, RECOUNT_MS).unref();
    return this.#holder.hold(bytes);
  }

  onDrain(): void {
    this.#count();
    for (const line of this.#lines.values()) line.drained();
  }

  onClose(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#recount);
    this.#holder?.release();
    this.#holder = undefined;
    for (const line of this.#lines.values()) line.close();
    this.#lines.clear();
    this.#options.broker.left(this);
    this.#options.onEnd();
  }

  /** One of them is lost: the peer comes back, as to a broker that was started anew, and finds them all again. */
  #onLineClosed(code: number, reason: string): void {
    if (code === Close.policy) this.#options.onRefused(reason);
    this.#socket.close(code === Close.policy ? code : Close.goingAway, reason);
  }

  #refuse(reason: string): void {
    this.#options.onRefused(reason);
    this.#tell({ kind: "error", reason });
    this.#sendAway(reason);
  }

  /** Nothing that it says counts from now on, and what it has is for others, though the socket may take a while to close. */
  #sendAway(why: string): void {
    this.#socket.close(Close.policy, why);
    this.onClose();
  }

  #tell(frame: object): void {
    this.#socket.send(JSON.stringify(frame));
  }
}

/** As brokers write them: who sent it stands before all that others wrote. */
const TEXT = String.raw`("(?:[^"\\]|\\.)*")`;
const MESSAGE = new RegExp(String.raw`^\{"kind":"message",[^{]*"message":\{"id":${TEXT},"from":\{"session_id":${TEXT}`);
const LIVE = new RegExp(String.raw`^\{"kind":"live","from":\{"session_id":${TEXT}`);
