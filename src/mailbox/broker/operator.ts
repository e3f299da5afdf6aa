// The operator's side of a broker: which mailboxes are in use, what is in them and what failed, without bodies; to send a
// dead letter again, and to drop messages. It decides nothing about who gets what.

import { randomBytes } from "node:crypto";
import type {
  DeadLetterSummary,
  MailboxesStatus,
  MailboxSummary,
  MessageSummary,
  Page,
} from "../../contracts/status.js";
import { isoTime } from "../../runtime/clock.js";
import { CodedError } from "../../runtime/expected-error.js";
import type { ElapsedClock } from "../elapsed-clock.js";
import { ownerOf } from "../wire/address.js";
import type { MailStore } from "./mail-store.js";
import type { Mailbox } from "./mailbox.js";
import type { Ended } from "./queue-terms.js";
import { type Header, headerOf, type Letter, messageOf, REQUEST, recordText, storedOf } from "./record.js";

/** What a broker lets its operator's side have. */
export interface BrokerInside {
  readonly mail: MailStore;
  readonly clock: ElapsedClock;
  readonly mailboxes: ReadonlyMap<string, Mailbox>;
  knows(owner: string): boolean;
  since(address: string): string | undefined;
  mailboxOf(address: string): Mailbox;
  add(mailbox: Mailbox, header: Header, sequence: number, bytes: number): void;
  end(mailbox: Mailbox, ended: Ended): void;
  unreserve(address: string, id: string): void;
  look(mailbox: Mailbox): void;
}

/** Which of a long list is wanted. */
export interface Range {
  readonly offset: number;
  readonly limit: number;
}

type OperatorErrorCode = "not-found" | "invalid" | "denied" | "full";

/** What the operator wants cannot be done: why, in words. */
export class OperatorError extends CodedError<OperatorErrorCode> {
  override readonly name = "OperatorError";
}

/** The messages that are meant: of one id, also from one sender alone; or all. */
export interface Selection {
  readonly id: string | undefined;
  readonly from: string | undefined;
  /** Dead letters alone. */
  readonly deadOnly: boolean;
}

/** Of the status: so many of the fullest mailboxes. */
const MAX_IN_STATUS = 100;
/** So many are dropped in one turn of the event loop, which others wait for. */
const DROPPED_AT_A_TIME = 200;
/** A message that is sent again has an id that no journal has seen. */
const RETRY_ID_BYTES = 9;

export class MailboxOperator {
  readonly #inside: BrokerInside;
  /** Dead letters that are being sent again: as many as there are requests of operators under way. */
  readonly #retrying = new Set<number>();

  constructor(inside: BrokerInside) {
    this.#inside = inside;
  }

  status(connections: number): MailboxesStatus {
    const all = this.#summaries();
    let oldest: MailboxesStatus["oldest"];
    let [waiting, leased, dead] = [0, 0, 0];
    for (const one of all) {
      waiting += one.waiting;
      leased += one.leased;
      dead += one.dead;
      if (one.oldestAt === undefined || (oldest !== undefined && oldest.at <= one.oldestAt)) continue;
      oldest = { mailbox: one.mailbox, at: one.oldestAt };
    }
    const { sinceMs } = this.#inside.mail.dead;
    return {
      inUse: all.length,
      waiting,
      leased,
      dead,
      ...(sinceMs === undefined ? {} : { deadSince: isoTime(sinceMs) }),
      connections,
      oldest,
      mailboxes: all.slice(0, MAX_IN_STATUS),
    };
  }

