// The bounds of both ends of an executor's connection, each with its reason.

export const KIB = 1024;
export const MIB = 1024 * KIB;

/** Requests in flight on one connection. A thousand open streams is a busy gateway; each costs a socket at the executor. */
export const MAX_REQUESTS = 2_048;

/** Deltas that wait for their reader, with a peer that knows no credit: the seed's number. One more is an overflow. */
export const MAX_QUEUED_DELTAS = 256;

/** Bytes that wait for readers, all streams of one connection together. More is an overflow, or no more credit. */
export const MAX_QUEUED_BYTES = 64 * MIB;

/** What a stream may send before it hears of its reader: a small answer is whole within it, and a thousand of them fit. */
export const FIRST_WINDOW_BYTES = 64 * KIB;

/** What a stream may have unread at most: 8 MB a second over a round trip of 120 ms. */
export const LARGEST_WINDOW_BYTES = 1 * MIB;

/** Largest piece of a body in one message, as the seed has it. */
export const MAX_DELTA_BYTES = 1 * MIB;

/** A body that travels in one message: it is in memory at both ends, several times over. Streams have no need of it. */
export const MAX_WHOLE_BODY_BYTES = 32 * MIB;

/** A body that is streamed. Whoever moves more has better ways. */
export const MAX_STREAMED_BODY_BYTES = 16 * 1024 * MIB;

/** The largest message: a whole body in base64, and room for headers. */
export const MAX_MESSAGE_BYTES = Math.ceil((MAX_WHOLE_BODY_BYTES * 4) / 3) + 1 * MIB;

/** Headers of a request or an answer, names and values together; as much as the gateway takes from any server. */
export const MAX_HEADER_BYTES = 64 * KIB;
export const MAX_HEADERS = 256;
export const MAX_URL_CHARS = 16 * KIB;

/** What is sent and not yet acknowledged, or not yet written: beyond it nobody reads more from the network. */
export const MAX_UNACKED_BYTES = 8 * MIB;

/** An acknowledgement goes out after so many bytes or messages: seldom enough to cost nothing. */
export const ACK_BYTES = 256 * KIB;
export const ACK_MESSAGES = 64;

/** How long a conversation without a socket is kept for its peer to come back: a restarted router, a changed network. */
export const RETENTION_MS = 60_000;

/** Conversations without a socket that an executor keeps. */
export const MAX_RETAINED_SESSIONS = 64;

/** Sockets at an executor's listener. */
export const MAX_CONNECTIONS = 256;

/** From the upgrade to `initialized`. */
export const HANDSHAKE_MS = 10_000;

/** A sign of life is asked for this often, and a peer that gave none for three times as long is gone. */
export const PING_MS = 15_000;
export const SILENCE_MS = 45_000;

/** A request that brings no byte for so long is ended, where nobody set a shorter time: event streams send comments. */
export const IDLE_REQUEST_MS = 60 * 60_000;

/** Redirects that are followed: as browsers do. */
export const MAX_REDIRECTS = 10;
