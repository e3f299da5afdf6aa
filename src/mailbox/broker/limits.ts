// The bounds of a broker and its mailboxes, each with its reason.

import { KIB, MIB } from "../../runtime/sizes.js";
import type { QueueLimits } from "./queue-terms.js";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

export const QUEUE_LIMITS: QueueLimits = {
  // A consumer that works says so three times in it; one that froze is noticed before its callers lose patience.
  leaseMs: 30_000,
  // What failed so often fails for its own sake.
  maxFailures: 5,
  // A night's work of an agent whose tools are away, and no more than one machine can hold for many.
  maxMessages: 10_000,
  maxBytes: 256 * MIB,
  // Programs know a handful.
  maxKinds: 64,
  // A refusal, a small result, or where to draw a large one from.
  replyBytes: 4 * KIB,
};

/** Each costs some memory for as long as it is used. */
export const MAX_MAILBOXES = 10_000;
/** The senders that a mailbox may answer: those of its last messages. */
export const MAX_ANSWERABLE = 10_000;

/** How long a message waits that says nothing of it. */
export const DEFAULT_END_MS = 60 * MINUTE_MS;
/** No message waits longer: after a week nobody remembers what it was for. */
export const MAX_END_MS = 7 * DAY_MS;

/** The last ones of each mailbox, as long as somebody may still look into what went wrong. */
export const MAX_DEAD_LETTERS = 1_000;
export const DEAD_LETTER_MS = 7 * DAY_MS;

/** How often it is looked for dead letters whose time is over: an hour more does no harm to what was kept for a week. */
export const DEAD_SWEEP_MS = 60 * MINUTE_MS;

/** The longest sleep of the broker's timer: a machine that slept is noticed soon after. */
export const LONGEST_WAIT_MS = 1_000;

/** How often a mailbox is looked at that is only kept because its owner may still answer. */
export const IDLE_LOOK_MS = MINUTE_MS;
/** A disk that could not be written is tried again after this. */
export const RETRY_MS = 1_000;
