// The endpoint's limits, each with its reason. Options may override any of them; nothing else in here is a bound.

import { KIB, MIB } from "../../runtime/sizes.js";

export interface EndpointLimits {
  readonly bodyBytes: number;
  readonly batchMessages: number;
  readonly depth: number;
  readonly values: number;
  readonly names: number;
  readonly headerMs: number;
  readonly bodyMs: number;
  readonly connections: number;
  readonly keepAliveMs: number;
  readonly headerBytes: number;
  readonly outputBytes: number;
  readonly streamedBytes: number;
  readonly stallMs: number;
  readonly sessions: number;
  readonly sessionIdleMs: number;
  readonly sealedMs: number;
  readonly endedSessions: number;
  readonly endedPerPrincipal: number;
  readonly callsPerSession: number;
  readonly asksPerSession: number;
  readonly askMs: number;
  readonly goneMs: number;
  readonly parked: number;
  readonly parkedPerPrincipal: number;
  readonly parkedMs: number;
  readonly gatherMs: number;
  readonly listensPerPrincipal: number;
  readonly listenUris: number;
  readonly listenAckMs: number;
  readonly listenersPerSession: number;
  readonly streamsPerSession: number;
  readonly slowReaderBytes: number;
  readonly replayEvents: number;
  readonly replayBytes: number;
  readonly replayKeepMs: number;
  readonly pendingMessages: number;
  readonly pendingBytes: number;
  readonly retainedBytes: number;
  readonly quietMs: number;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

export const ENDPOINT_LIMITS: EndpointLimits = {
  /** Room for a picture or a document as base64 in one call; twice what clients were seen to send. */
  bodyBytes: 16 * MIB,
  /** Batches exist in 2025-03-26 only, and real clients put a handful into one. */
  batchMessages: 100,
  /** Schemas and arguments nest to about 20; deeper bodies are made to exhaust some parser's stack. */
  depth: 128,
  /** Members and elements of one body, at all depths: parsing more takes longer than everybody else should wait. */
  values: 200_000,
  /** Different names of members in one body: each costs V8 as much as ten values. Rows of a table share theirs. */
  names: 20_000,
  /** A client on a bad line sends its headers within a second or two; who needs longer holds a connection hostage. */
  headerMs: 10 * SECOND,
  /** 16 MiB at 2 Mbit/s. */
  bodyMs: 70 * SECOND,
  /** Ten thousand idle streams, and room for the requests beside them. */
  connections: 12_000,
  /** Longer than the pools of common clients and proxies (60 s), so that they close first and no request is lost. */
  keepAliveMs: 75 * SECOND,
  /** A sealed session id takes up to 4 KiB, tokens up to 8. */
  headerBytes: 32 * KIB,
  /** One reply that is held in memory as a whole; larger ones come as streams. */
  outputBytes: 64 * MIB,
  /** A reply that is passed on as a stream costs no memory; this only ends one that never ends. */
  streamedBytes: 4096 * MIB,
  /** A reader that takes no byte of a large reply for this long is gone, or means us harm. */
  stallMs: 2 * MINUTE,
  /** Sessions in memory, some kilobytes each; further ones stay usable, because their ids are sealed. */
  sessions: 10_000,
  /** Most clients never say goodbye; a working day and a night are enough for those that sleep. */
  sessionIdleMs: 24 * HOUR,
  /** How old a sealed id may be that is restored from itself alone. */
  sealedMs: 30 * 24 * HOUR,
  /** Ends of sessions that are kept, about 200 bytes each: as many as may be in memory twice over. */
  endedSessions: 20_000,
  /**
   * Of one principal. Where there are more, sessions of its own that are as old as the oldest end and were never used
   * are taken for ended too: they begin anew.
   */
  endedPerPrincipal: 2_000,
  /** Calls in flight in one session; agents were seen to overlap a few dozen. */
  callsPerSession: 1000,
  /** Questions of servers that wait for one agent: people answer them one after another. */
  asksPerSession: 64,
  /** A person needs minutes to answer an elicitation, and some never do. */
  askMs: 10 * MINUTE,
  /**
   * An agent that no stream leads to for so long has gone: clients whose connection broke are back within seconds. What
   * servers ask it has no answer then, and a call whose reply could reach nobody is cancelled.
   */
  goneMs: 30 * SECOND,
  /** Calls of modern agents that wait for their retry, each with a call in flight at a server. */
  parked: 1000,
  /** One principal may be many agents; what it parks must leave room for the others. */
  parkedPerPrincipal: 100,
  /** As askMs: a person has to answer. An agent that never comes back costs a server no more than this. */
  parkedMs: 10 * MINUTE,
  /** Questions that a server asks together arrive within a few milliseconds, and then go out as one round. */
  gatherMs: 20,
  /** Open subscriptions/listen of one principal at one path: an agent holds one or two, and many may share a token. */
  listensPerPrincipal: 256,
  /** Resources that one subscriptions/listen may name; an editor with a project open stays below. */
  listenUris: 1000,
  /** How long servers may take to answer a subscription before it is acknowledged without them. */
  listenAckMs: 5 * SECOND,
  /** Open GET streams of one session: clients hold one, mcp-remote two, reconnecting ones briefly a few more. */
  listenersPerSession: 8,
  /** Event streams of one session that can be resumed, open ones included. */
  streamsPerSession: 64,
  /**
   * What may wait in memory for one reader: a burst of five screenshots of 3 MiB, which a reader that keeps up has taken in
   * a moment. Notifications that do not fit beside it are left out, which is said. Readers together have `heldBytes`.
   */
  slowReaderBytes: 16 * MIB,
  /** Progress at ten a second for half a minute, which is how long a reconnect takes at most. */
  replayEvents: 300,
  /** Per stream: a large tool result and its progress. */
  replayBytes: 4 * MIB,
  /** How long a finished stream waits for a client that did not get its end. */
  replayKeepMs: 5 * MINUTE,
  /** What is kept for a session that has no GET stream open at the moment. */
  pendingMessages: 64,
  pendingBytes: 256 * KIB,
  /** All replay buffers and pending messages of all sessions together; the least recently written go first. */
  retainedBytes: 64 * MIB,
  /** Without an answer for this long a comment is sent: proxies cut silent connections after 30 to 60 s. */
  quietMs: 15 * SECOND,
};
