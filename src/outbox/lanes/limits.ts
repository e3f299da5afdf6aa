// The bounds of the outbox, each with its reason.

import type { BackoffLimits } from "../../runtime/backoff.js";
import { KIB, MIB } from "../../runtime/sizes.js";

const SECOND_MS = 1_000;
const DAY_MS = 24 * 60 * 60 * SECOND_MS;

/**
 * A machine behind a mailbox keeps in its journal what it was sent for so long, and a write that may have happened is
 * repeated no longer. Its journal has room for 400,000 calls: a hundred writes a second for an hour.
 */
export const MESSAGE_LIFE_MS = 3_600_000;

/** One principal holds at most this part of what may wait, so that one busy agent does not take the room of all others. */
export const SHARE_OF_PRINCIPAL = 0.5;
/** The writes to one server are at most this part: one that is away for long leaves room for the others. */
export const SHARE_OF_SERVER = 0.75;

/** A larger call is refused: it would fill the outbox of all others with a few writes. */
export const MAX_MESSAGE_BYTES = 4 * MIB;

/**
 * A larger result reaches the agent that waits for it, and its receipt says that it is not kept. It is what is held of a reply at all:
 * larger ones pass as streams, which are read once and in pieces.
 */
export const MAX_KEPT_RESULT_BYTES = 2 * MIB;
/** Where several gateways share an engine, what they keep is in their memory: each of 64 partitions has bounds of its own. */
export const MAX_SHARED_RESULT_BYTES = 256 * KIB;

/** Ended receipts: as long as somebody may still ask, and no more of one principal than a list can show. */
export const ENDED_MS = 7 * DAY_MS;
export const MAX_ENDED_A_PRINCIPAL = 10_000;
/** What ended receipts keep beside themselves (results, and texts of what was not done): a quarter of what the state has. */
export const MAX_ENDED_BYTES = 256 * MIB;
/** Those of one principal keep at most this: its oldest results go first, and receipts only where no result is left. */
export const MAX_ENDED_BYTES_A_PRINCIPAL = MAX_ENDED_BYTES / 4;

/** After how long an agent gets a receipt in place of a result: Claude Code and opencode give a silent call up after 60 s. */
export const ANSWER_MS = 20 * SECOND_MS;
/** How long the disk may take for the first commit. Together with ANSWER_MS it stays under 50 s. */
export const COMMIT_MS = 25 * SECOND_MS;
/** How long an engine may take for it, which is tried for 25 s: so it is the engine that says what it knows of the commit. */
export const ENGINE_COMMIT_MS = 28 * SECOND_MS;

/** The waits between tries of one lane, or of a server that is away. */
export const RETRY_BACKOFF: BackoffLimits = { baseMs: 500, maxMs: 30 * SECOND_MS };
/** But no wait for one that is not there is longer than it has been away, or than this: what is back soon is found soon. */
export const SHORT_WAIT_MS = SECOND_MS;
/** A server may ask to be left alone, but not for longer than a person would wait before looking into it. */
export const MAX_RETRY_AFTER_MS = 60 * 60 * SECOND_MS;
/** What is held for something that may change by itself (a quarantine, a login) is looked at again this often. */
export const HELD_LOOK_MS = 30 * SECOND_MS;
/** A server is asked at least so long whether a write took effect whose time is over: it may be starting anew. */
export const ASK_MS = 10 * 60 * SECOND_MS;
/** "409" on a repeat says that the first may still run: it is asked again so often, then its outcome is unknown. */
export const MAX_CONFLICTS = 5;

/** Deliveries to one server at a time, in all its lanes: a server that is just back is not flooded. */
export const MAX_SENDS_A_SERVER = 64;
/** Calls that wait for one write: repeats of one key by clients that retry. The next gets its receipt at once. */
export const MAX_WAITERS = 8;

/** The longest sleep of the driver's timer: a machine that slept is noticed soon after. */
export const LONGEST_SLEEP_MS = 1_000;
/** Ended receipts that one sweep forgets; the next goes on. */
export const FORGOTTEN_A_SWEEP = 1_000;
/** How often ended receipts are looked through for those whose time is over. */
export const SWEEP_MS = 60 * SECOND_MS;
/** What could not be written down is written again after this time. */
export const REWRITE_MS = SECOND_MS;

/**
 * Ended writes that are taken from the disk in one commit: one by one, each commit would touch three more places of the store.
 * They are a few hundred bytes each, and a start that finds them again forgets them again.
 */
export const FORGOTTEN_AT_ONCE = 64;
