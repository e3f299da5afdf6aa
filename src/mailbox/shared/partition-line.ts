// One peer's line to one partition of the mailboxes, which this broker or another has in hand: as a connection of that partition's
// broker, here or at the other end of a stream. What is said before it is open waits, and where the one that is asked has it no
// more, the next is. Once it was open it is not opened again: its peer comes back, and begins anew.

import { PeerError } from "../../contracts/engine/peers.js";
import { MIB } from "../../runtime/sizes.js";
import { SMALL_WORK_BYTES, turns } from "../../runtime/turns/turns.js";
import { MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import { Close, NO_EVENTS, type SocketEvents } from "../../sockets/socket.js";
import type { Peer, PeerConnection, PeerSocket } from "../broker/peer-connection.js";
import type { ClientFrame, Hello } from "../wire/frames.js";
import type { FrameStream } from "./frame-stream.js";
import type { SharedBroker } from "./shared-broker.js";

/** Longer than a takeover lasts where nothing else fails, and shorter than peers wait for their welcome. */
const OPEN_MS = 9_500;
/** Where nobody has the partition in hand it is looked at again at each change, and this often. */
const LOOK_MS = 250;
/** What a peer says before it is open: of a call or two. More is not taken from one that does not wait. */
const MAX_EARLY_BYTES = 4 * MIB;
/** Said to a broker that asked one which has the partition no more. */
export const MOVED = 4001;

/** Who comes, as the broker to which it came knows it. */
export interface PeerIntroduction {
  readonly peer: Peer;
  readonly hello: Hello;
}

/** What a line needs of the broker that it begins at. */
type LineBroker = Pick<SharedBroker, "serve" | "ownerOf" | "connect" | "moved" | "now">;

export interface PartitionLineEvents {
  onFrame(text: string): void;
  /** Once, and nothing after it. */
  onClose(code: number, reason: string): void;
  /** Bytes that wait to be written to the peer. */
  readonly waiting: number;
  /** So many bytes more, or less, wait until it is open. Why there is no room for them; undefined where there is. */
  early(bytes: number): string | undefined;
  /** Whether there is room for what waits to be written: of all lines of the peer together. */
  hasRoom(): boolean;
}

interface Early {
  readonly text: string;
  readonly frame: ClientFrame | undefined;
}

export class PartitionLine {
  readonly partition: number;
  readonly #broker: LineBroker;
  readonly #events: PartitionLineEvents;
  readonly #intro: PeerIntroduction;
  readonly #onOver: () => void;
  #here: PeerConnection | undefined;
  #there: FrameStream | undefined;
  /** The other broker that has it; undefined where it is this one. */
  #owner: string | undefined;
  #early: Early[] = [];
  #earlyBytes = 0;
  #isWelcome = false;
  /** What was said before the welcome has been passed on: until then nothing may overtake it. */
  #isOpen = false;
  #isOver = false;

  constructor(
    broker: LineBroker,
    partition: number,
    intro: PeerIntroduction,
    events: PartitionLineEvents,
    /** It is over, whoever ended it. */
    onOver: () => void,
  ) {
    this.#broker = broker;
    this.#onOver = onOver;
    this.partition = partition;
    this.#intro = intro;
    this.#events = events;
    // Not at once: where the partition is here it may be over before whoever makes it has it.
    queueMicrotask(() => {
      this.#open().catch((error: Error) => this.#end(Close.goingAway, error.message));
    });
  }

  /** `frame` is what the text says, where that was read already. */
  send(text: string, frame?: ClientFrame): void {
    if (this.#isOver) return;
    if (this.#isOpen) {
      this.#pass(text, frame);
      return;
    }
    this.#early.push({ text, frame });
    this.#earlyBytes += text.length;
    const noRoom = this.#events.early(text.length);
    if (noRoom !== undefined)
      this.#end(Close.goingAway, `what it says before its mailbox is open cannot wait: ${noRoom}`);
    if (this.#earlyBytes > MAX_EARLY_BYTES) this.#end(Close.goingAway, "it says more than can wait for its mailbox");
  }

  #dropEarly(): void {
    this.#early = [];
    this.#events.early(-this.#earlyBytes);
    this.#earlyBytes = 0;
  }

  /** The peer has room again. */
  drained(): void {
    this.#here?.onDrain();
    this.#there?.pause(false);
  }

  /** Another has it by now. */
  checkOwner(): void {
    if (this.#owner === undefined || !this.#isWelcome || this.#broker.ownerOf(this.partition) === this.#owner) return;
    this.#there?.destroy("another broker has it in hand");
    this.#end(Close.goingAway, "another broker has the mailbox in hand now: come back");
  }

  /** The peer is gone. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onOver();
    this.#dropEarly();
    this.#here?.onClose();
    this.#there?.close(Close.normal, "the peer is gone");
  }

  async #open(): Promise<void> {
    const untilMs = this.#broker.now() + OPEN_MS;
    while (!this.#isOver) {
      const leftMs = untilMs - this.#broker.now();
      if (leftMs <= 0) {
        this.#end(Close.goingAway, "no broker has the mailbox in hand: come back");
        return;
      }
      if (this.#openHere()) return;
      const owner = this.#broker.ownerOf(this.partition);
      if (owner !== undefined && (await this.#openThere(owner))) return;
      await this.#broker.moved(this.partition, Math.min(leftMs, LOOK_MS));
    }
  }

  #openHere(): boolean {
    const line = this;
    const socket: PeerSocket = {
      get waiting() {
        return line.#events.waiting;
      },
      hasRoom: () => this.#events.hasRoom(),
      attach() {},
      beat() {},
      gather() {},
      send: (text) => this.#onFrame(text),
      close: (code, reason) => this.#end(code, reason),
      destroy: (why) => this.#end(Close.goingAway, why),
    };
    const here = this.#broker.serve(this.partition, socket, this.#intro.peer);
    if (here === undefined) return false;
    this.#here = here;
    here.onMessage(Buffer.from(helloText(this.#intro.hello)));
    return true;
  }

  /** True where it is open, or over. */
  async #openThere(owner: string): Promise<boolean> {
    let stream: FrameStream;
    try {
      stream = await this.#broker.connect(owner, this.partition, this.#intro.peer);
    } catch (error) {
      if (error instanceof PeerError && error.code !== "busy") return this.#isOver;
      throw error;
    }
    if (this.#isOver) {
      stream.destroy("the peer is gone");
      return true;
    }
    return new Promise((resolve) => {
      let goodbye: { code: number; reason: string } | undefined;
      const events: SocketEvents & { onGoodbye(code: number, reason: string): void } = {
        onMessage: (bytes) => {
          this.#there = stream;
          this.#owner = owner;
          resolve(true);
          this.#onFrame(bytes.toString());
          if (this.#events.waiting > MAX_UNACKED_BYTES) stream.pause(true);
        },
        onDrain() {},
        onGoodbye: (code, reason) => {
          goodbye = { code, reason };
        },
        onClose: (why) => {
          if (!this.#isWelcome && (goodbye === undefined || goodbye.code === MOVED)) {
            this.#there = undefined;
            resolve(this.#isOver);
            return;
          }
          resolve(true);
          this.#end(goodbye?.code ?? Close.goingAway, goodbye?.reason ?? why);
        },
      };
      stream.attach(events);
      stream.send(helloText(this.#intro.hello));
    });
  }

  #onFrame(text: string): void {
    if (this.#isOver) return;
    const isFirst = !this.#isWelcome && text.startsWith('{"kind":"welcome"');
    if (isFirst) this.#isWelcome = true;
    this.#events.onFrame(text);
    if (!isFirst) return;
    // Here it is still being begun: what was said goes to it when that is done.
    setImmediate(() => void this.#passEarly());
  }

  /** In turns: many lines open at once where a partition comes to another broker, and each may have waited with much. */
  async #passEarly(): Promise<void> {
    for (;;) {
      const [first] = this.#early;
      if (first === undefined || this.#isOver) break;
      const size = first.text.length;
      if (size >= SMALL_WORK_BYTES) await turns.wait(size);
      // What is over took all of them.
      if (this.#early.shift() !== first) break;
      this.#earlyBytes -= size;
      this.#events.early(-size);
      this.#pass(first.text, first.frame);
    }
    this.#isOpen = true;
  }

  #pass(text: string, frame: ClientFrame | undefined): void {
    if (this.#isOver) return;
    if (this.#there !== undefined) this.#there.send(text);
    else if (frame !== undefined) this.#here?.onFrame(frame, text.length);
    else this.#here?.onMessage(Buffer.from(text));
  }

  #end(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onOver();
    this.#dropEarly();
    this.#here?.onClose();
    this.#there?.attach(NO_EVENTS);
    this.#there?.destroy(reason);
    this.#events.onClose(code, reason);
  }
}

/** Without its token: who it is was proved where it came in. */
function helloText({ address, role, version, journal }: Hello): string {
  return JSON.stringify({ kind: "hello", agent: { session_id: address, role }, version, journal });
}
