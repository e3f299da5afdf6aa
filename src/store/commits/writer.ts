// Gets commits into the stream: one at a time on each subject, what waits meanwhile together in the next ones, in turns between those
// whose it is. A try that nobody answers is made again, unchanged, for longer than an election lasts; whether it was stored is
// then looked up. Past the limit its outcome is unknown, and said so.

import type { TextVault } from "../../runtime/seal.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import { type Owned, TurnQueue } from "../../runtime/turns/turn-queue.js";
import { SMALL_WORK_BYTES, turns } from "../../runtime/turns/turns.js";
import { waitText } from "../../runtime/words/amounts.js";
import { StoreError } from "../store-error.js";
import {
  type Commit,
  type CommitWrite,
  decodeCommit,
  encodeCommit,
  findCommit,
  MAX_ANCESTORS,
  type UnreadableCommit,
} from "./commit.js";
import { type CommitRoom, MAX_PENDING_BYTES } from "./room.js";
import { type CommitHead, type CommitState, MAX_WRITES, sizeOf } from "./state.js";
import type { CommitStream, TryPace } from "./stream.js";

/** Elections of 4 to 15 seconds were measured; the engine remembers ids for two minutes. */
const LIMIT_MS = 25_000;
/** Between two tries, spread out: all gateways lose the leader at once. */
const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 500;
/** The client holds what it sends without a bound of its own: so many tries are on their way at once. */
const MAX_IN_FLIGHT = 64;
/** One commit of several requests, so that the first of them does not wait for the last, and little is kept for one of them. */
const MAX_GROUP_BYTES = 64 * KIB;
/** Counted for each request beside its writes. */
const REQUEST_OVERHEAD = 256;

export interface Condition {
  readonly map: string;
  readonly key: string;
  /** Undefined where the key has no value. */
  readonly revision: number | undefined;
}

export interface WriteRequest extends Owned {
  readonly writes: readonly CommitWrite[];
  readonly condition: Condition | undefined;
  /** Stored at this place of the stream; its appends are counted from `firstAppend` on. */
  readonly stored: (sequence: number, firstAppend: number) => void;
  /** The condition does not hold; nothing was written. */
  readonly refused: () => void;
  readonly failed: (error: StoreError) => void;
}

interface Queued extends WriteRequest {
  readonly bytes: number;
  /** When it was submitted. */
  readonly sinceMs: number;
}

/** What came of one commit. */
type Outcome =
  | { readonly kind: "stored"; readonly sequence: number }
  /** Somebody else wrote to the subject; ours was not stored. */
  | { readonly kind: "overtaken" }
  | { readonly kind: "failed"; readonly error: StoreError };

export interface WriterOptions {
  readonly stream: CommitStream;
  readonly state: CommitState;
  readonly pace: TryPace;
  /** Of this opening of the store alone: ids of commits begin with it. */
  readonly writer: string;
  /** Words for errors: which store. */
  readonly where: string;
  /** Seals the values. Undefined where they are in clear: the sealing key itself, and tests. */
  readonly vault: TextVault | undefined;
  /** What it shares with the other writers of this process. */
  readonly room: CommitRoom;
  /** After each commit of ours. */
  readonly committed: () => void;
  readonly warn?: ((text: string) => void) | undefined;
}

