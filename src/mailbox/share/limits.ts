// The bounds of a sharer, each with its reason.

import { KIB } from "../../runtime/sizes.js";

/** Calls at once, where the config says nothing of it. Others wait in the broker, where they outlive this process. */
export const CALLS_AT_ONCE = 64;

/** A lease of the broker lasts 30 s: it is extended twice before it ends. */
export const EXTEND_MS = 10_000;

/** A tool is started only under a lease that was granted or confirmed within the last third of its length. */
export const FRESH_LEASE_MS = 10_000;

/** How often leases and deadlines are looked at: a deadline is met to a quarter of a second. */
export const TICK_MS = 250;

/** Four ticks that did not come: this machine slept, or had no time for us, and what is read now may have waited. */
export const SLEPT_MS = 1_000;

/** How often entries of the journal are forgotten whose time is over. */
export const SWEEP_MS = 60_000;

/** A larger reply is drawn by its worker in pieces: it would hold up the small ones of the same connection. */
export const LARGE_BYTES = 256 * KIB;

/** subscriptions/listen of all workers: each agent behind one has one or two. The oldest ends for a new one. */
export const MAX_LISTENS = 4_096;

/** How long a message lives that does not say it: as long as the broker lets it. */
export const DEFAULT_LEFT_MS = 60 * 60_000;

/** The last answers have so long to leave when a sharer stops. */
export const FLUSH_MS = 1_000;
