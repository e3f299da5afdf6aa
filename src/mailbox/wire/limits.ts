// The bounds of what is said to a broker, each with its reason. What a mailbox holds has bounds of its own.

import { MIB } from "../../runtime/sizes.js";

/** No frame is larger: one peer's message holds up the others of its connection for no longer than this takes. */
export const MAX_FRAME_BYTES = 1 * MIB;
/** Ids are opaque: long enough for anybody's, short enough to be kept for each message. */
export const MAX_ID_CHARS = 128;
export const MAX_ID_BYTES = 512;
/** Kinds are words of programs. */
export const MAX_KIND_CHARS = 64;
/** Kinds that one subscription names. */
export const MAX_SUBSCRIBED_KINDS = 16;
/** Messages that one `extend` names: all that a connection can hold. */
export const MAX_EXTENDED = 1_000;

/** From the upgrade to `hello`: whoever is slower holds a place for nothing. */
export const HELLO_MS = 5_000;

/** What a peer that grants no credit may hold unacknowledged. */
export const BARE_WINDOW = 16;
/** What one connection may hold at all. */
export const MAX_WINDOW = 1_000;
