// A worker's line to one broker, for all the mailboxes that it uses there: dialled when somebody wants it and again when it
// is lost (worker-redial.ts says when). It takes replies, live frames and presence to whom they are for, and hands out
// turns to draw large replies. It does not read bodies, and does not know what a call is.

import type { BrokerLine, LineEvents } from "../peer/line.js";
import type { MailboxPresence, ReceivedLive, ReceivedMessage } from "../wire/broker-frames.js";
import { Draw, DrawTurns } from "./draw-turns.js";
import { WorkerRedial } from "./worker-redial.js";

/** Replies that may come unacknowledged. Each is taken within a turn of the loop, but for large ones that are drawn. */
const CREDIT = 512;
/** A reply that is being drawn is ours for 30 s at a time: two of these may fail. */
const EXTEND_MS = 10_000;

/** One mailbox as it is used from here. */
export interface MailboxUser {
  readonly mailbox: string;
  /** There is a line, the first or another: what waits can be delivered. */
  onLine(line: BrokerLine): void;
  /** The line was lost, and is dialled again. */
  onLost(): void;
  /** It was dialled in vain: whoever waits is told. It is passing, unless it is `final`: then the broker refused us. */
  onDown(why: string, final: boolean): void;
  /** An answer from this mailbox. Acknowledged by whoever takes it. */
  onReply(message: ReceivedMessage): void;
  /** From this mailbox. */
  onLive(frame: ReceivedLive): void;
  onPresence(presence: MailboxPresence): void;
  /** The next piece of a reply that is drawn here is to be asked for. */
  onTurn(draw: Draw, offset: number, bytes: number): void;
  /** The rest of a reply that is drawn here was asked for in vain, for a minute. */
  onSilent(draw: Draw): void;
}

/** Why a dial failed. `final`: the broker refused us. */
export interface DialFailure {
  readonly why: string;
  readonly final: boolean;
}

export interface WorkerLineOptions {
  /** Dials and says hello. Rejects with an Error; `failureOf` says what it means. */
  open(events: LineEvents, signal: AbortSignal): Promise<BrokerLine>;
  failureOf(error: unknown): DialFailure;
  readonly now: () => number;
  readonly random: () => number;
}

export class WorkerLine {
  readonly #options: WorkerLineOptions;
  readonly #redial: WorkerRedial;
  /** By the beginning that the ids of their messages have. */
  readonly #users = new Map<string, MailboxUser>();
  /** Whoever waits for the answer to a message whose id has a beginning of its own, as many as are under way. */
  readonly #expected = new Map<string, MailboxUser>();
  readonly #presences = new Map<string, MailboxPresence>();
  /** What the machine of a mailbox last said of itself, as JSON: it is not asked for while that one is away. */
  readonly intros = new Map<string, string>();
  readonly #turns = new DrawTurns();
  /** Replies that are being drawn, by the id of the message that they answer. */
  readonly #held = new Map<string, ReceivedMessage>();
  #line: BrokerLine | undefined;
  #dial: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #drawTimer: NodeJS.Timeout | undefined;
  #extendedMs = 0;
  /** Why the broker does not take us. */
  #refusal = "";

  constructor(options: WorkerLineOptions) {
    this.#options = options;
    this.#redial = new WorkerRedial(options.random);
  }

  get isUsed(): boolean {
    return this.#users.size > 0;
  }

  get line(): BrokerLine | undefined {
    return this.#line;
  }

  presenceOf(mailbox: string): MailboxPresence | undefined {
    return this.#presences.get(mailbox);
  }

