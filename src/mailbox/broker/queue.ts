// One mailbox's queue: who gets which message next and for how long, and what becomes of those that nobody finished. A
// state machine without clock, store or socket: the time is passed in, and what follows from it is returned. Bodies are
// not known here: a message is its place in the store, and what decides about it.
//
// The words: a consumer is a connection that takes messages, as far as it decides who gets what; a holding is what the
// queue knows of one that is attached: the messages that it has, and how many more it may.

import { Counts } from "../../runtime/containers/counts.js";
import { Heap } from "../../runtime/containers/heap.js";
import type { RoomAccount } from "../../runtime/memory/shared-room.js";
import { KIB } from "../../runtime/sizes.js";
import {
  ANYBODY,
  type Binding,
  type Cancelled,
  type Consumer,
  type Ended,
  type HandOut,
  keyOf,
  type NoRoom,
  type QueuedMessage,
  type QueueLimits,
  type StoredMessage,
} from "./queue-terms.js";

interface Entry {
  readonly message: QueuedMessage;
  /** Of its sender and id. */
  readonly key: string;
  readonly mail: SenderMail;
  /** Where it stands among all first hand-outs; 0 is never. */
  order: number;
  failures: number;
  holding: Holding | undefined;
  /** When something is to be done about it: the end of its lease, or its own. */
  dueMs: number;
  /** Only a consumer with this journal gets it; undefined is any. */
  journal: string | undefined;
  /** Whom the store has it down for. */
  bound: Binding | undefined;
  /** It was handed out and not given back unstarted. */
  mayHaveRun: boolean;
  /** Whoever has it, or had it last, says that it may run twice. */
  isRepeatable: boolean;
  reason: string | undefined;
  /** Its places in the heap of due times, and in that of its kind which came back. */
  dueAt: number;
  returnedAt: number;
}

type Returned = Heap<"returnedAt", Entry>;

/** What one sender has in this mailbox. */
interface SenderMail {
  readonly sender: string;
  messages: number;
  bytes: number;
  /** On their way into the store too, as those of the whole mailbox. */
  readonly kinds: Counts;
  /** What was never handed out, by kind, the oldest first. */
  readonly fresh: Map<string, Set<Entry>>;
  /** How many were handed out when it had its last turn, or came. */
  turn: number;
}

interface Holding {
  readonly consumer: Consumer;
  readonly held: Map<string, Entry>;
  /** The senders of what it holds by the ids, where it knows messages by those alone. */
  readonly heldIds: Map<string, string> | undefined;
  credit: number;
  /** Its connection is full. */
  isPaused: boolean;
}

const FOR_ANY = [undefined];

/** What is known of one message beside its text, here and in the store, where that is in memory. */
const KNOWN_BYTES = 2 * KIB;

const isOlder = (a: Entry, b: Entry) => a.order < b.order;

export class MailboxQueue {
  readonly #limits: QueueLimits;
  readonly #account: RoomAccount | undefined;
  /** By sender and id: two senders may use the same id. */
  readonly #entries = new Map<string, Entry>();
  readonly #senders = new Map<string, SenderMail>();
  /** The senders with something that was never handed out, by its kind: the next in turn is first. */
  readonly #turns = new Map<string, Set<SenderMail>>();
  /** What was handed out and came back, by journal (undefined is any) and kind. */
  readonly #returned = new Map<string | undefined, Map<string, Returned>>();
  /** In turn: whoever was handed something goes to the end. */
  readonly #holdings = new Map<Consumer, Holding>();
  readonly #due = new Heap<"dueAt", Entry>("dueAt", (a, b) => a.dueMs < b.dueMs);
  /** Room for the replies to messages that this mailbox's owner sent, by their ids. */
  readonly #reserved = new Set<string>();
  readonly #kinds = new Counts();
  #messages = 0;
  #bytes = 0;
  #handOuts = 0;

  /** `account` counts what it holds with what other mailboxes do, where that is bounded. */
  constructor(limits: QueueLimits, account?: RoomAccount) {
    this.#limits = limits;
    this.#account = account;
  }

  get messages(): number {
    return this.#messages;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get consumers(): number {
    return this.#holdings.size;
  }

