// A broker's mailboxes, and one of them: its queue, the consumers that take from it, how they are reached and what is on its way to each (their
// subscriptions), and whom its owner may answer. No I/O: the broker writes, and says here what came of it.

import { Counts } from "../../runtime/containers/counts.js";
import type { RoomAccount } from "../../runtime/memory/shared-room.js";
import { ownerOf } from "../wire/address.js";
import type { Deliver, MessageName } from "../wire/frames.js";
import { DeliveryRefusal } from "./broker-texts.js";
import { MAX_ANSWERABLE, MAX_MAILBOXES, QUEUE_LIMITS } from "./limits.js";
import { MailboxQueue } from "./queue.js";
import { type Consumer, type HandOut, keyOf, type QueuedMessage } from "./queue-terms.js";
import { type Letter, REPLY, replyKind } from "./record.js";

/** What may be answered no longer is forgotten so many at a time: there are at most so many beyond the bound. */
const FORGOTTEN_AT_ONCE = MAX_ANSWERABLE / 4;

/** One write to the store: whom these messages were handed to. */
export class BindWrite {
  readonly given: HandOut[] = [];
  /** It is on disk. */
  isStored = false;
}

interface Pending {
  readonly given: HandOut;
  /** Undefined: the store knew it before. */
  readonly write: BindWrite | undefined;
}

/**
 * Hand-outs to one consumer that have not left: the store must know first whom a message was handed to. They leave in the order in which
 * the queue gave them, so what needs no write of its own waits behind what does. They are not more than the consumer's window, once for
 * each of the leases that ran out before a write came back.
 */
export class PendingHandOuts {
  #pending: Pending[] = [];

  get isEmpty(): boolean {
    return this.#pending.length === 0;
  }

  push(given: HandOut, write: BindWrite | undefined): void {
    this.#pending.push({ given, write });
  }

  /** The next one that may leave now. */
  next(): HandOut | undefined {
    const [first] = this.#pending;
    if (first === undefined || first.write?.isStored === false) return undefined;
    this.#pending.shift();
    return first.given;
  }

  /** The write failed: what waited for it does not leave, nor does what the queue gave after it. */
  giveUp(write: BindWrite): HandOut[] {
    const at = this.#pending.findIndex((one) => one.write === write);
    return at < 0 ? [] : this.#pending.splice(at).map(({ given }) => given);
  }

  /** The consumer has gone: nothing leaves any more. */
  takeAll(): HandOut[] {
    return this.#pending.splice(0).map(({ given }) => given);
  }

  /** Takes a message out. False: it has left, or was never here. */
  take(message: QueuedMessage): boolean {
    const before = this.#pending.length;
    if (before === 0) return false;
    this.#pending = this.#pending.filter(({ given }) => given.message !== message);
    return this.#pending.length < before;
  }
}

/** How a consumer is reached. */
export interface Subscription {
  readonly consumer: Consumer;
  /** Sends a frame. False: the connection is full, and tells when it is not. */
  send(frame: string): boolean;
  readonly pending: PendingHandOuts;
}

/** Who has a message, or had it. */
export interface HandedTo {
  readonly consumer: Consumer;
  readonly journal: string | undefined;
}

/** A message that was handed out, and may be answered. */
export interface Answerable extends HandedTo {
  readonly sequence: number;
  /** Where the answer goes. */
  readonly from: string;
  readonly endMs: number;
  /** The correlation id that it had of its own. */
  readonly correlationId: string | undefined;
  /** Those that had it before and let its lease run out, of those that are still here: at most as many as a message has leases. */
  readonly earlier: readonly Consumer[];
  /** Its consumer said that it does not do it. */
  isGivenBack: boolean;
  /** The first answer counts. */
  answer: { readonly id: string; readonly hash: string; isStored: boolean } | undefined;
}

/** As what a connection takes messages, if it does, and the journal that it said it has. */
export interface Answerer {
  readonly consumer: Consumer | undefined;
  readonly journal: string | undefined;
}

const NONE: readonly Consumer[] = [];