export class CommitWriter {
  readonly #options: WriterOptions;
  readonly #queues = new Map<string, TurnQueue<Queued>>();
  #inFlight = 0;
  /** Those that no answer has come for, by their ids. */
  readonly #unanswered = new Map<string, Commit>();
  readonly #waiting: (() => void)[] = [];
  readonly #idle: (() => void)[] = [];
  #count = 0;
  #isExclusive = false;
  #isLossTold = false;
  #fenced: StoreError | undefined;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  submit(subject: string, request: WriteRequest): void {
    const bytes = request.writes.reduce((sum, write) => sum + sizeOf(write), REQUEST_OVERHEAD);
    if (this.#fenced !== undefined) {
      request.failed(this.#fenced);
      return;
    }
    if (!this.#options.room.take(bytes)) {
      const text = `More than ${MAX_PENDING_BYTES / MIB} MiB wait for the engine, ${this.#options.where} among it; try later.`;
      request.failed(new StoreError("busy", text));
      return;
    }
    const queued = { ...request, bytes, sinceMs: this.#options.pace.now() };
    const known = this.#queues.get(subject);
    const queue = known ?? new TurnQueue<Queued>();
    queue.push(queued);
    if (known !== undefined) return;
    this.#queues.set(subject, queue);
    void this.#run(subject, queue);
  }

  /** From now on another writer on a subject means that this one has lost it, for good. */
  own(): void {
    this.#isExclusive = true;
  }

  /** One of ours whose answer has not come yet: the stream may tell it before. */
  unanswered(id: string | undefined): Commit | undefined {
    return id === undefined ? undefined : this.#unanswered.get(id);
  }

  /** Resolves when nothing is pending. */
  drained(): Promise<void> {
    return this.#queues.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  async #run(subject: string, queue: TurnQueue<Queued>): Promise<void> {
    const { room } = this.#options;
    // What is submitted in this turn of the event loop is one commit.
    await Promise.resolve();
    while (queue.size > 0) {
      await this.#enter();
      const first = queue.shift() as Queued;
      // Before anything is looked at: what was so may not be so afterwards.
      if (first.bytes >= SMALL_WORK_BYTES) await this.#turnOf(first, subject, queue);
      queue.putBack([first]);
      await this.#settle(subject, queue);
      room.left(first.bytes);
      this.#leave();
    }
    this.#queues.delete(subject);
    if (this.#queues.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Waits for the turn of a large one among those of all subjects. What is small and another's does not wait for that. */
  async #turnOf({ bytes, by }: Queued, subject: string, queue: TurnQueue<Queued>): Promise<void> {
    let isIn = false;
    const entered = this.#options.room
      .enter(bytes, by)
      .then(() => turns.wait(bytes))
      .then(() => {
        isIn = true;
      });
    const mayPass = (one: Queued) => one.bytes < SMALL_WORK_BYTES && one.by !== by;
    while (!isIn) {
      if (queue.peek(mayPass) === undefined) await Promise.race([entered, queue.pushed()]);
      else await this.#settle(subject, queue, mayPass);
    }
  }

  /** One commit, until it is stored or has failed. */
  async #settle(subject: string, queue: TurnQueue<Queued>, isChosen?: (one: Queued) => boolean): Promise<void> {
    const { pace, room } = this.#options;
    const deadline = pace.now() + LIMIT_MS;
    for (;;) {
      const group = this.#takeGroup(queue, isChosen);
      if (group.length === 0) return;
      const outcome = await this.#commit(subject, group, deadline);
      if (outcome.kind === "overtaken") {
        // Whether their conditions still hold is seen when they are taken again.
        queue.putBack(group);
        continue;
      }
      let appends = 0;
      for (const request of group) {
        room.giveBack(request.bytes);
        if (outcome.kind === "failed") request.failed(outcome.error);
        else request.stored(outcome.sequence, appends);
        for (const { kind } of request.writes) if (kind === "a") appends++;
      }
      if (outcome.kind === "stored") this.#options.committed();
      return;
    }
  }

  /** What goes into one commit. Refuses those whose condition does not hold now, or who had no turn in time. */
  #takeGroup(queue: TurnQueue<Queued>, isChosen?: (one: Queued) => boolean): Queued[] {
    const { state, stream, pace, where, room } = this.#options;
    const tooLongAgo = pace.now() - LIMIT_MS;
    const limit = Math.min(MAX_GROUP_BYTES, stream.maxBodyBytes / 2);
    const group: Queued[] = [];
    const written = new Set<string>();
    let bytes = 0;
    let writes = 0;
    for (let next = queue.peek(isChosen); next !== undefined; next = queue.peek(isChosen)) {
      if (group.length > 0 && (bytes + next.bytes > limit || writes + next.writes.length > MAX_WRITES)) break;
      const { condition } = next;
      // Else each that waits behind a silent engine would wait for all before it, and for its own tries then.
      if (next.sinceMs < tooLongAgo) {
        queue.shift(isChosen);
        room.giveBack(next.bytes);
        const text = `${where} had no turn for it within ${LIMIT_MS / 1000} s; nothing was written. Try later.`;
        next.failed(new StoreError("away", text));
        continue;
      }
      if (condition !== undefined) {
        // What it compares with is in this very commit: it waits for the next.
        if (written.has(`${condition.map}\0${condition.key}`)) break;
        if (state.map(condition.map).revision(condition.key) !== condition.revision) {
          queue.shift(isChosen);
          room.giveBack(next.bytes);
          next.refused();
          continue;
        }
      }
      queue.shift(isChosen);
      group.push(next);
      bytes += next.bytes;
      writes += next.writes.length;
      for (const { kind, name, key } of next.writes) if (kind === "m") written.add(`${name}\0${key}`);
    }
    return group;
  }

