// The terms in which a mailbox's queue is spoken with: what it is told of messages and consumers, and what it tells.

import type { NoSharedRoom } from "../../runtime/memory/shared-room.js";

export interface QueueLimits {
  /** How long a message is a consumer's before it must say that it is still at it. */
  readonly leaseMs: number;
  /** Leases that ran out, and those that were given back as failed, until a message is a dead letter. */
  readonly maxFailures: number;
  readonly maxMessages: number;
  readonly maxBytes: number;
  /** Kinds of messages at a time, half of them new ones of one sender: each is kept apart, and a consumer of all looks at each. */
  readonly maxKinds: number;
  /** The room that is kept for one reply. A larger one has to find the rest. */
  readonly replyBytes: number;
}

/** A message as the queue knows it. */
export interface QueuedMessage {
  /** Its place in the store: the order in which messages came. */
  readonly sequence: number;
  /** The id that its sender gave it. */
  readonly id: string;
  /** The id of its sender's token, by which turns are taken and shares are counted. */
  readonly sender: string;
  readonly kind: string;
  readonly bytes: number;
  /** After this it is not handed out any more. */
  readonly endMs: number;
  /** Whom the store has it down for: it was handed out, or was about to be. */
  readonly bound: Binding | undefined;
  /** The only journal that may have it; undefined is any. */
  readonly only?: string | undefined;
}

/** What is stored of whom a message was handed to: a journal, or somebody without one. */
export interface Binding {
  readonly journal: string | undefined;
}

export interface Consumer {
  /** The kinds that it asked for; undefined is all. */
  readonly kinds: ReadonlySet<string> | undefined;
  /** Where it writes down what it has begun, if anywhere. What was handed to a journal goes back to that one only. */
  readonly journal: string | undefined;
  /** How many it may hold at a time. */
  readonly window: number;
  /** It names messages by their ids alone: two of one id, from two senders, are not handed to it at a time. */
  readonly knowsIdsOnly: boolean;
}

export interface HandOut {
  readonly consumer: Consumer;
  readonly message: QueuedMessage;
  /** It was handed out before. */
  readonly isRepeat: boolean;
  /** The store has to know that before it leaves. */
  readonly bindTo: Binding | undefined;
}

/** A message that ended without being finished. `dropped`: by the operator. */
export interface Ended {
  readonly message: QueuedMessage;
  readonly why: "expired" | "failed" | "dropped";
  /** It was handed out and not given back unstarted: it may have had its effect. */
  readonly mayHaveRun: boolean;
  /** Whoever had it last said that it may run twice. */
  readonly isRepeatable: boolean;
  /** What the last consumer that gave it back as failed said. */
  readonly reason: string | undefined;
}

/** Why there is no room, as it is told: `messages` and `bytes` are the mailbox's, `share` the sender's half of them, `own-kinds` of the kinds; the rest is of all mailboxes. */
export type NoRoom = "messages" | "bytes" | "share" | "kinds" | "own-kinds" | NoSharedRoom;

export type Cancelled =
  /** It was never handed out, or was given back unstarted, and now never will be. */
  | { readonly was: "waiting"; readonly message: QueuedMessage }
  /** A consumer has it, or had it and is away. */
  | { readonly was: "handed-out"; readonly consumer: Consumer | undefined }
  | { readonly was: "unknown" };

/** A message as whoever looks into the queue sees it; `returned` was handed out, and nobody has it now. */
export interface StoredMessage {
  readonly message: QueuedMessage;
  readonly state: "waiting" | "leased" | "returned";
  readonly failures: number;
}

/** Handed to somebody, and free for anybody. */
export const ANYBODY: Binding = { journal: undefined };

/** Ids are free text without zero bytes. */
export function keyOf(sender: string, id: string): string {
  return `${sender}\0${id}`;
}
