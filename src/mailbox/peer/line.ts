// A peer's end of the line to a broker, for whoever shares tools and whoever uses them: dials, says hello, and turns
// frames into calls and promises. It neither reads bodies nor comes back by itself.

import { DialError, dialSocket, socketUrl } from "../../sockets/dial.js";
import { HANDSHAKE_MS } from "../../sockets/limits.js";
import { Close, NO_EVENTS, type SocketEvents } from "../../sockets/socket.js";
import {
  type BrokerFrame,
  type MailboxPresence,
  type ReceivedLive,
  type ReceivedMessage,
  readBrokerFrame,
} from "../wire/broker-frames.js";
import { refuseHeavy } from "../wire/frames.js";
import {
  BEAT_MS,
  MAX_EXTENDED,
  MAX_FRAME_BYTES,
  MAX_LIVE_BYTES,
  MAX_LIVE_WAITING_BYTES,
  MAX_UNDER_WAY,
} from "../wire/limits.js";
import { BrokerLost, BrokerRefusal } from "./broker-error.js";

/** A message by its sender's address and the id that it has there. */
export interface SentMessage {
  readonly id: string;
  readonly from: string;
}

export interface Delivery {
  readonly to: string;
  readonly id: string;
  readonly kind: string;
  /** JSON, sent as it is. */
  readonly body: string;
  /** The message that it answers. */
  readonly correlationId?: string | undefined;
  /** By which a repeat is told from another message of its id, in place of the body. */
  readonly digest?: string | undefined;
  /** The only one that may have it. */
  readonly journal?: string | undefined;
  /** How long it may wait and run. Without it, an hour. */
  readonly leftMs?: number | undefined;
  /** The message that is finished with it, in one write to the broker's disk. */
  readonly acknowledges?: SentMessage | undefined;
}

/** One connection to a broker, after its welcome. */
export interface BrokerLine {
  /** What the broker said in its welcome. */
  readonly address: string;
  readonly role: string;
  /**
   * Resolves when it is on the broker's disk. Rejects with a BrokerRefusal, or with a BrokerLost where the line ended
   * first: then nobody knows, and whoever repeats it uses the same id. One that repeats an id under way waits with it.
   */
  deliver(delivery: Delivery): Promise<void>;
  ack(name: SentMessage): void;
  /** It was not begun, or may be repeated: another may have it. `failed` counts to the limit of tries. */
  release(name: SentMessage, failed?: { readonly reason: string }): void;
  /** Resolves with those that are still ours. */
  extend(names: readonly SentMessage[]): Promise<readonly SentMessage[]>;
  /** It was begun, and may run twice: another may have it, should this line end. Said at the end of this turn. */
  repeatable(name: SentMessage): void;
  /** Resolves when all has come that the broker had sent until it was asked. */
  caughtUp(): Promise<void>;
  /** So many more messages may come; the line begins with none. */
  credit(messages: number): void;
  /** Resolves with true where it was taken out and never runs. */
  cancel(to: string, id: string): Promise<boolean>;
  /** False: it was dropped here, because it is too large or too much waits to be written. */
  live(to: string, correlationId: string | undefined, body: string): boolean;
  /** Asks for the presence of a mailbox, now and at each change. */
  watch(mailbox: string): void;
  /** A sharer's code of one use: whoever brings it gets a token that sends to its mailbox, with this role. */
  pair(role?: string): Promise<{ readonly code: string; readonly expiresInMs: number }>;
  /** Bytes that wait to be written; onDrain tells when there is room after there was none. */
  readonly waiting: number;
  close(why?: string): void;
}

export interface LineEvents {
  onMessage(message: ReceivedMessage): void;
  onLive(frame: ReceivedLive): void;
  /** The sender of a message that we hold does not want it any more. */
  onCancel(correlationId: string, from: string | undefined): void;
  onPresence(presence: MailboxPresence): void;
  onDrain(): void;
  /** Called once, and nothing after it. `final`: the broker will not have us back. Not called where openLine rejects. */
  onClose(why: string, final: boolean): void;
}

