// The broker: mailboxes on a store. It takes messages in, hands them out, and ends what nobody finished. "Delivered" is
// said when a message is on disk. It reads no bodies, and knows neither sockets nor what the messages are about: of a
// kind that ends in `_request` it knows that an answer is owed, of the kind that ends in `_reply` instead.

import type { DurableMap, OrderedLog, Store } from "../../contracts/store.js";
import type { Log } from "../../observe/log.js";
import type { ElapsedClock } from "../elapsed-clock.js";
import type { Deliver, LiveFrame, MessageName } from "../wire/frames.js";
import { DeadLetters } from "./dead-letters.js";
import { Heap } from "./heap.js";
import {
  DEFAULT_END_MS,
  IDLE_LOOK_MS,
  LONGEST_WAIT_MS,
  MAX_END_MS,
  MAX_MAILBOXES,
  QUEUE_LIMITS,
  RETRY_MS,
} from "./limits.js";
import { LivePeers, type MailSender } from "./live-peers.js";
import { Mailbox, type Subscription, type Taker } from "./mailbox.js";
import type { BrokerInside } from "./operator.js";
import type { Consumer, Ended, HandOut, NoRoom } from "./queue.js";
import {
  type Header,
  hashOf,
  headerOf,
  type Letter,
  messageOf,
  messageText,
  ownerOf,
  REPLY,
  REQUEST,
  recordText,
} from "./record.js";

export interface BrokerOptions {
  readonly store: Store;
  readonly clock: ElapsedClock;
  readonly log: Log;
  /** Whether there is a token of this id: nothing is kept for those who can never come. */
  knows(owner: string): boolean;
}

/** A message that is not taken: why, in words for whoever sent it. */
export class DeliveryRefusal extends Error {
  override readonly name = "DeliveryRefusal";
}

interface Storing {
  readonly hash: string;
  readonly done: Promise<void>;
}

export class Broker {
  /** Who is connected. */
  readonly peers: LivePeers;
  readonly #store: Store;
  readonly #mail: OrderedLog;
  readonly #dead: DeadLetters;
  /** Whom messages were handed to that were not foreseen, by their sequence numbers. */
  readonly #journals: DurableMap<string>;
  readonly #clock: ElapsedClock;
  readonly #log: Log;
  readonly #knows: BrokerOptions["knows"];
  readonly #mailboxes = new Map<string, Mailbox>();
  /** All that is stored, by sender and id. */
  readonly #letters = new Map<string, Letter>();
  /** What is on its way to the store. */
  readonly #storing = new Map<string, Storing>();
  readonly #due = new Heap<"dueAt", Mailbox>("dueAt", (a, b) => a.dueMs < b.dueMs);
  #timer: NodeJS.Timeout | undefined;
  /** When it goes off. */
  #timerMs = Number.POSITIVE_INFINITY;
  #isClosed: boolean = false;

  constructor({ store, clock, log, knows }: BrokerOptions) {
    this.#store = store;
    this.#mail = store.log("mail");
    this.#dead = new DeadLetters(store.log("dead-letters"));
    this.#journals = store.map<string>("mail-journals");
    this.peers = new LivePeers(() => clock.wall());
    this.#clock = clock;
    this.#log = log;
    this.#knows = knows;
    this.#restore();
  }

  // ── In ───────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Resolves when it is on disk, or is there already. Throws a DeliveryRefusal. */
  async deliver(sender: MailSender, frame: Deliver): Promise<void> {
    const { to, message } = frame;
    const { id, kind, body } = message;
    const hash = hashOf(to, kind, body);
    const key = keyOf(sender.owner, id);
    const known = this.#letters.get(key) ?? this.#storing.get(key);
    if (known !== undefined) {
      if (known.hash !== hash)
        throw new DeliveryRefusal(`the id "${id}" was used for another message that is not over`);
      return "done" in known ? known.done : undefined;
    }
    this.#checkRight(sender, frame);
    const done = this.#take(sender, frame, hash);
    this.#storing.set(key, { hash, done });
    try {
      await done;
    } finally {
      this.#storing.delete(key);
    }
  }