  /** How many of its messages a consumer has now. */
  get leased(): number {
    let leased = 0;
    for (const { held } of this.#holdings.values()) leased += held.size;
    return leased;
  }

  /** What is in it, the oldest first. */
  *stored(): IterableIterator<StoredMessage> {
    for (const { message, holding, mayHaveRun, failures } of this.#entries.values()) {
      yield { message, state: holding !== undefined ? "leased" : mayHaveRun ? "returned" : "waiting", failures };
    }
  }

  /** Nothing is in it, on its way into it or reserved, and nobody takes from it. */
  get isIdle(): boolean {
    return this.#messages === 0 && this.#holdings.size === 0 && this.#reserved.size === 0;
  }

  // ── What comes in ────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Takes the room for a message that is about to be stored. A reply to what this mailbox's owner sent has its room
   * already, and is given with the id that it answers.
   */
  admit(sender: string, kind: string, bytes: number, answers?: string): NoRoom | undefined {
    const hasRoom = answers !== undefined && this.#reserved.has(answers);
    const refusal = this.#refusal(sender, kind, bytes, hasRoom);
    if (refusal !== undefined) return refusal;
    if (hasRoom) this.#reserved.delete(answers);
    this.#enter(this.#mailOf(sender), kind, bytes);
    return undefined;
  }

  #refusal(sender: string, kind: string, bytes: number, hasRoom: boolean): NoRoom | undefined {
    const { maxMessages, maxBytes, maxKinds, replyBytes } = this.#limits;
    const reserved = this.#reserved.size - (hasRoom ? 1 : 0);
    if (this.#messages + reserved + 1 > maxMessages) return "messages";
    if (this.#bytes + reserved * replyBytes + bytes > maxBytes) return "bytes";
    // What was kept for a reply it has, whatever there is else.
    const noRoom =
      hasRoom && bytes <= replyBytes ? undefined : this.#account?.room.refusal(sender, bytes + KNOWN_BYTES, hasRoom);
    if (hasRoom || noRoom !== undefined) return noRoom;
    const { messages = 0, bytes: own = 0, kinds } = this.#senders.get(sender) ?? {};
    if (!this.#kinds.has(kind) && this.#kinds.size >= maxKinds) return "kinds";
    if (!this.#kinds.has(kind) && ((kinds?.size ?? 0) + 1) * 2 > maxKinds) return "own-kinds";
    return (messages + 1) * 2 > maxMessages || (own + bytes) * 2 > maxBytes ? "share" : undefined;
  }

  /** What was admitted could not be stored. */
  abandon(sender: string, kind: string, bytes: number, answers?: string): void {
    this.#leave(this.#mailOf(sender), kind, bytes);
    if (answers !== undefined) this.reserve(answers);
  }

  /** What was admitted is stored, and may be handed out. */
  add(message: QueuedMessage): void {
    const entry = this.#entryOf(message);
    if (message.only !== undefined) {
      this.#keepFor(entry, message.only);
      return;
    }
    let waiting = entry.mail.fresh.get(message.kind);
    if (waiting === undefined) {
      waiting = new Set();
      this.#openKind(entry.mail, message.kind, waiting);
    }
    waiting.add(entry);
  }

  /**
   * What was stored when the broker started: it is there, whatever the limits say now. What is down for a journal may
   * have been handed to it.
   */
  restore(message: QueuedMessage): void {
    this.#enter(this.#mailOf(message.sender), message.kind, message.bytes);
    const { bound } = message;
    if (bound === undefined) {
      this.add(message);
      return;
    }
    const entry = this.#entryOf(message);
    entry.mayHaveRun = true;
    this.#keepFor(entry, message.only ?? bound.journal);
  }

  /** For this journal alone, in the order in which they came. */
  #keepFor(entry: Entry, journal: string | undefined): void {
    entry.journal = journal;
    entry.order = ++this.#handOuts;
    this.#putBack(entry);
  }

  #entryOf(message: QueuedMessage): Entry {
    const key = keyOf(message.sender, message.id);
    const entry: Entry = {
      message,
      key,
      mail: this.#mailOf(message.sender),
      order: 0,
      failures: 0,
      holding: undefined,
      dueMs: message.endMs,
      journal: undefined,
      bound: message.bound,
      mayHaveRun: false,
      isRepeatable: false,
      reason: undefined,
      dueAt: -1,
      returnedAt: -1,
    };
    this.#entries.set(key, entry);
    this.#due.push(entry);
    return entry;
  }

  /** Keeps room for the reply to a message that this mailbox's owner sends. False: there is none. */
  reserve(id: string): boolean {
    if (this.#reserved.has(id)) return true;
    const { maxMessages, maxBytes, replyBytes } = this.#limits;
    const reserved = this.#reserved.size + 1;
    if (this.#messages + reserved > maxMessages || this.#bytes + reserved * replyBytes > maxBytes) return false;
    this.#reserved.add(id);
    return true;
  }

  /** The message will get no reply, or has it. */
  unreserve(id: string): void {
    this.#reserved.delete(id);
  }

  // ── Consumers ────────────────────────────────────────────────────────────────────────────────────────────────────

  attach(consumer: Consumer, credit = Number.POSITIVE_INFINITY): void {
    const heldIds = consumer.knowsIdsOnly ? new Map<string, string>() : undefined;
    this.#holdings.set(consumer, { consumer, held: new Map(), heldIds, credit, isPaused: false });
  }

  /** All that it held is for the next one at once, and has not failed. */
  detach(consumer: Consumer): void {
    const holding = this.#holdings.get(consumer);
    if (holding === undefined) return;
    this.#holdings.delete(consumer);
    for (const entry of holding.held.values()) {
      entry.holding = undefined;
      this.#comeBack(entry);
    }
  }

  /** It can take so many more. */
  grant(consumer: Consumer, messages: number): void {
    const holding = this.#holdings.get(consumer);
    if (holding !== undefined) holding.credit += messages;
  }

  /** Nothing is handed to it while its connection is full. */
  pause(consumer: Consumer, isPaused: boolean): void {
    const holding = this.#holdings.get(consumer);
    if (holding !== undefined) holding.isPaused = isPaused;
  }

  /** Whom a message will be handed to, where there is no doubt. */
  foresee(kind: string): Binding | undefined {
    const [only, second] = this.#holdings.keys();
    if (only === undefined || second !== undefined) return undefined;
    return only.kinds?.has(kind) === false ? undefined : only;
  }

  /** The next hand-out, until there is none. */
  next(nowMs: number): HandOut | undefined {
    for (const holding of this.#holdings.values()) {
      if (holding.isPaused || holding.credit < 1 || holding.held.size >= holding.consumer.window) continue;
      const entry = this.#takeReturned(holding, nowMs) ?? this.#takeFresh(holding, nowMs);
      if (entry === undefined) continue;
      if (this.#holdings.size > 1) {
        this.#holdings.delete(holding.consumer);
        this.#holdings.set(holding.consumer, holding);
      }
      return this.#lease(entry, holding, nowMs);
    }
    return undefined;
  }

  #lease(entry: Entry, holding: Holding, nowMs: number): HandOut {
    const { message } = entry;
    const { consumer } = holding;
    const isRepeat = entry.order > 0;
    if (!isRepeat) entry.order = ++this.#handOuts;
    const isBound = entry.bound !== undefined && entry.bound.journal === consumer.journal;
    if (!isBound) entry.bound = consumer;
    entry.holding = holding;
    entry.journal = consumer.journal;
    entry.mayHaveRun = true;
    entry.isRepeatable = false;
    holding.held.set(entry.key, entry);
    holding.heldIds?.set(message.id, message.sender);
    holding.credit--;
    this.#expectAt(entry, nowMs + this.#limits.leaseMs);
    return { consumer, message, isRepeat, bindTo: isBound ? undefined : consumer };
  }

  /** It is finished, where it was this consumer's. */
  acknowledge(consumer: Consumer, sender: string, id: string): QueuedMessage | undefined {
    const entry = this.#heldBy(consumer, sender, id);
    if (entry === undefined) return undefined;
    this.#remove(entry);
    return entry.message;
  }

  /** It is finished, whoever has it by now: its answer is there. */
  finish(sender: string, id: string): void {
    const entry = this.#entries.get(keyOf(sender, id));
    if (entry !== undefined) this.#remove(entry);
  }

  /**
   * The consumer is still at it. False where it is not its any more: it must not begin it. `isRepeatable`: it has begun it, and
   * another may begin it as well if it goes.
   */
  extend(consumer: Consumer, sender: string, id: string, nowMs: number, isRepeatable = false): boolean {
    const entry = this.#heldBy(consumer, sender, id);
    if (entry === undefined) return false;
    if (isRepeatable) entry.isRepeatable = true;
    // One lease past its end, for the reply to come: then it is over, whatever the consumer says.
    const leaseMs = this.#limits.leaseMs;
    this.#expectAt(entry, Math.min(nowMs + leaseMs, entry.message.endMs + leaseMs));
    return entry.dueMs > nowMs;
  }

  /** Whose message a consumer means that knows ids alone. */
  senderOf(consumer: Consumer, id: string): string | undefined {
    return this.#holdings.get(consumer)?.heldIds?.get(id);
  }

  heldBy(consumer: Consumer, sender: string, id: string): QueuedMessage | undefined {
    return this.#heldBy(consumer, sender, id)?.message;
  }

  /**
   * The consumer gives it back. Whoever gives a message back says that another may have it: it was not begun, or it may
   * be repeated; the store has to forget whose it was. What failed counts, and is returned where that was once too often.
   */
  release(
    consumer: Consumer,
    sender: string,
    id: string,
    failed?: { readonly reason?: string | undefined },
  ): Ended | undefined {
    const entry = this.#heldBy(consumer, sender, id);
    if (entry === undefined) return undefined;
    this.#letGo(entry);
    entry.journal = entry.message.only;
    entry.bound = failed === undefined ? undefined : ANYBODY;
    entry.mayHaveRun = failed !== undefined;
    if (failed !== undefined) {
      entry.reason = failed.reason;
      entry.failures++;
      if (entry.failures >= this.#limits.maxFailures) return this.#end(entry, "failed");
    }
    this.#putBack(entry);
    return undefined;
  }

  /** Its sender does not want it any more. */
  cancel(sender: string, id: string): Cancelled {
    const entry = this.#entries.get(keyOf(sender, id));
    if (entry === undefined) return { was: "unknown" };
    if (entry.mayHaveRun) return { was: "handed-out", consumer: entry.holding?.consumer };
    this.#remove(entry);
    return { was: "waiting", message: entry.message };
  }

  /** The operator does not want it any more, whoever has it. */
  drop(sender: string, id: string): { readonly ended: Ended; readonly consumer: Consumer | undefined } | undefined {
    const entry = this.#entries.get(keyOf(sender, id));
    if (entry === undefined) return undefined;
    const consumer = entry.holding?.consumer;
    return { ended: this.#end(entry, "dropped"), consumer };
  }

  // ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** When `tick` has something to do. */
  get nextDueMs(): number | undefined {
    return this.#due.peek()?.dueMs;
  }

  /** Ends what is over, and takes back what was held too long. */
  tick(nowMs: number): Ended[] {
    const ended: Ended[] = [];
    for (let entry = this.#due.peek(); entry !== undefined && entry.dueMs <= nowMs; entry = this.#due.peek()) {
      const wasHeld = entry.holding !== undefined;
      if (wasHeld) this.#letGo(entry);
      if (entry.message.endMs <= nowMs) ended.push(this.#end(entry, "expired"));
      else if (wasHeld && ++entry.failures >= this.#limits.maxFailures) ended.push(this.#end(entry, "failed"));
      else this.#comeBack(entry);
    }
    return ended;
  }

  #expectAt(entry: Entry, ms: number): void {
    entry.dueMs = ms;
    this.#due.moved(entry);
  }

  // ── Senders and turns ────────────────────────────────────────────────────────────────────────────────────────────

  /** Of what came back and may be this consumer's, the one that was handed out first. */
  #takeReturned({ consumer, heldIds }: Holding, nowMs: number): Entry | undefined {
    const { journal, kinds } = consumer;
    let first: Entry | undefined;
    for (const owner of journal === undefined ? FOR_ANY : [journal, undefined]) {
      for (const [kind, heap] of this.#returned.get(owner) ?? []) {
        const top = heap.peek();
        if (kinds !== undefined && !kinds.has(kind)) continue;
        if (top === undefined || top.message.endMs <= nowMs || heldIds?.has(top.message.id) === true) continue;
        if (first === undefined || isOlder(top, first)) first = top;
      }
    }
    if (first !== undefined) this.#takeBack(first);
    return first;
  }

  /** Of the sender whose turn it is, the oldest. */
  #takeFresh(holding: Holding, nowMs: number): Entry | undefined {
    const { kinds } = holding.consumer;
    let first: Entry | undefined;
    for (const [kind, senders] of this.#turns) {
      if (kinds !== undefined && !kinds.has(kind)) continue;
      const next = this.#nextOf(senders, holding, nowMs);
      if (next !== undefined && (first === undefined || next.mail.turn < first.mail.turn)) first = next;
    }
    if (first === undefined) return undefined;
    this.#leaveKind(first);
    this.#hadItsTurn(first.mail);
    return first;
  }

  /** The oldest of the first sender whose oldest this consumer can have now. */
  #nextOf(senders: Iterable<SenderMail>, { consumer: { kinds }, heldIds }: Holding, nowMs: number): Entry | undefined {
    for (const mail of senders) {
      let oldest: Entry | undefined;
      for (const [kind, waiting] of mail.fresh) {
        if (kinds !== undefined && !kinds.has(kind)) continue;
        const [first] = waiting;
        if (first === undefined || (oldest !== undefined && oldest.message.sequence < first.message.sequence)) continue;
        oldest = first;
      }
      // What is over is not handed out: a tick ends it first.
      if (oldest === undefined || oldest.message.endMs <= nowMs) continue;
      if (heldIds?.has(oldest.message.id) !== true) return oldest;
    }
    return undefined;
  }

  #openKind(mail: SenderMail, kind: string, waiting: Set<Entry>): void {
    // Whoever comes anew waits for those who wait.
    if (mail.fresh.size === 0) mail.turn = this.#handOuts;
    mail.fresh.set(kind, waiting);
    const senders = this.#turns.get(kind);
    if (senders === undefined) this.#turns.set(kind, new Set([mail]));
    else senders.add(mail);
  }

  #leaveKind(entry: Entry): void {
    const { mail, message } = entry;
    const waiting = mail.fresh.get(message.kind);
    waiting?.delete(entry);
    if (waiting?.size !== 0) return;
    mail.fresh.delete(message.kind);
    const senders = this.#turns.get(message.kind);
    senders?.delete(mail);
    if (senders?.size === 0) this.#turns.delete(message.kind);
  }

  #hadItsTurn(mail: SenderMail): void {
    mail.turn = this.#handOuts + 1;
    for (const kind of mail.fresh.keys()) {
      const senders = this.#turns.get(kind);
      senders?.delete(mail);
      senders?.add(mail);
    }
  }