export class Mailbox {
  readonly address: string;
  readonly queue: MailboxQueue;
  readonly subscriptions = new Map<Consumer, Subscription>();
  /** When its queue wants to be looked at, and its place in the broker's heap of those times. */
  dueMs: number = Number.POSITIVE_INFINITY;
  dueAt = -1;
  /**
   * What was handed out here, by sender and id, until the message's end: the owner may answer it. The latest are in the first, and
   * the last is forgotten as a whole. Whoever takes the oldest out of one large map walks past the places of all that were.
   */
  readonly #answerable: Map<string, Answerable>[] = [new Map()];

  /** The token that it was opened for: who sent there first, or takes from it. */
  readonly openedBy: string;

  constructor(address: string, openedBy: string, account: RoomAccount | undefined) {
    this.address = address;
    this.openedBy = openedBy;
    this.queue = new MailboxQueue(QUEUE_LIMITS, account);
  }

  /** Nothing is in it, nobody takes from it, and there is nobody left to answer. */
  isIdle(nowMs: number): boolean {
    if (!this.queue.isIdle) return false;
    let isAny = false;
    for (const some of this.#answerable) {
      for (const [key, { endMs }] of some) if (endMs <= nowMs) some.delete(key);
      isAny ||= some.size > 0;
    }
    return !isAny;
  }

  wasHandedOut({ key, sequence, from, endMs, correlationId }: Letter, consumer: Consumer): void {
    const before = this.#known(key);
    // What was answered and comes again because nobody acknowledged it is answered; another message of its id is not.
    const answer = before?.sequence === sequence ? before.answer : undefined;
    if (before !== undefined) for (const some of this.#answerable) some.delete(key);
    const { journal } = consumer;
    const earlier = before?.sequence === sequence ? this.#hadBefore(before, consumer) : NONE;
    const isGivenBack = false;
    const [latest] = this.#answerable as [Map<string, Answerable>];
    latest.set(key, { sequence, from, endMs, correlationId, consumer, journal, earlier, isGivenBack, answer });
    if (latest.size < FORGOTTEN_AT_ONCE) return;
    this.#answerable.unshift(new Map());
    if ((this.#answerable.length - 1) * FORGOTTEN_AT_ONCE > MAX_ANSWERABLE) this.#answerable.pop();
  }

  #hadBefore({ consumer, earlier, isGivenBack }: Answerable, next: Consumer): readonly Consumer[] {
    const isAway = isGivenBack || consumer === next || !this.subscriptions.has(consumer);
    if (isAway && earlier.length === 0) return NONE;
    const still = earlier.filter((one) => one !== next && this.subscriptions.has(one));
    return isAway ? still : [...still, consumer];
  }

  /** Its consumer, or that of somebody before it, says that it does not do it. */
  wasGivenBack({ key, sequence }: Letter, consumer: Consumer): void {
    const known = this.#known(key);
    if (known?.sequence === sequence && known.consumer === consumer) known.isGivenBack = true;
  }

  /**
   * Who answers a message: whoever has it, or had it until its lease ran out, and all connections of the journal that it was handed to,
   * which know what was begun. Where it was handed to a connection without a journal that has gone, and nobody has it since, its next
   * connection is told from no other, and any of the mailbox may.
   */
  mayAnswer(known: Answerable, { consumer, journal }: Answerer): boolean {
    if (consumer !== undefined && known.earlier.includes(consumer)) return true;
    if (known.isGivenBack) return false;
    if (consumer === known.consumer) return true;
    return known.journal === undefined ? !this.subscriptions.has(known.consumer) : journal === known.journal;
  }

  /** Whether this one may say that a message is finished that is in it. */
  mayFinish({ key, sequence, sender, id }: Letter, by: Answerer): boolean {
    const known = this.#known(key);
    if (known?.sequence === sequence) return this.mayAnswer(known, by);
    return by.consumer !== undefined && this.queue.heldBy(by.consumer, sender, id) !== undefined;
  }

  #known(key: string): Answerable | undefined {
    for (const some of this.#answerable) {
      const known = some.get(key);
      if (known !== undefined) return known;
    }
    return undefined;
  }

  /** Whether the answer to this message is on disk: its consumer only did not say that it is finished. */
  isAnswered({ key, sequence }: Letter): boolean {
    const known = this.#known(key);
    return known?.sequence === sequence && known.answer?.isStored === true;
  }

  /** Whose message a consumer means: bare ones name messages by their ids alone. */
  senderOf(consumer: Consumer, { id, from }: MessageName): string | undefined {
    return from === undefined ? this.queue.senderOf(consumer, id) : ownerOf(from);
  }

  /**
   * The message of this sender and id, where it was handed out here and the owner may still answer it: until its end, and after that
   * as long as it has it. A consumer that says that the end has come says so after it.
   */
  answerable(sender: string, id: string, nowMs: number): Answerable | undefined {
    const known = this.#known(keyOf(sender, id));
    if (known === undefined || known.endMs > nowMs) return known;
    return this.queue.heldBy(known.consumer, sender, id)?.sequence === known.sequence ? known : undefined;
  }
}

/** Takes no messages. */
export const NO_CONSUMER: Answerer = { consumer: undefined, journal: undefined };

interface Sender {
  readonly address: string;
  readonly owner: string;
  readonly maySendTo: ReadonlySet<string> | undefined;
}

export interface Asking {
  /** Of the message that is sent, as it would be stored. */
  readonly hash: string;
  readonly by: Answerer;
  /** The message that its correlation id names, of whom it goes to, where that is stored. */
  readonly about: Letter | undefined;
  readonly nowMs: number;
}

/**
 * The message of the sender's mailbox that this one is about, where it was handed to the sender. Throws a DeliveryRefusal where it may not
 * be sent. The answer that counts may be repeated by anybody of the mailbox: it is the same.
 */
export function askedOf(
  mailbox: Mailbox | undefined,
  { address, owner, maySendTo }: Sender,
  { to, message }: Deliver,
  { hash, by, about, nowMs }: Asking,
): Answerable | undefined {
  const { id, kind, correlationId } = message;
  const isFree = maySendTo?.has(to) !== false;
  const handed = correlationId === undefined ? undefined : mailbox?.answerable(ownerOf(to), correlationId, nowMs);
  if (handed !== undefined && handed.from === to) {
    const isRepeat = handed.answer?.id === id && handed.answer.hash === hash;
    if (isRepeat || mailbox?.mayAnswer(handed, by) === true) return handed;
    if (kind.endsWith(REPLY) || !isFree) throw new DeliveryRefusal(notTheirs(correlationId, address));
    return undefined;
  }
  const isForeignAnswer = about?.to === address && about.from === to && kind === replyKind(about.kind);
  if (isForeignAnswer) throw new DeliveryRefusal(notTheirs(correlationId, address));
  if (!isFree) {
    throw new DeliveryRefusal(
      `"${owner}" may not send to "${to}": a token may with --may-send-to, and whoever was asked may answer`,
    );
  }
  return undefined;
}

function notTheirs(id: string | undefined, address: string): string {
  return `"${id}" is not with this connection: of those that take from "${address}", whoever has a message answers it`;
}

/** Those in use, by their addresses. */
export class MailboxTable extends Map<string, Mailbox> {
  readonly #account: RoomAccount | undefined;
  readonly #opened = new Counts();

