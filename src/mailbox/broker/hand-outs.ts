// Sends messages to the consumers that the queue gave them to, once the store knows of it: after a restart nobody else may have
// them. What cannot leave goes back to the queue with its credit.

import type { Log } from "../../observe/log.js";
import type { ElapsedClock } from "../elapsed-clock.js";
import { RETRY_MS } from "./limits.js";
import type { MailStore } from "./mail-store.js";
import type { BindWrite, Mailbox, Subscription } from "./mailbox.js";
import type { Consumer, HandOut } from "./queue-terms.js";
import { type Letter, messageOf } from "./record.js";

export interface HandOutsOptions {
  readonly mail: MailStore;
  readonly clock: ElapsedClock;
  readonly log: Log;
  /** Whether the mailboxes are this broker's at this moment. */
  readonly mayAct: () => boolean;
  /** A consumer to which nothing could be handed may be tried again. */
  resume(mailbox: Mailbox, consumer: Consumer): void;
  /** A consumer may have more than the queue knew of when it was last asked. */
  look(mailbox: Mailbox): void;
}

export class HandOuts {
  readonly #options: HandOutsOptions;
  /** The one that just came, and its text. */
  #latest: Letter | undefined;
  #latestText = "";

  constructor(options: HandOutsOptions) {
    this.#options = options;
  }

  /** The text of a message that may be handed out within this turn. */
  remember(letter: Letter | undefined, text: string): void {
    this.#latest = letter;
    this.#latestText = text;
  }

  /** `write` is the one that it waits for, where it has to. */
  give(mailbox: Mailbox, given: HandOut, write: BindWrite | undefined, nowMs: number): void {
    const subscription = mailbox.subscriptions.get(given.consumer);
    if (subscription === undefined) return;
    const { pending } = subscription;
    // What comes later must not overtake what waits.
    if (given.bindTo !== undefined) pending.push(given, write);
    else if (!pending.isEmpty) pending.push(given, undefined);
    else this.#send(mailbox, subscription, given, nowMs);
  }

  #send(mailbox: Mailbox, { send }: Subscription, { consumer, message, isRepeat }: HandOut, nowMs: number): void {
    const letter = message as Letter;
    const text = letter === this.#latest ? this.#latestText : this.#stored(letter);
    if (text === undefined) return;
    mailbox.wasHandedOut(letter, consumer);
    const left = Math.max(1, Math.round(letter.endMs - nowMs));
    const again = isRepeat ? ',"repeated":true' : "";
    if (!send(`{"kind":"message","left_ms":${left}${again},"message":${text}}`)) {
      mailbox.queue.pause(consumer, true);
    }
  }

  /** Undefined: it is gone. */
  #stored(letter: Letter): string | undefined {
    const record = this.#options.mail.record(letter);
    return record === undefined ? undefined : messageOf(record);
  }

  /** Writes down whom they were handed to, and sends them then. */
  bind(mailbox: Mailbox, write: BindWrite): void {
    this.#options.mail.bind(write.given).then(
      () => {
        if (!this.#options.mayAct()) {
          for (const one of this.#consumersOf(mailbox, write)) this.#tryLater(mailbox, one, write);
          return;
        }
        write.isStored = true;
        for (const one of this.#consumersOf(mailbox, write)) this.#sendPending(mailbox, one);
      },
      (error: Error) => {
        this.#options.log.error("a broker could not store whom it hands messages to", { why: error.message });
        for (const one of this.#consumersOf(mailbox, write)) this.#tryLater(mailbox, one, write);
      },
    );
  }

  /** Those who are still there. */
  #consumersOf(mailbox: Mailbox, { given }: BindWrite): Set<Subscription> {
    return new Set(given.flatMap(({ consumer }) => mailbox.subscriptions.get(consumer) ?? []));
  }

  #sendPending(mailbox: Mailbox, subscription: Subscription): void {
    const nowMs = this.#options.clock.now();
    let hasMore = false;
    for (let given = subscription.pending.next(); given !== undefined; given = subscription.pending.next()) {
      const { consumer, message } = given;
      // It was finished, has ended or was dropped meanwhile. The consumer has not heard of it, and may have another.
      if (mailbox.queue.heldBy(consumer, message.sender, message.id) !== message) {
        mailbox.queue.grant(consumer, 1);
        hasMore = true;
      } else this.#send(mailbox, subscription, given, nowMs);
    }
    if (hasMore) this.#options.look(mailbox);
  }

  /** The disk is full, or broken, or the mailboxes may be another's by now: nothing is handed to this consumer for a while. */
  #tryLater(mailbox: Mailbox, { consumer, pending }: Subscription, write: BindWrite): void {
    for (const given of pending.giveUp(write)) this.#giveBack(mailbox, given);
    mailbox.queue.pause(consumer, true);
    setTimeout(() => this.#options.resume(mailbox, consumer), RETRY_MS).unref();
  }

  /** It has not left. */
  #giveBack({ queue }: Mailbox, { consumer, message }: Pick<HandOut, "consumer" | "message">): void {
    if (queue.heldBy(consumer, message.sender, message.id) === message) {
      queue.release(consumer, message.sender, message.id);
    }
    queue.grant(consumer, 1);
  }

  /** A consumer goes. What has not left was not begun: anybody may have it, after a restart too. */
  leave(mailbox: Mailbox, consumer: Consumer): void {
    const unsent = mailbox.subscriptions.get(consumer)?.pending.takeAll() ?? [];
    if (unsent.length === 0) return;
    for (const given of unsent) this.#giveBack(mailbox, given);
    this.#options.mail.unbind(
      unsent.map(({ message }) => message as Letter),
      false,
    );
  }

  /** A message that is down for a consumer and has not left is nobody's again. */
  takeBack(mailbox: Mailbox, letter: Letter): void {
    for (const { consumer, pending } of mailbox.subscriptions.values()) {
      if (pending.take(letter)) this.#giveBack(mailbox, { consumer, message: letter });
    }
  }
}
