// The broker: mailboxes on a store. It takes messages in, hands them out, and ends what nobody finished. "Delivered" is
// said when a message is on disk. It reads no bodies, and knows neither sockets nor what the messages are about: of a
// kind that ends in `_request` it knows that an answer is owed, of the kind that ends in `_reply` instead.

import type { Store } from "../../contracts/store.js";
import type { Log } from "../../observe/log.js";
import type { RoomAccount, SharedRoom } from "../../runtime/memory/shared-room.js";
import type { ElapsedClock } from "../elapsed-clock.js";
import { ownerOf } from "../wire/address.js";
import type { Deliver, LiveFrame, MessageName } from "../wire/frames.js";
import { DeliveryRefusal, endText, refusalOf } from "./broker-texts.js";
import { isDeadLetter } from "./dead-letters.js";
import { DueMailboxes } from "./due-mailboxes.js";
import { EndWrites } from "./end-writes.js";
import { HandOuts } from "./hand-outs.js";
import { DEAD_SWEEP_MS, DEFAULT_END_MS, IDLE_LOOK_MS, MAX_END_MS, RETRY_MS } from "./limits.js";
import { LivePeers, type MailSender } from "./live-peers.js";
import { MailStore } from "./mail-store.js";
import {
  type Answerable,
  type Answerer,
  askedOf,
  BindWrite,
  type Mailbox,
  MailboxTable,
  NO_CONSUMER,
  PendingHandOuts,
  type Subscription,
} from "./mailbox.js";
import type { BrokerInside } from "./operator.js";
import { type Consumer, type Ended, keyOf } from "./queue-terms.js";
import {
  bindingOf,
  type Header,
  hashOf,
  type Letter,
  letterOf,
  messageText,
  REPLY,
  REQUEST,
  recordText,
  replyKind,
  storedOf,
} from "./record.js";

export interface BrokerOptions {
  readonly store: Store;
  readonly clock: ElapsedClock;
  readonly log: Log;
  /** Whether there is a token of this id: nothing is kept for those who can never come. */
  knows(owner: string): boolean;
  /** Asked before anything is handed out, ended or said to be held, where another may have taken over. Default: always. */
  readonly mayAct?: (() => boolean) | undefined;
  /** Bounds what it holds together with other brokers, where stored messages stay in memory. Default: the disk's bounds alone. */
  readonly room?: SharedRoom | undefined;
}

interface Storing {
  readonly to: string;
  readonly hash: string;
  /** Its sender took it back meanwhile: when it is there, nobody gets it. */
  isCancelled: boolean;
  /** Whether it is off the disk again, where it was cancelled in time. */
  removed?: Promise<boolean>;
  readonly done: Promise<void>;
}

export class Broker {
  /** Who is connected. */
  readonly peers: LivePeers;
  readonly #mail: MailStore;
  readonly #handOuts: HandOuts;
  readonly #ends: EndWrites;
  readonly #clock: ElapsedClock;
  readonly #log: Log;
  readonly #knows: BrokerOptions["knows"];
  readonly #mayAct: () => boolean;
  readonly #account: RoomAccount | undefined;
  readonly #mailboxes: MailboxTable;
  /** All that is stored, by sender and id. */
  readonly #letters = new Map<string, Letter>();
  /** What is on its way to the store. */
  readonly #storing = new Map<string, Storing>();
  readonly #due: DueMailboxes;
  readonly #sweep: NodeJS.Timeout;
  #isClosed: boolean = false;

  constructor({ store, clock, log, knows, mayAct = () => true, room }: BrokerOptions) {
    this.#account = room?.open();
    this.#mailboxes = new MailboxTable(this.#account);
    this.#mail = new MailStore(store, log);
    const resume = (mailbox: Mailbox, consumer: Consumer) => this.pause(mailbox.address, consumer, false);
    const look = (mailbox: Mailbox) => this.#look(mailbox);
    const isOurs = () => !this.#isClosed && mayAct();
    this.#due = new DueMailboxes(clock, look);
    this.#handOuts = new HandOuts({ mail: this.#mail, clock, log, mayAct: isOurs, resume, look });
    this.#ends = new EndWrites(this.#mail, isOurs);
    this.peers = new LivePeers(() => clock.wall());
    this.#clock = clock;
    this.#log = log;
    this.#knows = knows;
    this.#mayAct = mayAct;
    this.#restore();
    void this.#mail.expireDead(clock.wall());
    this.#sweep = setInterval(() => void this.#mail.expireDead(clock.wall()), DEAD_SWEEP_MS).unref();
  }