export interface HelloOptions {
  /** The mailbox: the token's id, or an address behind it, `worker-1#mcp-x7`. */
  readonly address: string;
  readonly role?: string | undefined;
  /** Where this peer writes down what it has begun. */
  readonly journal?: string | undefined;
  /** The kinds of messages that it takes; undefined is all. */
  readonly kinds?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface LineOptions extends HelloOptions {
  /** Of the broker; `ws://127.0.0.1:7440` will do. */
  readonly url: string;
  readonly token?: string | undefined;
}

/** What carries a line: a socket, or the other half of a pair in this process. */
export interface LineCarrier {
  /** Bytes that are not written yet. */
  readonly waiting: number;
  /** The other end would not have us back. */
  readonly wasRefused: boolean;
  attach(events: SocketEvents): void;
  send(frame: string): void;
  close(code: number, reason: string): void;
}

/** The frames that we speak beyond the bare ones. */
const VERSION = 1;

/** Dials, says hello, waits for the welcome and subscribes. Rejects with a BrokerRefusal or a BrokerLost. */
export async function openLine(options: LineOptions, events: LineEvents): Promise<BrokerLine> {
  let carrier: LineCarrier;
  try {
    const url = socketUrl(options.url);
    // A gateway has its broker there, and a broker that stands alone answers there too.
    if (url.pathname === "/") url.pathname = "/mailboxes";
    const socket = await dialSocket(url, { token: options.token, signal: options.signal, peer: "a broker" });
    socket.beat(BEAT_MS);
    socket.gather();
    carrier = socket;
  } catch (error) {
    if (!(error instanceof DialError)) throw error;
    if (error.status === 401 || error.status === 403) throw new BrokerRefusal(error.message, true);
    throw new BrokerLost(error.message);
  }
  return greet(carrier, options, events);
}

/** Says hello on what is open already. */
export function greet(carrier: LineCarrier, options: HelloOptions, events: LineEvents): Promise<BrokerLine> {
  const { address, role, journal, kinds, signal } = options;
  return new Promise<BrokerLine>((resolve, reject) => {
    let refusal: string | undefined;
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    const fail = (error: Error): void => {
      settle();
      carrier.attach(NO_EVENTS);
      carrier.close(Close.normal, "the hello was given up");
      reject(error);
    };
    const abort = (): void => fail(new BrokerLost("the welcome was not waited for"));
    const timer = setTimeout(
      () => fail(new BrokerLost(`the broker said nothing to our hello for ${HANDSHAKE_MS / 1000} s`)),
      HANDSHAKE_MS,
    );
    if (signal?.aborted === true) {
      abort();
      return;
    }
    signal?.addEventListener("abort", abort, { once: true });
    carrier.attach({
      onMessage: (bytes) => {
        const frame = readOrUndefined(bytes);
        if (frame?.kind === "error") refusal = frame.reason;
        if (frame?.kind !== "welcome") return;
        settle();
        resolve(new Line(carrier, frame.address, frame.role, events));
        carrier.send(JSON.stringify({ kind: "subscribe", kinds }));
      },
      onDrain() {},
      onClose: (why) => {
        const isRefusal = refusal !== undefined || carrier.wasRefused;
        settle();
        reject(isRefusal ? new BrokerRefusal(refusal ?? why, true) : new BrokerLost(why));
      },
    });
    carrier.send(JSON.stringify({ kind: "hello", agent: { session_id: address, role }, version: VERSION, journal }));
  });
}

interface Waiter<T> {
  resolve(value: T): void;
  reject(error: Error): void;
}

interface UnderWay extends Waiter<void> {
  readonly promise: Promise<void>;
}

/** What waits for an answer waits as long as the line lasts: a broker that went silent is noticed by its heartbeats. */
class Line implements BrokerLine, SocketEvents {
  readonly address: string;
  readonly role: string;
  readonly #carrier: LineCarrier;
  readonly #events: LineEvents;
  readonly #deliveries = new Map<string, UnderWay>();
  /** Answered in the order in which they were asked. */
  readonly #extensions: Waiter<readonly SentMessage[]>[] = [];
  readonly #codes: Waiter<{ readonly code: string; readonly expiresInMs: number }>[] = [];
  readonly #cancels = new Map<string, Waiter<boolean>[]>();
  /** What is finished and not said yet: as many as credit was given for. It is said at the end of this turn, in one frame. */
  #acks: SentMessage[] = [];
  /** What may run twice, and is not said yet. */
  #repeatable: SentMessage[] = [];
  #credit = 0;
  #isTelling: boolean = false;
  #closed: string | undefined;

  constructor(carrier: LineCarrier, address: string, role: string, events: LineEvents) {
    this.#carrier = carrier;
    this.address = address;
    this.role = role;
    this.#events = events;
    carrier.attach(this);
  }

  get waiting(): number {
    return this.#carrier.waiting;
  }