  async #commit(subject: string, group: readonly Queued[], deadline: number): Promise<Outcome> {
    const { state, writer } = this.#options;
    if (this.#fenced !== undefined) return { kind: "failed", error: this.#fenced };
    const head = state.head(subject);
    // The following told of the next owner before we were refused.
    if (this.#isExclusive && !head?.id.startsWith(`${writer}.`)) return { kind: "failed", error: this.#fence() };
    const after = head === undefined ? [] : [[head.id, head.sequence] as const, ...head.after].slice(0, MAX_ANCESTORS);
    const id = `${writer}.${(++this.#count).toString(36)}`;
    const commit: Commit = { id, after, writes: group.flatMap(({ writes }) => writes) };
    this.#unanswered.set(id, commit);
    try {
      return await this.#send(subject, commit, head, deadline);
    } finally {
      this.#unanswered.delete(id);
    }
  }

  async #send(subject: string, commit: Commit, head: CommitHead | undefined, deadline: number): Promise<Outcome> {
    const { stream, state, pace, where, vault } = this.#options;
    const { id } = commit;
    const message = { subject, id, body: encodeCommit(commit, vault), expected: head?.sequence ?? 0 };
    let mayBeStored = false;
    let isBehind = false;
    for (;;) {
      const tried = await stream.publish(message);
      if (tried.kind === "stored") {
        state.apply(commit, subject, tried.sequence, Number.POSITIVE_INFINITY);
        return tried;
      }
      if (tried.kind === "refused")
        return { kind: "failed", error: mayBeStored ? this.#unknown(tried.error) : tried.error };
      if (tried.kind === "silent") mayBeStored = true;
      if (tried.kind === "conflict") {
        const found = await this.#lookUp(subject, commit, head, mayBeStored);
        // A node that led and does not know yet that another does: it is asked again, and not as fast as it answers.
        isBehind = found === "behind";
        if (found !== undefined && found !== "behind") return found;
      }
      if (tried.kind === "unsent" && !mayBeStored) {
        const { retryInMs } = tried;
        const next = retryInMs === undefined ? "" : ` The next try to reach it is in ${waitText(retryInMs)}.`;
        const text = `There is no connection to ${where}; nothing was written.${next}`;
        return { kind: "failed", error: new StoreError("away", text, undefined, retryInMs) };
      }
      const left = deadline - pace.now();
      if (left <= 0) {
        if (tried.kind === "nobody" && !mayBeStored) {
          const text = `${where} has had nobody to store it for ${LIMIT_MS / 1000} s; nothing was written.`;
          return { kind: "failed", error: new StoreError("away", text) };
        }
        if (isBehind && !mayBeStored) return { kind: "failed", error: this.#lost() };
        // A conflict that could not be looked into may be with ourselves.
        return { kind: "failed", error: this.#unknown(undefined) };
      }
      await pace.sleep(PAUSE_MIN_MS + pace.random() * (PAUSE_MAX_MS - PAUSE_MIN_MS));
    }
  }

  /**
   * Another commit is last on the subject, or ours: which. Undefined where nobody answered; "behind" where the last is older than
   * one that was acknowledged to us.
   */
  async #lookUp(
    subject: string,
    commit: Commit,
    head: CommitHead | undefined,
    mayBeStored: boolean,
  ): Promise<Outcome | "behind" | undefined> {
    const { stream, state, vault } = this.#options;
    const answer = await stream.last(subject);
    if (answer === undefined) return undefined;
    const { message } = answer;
    if (message !== undefined && head !== undefined && message.sequence < head.sequence) return "behind";
    let last: Commit | undefined;
    if (message !== undefined) {
      const read = decodeCommit(message.body, vault);
      if (typeof read === "string") {
        // What it was made on cannot be read: ours may be below it.
        const error = unreadable(subject, read);
        return { kind: "failed", error: mayBeStored ? this.#unknown(error) : error };
      }
      last = read;
    }
    const found = findCommit(
      commit.id,
      head?.id,
      last === undefined || message === undefined ? undefined : [last.id, message.sequence],
      last?.after ?? [],
    );
    if (found.kind === "unknown" && last === undefined) {
      // What our base was is gone: so it was a deletion that all had been told of, and nothing was made on it.
      state.emptied(subject);
      return { kind: "overtaken" };
    }
    // Where every try was answered, and refused, ours is not there, however many others came between.
    if (found.kind === "unknown" && mayBeStored) return { kind: "failed", error: this.#unknown(undefined) };
    if (found.kind === "stored") state.apply(commit, subject, found.sequence, Number.POSITIVE_INFINITY);
    if (last !== undefined && message !== undefined) state.apply(last, subject, message.sequence, message.atMs);
    if (found.kind === "stored") return found;
    if (message === undefined) state.emptied(subject);
    if (this.#isExclusive && message !== undefined) return { kind: "failed", error: this.#fence() };
    return { kind: "overtaken" };
  }

  #fence(): StoreError {
    const text = `Another gateway has taken over ${this.#options.where}; this one writes nothing to it any more.`;
    this.#fenced = new StoreError("fenced", text);
    return this.#fenced;
  }

  /** Told once: from then on everything that is written there is refused so. */
  #lost(): StoreError {
    const { where, warn } = this.#options;
    const text =
      `${where} has lost what it had acknowledged, as nats-servers below 2.10.23 may when one of them is killed; nothing was ` +
      "written. Start this gateway again, so that it reads what is left, and upgrade the nats-servers.";
    if (!this.#isLossTold) warn?.(text);
    this.#isLossTold = true;
    return new StoreError("away", text);
  }

  #unknown(cause: unknown): StoreError {
    const text = `${this.#options.where} did not answer for ${LIMIT_MS / 1000} s: whether it was written is unknown. Look before it is made again.`;
    return new StoreError("unknown", text, cause);
  }

  async #enter(): Promise<void> {
    if (this.#inFlight >= MAX_IN_FLIGHT) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#inFlight++;
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#inFlight--;
    else next();
  }
}

function unreadable(subject: string, why: UnreadableCommit): StoreError {
  const what = `What is kept under ${subject}`;
  if (why === "newer")
    return new StoreError("newer", `${what} was written by a newer version of Toolway; update this one.`);
  if (why === "sealed") {
    return new StoreError(
      "corrupt",
      `${what} is sealed under another key, and is left alone: nothing was written. Give all gateways one key, or this one another "prefix".`,
    );
  }
  const text = `${what} is no record of Toolway, and is left alone: nothing was written.`;
  return new StoreError("corrupt", `${text} Remove it, or give Toolway a "prefix" of its own.`);
}