  // ── In ───────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Resolves when it is on disk, or is there already. Throws a DeliveryRefusal. */
  async deliver(sender: MailSender, frame: Deliver, by: Answerer = NO_CONSUMER): Promise<void> {
    const { to, message } = frame;
    const { id, kind, body, digest } = message;
    const hash = hashOf(to, kind, body, digest);
    const key = keyOf(sender.owner, id);
    const known = this.#letters.get(key) ?? this.#storing.get(key);
    if (known !== undefined) {
      if (known.hash !== hash)
        throw new DeliveryRefusal(
          `the id "${id}" is that of another message that is not over, to another mailbox or with another body: use a new id`,
        );
      if ("done" in known) await known.done;
      await this.#finishWith(sender, frame.acknowledges, by);
      return;
    }
    const asked = this.#checkRight(sender, frame, hash, by);
    const answered = kind.endsWith(REPLY) ? asked : undefined;
    if (answered?.answer !== undefined) {
      if (answered.answer.id !== id || answered.answer.hash !== hash) {
        throw new DeliveryRefusal(`"${message.correlationId}" was answered already, and the first answer counts`);
      }
      await this.#finishWith(sender, frame.acknowledges, by);
      return;
    }
    const answer = { id, hash, isStored: false };
    if (answered !== undefined) answered.answer = answer;
    const done = this.#take(sender, frame, key, hash, asked, by);
    this.#storing.set(key, { to, hash, done, isCancelled: false });
    try {
      await done;
      answer.isStored = true;
    } catch (error) {
      if (answered !== undefined) answered.answer = undefined;
      throw error;
    } finally {
      this.#storing.delete(key);
    }
  }