  deliver(delivery: Delivery): Promise<void> {
    const { id } = delivery;
    const known = this.#deliveries.get(id);
    if (known !== undefined) return known.promise;
    if (this.#closed !== undefined) return Promise.reject(new BrokerLost(this.#closed));
    if (this.#deliveries.size >= MAX_UNDER_WAY) {
      return Promise.reject(
        new BrokerRefusal(`${MAX_UNDER_WAY} deliveries to the broker are under way: wait for one of them`),
      );
    }
    const text = deliverText(delivery);
    if (isTooLarge(text)) {
      return Promise.reject(new BrokerRefusal(`a message has at most ${MAX_FRAME_BYTES} bytes with its wrapping`));
    }
    let waiter: Waiter<void> | undefined;
    const promise = new Promise<void>((resolve, reject) => {
      waiter = { resolve, reject };
    });
    if (waiter !== undefined) this.#deliveries.set(id, { ...waiter, promise });
    this.#carrier.send(text);
    return promise;
  }

  ack(name: SentMessage): void {
    this.#acks.push(name);
    this.#tellSoon();
  }

  release({ id, from }: SentMessage, failed?: { readonly reason: string }): void {
    this.#send({ kind: "release", id, from, ...(failed === undefined ? {} : { failed: true, reason: failed.reason }) });
  }

  extend(names: readonly SentMessage[]): Promise<readonly SentMessage[]> {
    return names.length === 0 ? Promise.resolve([]) : this.#extend(names);
  }

  async caughtUp(): Promise<void> {
    // Frames come in order, and this one is answered whatever it names.
    await this.#extend([]);
  }

  repeatable(name: SentMessage): void {
    this.#repeatable.push(name);
    this.#tellSoon();
  }

  #extend(names: readonly SentMessage[], repeatable?: true): Promise<readonly SentMessage[]> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) reject(new BrokerLost(this.#closed));
      else if (this.#extensions.length >= MAX_UNDER_WAY)
        reject(new BrokerRefusal("too many leases are being extended"));
      else {
        this.#extensions.push({ resolve, reject });
        this.#send({ kind: "extend", ids: names.map(({ id, from }) => ({ id, from })), repeatable });
      }
    });
  }

  credit(messages: number): void {
    if (messages <= 0) return;
    this.#credit += messages;
    this.#tellSoon();
  }

