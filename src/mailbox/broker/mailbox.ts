// One mailbox of a broker: its queue, who takes from it and how they are reached, and whom its owner may answer.

import { MAX_ANSWERABLE, QUEUE_LIMITS } from "./limits.js";
import { type Consumer, MailboxQueue } from "./queue.js";
import type { Letter } from "./record.js";

/** A connection that takes from a mailbox. */
export interface Subscription {
  readonly consumer: Consumer;
  /** Sends a frame. False: the connection is full, and tells when it is not. */
  send(frame: string): boolean;
}

/** A subscription as its mailbox has it. */
export interface Taker extends Subscription {
  /** What it holds by id, where it knows messages by their ids alone: the senders' ids. */
  readonly senders: Map<string, string>;
  /** Frames that must not leave before the store knows whom their messages were handed to. */
  waiting: string[] | undefined;
}

/** Who has a message, or had it. */
export interface HandedTo {
  readonly consumer: Consumer;
  readonly journal: string | undefined;
}

interface Answerable extends HandedTo {
  /** Where the answer goes. */
  readonly from: string;
  readonly endMs: number;
}

export class Mailbox {
  readonly address: string;
  readonly queue = new MailboxQueue(QUEUE_LIMITS);
  readonly takers = new Map<Consumer, Taker>();
  /** When its queue wants to be looked at, and its place in the broker's heap of those times. */
  dueMs: number = Number.POSITIVE_INFINITY;
  dueAt = -1;
  /** What was handed out here, by sender and id, until the message's end: the owner may answer it. */
  readonly #answerable = new Map<string, Answerable>();

  constructor(address: string) {
    this.address = address;
  }

  /** Nothing is in it, nobody takes from it, and there is nobody left to answer. */
  isIdle(nowMs: number): boolean {
    if (!this.queue.isIdle) return false;
    for (const [key, { endMs }] of this.#answerable) if (endMs <= nowMs) this.#answerable.delete(key);
    return this.#answerable.size === 0;
  }

  wasHandedOut({ sender, id, from, endMs }: Letter, consumer: Consumer): void {
    const key = `${sender}\0${id}`;
    const journal = consumer.journal === "" ? undefined : consumer.journal;
    this.#answerable.delete(key);
    this.#answerable.set(key, { from, endMs, consumer, journal });
    if (this.#answerable.size <= MAX_ANSWERABLE) return;
    const [oldest] = this.#answerable.keys();
    if (oldest !== undefined) this.#answerable.delete(oldest);
  }

  /** Whether the owner may send this address an answer to, or a question about, the message of this id. */
  mayAnswer(sender: string, id: string, address: string, nowMs: number): boolean {
    const known = this.#answerable.get(`${sender}\0${id}`);
    return known !== undefined && known.from === address && known.endMs > nowMs;
  }

  /** Who has this message of a sender, or had it last. */
  handedTo(sender: string, id: string): HandedTo | undefined {
    return this.#answerable.get(`${sender}\0${id}`);
  }
}