  /** A repeat may be the first to say what it finishes. */
  async #finishWith(sender: MailSender, acknowledges: MessageName | undefined, by: Answerer): Promise<void> {
    const finished = acknowledges === undefined ? undefined : this.#ownLetter(sender, acknowledges, by);
    if (finished === undefined) return;
    this.#finish(finished);
    await this.#mail.remove([finished], "an answered message");
  }

  async #take(
    sender: MailSender,
    { to, message, journal, leftMs, acknowledges }: Deliver,
    key: string,
    hash: string,
    asked: Answerable | undefined,
    by: Answerer,
  ): Promise<void> {
    const { id, kind, body, correlationId, digest } = message;
    const from = sender.address;
    const at = this.#clock.wall();
    const requestCorrelationId = asked?.correlationId;
    const text = messageText({
      id,
      from,
      role: sender.role,
      kind,
      body,
      at,
      correlationId,
      requestCorrelationId,
      digest,
    });
    const bytes = Buffer.byteLength(text);
    const mailbox = this.#admit(sender, to, id, kind, bytes, this.#owed(to, message, asked));
    const foreseen = storedOf(mailbox.queue.foresee(kind));
    const header: Header = {
      to,
      from,
      id,
      kind,
      hash,
      at,
      leftMs: Math.min(leftMs ?? DEFAULT_END_MS, MAX_END_MS),
      correlationId,
      bound: journal === undefined || foreseen?.journal === journal ? foreseen : undefined,
      only: journal,
    };
    const finished = acknowledges === undefined ? undefined : this.#ownLetter(sender, acknowledges, by);
    let sequence: number;
    try {
      sequence = await this.#mail.add(recordText(header, text), finished, sender.owner);
    } catch (error) {
      mailbox.queue.abandon(sender.owner, kind, bytes, this.#owed(to, message, asked));
      this.#unreserve(from, id);
      this.#look(mailbox);
      throw new DeliveryRefusal(`it could not be stored: ${(error as Error).message}`);
    }
    const letter = this.#add(mailbox, header, sequence, bytes);
    if (finished !== undefined) this.#finish(finished);
    const storing = this.#storing.get(key);
    const removed = storing?.isCancelled === true ? this.#cancelStored(sender, to, id) : undefined;
    if (storing !== undefined && removed !== undefined) {
      storing.removed = removed;
      return;
    }
    // Where somebody is there to take it, it is not read from the disk to which it just went.
    this.#handOuts.remember(letter, text);
    this.#look(mailbox);
    this.#handOuts.remember(undefined, "");
  }

  /** Takes the room for it, and for its reply. */
  #admit(
    sender: MailSender,
    to: string,
    id: string,
    kind: string,
    bytes: number,
    answers: string | undefined,
  ): Mailbox {
    const own = kind.endsWith(REQUEST) ? this.#mailboxes.open(sender.address, sender.owner) : undefined;
    const mailbox = this.#mailboxes.open(to, sender.owner);
    let why: string | undefined;
    if (own?.queue.reserve(id) === false) {
      why = `your mailbox "${sender.address}" has no room for the reply: take what is in it first`;
    } else {
      const noRoom = mailbox.queue.admit(sender.owner, kind, bytes, answers);
      if (noRoom === undefined) return mailbox;
      why = refusalOf(noRoom, to, sender.owner, this.#account?.room);
      this.#unreserve(sender.address, id);
    }
    this.#look(mailbox);
    throw new DeliveryRefusal(why);
  }

  /** What this answers, where that was asked of its sender and is not over: room is kept for the answer, and for no other. */
  #owed(to: string, { kind, correlationId }: Deliver["message"], asked: Answerable | undefined): string | undefined {
    if (asked === undefined || correlationId === undefined) return undefined;
    const request = this.#letters.get(keyOf(ownerOf(to), correlationId));
    return request?.sequence === asked.sequence && kind === replyKind(request.kind) ? correlationId : undefined;
  }

  #add(mailbox: Mailbox, header: Header, sequence: number, bytes: number): Letter {
    const endMs = this.#clock.now() + header.leftMs;
    const letter = letterOf(header, sequence, bytes, endMs, bindingOf(header.bound), false);
    this.#letters.set(letter.key, letter);
    mailbox.queue.add(letter);
    return letter;
  }

  /** Throws a DeliveryRefusal where it may not send this. The message that it is about, where that was handed to it. */
  #checkRight(sender: MailSender, frame: Deliver, hash: string, by: Answerer): Answerable | undefined {
    const { to, message } = frame;
    const { correlationId } = message;
    const owner = ownerOf(to);
    const mailbox = correlationId === undefined ? undefined : this.#mailboxes.get(sender.address);
    const about = correlationId === undefined ? undefined : this.#letters.get(keyOf(owner, correlationId));
    const asked = askedOf(mailbox, sender, frame, { hash, by, about, nowMs: this.#clock.now() });
    if (!this.#knows(owner)) throw new DeliveryRefusal(`there is no mailbox "${to}": no token has the id "${owner}"`);
    return asked;
  }

  // ── Out ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  subscribe(address: string, consumer: Consumer, send: Subscription["send"], credit: number | undefined): void {
    const mailbox = this.#mailboxes.open(address, ownerOf(address));
    mailbox.subscriptions.set(consumer, { consumer, send, pending: new PendingHandOuts() });
    mailbox.queue.attach(consumer, credit);
    this.#look(mailbox);
  }

  unsubscribe(address: string, consumer: Consumer): void {
    const mailbox = this.#mailboxes.get(address);
    if (mailbox === undefined) return;
    this.#handOuts.leave(mailbox, consumer);
    mailbox.subscriptions.delete(consumer);
    mailbox.queue.detach(consumer);
    this.#look(mailbox);
  }

  /** The connection is full, or has room again. */
  pause(address: string, consumer: Consumer, isPaused: boolean): void {
    const mailbox = this.#mailboxes.get(address);
    if (mailbox === undefined) return;
    mailbox.queue.pause(consumer, isPaused);
    if (!isPaused) this.#look(mailbox);
  }

  grant(address: string, consumer: Consumer, messages: number): void {
    const mailbox = this.#mailboxes.get(address);
    if (mailbox === undefined) return;
    mailbox.queue.grant(consumer, messages);
    this.#look(mailbox);
  }

  /** Those that are not this consumer's, and may be another's by now. */
  acknowledge(address: string, consumer: Consumer, names: readonly MessageName[]): MessageName[] {
    const mailbox = this.#mailboxes.get(address);
    if (mailbox === undefined) return [...names];
    const finished: Letter[] = [];
    const others = names.filter((name) => {
      const sender = mailbox.senderOf(consumer, name);
      const message = sender === undefined ? undefined : mailbox.queue.acknowledge(consumer, sender, name.id);
      if (sender === undefined || message === undefined) return true;
      const letter = message as Letter;
      this.#letters.delete(letter.key);
      this.#unreserve(letter.from, name.id);
      finished.push(letter);
      return false;
    });
    if (finished.length === 0) return others;
    this.#mail.removeSoon(finished);
    this.#look(mailbox);
    return others;
  }

  /** The ids of those that are still this consumer's. */
  extend(address: string, consumer: Consumer, names: readonly MessageName[], isRepeatable: boolean): MessageName[] {
    const mailbox = this.#mailboxes.get(address);
    if (mailbox === undefined || !this.#mayAct()) return [];
    const nowMs = this.#clock.now();
    const kept = names.filter((name) => {
      const sender = mailbox.senderOf(consumer, name);
      return sender !== undefined && mailbox.queue.extend(consumer, sender, name.id, nowMs, isRepeatable);
    });
    this.#look(mailbox);
    return kept;
  }

  release(
    address: string,
    consumer: Consumer,
    name: MessageName,
    failed?: { readonly reason?: string | undefined },
  ): void {
    const mailbox = this.#mailboxes.get(address);
    const sender = mailbox?.senderOf(consumer, name);
    if (mailbox === undefined || sender === undefined) return;
    const message = mailbox.queue.heldBy(consumer, sender, name.id);
    if (message === undefined) return;
    mailbox.wasGivenBack(message as Letter, consumer);
    const ended = mailbox.queue.release(consumer, sender, name.id, failed);
    if (ended !== undefined) this.#end(mailbox, ended);
    // After a restart anybody may have it, too.
    else this.#mail.unbind([message as Letter], failed !== undefined);
    this.#look(mailbox);
  }

  /**
   * True where it was never handed out, and now never will be, also after a restart: it is off the disk by then. Else whoever
   * has it is told.
   */
  async cancel(sender: MailSender, to: string, id: string): Promise<boolean> {
    const storing = this.#storing.get(keyOf(sender.owner, id));
    if (storing?.to === to) {
      storing.isCancelled = true;
      const isStored = await storing.done.then(
        () => true,
        () => false,
      );
      if (!isStored) return true;
      if (storing.removed !== undefined) return storing.removed;
    }
    return this.#cancelStored(sender, to, id) ?? false;
  }

  /** Resolves with whether it is off the disk; undefined where it stays, since it was handed out or is not known. */
  #cancelStored(sender: MailSender, to: string, id: string): Promise<boolean> | undefined {
    const mailbox = this.#mailboxes.get(to);
    if (mailbox === undefined) return undefined;
    const letter = this.#letters.get(keyOf(sender.owner, id));
    if (letter !== undefined) this.#handOuts.takeBack(mailbox, letter);
    const told = mailbox.queue.cancel(sender.owner, id);
    if (told.was === "unknown") return undefined;
    if (told.was === "handed-out") {
      const subscription = told.consumer === undefined ? undefined : mailbox.subscriptions.get(told.consumer);
      subscription?.send(JSON.stringify({ kind: "cancel", correlation_id: id, from: sender.address }));
      return undefined;
    }
    const removed = told.message as Letter;
    this.#letters.delete(removed.key);
    this.#unreserve(removed.from, id);
    const isRemoved = this.#mail.remove([removed], "a cancelled message");
    this.#look(mailbox);
    return isRemoved;
  }

  /** Passes a live frame to whoever is connected, or drops it. */
  live(sender: MailSender, frame: LiveFrame): void {
    const { to, correlationId } = frame;
    const has =
      correlationId === undefined
        ? undefined
        : this.#mailboxes.get(to)?.answerable(sender.owner, correlationId, this.#clock.now());
    this.peers.pass(sender, frame, has);
  }

  // ── What follows ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** Ends what is over, hands out what can be, and sets the time of the next look. */
  #look(mailbox: Mailbox): void {
    if (this.#isClosed) return;
    const nowMs = this.#clock.now();
    const { queue } = mailbox;
    if (!this.#mayAct()) {
      // It is not known whose the mailboxes are: a broker that has lost them is closed, and one that has not looks again.
      this.#due.set(mailbox, nowMs + RETRY_MS);
      this.#due.setTimer(nowMs);
      return;
    }
    for (const ended of queue.tick(nowMs)) this.#end(mailbox, ended);
    let unforeseen: BindWrite | undefined;
    for (let given = queue.next(nowMs); given !== undefined; given = queue.next(nowMs)) {
      if (given.bindTo !== undefined) {
        unforeseen ??= new BindWrite();
        unforeseen.given.push(given);
      }
      this.#handOuts.give(mailbox, given, unforeseen, nowMs);
    }
    if (unforeseen !== undefined) this.#handOuts.bind(mailbox, unforeseen);
    mailbox.dueMs = queue.nextDueMs ?? Number.POSITIVE_INFINITY;
    this.#rest(mailbox, nowMs);
    this.#due.setTimer(nowMs);
  }

  /** What is not used any more is forgotten. */
  #rest(mailbox: Mailbox, nowMs: number): void {
    if (mailbox.isIdle(nowMs)) {
      this.#mailboxes.close(mailbox);
      this.#due.remove(mailbox);
      return;
    }
    // Nothing is due in one whose owner may only still answer.
    this.#due.set(mailbox, mailbox.queue.isIdle ? nowMs + IDLE_LOOK_MS : mailbox.dueMs);
  }

  /** A message ended without being finished: it goes, and whoever waits for its answer is told, unless that one has it. */
  #end(mailbox: Mailbox, ended: Ended): void {
    const { message, why, mayHaveRun, reason } = ended;
    const letter = message as Letter;
    this.#letters.delete(letter.key);
    if (mailbox.isAnswered(letter)) {
      this.#unreserve(letter.from, letter.id);
      void this.#mail.remove([letter], "an answered message");
      return;
    }
    const text = endText(mailbox.address, why, mayHaveRun, reason);
    this.#log.info("a message ended unfinished", {
      mailbox: mailbox.address,
      from: letter.from,
      id: letter.id,
      why: text,
    });
    const answer = letter.kind.endsWith(REQUEST) ? this.#answerTo(letter, text, mayHaveRun) : undefined;
    const dead = isDeadLetter(ended) ? { why: text, at: this.#clock.wall() } : undefined;
    this.#ends.write({
      letter,
      dead,
      answer: answer?.record,
      written: (sequence) => {
        if (answer !== undefined && sequence !== undefined) this.#answered(answer, sequence);
      },
    });
  }

  #answerTo(letter: Letter, error: string, mayHaveRun: boolean): Answer | undefined {
    const { from, to, id } = letter;
    const kind = replyKind(letter.kind);
    const body = JSON.stringify({ error, outcome: mayHaveRun ? "unknown" : "not run" });
    const at = this.#clock.wall();
    const replyId = `end-${hashOf(letter.sender, id, to)}`;
    const requestCorrelationId = letter.correlationId;
    const parts = { id: replyId, from: to, role: "broker", kind, body, at, correlationId: id, requestCorrelationId };
    const text = messageText(parts);
    const bytes = Buffer.byteLength(text);
    // There is one as long as room is kept in it.
    const mailbox = this.#mailboxes.get(from);
    if (mailbox === undefined) return undefined;
    if (mailbox.queue.admit(ownerOf(to), kind, bytes, id) !== undefined) {
      this.#unreserve(from, id);
      return undefined;
    }
    const hash = hashOf(from, kind, body);
    const about = this.#mailboxes.get(to)?.answerable(letter.sender, id, this.#clock.now());
    if (about !== undefined) about.answer = { id: replyId, hash, isStored: false };
    const bound = storedOf(mailbox.queue.foresee(kind));
    const header: Header = { to: from, from: to, id: replyId, kind, hash, at, leftMs: DEFAULT_END_MS, bound };
    return { mailbox, header, bytes, record: recordText(header, text) };
  }

  #answered({ mailbox, header, bytes }: Answer, sequence: number): void {
    this.#add(mailbox, header, sequence, bytes);
    this.#look(mailbox);
  }

  #restore(): void {
    const nowMs = this.#clock.now();
    const wallMs = this.#clock.wall();
    for (const { sequence, header, bytes, bound, isRebound } of this.#mail.found()) {
      // A calendar that was set back does not give it more time than it had.
      const endMs = nowMs + header.leftMs - Math.max(0, wallMs - header.at);
      const letter = letterOf(header, sequence, bytes, endMs, bound, isRebound);
      this.#letters.set(letter.key, letter);
      this.#mailboxes.restore(letter.to, letter.sender).queue.restore(letter);
      if (letter.kind.endsWith(REQUEST)) this.#mailboxes.restore(letter.from, letter.sender).queue.reserve(letter.id);
    }
    for (const mailbox of [...this.#mailboxes.values()]) this.#look(mailbox);
  }

  // ── Mailboxes ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** A message in the sender's own mailbox, which its answer finishes: not one that another has. */
  #ownLetter(sender: MailSender, { id, from }: MessageName, by: Answerer): Letter | undefined {
    const letter = from === undefined ? undefined : this.#letters.get(keyOf(ownerOf(from), id));
    if (letter?.to !== sender.address) return undefined;
    return this.#mailboxes.get(letter.to)?.mayFinish(letter, by) === true ? letter : undefined;
  }

  #finish(letter: Letter): void {
    const mailbox = this.#mailboxes.get(letter.to);
    mailbox?.queue.finish(letter.sender, letter.id);
    this.#letters.delete(letter.key);
    this.#unreserve(letter.from, letter.id);
    if (mailbox !== undefined) this.#look(mailbox);
  }

  /** The message has its reply, or will get none. */
  #unreserve(address: string, id: string): void {
    const mailbox = this.#mailboxes.get(address);
    mailbox?.queue.unreserve(id);
    if (mailbox?.queue.isIdle === true) this.#rest(mailbox, this.#clock.now());
  }

  /** Whether something is in it, or on its way into it. */
  hasMail(address: string): boolean {
    return this.#mailboxes.get(address)?.queue.isIdle === false;
  }

  /** For the operator's side of it. */
  get inside(): BrokerInside {
    return {
      mail: this.#mail,
      clock: this.#clock,
      mailboxes: this.#mailboxes,
      knows: this.#knows,
      since: (address) => this.peers.presenceOf(address).since,
      mailboxOf: (address) => this.#mailboxes.open(address, ownerOf(address)),
      add: (mailbox, header, sequence, bytes) => this.#add(mailbox, header, sequence, bytes),
      end: (mailbox, ended) => this.#end(mailbox, ended),
      unreserve: (address, id) => this.#unreserve(address, id),
      look: (mailbox) => this.#look(mailbox),
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#account?.close();
    this.#ends.close();
    this.#due.close();
    clearInterval(this.#sweep);
  }
}

interface Answer {
  readonly mailbox: Mailbox;
  readonly header: Header;
  readonly bytes: number;
  readonly record: string;
}