  #tellSoon(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    process.nextTick(this.#tell);
  }

  /** One function for all turns. */
  readonly #tell = (): void => {
    this.#isTelling = false;
    const acks = this.#acks;
    const repeatable = this.#repeatable;
    const messages = this.#credit;
    this.#credit = 0;
    if (repeatable.length > 0) {
      this.#repeatable = [];
      // No more than a connection may hold. Unsaid, they are kept for our journal, which does no harm.
      this.#extend(repeatable, true).catch(() => {});
    }
    if (acks.length > 0) {
      this.#acks = [];
      for (let from = 0; from < acks.length; from += MAX_EXTENDED)
        this.#sendAcks(acks.slice(from, from + MAX_EXTENDED));
    }
    if (messages > 0) this.#send({ kind: "credit", messages });
  };

  #sendAcks(names: readonly SentMessage[]): void {
    const [first] = names;
    if (names.length === 1 && first !== undefined) this.#send({ kind: "ack", id: first.id, from: first.from });
    else this.#send({ kind: "ack", ids: names.map(({ id, from }) => ({ id, from })) });
  }

  cancel(to: string, id: string): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) {
        reject(new BrokerLost(this.#closed));
        return;
      }
      const waiters = this.#cancels.get(id);
      if (waiters === undefined) this.#cancels.set(id, [{ resolve, reject }]);
      else waiters.push({ resolve, reject });
      this.#send({ kind: "cancel", to, correlation_id: id });
    });
  }

  live(to: string, correlationId: string | undefined, body: string): boolean {
    if (this.#closed !== undefined || this.#carrier.waiting > MAX_LIVE_WAITING_BYTES) return false;
    const correlation = correlationId === undefined ? "" : `,"correlation_id":${JSON.stringify(correlationId)}`;
    const frame = `{"kind":"live","to":${JSON.stringify(to)}${correlation},"body":${body}}`;
    if (Buffer.byteLength(frame) > MAX_LIVE_BYTES) return false;
    this.#carrier.send(frame);
    return true;
  }

  watch(mailbox: string): void {
    this.#send({ kind: "presence", mailbox });
  }

  pair(role?: string): Promise<{ readonly code: string; readonly expiresInMs: number }> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) reject(new BrokerLost(this.#closed));
      else if (this.#codes.length >= MAX_UNDER_WAY) reject(new BrokerRefusal("too many codes are being asked for"));
      else {
        this.#codes.push({ resolve, reject });
        this.#send({ kind: "pair", role });
      }
    });
  }

  close(why = "it is not needed any more"): void {
    this.#tell();
    this.#carrier.close(Close.normal, why);
  }

  // ── What comes ───────────────────────────────────────────────────────────────────────────────────────────────────

  onMessage(bytes: Buffer): void {
    const frame = readOrUndefined(bytes);
    if (frame === undefined || this.#closed !== undefined) return;
    switch (frame.kind) {
      case "message":
        this.#events.onMessage(frame.message);
        return;
      case "delivered":
        for (const id of frame.ids) this.#take(id)?.resolve();
        return;
      case "live":
        this.#events.onLive(frame.live);
        return;
      case "error":
        this.#onError(frame);
        return;
      case "extended":
        this.#extensions.shift()?.resolve(frame.names);
        return;
      case "cancelled":
        this.#takeCancel(frame.correlationId)?.resolve(frame.removed);
        return;
      case "cancel":
        this.#events.onCancel(frame.correlationId, frame.from);
        return;
      case "presence":
        this.#events.onPresence(frame.presence);
        return;
      case "pair":
        this.#codes.shift()?.resolve(frame);
    }
  }

  onDrain(): void {
    this.#events.onDrain();
  }

  onClose(why: string): void {
    if (this.#closed !== undefined) return;
    this.#closed = why;
    const lost = new BrokerLost(`the line to the broker ended: ${why}`);
    for (const one of this.#deliveries.values()) one.reject(lost);
    for (const one of this.#extensions.splice(0)) one.reject(lost);
    for (const one of this.#codes.splice(0)) one.reject(lost);
    for (const waiters of this.#cancels.values()) for (const one of waiters) one.reject(lost);
    this.#deliveries.clear();
    this.#cancels.clear();
    this.#events.onClose(why, this.#carrier.wasRefused);
  }

  /** What was said about an ack that came too late is nobody's trouble: the message is handed out again. */
  #onError({ reason, id, of }: Extract<BrokerFrame, { kind: "error" }>): void {
    const refusal = new BrokerRefusal(reason);
    // A frame that could not be read may be one that somebody waits for: they hear of it with the line's end.
    if (of === undefined && id === undefined) this.close(reason);
    else if (of === "extend") this.#extensions.shift()?.reject(refusal);
    else if (of === "pair") this.#codes.shift()?.reject(refusal);
    else if (id !== undefined && (of === undefined || of === "deliver")) this.#take(id)?.reject(refusal);
  }

  #take(id: string): UnderWay | undefined {
    const found = this.#deliveries.get(id);
    this.#deliveries.delete(id);
    return found;
  }

  #takeCancel(id: string): Waiter<boolean> | undefined {
    const waiters = this.#cancels.get(id);
    const first = waiters?.shift();
    if (waiters?.length === 0) this.#cancels.delete(id);
    return first;
  }

  #send(frame: object): void {
    if (this.#closed === undefined) this.#carrier.send(JSON.stringify(frame));
  }
}

/** What cannot be read is passed over, as what is not known: whoever waits for it hears of the line's end. */
function readOrUndefined(bytes: Buffer): BrokerFrame | undefined {
  try {
    refuseHeavy(bytes);
    return readBrokerFrame(bytes.toString());
  } catch {
    return undefined;
  }
}

function isTooLarge(text: string): boolean {
  // A character has at most three bytes: most are small enough at a glance.
  return text.length > MAX_FRAME_BYTES / 3 && Buffer.byteLength(text) > MAX_FRAME_BYTES;
}

function deliverText(delivery: Delivery): string {
  const { to, id, kind, body, correlationId, digest, journal, leftMs, acknowledges } = delivery;
  const left = leftMs === undefined ? "" : `,"left_ms":${Math.max(1, Math.round(leftMs))}`;
  const ack =
    acknowledges === undefined ? "" : `,"ack":${JSON.stringify({ id: acknowledges.id, from: acknowledges.from })}`;
  const correlation = correlationId === undefined ? "" : `,"correlation_id":${JSON.stringify(correlationId)}`;
  const same = digest === undefined ? "" : `,"digest":${JSON.stringify(digest)}`;
  const only = journal === undefined ? "" : `,"journal":${JSON.stringify(journal)}`;
  const head = `"id":${JSON.stringify(id)},"kind":${JSON.stringify(kind)}${correlation}${same}`;
  return `{"kind":"deliver","to":${JSON.stringify(to)}${left}${ack}${only},"message":{${head},"body":${body}}}`;
}