  constructor(account: RoomAccount | undefined) {
    super();
    this.#account = account;
  }

  /** Opens it for a token where it is not in use. Throws a DeliveryRefusal where there are too many, or too many of that one's. */
  open(address: string, by: string): Mailbox {
    const known = this.get(address);
    if (known !== undefined) return known;
    if (this.size >= MAX_MAILBOXES) {
      throw new DeliveryRefusal(`the broker has ${MAX_MAILBOXES} mailboxes in use, which is its limit`);
    }
    if (this.#opened.of(by) * 2 >= MAX_MAILBOXES) {
      const half = MAX_MAILBOXES / 2;
      throw new DeliveryRefusal(
        `"${by}" has ${half} mailboxes in use, and no token gets more: take what is in them first`,
      );
    }
    return this.restore(address, by);
  }

  /** What was in use when the broker ended is so again, whatever the limits say. */
  restore(address: string, by: string): Mailbox {
    const known = this.get(address);
    if (known !== undefined) return known;
    const mailbox = new Mailbox(address, by, this.#account);
    this.#opened.add(by);
    this.set(address, mailbox);
    return mailbox;
  }

  /** It is not used any more. */
  close({ address, openedBy }: Mailbox): void {
    if (this.delete(address)) this.#opened.remove(openedBy);
  }
}
