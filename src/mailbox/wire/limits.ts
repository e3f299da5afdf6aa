// The bounds of what is said to a broker, each with its reason. What a mailbox holds has bounds of its own.

import { KIB, MIB } from "../../runtime/sizes.js";

/** No frame is larger: one peer's message holds up the others of its connection for no longer than this takes. */
export const MAX_FRAME_BYTES = 1 * MIB;
/**
 * Members and elements in a frame, at all depths: what a body may have over HTTP, and what stands around it here. More takes longer to
 * be parsed than all others of a broker should wait.
 */
export const MAX_FRAME_VALUES = 201_000;
/** Different names of members: each costs as much as ten values. No reply that goes in one frame has so many. */
export const MAX_FRAME_NAMES = 40_000;
/** Ids are opaque: long enough for anybody's, short enough to be kept for each message. */
export const MAX_ID_CHARS = 128;
export const MAX_ID_BYTES = 512;
/** Kinds are words of programs. */
export const MAX_KIND_CHARS = 64;
/** Why a message was given back: a sentence for its sender and the operator. What is longer is cut. */
export const MAX_REASON_CHARS = 1_000;
/** Kinds that one subscription names. */
export const MAX_SUBSCRIBED_KINDS = 16;
/** Messages that one `extend` or `ack` names: all that a connection can hold. */
export const MAX_EXTENDED = 1_000;

/** From the upgrade to `hello`: whoever is slower holds a place for nothing. */
export const HELLO_MS = 5_000;

/**
 * A sign of life is asked for this often at both ends, and who gives none until the next time is gone: a half-open peer is
 * noticed within two of them, which is no longer than a lease.
 */
export const BEAT_MS = 15_000;

/** What a peer that grants no credit may hold unacknowledged. */
export const BARE_WINDOW = 16;
/** What one connection may hold at all. */
export const MAX_WINDOW = 1_000;
/** Deliveries of one connection that are on their way to the disk: as many as it can have handed out. */
export const MAX_UNDER_WAY = 1_000;

/** A live frame: a piece of 64 KiB in base64, and what wraps it. A small frame waits behind no more of it than that. */
export const MAX_LIVE_BYTES = 96 * KIB;
/** What may wait to be written to whoever a live frame is for: past it the frame is dropped, and nothing piles up. */
export const MAX_LIVE_WAITING_BYTES = 1 * MIB;
/** Mailboxes that one connection watches: a gateway has one for each machine whose tools it uses. */
export const MAX_WATCHED = 64;