  /**
   * Whoever had it has gone, or said nothing for too long. The store has it down for that one still, which does no harm: it is
   * written anew when another gets it.
   */
  #comeBack(entry: Entry): void {
    if (entry.isRepeatable) entry.journal = entry.message.only;
    this.#putBack(entry);
  }

  /** For whoever may have it next, and before all that was never handed out. */
  #putBack(entry: Entry): void {
    let byKind = this.#returned.get(entry.journal);
    if (byKind === undefined) {
      byKind = new Map();
      this.#returned.set(entry.journal, byKind);
    }
    let heap = byKind.get(entry.message.kind);
    if (heap === undefined) {
      heap = new Heap("returnedAt", isOlder);
      byKind.set(entry.message.kind, heap);
    }
    heap.push(entry);
    this.#expectAt(entry, entry.message.endMs);
  }

  #takeBack(entry: Entry): void {
    const byKind = this.#returned.get(entry.journal);
    const heap = byKind?.get(entry.message.kind);
    heap?.remove(entry);
    if (heap?.size !== 0) return;
    byKind?.delete(entry.message.kind);
    if (byKind?.size === 0) this.#returned.delete(entry.journal);
  }

  // ── Ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  #heldBy(consumer: Consumer, sender: string, id: string): Entry | undefined {
    return this.#holdings.get(consumer)?.held.get(keyOf(sender, id));
  }

  #letGo(entry: Entry): void {
    const { holding, message } = entry;
    holding?.held.delete(entry.key);
    holding?.heldIds?.delete(message.id);
    entry.holding = undefined;
  }

  #end(entry: Entry, why: Ended["why"]): Ended {
    this.#remove(entry);
    const { message, mayHaveRun, isRepeatable, reason } = entry;
    return { message, why, mayHaveRun, isRepeatable, reason };
  }

  #remove(entry: Entry): void {
    this.#letGo(entry);
    if (entry.returnedAt >= 0) this.#takeBack(entry);
    else if (entry.order === 0) this.#leaveKind(entry);
    this.#due.remove(entry);
    this.#entries.delete(entry.key);
    this.#leave(entry.mail, entry.message.kind, entry.message.bytes);
  }

  #enter(mail: SenderMail, kind: string, bytes: number): void {
    this.#account?.change(mail.sender, bytes + KNOWN_BYTES);
    mail.messages++;
    mail.bytes += bytes;
    mail.kinds.add(kind);
    this.#kinds.add(kind);
    this.#messages++;
    this.#bytes += bytes;
  }

  #leave(mail: SenderMail, kind: string, bytes: number): void {
    this.#account?.change(mail.sender, -bytes - KNOWN_BYTES);
    mail.messages--;
    mail.bytes -= bytes;
    mail.kinds.remove(kind);
    this.#kinds.remove(kind);
    this.#messages--;
    this.#bytes -= bytes;
    if (mail.messages === 0) this.#senders.delete(mail.sender);
  }

  #mailOf(sender: string): SenderMail {
    let mail = this.#senders.get(sender);
    if (mail === undefined) {
      mail = { sender, messages: 0, bytes: 0, kinds: new Counts(), fresh: new Map(), turn: 0 };
      this.#senders.set(sender, mail);
    }
    return mail;
  }
}
