// What the operator is told of mailboxes: counts, ids and times, and never what a message says.

export interface MailboxSummary {
  readonly mailbox: string;
  /** Messages that nobody has now: never handed out, or given back. */
  readonly waiting: number;
  /** Messages that somebody is at. */
  readonly leased: number;
  /** Dead letters: messages that failed too often. */
  readonly dead: number;
  readonly bytes: number;
  /** When its oldest message came. */
  readonly oldestAt: string | undefined;
  /** Connections that take from it. */
  readonly connections: number;
  /** Since when somebody takes requests from it, or nobody does; undefined where nobody ever did. */
  readonly since: string | undefined;
}

/**
 * `returned`: it was handed out and is not finished; its consumer is away, or gave it back. It waits for that consumer's
 * journal, or for anybody where there is none.
 */
export type MessageState = "waiting" | "leased" | "returned";

export interface MessageSummary {
  readonly id: string;
  readonly from: string;
  readonly kind: string;
  readonly bytes: number;
  readonly at: string;
  /** It ends by itself after this. */
  readonly leftMs: number;
  readonly state: MessageState;
  readonly failures: number;
}

export interface DeadLetterSummary {
  readonly id: string;
  readonly from: string;
  readonly kind: string;
  readonly bytes: number;
  readonly at: string;
  readonly failedAt: string;
  readonly reason: string;
}

/** A part of a long list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** How many there are in all. */
  readonly total: number;
}

export interface MailboxesStatus {
  /** Mailboxes with something in them, or with somebody who takes from them. */
  readonly inUse: number;
  readonly waiting: number;
  readonly leased: number;
  readonly dead: number;
  /** Of sharers, workers and others. */
  readonly connections: number;
  /** The mailbox whose oldest message has waited longest. */
  readonly oldest: { readonly mailbox: string; readonly at: string } | undefined;
  /** The fullest ones. */
  readonly mailboxes: readonly MailboxSummary[];
}