  async #take(sender: MailSender, { to, message, leftMs, acknowledges }: Deliver, hash: string): Promise<void> {
    const { id, kind, body, correlationId } = message;
    const from = sender.address;
    const at = this.#clock.wall();
    const text = messageText({ id, from, role: sender.role, kind, body, at, correlationId });
    const bytes = Buffer.byteLength(text);
    const mailbox = this.#admit(sender, to, id, kind, bytes, correlationId);
    const header: Header = {
      to,
      from,
      id,
      kind,
      hash,
      at,
      leftMs: Math.min(leftMs ?? DEFAULT_END_MS, MAX_END_MS),
      journal: mailbox.queue.foresee(kind),
    };
    const finished = acknowledges === undefined ? undefined : this.#ownLetter(sender, acknowledges);
    let sequence: number;
    try {
      sequence = await this.#store.batch((batch) => {
        if (finished !== undefined) this.#removeIn(batch, finished);
        return batch.append(this.#mail, recordText(header, text));
      });
    } catch (error) {
      mailbox.queue.abandon(sender.owner, bytes, correlationId);
      this.#unreserve(from, id);
      this.#look(mailbox);
      throw new DeliveryRefusal(`it could not be stored: ${(error as Error).message}`);
    }
    this.#add(mailbox, header, sequence, bytes);
    if (finished !== undefined) this.#finish(finished);
    this.#look(mailbox);
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
    const own = kind.endsWith(REQUEST) ? this.#mailboxOf(sender.address) : undefined;
    const mailbox = this.#mailboxOf(to);
    let why: string | undefined;
    if (own?.queue.reserve(id) === false) {
      why = `your mailbox "${sender.address}" has no room for the reply: take what is in it first`;
    } else {
      const noRoom = mailbox.queue.admit(sender.owner, kind, bytes, answers);
      if (noRoom === undefined) return mailbox;
      why = refusalOf(noRoom, to);
      this.#unreserve(sender.address, id);
    }
    this.#look(mailbox);
    throw new DeliveryRefusal(why);
  }

  #add(mailbox: Mailbox, header: Header, sequence: number, bytes: number): void {
    const { to, from, id, kind, hash, at, leftMs, journal } = header;
    const endMs = this.#clock.now() + leftMs;
    const letter: Letter = { sequence, to, from, id, sender: ownerOf(from), kind, bytes, endMs, hash, at, journal };
    this.#letters.set(keyOf(letter.sender, id), letter);
    mailbox.queue.add(letter);
  }

  #checkRight(sender: MailSender, { to, message }: Deliver): void {
    const owner = ownerOf(to);
    const isAnswer =
      message.correlationId !== undefined &&
      this.#mailboxes.get(sender.address)?.mayAnswer(owner, message.correlationId, to, this.#clock.now()) === true;
    if (!isAnswer && sender.maySendTo?.has(to) === false) {
      throw new DeliveryRefusal(
        `"${sender.owner}" may not send to "${to}": a token may with --may-send-to, and whoever was asked may answer`,
      );
    }
    if (!this.#knows(owner)) throw new DeliveryRefusal(`there is no mailbox "${to}": no token has the id "${owner}"`);
  }

  // ── Out ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  subscribe(address: string, subscription: Subscription, credit: number | undefined): void {
    const mailbox = this.#mailboxOf(address);
    const { consumer } = subscription;
    const send = (frame: string) => subscription.send(frame);
    mailbox.takers.set(consumer, { consumer, send, senders: new Map(), waiting: undefined });
    mailbox.queue.attach(consumer, credit);
    this.#look(mailbox);
  }

  unsubscribe(address: string, consumer: Consumer): void {
    const mailbox = this.#mailboxes.get(address);
    if (mailbox === undefined) return;
    mailbox.takers.delete(consumer);
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

  /** False: it is not this consumer's, and may be another's by now. */
  acknowledge(address: string, consumer: Consumer, name: MessageName): boolean {
    const mailbox = this.#mailboxes.get(address);
    const sender = senderOf(mailbox?.takers.get(consumer), name);
    if (mailbox === undefined || sender === undefined) return false;
    const message = mailbox.queue.acknowledge(consumer, sender, name.id);
    if (message === undefined) return false;
    const letter = message as Letter;
    mailbox.takers.get(consumer)?.senders.delete(name.id);
    this.#letters.delete(keyOf(sender, name.id));
    this.#unreserve(letter.from, name.id);
    void this.#write("an acknowledged message", (batch) => this.#removeIn(batch, letter));
    this.#look(mailbox);
    return true;
  }

  /** The ids of those that are still this consumer's. */
  extend(address: string, consumer: Consumer, names: readonly MessageName[]): MessageName[] {
    const mailbox = this.#mailboxes.get(address);
    const taker = mailbox?.takers.get(consumer);
    if (mailbox === undefined || taker === undefined) return [];
    const nowMs = this.#clock.now();
    const kept = names.filter((name) => {
      const sender = senderOf(taker, name);
      return sender !== undefined && mailbox.queue.extend(consumer, sender, name.id, nowMs);
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
    const taker = mailbox?.takers.get(consumer);
    const sender = senderOf(taker, name);
    if (mailbox === undefined || sender === undefined) return;
    taker?.senders.delete(name.id);
    const ended = mailbox.queue.release(consumer, sender, name.id, failed);
    if (ended !== undefined) this.#end(mailbox, ended);
    this.#look(mailbox);
  }

  /** True where it was never handed out, and now never will be. Else whoever has it is told. */
  cancel(sender: MailSender, to: string, id: string): boolean {
    const mailbox = this.#mailboxes.get(to);
    const told = mailbox?.queue.cancel(sender.owner, id);
    if (mailbox === undefined || told === undefined || told.was === "unknown") return false;
    if (told.was === "handed-out") {
      const taker = told.consumer === undefined ? undefined : mailbox.takers.get(told.consumer);
      taker?.send(JSON.stringify({ kind: "cancel", correlation_id: id, from: sender.address }));
      return false;
    }
    const letter = told.message as Letter;
    this.#letters.delete(keyOf(sender.owner, id));
    this.#unreserve(letter.from, id);
    void this.#write("a cancelled message", (batch) => this.#removeIn(batch, letter));
    this.#look(mailbox);
    return true;
  }

  /** Passes a live frame to whoever is connected, or drops it. */
  live(sender: MailSender, frame: LiveFrame): void {
    const { to, correlationId } = frame;
    const has =
      correlationId === undefined ? undefined : this.#mailboxes.get(to)?.handedTo(sender.owner, correlationId);
    this.peers.pass(sender, frame, has);
  }

  // ── What follows ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** Ends what is over, hands out what can be, and sets the time of the next look. */
  #look(mailbox: Mailbox): void {
    if (this.#isClosed) return;
    const nowMs = this.#clock.now();
    const { queue } = mailbox;
    for (const ended of queue.tick(nowMs)) this.#end(mailbox, ended);
    let unforeseen: HandOut[] | undefined;
    for (let given = queue.next(nowMs); given !== undefined; given = queue.next(nowMs)) {
      if (given.bindTo !== undefined) {
        unforeseen ??= [];
        unforeseen.push(given);
      }
      this.#handOut(mailbox, given, nowMs);
    }
    if (unforeseen !== undefined) this.#noteJournals(mailbox, unforeseen);
    mailbox.dueMs = queue.nextDueMs ?? Number.POSITIVE_INFINITY;
    this.#rest(mailbox, nowMs);
    this.#setTimer(nowMs);
  }

  /** What is not used any more is forgotten. */
  #rest(mailbox: Mailbox, nowMs: number): void {
    if (mailbox.isIdle(nowMs)) {
      this.#mailboxes.delete(mailbox.address);
      this.#due.remove(mailbox);
      return;
    }
    // Nothing is due in one whose owner may only still answer.
    if (mailbox.queue.isIdle) mailbox.dueMs = nowMs + IDLE_LOOK_MS;
    if (mailbox.dueAt < 0) this.#due.push(mailbox);
    else this.#due.moved(mailbox);
  }

  #handOut(mailbox: Mailbox, { consumer, message, isRepeat, bindTo }: HandOut, nowMs: number): void {
    const letter = message as Letter;
    const taker = mailbox.takers.get(consumer);
    const record = this.#mail.get(letter.sequence);
    if (taker === undefined || record === undefined) return;
    if (consumer.knowsIdsOnly) taker.senders.set(letter.id, letter.sender);
    mailbox.wasHandedOut(letter, consumer);
    const left = Math.max(1, Math.round(letter.endMs - nowMs));
    const again = isRepeat ? ',"repeated":true' : "";
    const frame = `{"kind":"message","left_ms":${left}${again},"message":${messageOf(record)}}`;
    // What comes later must not overtake it.
    if (bindTo !== undefined) taker.waiting ??= [];
    if (taker.waiting !== undefined) taker.waiting.push(frame);
    else if (!taker.send(frame)) mailbox.queue.pause(consumer, true);
  }

  /** The store has to know whom they were handed to before they leave: after a restart nobody else may have them. */
  #noteJournals(mailbox: Mailbox, given: readonly HandOut[]): void {
    const takers = new Set(given.map(({ consumer }) => mailbox.takers.get(consumer)));
    this.#store
      .batch((batch) => {
        for (const { message, bindTo = "" } of given) batch.put(this.#journals, String(message.sequence), bindTo);
      })
      .then(
        () => {
          for (const taker of takers) if (taker !== undefined) this.#flush(mailbox, taker);
        },
        (error: Error) => {
          this.#log.error("a broker could not store whom it hands messages to", { why: error.message });
          for (const taker of takers) if (taker !== undefined) this.#tryLater(mailbox, taker);
          for (const { consumer, message } of given) mailbox.queue.release(consumer, message.sender, message.id);
        },
      );
  }

  /** The disk is full, or broken: nothing is handed out for a while. */
  #tryLater(mailbox: Mailbox, taker: Taker): void {
    taker.waiting = undefined;
    mailbox.queue.pause(taker.consumer, true);
    setTimeout(() => this.pause(mailbox.address, taker.consumer, false), RETRY_MS).unref();
  }

  #flush(mailbox: Mailbox, taker: Taker): void {
    const frames = taker.waiting ?? [];
    taker.waiting = undefined;
    let hasRoom = true;
    for (const frame of frames) hasRoom = taker.send(frame) && hasRoom;
    if (!hasRoom) mailbox.queue.pause(taker.consumer, true);
  }

  /** A message ended without being finished: it goes, and whoever waits for its answer is told. */
  #end(mailbox: Mailbox, { message, why, mayHaveRun, reason }: Ended): void {
    const letter = message as Letter;
    this.#letters.delete(keyOf(letter.sender, letter.id));
    const text = endText(mailbox.address, why, mayHaveRun, reason);
    this.#log.info("a message ended unfinished", {
      mailbox: mailbox.address,
      from: letter.from,
      id: letter.id,
      why: text,
    });
    const record = why === "failed" ? this.#mail.get(letter.sequence) : undefined;
    const answer = letter.kind.endsWith(REQUEST) ? this.#answerTo(letter, text, mayHaveRun) : undefined;
    void this.#write("the end of a message", (batch) => {
      this.#removeIn(batch, letter);
      if (record !== undefined) this.#dead.add(batch, letter.to, record, text, this.#clock.wall());
      if (answer !== undefined) answer.sequence = batch.append(this.#mail, answer.record);
    }).then((isWritten) => {
      if (answer !== undefined) this.#answered(letter, answer, isWritten);
    });
  }

  #answerTo(letter: Letter, error: string, mayHaveRun: boolean): Answer | undefined {
    const { from, to, id } = letter;
    const kind = `${letter.kind.slice(0, -REQUEST.length)}${REPLY}`;
    const body = JSON.stringify({ error, outcome: mayHaveRun ? "unknown" : "not run" });
    const at = this.#clock.wall();
    const replyId = `end-${hashOf(letter.sender, id, to)}`;
    const text = messageText({ id: replyId, from: to, role: "broker", kind, body, at, correlationId: id });
    const bytes = Buffer.byteLength(text);
    // There is one as long as room is kept in it.
    const mailbox = this.#mailboxes.get(from);
    if (mailbox === undefined || mailbox.queue.admit(to, kind, bytes, id) !== undefined) return undefined;
    const hash = hashOf(from, kind, body);
    const journal = mailbox.queue.foresee(kind);
    const header: Header = { to: from, from: to, id: replyId, kind, hash, at, leftMs: DEFAULT_END_MS, journal };
    return { mailbox, header, bytes, record: recordText(header, text), sequence: 0 };
  }

  #answered(letter: Letter, { mailbox, header, bytes, sequence }: Answer, isWritten: boolean): void {
    if (isWritten) this.#add(mailbox, header, sequence, bytes);
    else mailbox.queue.abandon(letter.to, bytes, letter.id);
    this.#look(mailbox);
  }

  // ── The store ────────────────────────────────────────────────────────────────────────────────────────────────────

  #restore(): void {
    const journals = new Map(this.#journals.entries());
    const nowMs = this.#clock.now();
    const wallMs = this.#clock.wall();
    for (const [sequence, record] of this.#mail.entries()) {
      const { to, from, id, kind, hash, at, leftMs, journal } = headerOf(record);
      const sender = ownerOf(from);
      const handedTo = journals.get(String(sequence)) ?? journal;
      journals.delete(String(sequence));
      // A calendar that was set back does not give it more time than it had.
      const endMs = nowMs + leftMs - Math.max(0, wallMs - at);
      const bytes = Buffer.byteLength(messageOf(record));
      const letter: Letter = { sequence, to, from, id, sender, kind, bytes, endMs, hash, at, journal: handedTo };
      this.#letters.set(keyOf(sender, id), letter);
      this.#mailboxOf(to).queue.restore(letter);
      if (kind.endsWith(REQUEST)) this.#mailboxOf(from).queue.reserve(id);
    }
    if (journals.size > 0) {
      void this.#write("what is known of messages that are gone", (batch) => {
        for (const key of journals.keys()) batch.delete(this.#journals, key);
      });
    }
    for (const mailbox of [...this.#mailboxes.values()]) this.#look(mailbox);
  }

  #removeIn(batch: Parameters<Parameters<Store["batch"]>[0]>[0], { sequence }: Letter): void {
    batch.remove(this.#mail, sequence);
    if (this.#journals.get(String(sequence)) !== undefined) batch.delete(this.#journals, String(sequence));
  }

  /** What need not be waited for: what is not written now comes again after a restart. Never rejects. */
  #write(what: string, fn: Parameters<Store["batch"]>[0]): Promise<boolean> {
    return this.#store.batch(fn).then(
      () => true,
      (error: Error) => {
        this.#log.error(`a broker could not write ${what}`, { why: error.message });
        return false;
      },
    );
  }

  // ── Mailboxes ────────────────────────────────────────────────────────────────────────────────────────────────────

  #mailboxOf(address: string): Mailbox {
    let mailbox = this.#mailboxes.get(address);
    if (mailbox === undefined) {
      if (this.#mailboxes.size >= MAX_MAILBOXES) {
        throw new DeliveryRefusal(`the broker has ${MAX_MAILBOXES} mailboxes in use, which is its limit`);
      }
      mailbox = new Mailbox(address);
      this.#mailboxes.set(address, mailbox);
    }
    return mailbox;
  }

  /** A message in the sender's own mailbox, which its answer finishes. */
  #ownLetter(sender: MailSender, { id, from }: MessageName): Letter | undefined {
    const letter = from === undefined ? undefined : this.#letters.get(keyOf(ownerOf(from), id));
    return letter?.to === sender.address ? letter : undefined;
  }

  #finish(letter: Letter): void {
    const mailbox = this.#mailboxes.get(letter.to);
    mailbox?.queue.finish(letter.sender, letter.id);
    this.#letters.delete(keyOf(letter.sender, letter.id));
    this.#unreserve(letter.from, letter.id);
    if (mailbox !== undefined) this.#look(mailbox);
  }

  /** The message has its reply, or will get none. */
  #unreserve(address: string, id: string): void {
    const mailbox = this.#mailboxes.get(address);
    mailbox?.queue.unreserve(id);
    if (mailbox?.queue.isIdle === true) this.#rest(mailbox, this.#clock.now());
  }

  /** For the operator's side of it. */
  get inside(): BrokerInside {
    return {
      store: this.#store,
      mail: this.#mail,
      dead: this.#dead,
      clock: this.#clock,
      mailboxes: this.#mailboxes,
      knows: this.#knows,
      since: (address) => this.peers.presenceOf(address).since,
      mailboxOf: (address) => this.#mailboxOf(address),
      add: (mailbox, header, sequence, bytes) => this.#add(mailbox, header, sequence, bytes),
      end: (mailbox, ended) => this.#end(mailbox, ended),
      unreserve: (address, id) => this.#unreserve(address, id),
      look: (mailbox) => this.#look(mailbox),
    };
  }

  #setTimer(nowMs: number): void {
    const due = this.#due.peek()?.dueMs ?? Number.POSITIVE_INFINITY;
    // A timer that is too early finds nothing to do, and sets the next.
    if (due === Number.POSITIVE_INFINITY || this.#isClosed || this.#timerMs <= due) return;
    clearTimeout(this.#timer);
    const waitMs = Math.min(Math.max(due - nowMs, 1), LONGEST_WAIT_MS);
    this.#timerMs = nowMs + waitMs;
    this.#timer = setTimeout(() => this.#onTime(), waitMs).unref();
  }

  #onTime(): void {
    this.#timerMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.now();
    for (let top = this.#due.peek(); top !== undefined && top.dueMs <= nowMs; top = this.#due.peek()) this.#look(top);
    this.#setTimer(nowMs);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}

interface Answer {
  readonly mailbox: Mailbox;
  readonly header: Header;
  readonly bytes: number;
  readonly record: string;
  sequence: number;
}

function keyOf(sender: string, id: string): string {
  return `${sender}\0${id}`;
}

function senderOf(taker: Taker | undefined, { id, from }: MessageName): string | undefined {
  return from === undefined ? taker?.senders.get(id) : ownerOf(from);
}

function refusalOf(noRoom: NoRoom, to: string): string {
  const { maxMessages, maxBytes, maxKinds } = QUEUE_LIMITS;
  if (noRoom === "messages") return `the mailbox "${to}" is full: it holds ${maxMessages} messages at most`;
  if (noRoom === "bytes") return `the mailbox "${to}" is full: it holds ${maxBytes} bytes at most`;
  if (noRoom === "kinds") return `${maxKinds} kinds of messages wait in the mailbox "${to}" already`;
  return `half of the mailbox "${to}" is yours already, and no sender gets more`;
}

function endText(mailbox: string, why: Ended["why"], mayHaveRun: boolean, reason: string | undefined): string {
  const outcome = mayHaveRun ? "its outcome is unknown" : "it was not run";
  if (why === "dropped") return `dropped by the operator; ${mayHaveRun ? outcome : "not run"}`;
  if (why === "expired") return `"${mailbox}" did not answer before the end of the message; ${outcome}`;
  const last = reason === undefined ? "" : `, the last time with: ${reason}`;
  return `"${mailbox}" failed with it ${QUEUE_LIMITS.maxFailures} times${last}; ${outcome}`;
}
