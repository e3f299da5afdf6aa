// The bounds of requests and answers at both ends of an executor's connection, each with its reason. Those of the
// connection itself are in sockets/limits.ts.

import { KIB, MIB } from "../../runtime/sizes.js";

/**
 * Requests in flight on one connection. A thousand open streams is a busy gateway; each costs a socket at the executor.
 */
export const MAX_REQUESTS = 2_048;

/** Deltas that wait for their reader, from a peer without credit: as many as Codex keeps. One more is an overflow. */
export const MAX_QUEUED_DELTAS = 256;

/** The largest piece of a body in one message, as the exec-server has it. */
export const MAX_DELTA_BYTES = 1 * MIB;

/** A body that travels in one message: it is in memory at both ends, several times over. Streams do not need that. */
export const MAX_WHOLE_BODY_BYTES = 32 * MIB;

/** A body that is streamed. Whoever moves more has better ways. */
export const MAX_STREAMED_BODY_BYTES = 16 * 1024 * MIB;

/** Headers of a request or an answer, names and values together; as much as the gateway takes from any server. */
export const MAX_HEADER_BYTES = 64 * KIB;
export const MAX_HEADERS = 256;
export const MAX_URL_CHARS = 16 * KIB;

/**
 * How long a conversation without a socket is kept for its peer to come back: a restarted router, a changed network.
 */
export const RETENTION_MS = 60_000;

/** Conversations without a socket that an executor keeps. */
export const MAX_RETAINED_SESSIONS = 64;

/** What is under way at an executor that is told to stop has so long to end: as long as a gateway's own stop takes. */
export const STOP_MS = 30_000;

/** A request that brings no byte for so long is ended, where nobody set a shorter time: event streams send comments. */
export const IDLE_REQUEST_MS = 60 * 60_000;

/** Redirects that are followed; browsers follow about as many. */
export const MAX_REDIRECTS = 10;