  /** The ids of the user's messages begin with `prefix` and a dash. */
  attach(prefix: string, user: MailboxUser): void {
    this.#users.set(prefix, user);
    if (this.#line !== undefined && !this.#presences.has(user.mailbox)) this.#line.watch(user.mailbox);
  }

  /** The answer to the message of this id is for `user`, whatever its id begins with. */
  expect(id: string, user: MailboxUser): void {
    this.#expected.set(id, user);
  }

  unexpect(id: string, user: MailboxUser): void {
    if (this.#expected.get(id) === user) this.#expected.delete(id);
  }

  /** The line ends with the last that used it. */
  detach(prefix: string): void {
    this.#users.delete(prefix);
    if (this.#users.size === 0) this.#stop();
  }

  /** Somebody needs the line: onLine or onDown follows, unless it is there already. */
  want(): void {
    if (this.#line !== undefined) return;
    const verdict = this.#redial.wanted();
    if (verdict === "dial") void this.#open();
    else if (verdict === "refused") queueMicrotask(() => this.#tellRefusal());
  }

  /** Whoever came after the broker had refused us hears of it, too. */
  #tellRefusal(): void {
    if (this.#redial.state === "refused") this.#tellDown(this.#refusal, true);
  }

  // ---- large replies

  /** `reply` is acknowledged when it is drawn, or no longer wanted. */
  draw(reply: ReceivedMessage, bytes: number): Draw {
    const draw = new Draw(reply.correlationId ?? "", bytes);
    this.#held.set(draw.id, reply);
    this.#turns.add(draw);
    this.#ask();
    return draw;
  }

  /** A piece came: true where it is the next of its reply. */
  drew(draw: Draw, offset: number, bytes: number): boolean {
    const isNext = this.#turns.got(draw, offset, bytes, this.#options.now());
    this.#ask();
    return isNext;
  }

  pause(draw: Draw, isPaused: boolean): void {
    draw.isPaused = isPaused;
    if (!isPaused) this.#ask();
  }

  /** It is here as a whole, or nobody wants it: the machine that made it may forget it. */
  endDraw(draw: Draw): void {
    this.#turns.delete(draw);
    const reply = this.#held.get(draw.id);
    this.#held.delete(draw.id);
    if (reply === undefined) return;
    this.#line?.live(reply.from, draw.id, '{"op":"drawn"}');
    this.acknowledge(reply);
    this.#ask();
  }

  acknowledge({ id, from }: ReceivedMessage): void {
    this.#line?.ack({ id, from });
    this.#line?.credit(1);
  }

  #ask(): void {
    if (this.#line === undefined) return;
    const nowMs = this.#options.now();
    for (let ask = this.#turns.next(nowMs); ask !== undefined; ask = this.#turns.next(nowMs)) {
      this.#userOf(ask.draw.id)?.onTurn(ask.draw, ask.offset, ask.bytes);
    }
    if (this.#held.size === 0) {
      clearInterval(this.#drawTimer);
      this.#drawTimer = undefined;
    } else this.#drawTimer ??= setInterval(() => this.#tendDraws(), 1_000).unref();
  }

  #tendDraws(): void {
    const nowMs = this.#options.now();
    for (const draw of this.#turns.expire(nowMs)) this.#userOf(draw.id)?.onSilent(draw);
    if (nowMs - this.#extendedMs >= EXTEND_MS) {
      this.#extendedMs = nowMs;
      const names = [...this.#held.values()].map(({ id, from }) => ({ id, from }));
      // What is no longer ours is handed out again, and goes on where it was.
      this.#line?.extend(names).catch(() => {});
    }
    this.#ask();
  }

  // ---- the line

  async #open(): Promise<void> {
    const dial = new AbortController();
    this.#dial = dial;
    let line: BrokerLine | undefined;
    const events: LineEvents = {
      onMessage: (message) => this.#message(message),
      onLive: (frame) => this.#live(frame),
      onCancel: () => {},
      onPresence: (presence) => this.#presence(presence),
      onDrain: () => {},
      onClose: (why, final) => {
        if (line !== undefined && this.#line === line) this.#lost(why, final);
      },
    };
    try {
      line = await this.#options.open(events, dial.signal);
    } catch (error) {
      if (this.#dial === dial) this.#failed(this.#options.failureOf(error));
      return;
    }
    if (this.#dial !== dial) {
      line.close();
      return;
    }
    this.#dial = undefined;
    this.#line = line;
    this.#redial.opened(this.#options.now());
    line.credit(CREDIT);
    for (const mailbox of new Set([...this.#users.values()].map((user) => user.mailbox))) line.watch(mailbox);
    for (const user of [...this.#users.values()]) user.onLine(line);
    this.#ask();
  }

  #failed({ why, final }: DialFailure): void {
    this.#dial = undefined;
    if (final) this.#refused(why);
    else if (this.#redial.failed(this.#options.now()) === "given up") this.#tellDown(why, false);
    this.#setTimer();
  }

  #lost(why: string, final: boolean): void {
    this.#line = undefined;
    this.#presences.clear();
    this.#turns.lost();
    if (final) {
      this.#refused(why);
      return;
    }
    this.#redial.lost(this.#options.now());
    for (const user of [...this.#users.values()]) user.onLost();
    this.#setTimer();
  }

  #refused(why: string): void {
    this.#refusal = why;
    this.#redial.refused();
    this.#tellDown(why, true);
  }

  #tellDown(why: string, final: boolean): void {
    for (const user of [...this.#users.values()]) user.onDown(why, final);
  }

  #setTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const due = this.#redial.nextWakeMs;
    if (due === undefined || this.#users.size === 0) return;
    const waitMs = Math.max(0, due - this.#options.now());
    this.#timer = setTimeout(() => {
      if (this.#redial.wake(this.#options.now()) === "dial") void this.#open();
      else this.#setTimer();
    }, waitMs).unref();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    clearInterval(this.#drawTimer);
    this.#timer = undefined;
    this.#drawTimer = undefined;
    this.#redial.stop();
    this.#dial?.abort();
    this.#dial = undefined;
    this.#presences.clear();
    this.#held.clear();
    this.#turns.clear();
    const line = this.#line;
    this.#line = undefined;
    line?.close();
  }

  // ---- what comes

  #message(message: ReceivedMessage): void {
    const user = this.#userOf(message.correlationId);
    // An answer to a call that nobody knows any more, of an earlier life perhaps, or from a mailbox that was not asked.
    if (user === undefined || user.mailbox !== message.from) this.acknowledge(message);
    else if (message.correlationId !== undefined && this.#held.has(message.correlationId)) {
      // It was handed out again while it is drawn: this is the one to acknowledge now.
      this.#held.set(message.correlationId, message);
      this.#line?.credit(1);
    } else user.onReply(message);
  }

  #live(frame: ReceivedLive): void {
    const user = this.#userOf(frame.correlationId);
    if (user !== undefined && user.mailbox === frame.from) user.onLive(frame);
  }

  #presence(presence: MailboxPresence): void {
    const { mailbox } = presence;
    this.#presences.set(mailbox, presence);
    for (const user of [...this.#users.values()]) if (user.mailbox === mailbox) user.onPresence(presence);
  }

  #userOf(id: string | undefined): MailboxUser | undefined {
    if (id === undefined) return undefined;
    return this.#users.get(id.slice(0, id.lastIndexOf("-"))) ?? this.#expected.get(id);
  }
}