  /** The fullest first. */
  list(range: Range): Page<MailboxSummary> {
    return pageOf(this.#summaries(), range);
  }

  summary(name: string): MailboxSummary {
    this.#demand(name);
    return this.#summaryOf(name);
  }

  /** The names of those in use. */
  names(): string[] {
    return [...new Set([...this.#inside.mailboxes.keys(), ...this.#inside.mail.dead.mailboxes()])];
  }

  #summaries(): MailboxSummary[] {
    const all = this.names().map((name) => this.#summaryOf(name));
    const weight = ({ waiting, leased, dead }: MailboxSummary) => waiting + leased + dead;
    return all.sort((a, b) => weight(b) - weight(a) || (a.mailbox < b.mailbox ? -1 : 1));
  }

  #summaryOf(name: string): MailboxSummary {
    const mailbox = this.#inside.mailboxes.get(name);
    const leased = mailbox?.queue.leased ?? 0;
    const [first] = mailbox?.queue.stored() ?? [];
    return {
      mailbox: name,
      waiting: (mailbox?.queue.messages ?? 0) - leased,
      leased,
      dead: this.#inside.mail.dead.count(name),
      bytes: mailbox?.queue.bytes ?? 0,
      oldestAt: first === undefined ? undefined : isoTime((first.message as Letter).at),
      connections: mailbox?.subscriptions.size ?? 0,
      since: this.#inside.since(name),
    };
  }

  /** What is in a mailbox, the oldest first. */
  messages(name: string, range: Range): Page<MessageSummary> {
    this.#demand(name);
    const { mailboxes, clock } = this.#inside;
    const nowMs = clock.now();
    const stored = [...(mailboxes.get(name)?.queue.stored() ?? [])];
    const { items, total } = pageOf(stored, range);
    return {
      total,
      items: items.map(({ message, state, failures }) => {
        const { id, from, kind, bytes, at, endMs } = message as Letter;
        return {
          id,
          from,
          kind,
          bytes,
          at: isoTime(at),
          leftMs: Math.max(0, Math.round(endMs - nowMs)),
          state,
          failures,
        };
      }),
    };
  }

  /** What failed too often, the newest first. */
  deadLetters(name: string, range: Range): Page<DeadLetterSummary> {
    this.#demand(name);
    const { items, total } = pageOf([...this.#inside.mail.dead.of(name)].reverse(), range);
    const letters = items.flatMap((sequence) => {
      const letter = this.#inside.mail.dead.read(sequence);
      if (letter === undefined) return [];
      const { id, from, kind, at } = headerOf(letter.record);
      const bytes = Buffer.byteLength(messageOf(letter.record));
      return [{ id, from, kind, bytes, at: isoTime(at), failedAt: isoTime(letter.at), reason: letter.why }];
    });
    return { items: letters, total };
  }

  /**
   * Sends a dead letter again. It takes a new id: its sender was told how it ended, and a journal that knows the old id
   * would not run it. Resolves with that id when it is on disk.
   */
  async retry(name: string, id: string, from: string | undefined): Promise<{ id: string; from: string }> {
    this.#demand(name);
    const { mail, clock, knows } = this.#inside;
    const found = this.#deadOf(name, { id, from });
    this.#demandOneSender(
      name,
      id,
      found.map((one) => this.#senderOf(one)),
    );
    // Where one failed again and again, the last time is meant.
    const sequence = found.at(-1);
    const letter = sequence === undefined ? undefined : mail.dead.read(sequence);
    if (sequence === undefined || letter === undefined) throw this.#noDeadLetter(name, id);
    if (!knows(ownerOf(name))) {
      throw new OperatorError("denied", `No token has the id "${ownerOf(name)}" any more: nobody could take it.`);
    }
    if (this.#retrying.has(sequence)) {
      throw new OperatorError("denied", `The dead letter "${id}" of "${name}" is being sent again already.`);
    }
    const before = headerOf(letter.record);
    const newId = `retry-${randomBytes(RETRY_ID_BYTES).toString("base64url")}`;
    // The rest of the message stays as it was written.
    const head = `{"id":${JSON.stringify(before.id)},`;
    const text = `{"id":${JSON.stringify(newId)},${messageOf(letter.record).slice(head.length)}`;
    const bytes = Buffer.byteLength(text);
    const sender = ownerOf(before.from);
    const mailbox = this.#inside.mailboxOf(name);
    this.#admit(mailbox, { id: newId, from: before.from, kind: before.kind, sender, bytes });
    const bound = storedOf(mailbox.queue.foresee(before.kind));
    const header: Header = { ...before, id: newId, at: clock.wall(), bound };
    this.#retrying.add(sequence);
    try {
      const stored = await mail.revive(name, sequence, recordText(header, text));
      this.#inside.add(mailbox, header, stored, bytes);
    } catch (error) {
      mailbox.queue.abandon(sender, before.kind, bytes);
      this.#inside.unreserve(before.from, newId);
      throw error;
    } finally {
      this.#retrying.delete(sequence);
      this.#inside.look(mailbox);
    }
    return { id: newId, from: before.from };
  }

  /** Room for it, and for the reply that it may get. */
  #admit(
    mailbox: Mailbox,
    { id, from, kind, sender, bytes }: { id: string; from: string; kind: string; sender: string; bytes: number },
  ): void {
    if (kind.endsWith(REQUEST) && !this.#inside.mailboxOf(from).queue.reserve(id)) {
      throw new OperatorError("full", `The mailbox "${from}" has no room for the reply.`);
    }
    if (mailbox.queue.admit(sender, kind, bytes) === undefined) return;
    this.#inside.unreserve(from, id);
    throw new OperatorError("full", `The mailbox "${mailbox.address}" has no room for it now.`);
  }

  /** Takes messages out for good. Senders that wait for an answer are told so; dead letters have been told before. */
  async drop(name: string, selection: Selection): Promise<{ messages: number; deadLetters: number }> {
    this.#demand(name);
    const { mailboxes } = this.#inside;
    const { id, from, deadOnly } = selection;
    const mailbox = mailboxes.get(name);
    const letters = deadOnly ? [] : [...(mailbox?.queue.stored() ?? [])].map(({ message }) => message as Letter);
    const messages = letters.filter((one) => (id ?? one.id) === one.id && (from ?? one.from) === one.from);
    const dead = this.#deadOf(name, selection);
    if (id !== undefined) {
      if (messages.length + dead.length === 0) throw this.#noMessage(name, id);
      const senders = messages.map((one) => one.from);
      this.#demandOneSender(name, id, senders.length > 0 ? senders : dead.map((one) => this.#senderOf(one)));
    }
    // One id names one message: a dead letter of it is meant where nothing else is.
    const isOne = id !== undefined && messages.length > 0;
    const dropped = mailbox === undefined ? 0 : await this.#dropMessages(mailbox, messages);
    return { messages: dropped, deadLetters: isOne ? 0 : await this.#dropDead(name, dead) };
  }

  async #dropMessages(mailbox: Mailbox, letters: readonly Letter[]): Promise<number> {
    let dropped = 0;
    for (const [n, letter] of letters.entries()) {
      if (n > 0 && n % DROPPED_AT_A_TIME === 0) await new Promise((done) => setImmediate(done));
      const gone = mailbox.queue.drop(letter.sender, letter.id);
      if (gone === undefined) continue;
      dropped++;
      const subscription = gone.consumer === undefined ? undefined : mailbox.subscriptions.get(gone.consumer);
      subscription?.send(JSON.stringify({ kind: "cancel", correlation_id: letter.id, from: letter.from }));
      this.#inside.end(mailbox, gone.ended);
    }
    this.#inside.look(mailbox);
    return dropped;
  }

  async #dropDead(name: string, sequences: readonly number[]): Promise<number> {
    if (sequences.length === 0) return 0;
    await this.#inside.mail.removeDead(name, sequences);
    return sequences.length;
  }

  /** The oldest first. */
  #deadOf(name: string, { id, from }: Pick<Selection, "id" | "from">): number[] {
    const { dead } = this.#inside.mail;
    const all = dead.of(name);
    if (id === undefined && from === undefined) return [...all];
    return all.filter((sequence) => {
      const record = dead.read(sequence)?.record;
      const header = record === undefined ? undefined : headerOf(record);
      return header !== undefined && (id ?? header.id) === header.id && (from ?? header.from) === header.from;
    });
  }

  /** A name that nobody has is a typo: an empty list would be believed. */
  #demand(name: string): void {
    const { mailboxes, mail, knows } = this.#inside;
    if (mailboxes.has(name) || mail.dead.count(name) > 0 || knows(ownerOf(name))) return;
    throw new OperatorError("not-found", `There is no mailbox "${name}": no token has this id, and nothing is in it.`);
  }

  #noMessage(name: string, id: string): OperatorError {
    return new OperatorError(
      "not-found",
      `The mailbox "${name}" has no message "${id}", and no dead letter of that id.`,
    );
  }

  #noDeadLetter(name: string, id: string): OperatorError {
    const stored = this.#inside.mailboxes.get(name)?.queue.stored() ?? [];
    for (const { message, state } of stored) {
      if (message.id !== id) continue;
      const why = `The message "${id}" is in "${name}" (${state}), and is handed out by itself.`;
      return new OperatorError("denied", `${why} Dead letters are what can be sent again.`);
    }
    return new OperatorError("not-found", `The mailbox "${name}" has no dead letter "${id}".`);
  }

  #senderOf(sequence: number): string {
    const record = this.#inside.mail.dead.read(sequence)?.record;
    return record === undefined ? "" : headerOf(record).from;
  }

  #demandOneSender(name: string, id: string, senders: readonly string[]): void {
    const different = [...new Set(senders)];
    if (different.length <= 1) return;
    const named = different.slice(0, 5).map((one) => `"${one}"`);
    const why = `In "${name}" several senders use the id "${id}": ${named.join(", ")}.`;
    throw new OperatorError("invalid", `${why} Say whose with --from.`);
  }
}

function pageOf<T>(all: readonly T[], { offset, limit }: Range): Page<T> {
  return { items: all.slice(offset, offset + limit), total: all.length };
}
