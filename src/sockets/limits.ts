// The bounds of a WebSocket, of the conversation on it and of the streams in that, each with its reason. What travels
// in the messages has bounds of its own.

import { KIB, MIB } from "../runtime/sizes.js";

/** The largest message: a body of 32 MiB in base64, and 1 MiB for all that goes with it. */
export const MAX_MESSAGE_BYTES = Math.ceil((32 * MIB * 4) / 3) + 1 * MIB;

/** Of messages that are not whole yet, all connections of one token together: two of the largest are being sent at a time. */
export const MAX_HALF_READ_BYTES = 2 * MAX_MESSAGE_BYTES;

/** What is sent and not yet acknowledged, or not yet written: beyond it nobody reads more from the network. */
export const MAX_UNACKED_BYTES = 8 * MIB;

/** An acknowledgement goes out after so many bytes or messages: seldom enough to cost nothing. */
export const ACK_BYTES = 256 * KIB;
export const ACK_MESSAGES = 64;

/**
 * Bytes that wait for readers, all streams of one connection together. More is an overflow, or no more credit; but a
 * stream that has none is given its first window all the same, so that it never waits for the readers of others.
 */
export const MAX_QUEUED_BYTES = 64 * MIB;

/**
 * What may pile up after a connection became full: bodies that were being collected, in base64, and the answers of
 * requests that were under way. A peer for which more piles up asks, and neither reads nor acknowledges.
 */
export const MAX_BACKLOG_BYTES = MAX_UNACKED_BYTES + 2 * MAX_QUEUED_BYTES;

/** What a message costs there besides its bytes, in the ring of unacknowledged ones and in the socket's queue: most of it, if it is short. */
export const MESSAGE_COST_BYTES = 1 * KIB;

/**
 * What a stream may send before it hears of its reader: a small answer is whole within it, and a thousand of them fit.
 * It is agreed on when the conversation begins, so it cannot be less for those who come when there are many.
 */
export const FIRST_WINDOW_BYTES = 64 * KIB;

/** What a stream may have unread at most: 8 MB a second over a round trip of 120 ms. */
export const LARGEST_WINDOW_BYTES = 1 * MIB;

/** Sockets at one listener. */
export const MAX_CONNECTIONS = 256;

/** From the upgrade to the first message that counts. */
export const HANDSHAKE_MS = 10_000;

/** A sign of life is asked for this often, and a peer that gave none for three times as long is gone. */
export const PING_MS = 15_000;
export const SILENCE_MS = 45_000;
