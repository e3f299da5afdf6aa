// What a broker has on disk: its messages, whom they were handed to, and its dead letters. It writes and reads; what is
// to be written is the broker's to decide.

import type { Appended, Batch, BatchOptions, DurableMap, OrderedLog, Store } from "../../contracts/store.js";
import type { Log } from "../../observe/log.js";
import { DeadLetters } from "./dead-letters.js";
import type { Binding, HandOut } from "./queue-terms.js";
import {
  bindingOf,
  FREE,
  type Header,
  headerOf,
  type Letter,
  messageOf,
  type StoredBinding,
  storedOf,
} from "./record.js";

/** A message as it was found at the start. */
interface Found {
  readonly sequence: number;
  readonly header: Header;
  /** Of the message alone. */
  readonly bytes: number;
  readonly bound: Binding | undefined;
  /** The binding stands beside the message, not in it. */
  readonly isRebound: boolean;
}

/** What is written of a message that ended unfinished. */
export interface EndWrite {
  readonly letter: Letter;
  /** Why it is kept as a dead letter, and since when; undefined where it is not. */
  readonly dead: { readonly why: string; readonly at: number } | undefined;
  /** The record of the answer that goes out for it. */
  readonly answer: string | undefined;
}

export class MailStore {
  readonly dead: DeadLetters;
  readonly #store: Store;
  readonly #mail: OrderedLog;
  /** Whom messages were handed to, where that was not foreseen when they came, by their sequence numbers. */
  readonly #bindings: DurableMap<StoredBinding>;
  readonly #log: Log;

  constructor(store: Store, log: Log) {
    this.#store = store;
    this.#mail = store.log("mail");
    this.#bindings = store.map<StoredBinding>("mail-bindings");
    this.dead = new DeadLetters(store.log("dead-letters"));
    this.#log = log;
  }

  *found(): Generator<Found> {
    const bindings = new Map(this.#bindings.entries());
    for (const [sequence, record] of this.#mail.entries()) {
      const header = headerOf(record);
      const rebound = bindings.get(String(sequence));
      bindings.delete(String(sequence));
      yield {
        sequence,
        header,
        bytes: Buffer.byteLength(messageOf(record)),
        bound: bindingOf(rebound ?? header.bound),
        isRebound: rebound !== undefined,
      };
    }
    if (bindings.size === 0) return;
    void this.#write("what is known of messages that are gone", (batch) => {
      for (const key of bindings.keys()) batch.delete(this.#bindings, key);
    });
  }

  /** Undefined: it is gone. */
  record({ sequence }: Letter): string | undefined {
    return this.#mail.get(sequence);
  }

  /** Resolves with its sequence number when it is on disk, and what it finishes is gone, in one commit. */
  async add(record: string, finished: Letter | undefined, sender: string): Promise<number> {
    const added = await this.#store.batch(
      (batch) => {
        if (finished !== undefined) this.#removeIn(batch, finished);
        return batch.append(this.#mail, record);
      },
      { by: sender },
    );
    return added.sequence;
  }

  /** Whom they are handed to: on disk when it resolves. */
  bind(given: readonly HandOut[]): Promise<void> {
    return this.#store.batch((batch) => {
      for (const { message, bindTo } of given) {
        (message as Letter).isRebound = true;
        batch.put(this.#bindings, String(message.sequence), storedOf(bindTo) ?? FREE);
      }
    });
  }

  /** They were given back. Until that is on disk they are their journal's, which does no harm. */
  unbind(letters: readonly Letter[], isBegun: boolean): void {
    const binding = isBegun ? {} : FREE;
    void this.#write("what was given back", (batch) => {
      for (const letter of letters) {
        letter.isRebound = true;
        batch.put(this.#bindings, String(letter.sequence), binding);
      }
    });
  }

  /** What is not removed now comes again after a restart. */
  remove(letters: readonly Letter[], what: string): Promise<boolean> {
    return this.#write(what, (batch) => this.#removeAllIn(batch, letters));
  }

  /** They were acknowledged, which nobody is told: they go with the next commit. */
  removeSoon(letters: readonly Letter[]): void {
    const options = { mayWait: true };
    void this.#write("that messages were acknowledged", (batch) => this.#removeAllIn(batch, letters), options);
  }

  /** One ended unfinished. Resolves with the place of the answer that goes out for it; undefined where it could not be written. */
  async end(
    { letter, dead, answer }: EndWrite,
    isAgain: boolean,
  ): Promise<{ readonly answer: number | undefined } | undefined> {
    const record = dead === undefined ? undefined : this.#mail.get(letter.sequence);
    let added: Appended | undefined;
    let undo: (() => void) | undefined;
    const write = (batch: Batch) => {
      this.#removeIn(batch, letter);
      if (dead !== undefined && record !== undefined) undo = this.dead.add(batch, letter.to, record, dead.why, dead.at);
      if (answer !== undefined) added = batch.append(this.#mail, answer);
    };
    if (await this.#write("the end of a message", write, undefined, isAgain)) return { answer: added?.sequence };
    undo?.();
    return undefined;
  }

  /** A dead letter goes, and what it becomes comes, in one commit. */
  async revive(mailbox: string, dead: number, record: string): Promise<number> {
    const added = await this.#store.batch((batch) => {
      this.dead.remove(batch, dead);
      return batch.append(this.#mail, record);
    });
    this.dead.forget(mailbox, [dead]);
    return added.sequence;
  }

  async removeDead(mailbox: string, sequences: readonly number[]): Promise<void> {
    await this.#store.batch((batch) => {
      for (const sequence of sequences) this.dead.remove(batch, sequence);
    });
    this.dead.forget(mailbox, sequences);
  }

  /** Dead letters whose time is over go. What cannot be written now goes the next time. */
  async expireDead(nowMs: number): Promise<void> {
    const old = this.dead.old(nowMs);
    if (old.size === 0) return;
    const isWritten = await this.#write("that dead letters are over", (batch) => {
      for (const sequences of old.values()) for (const sequence of sequences) this.dead.remove(batch, sequence);
    });
    if (isWritten) for (const [mailbox, sequences] of old) this.dead.forget(mailbox, sequences);
  }

  #removeAllIn(batch: Batch, letters: readonly Letter[]): void {
    for (const letter of letters) this.#removeIn(batch, letter);
  }

  #removeIn(batch: Batch, { sequence, isRebound }: Letter): void {
    batch.remove(this.#mail, sequence);
    if (isRebound) batch.delete(this.#bindings, String(sequence));
  }

  /** Never rejects. What is tried again and again is told of the first time. */
  #write(what: string, fn: (batch: Batch) => void, options?: BatchOptions, isAgain = false): Promise<boolean> {
    return this.#store.batch(fn, options).then(
      () => true,
      (error: Error) => {
        this.#log[isAgain ? "debug" : "error"](`a broker could not write ${what}`, { why: error.message });
        return false;
      },
    );
  }
}
