// An executor: makes HTTP requests for whoever is at the other end of the sockets that it is given, whichever side
// opened them. What it may reach is `destinations`; who may ask is decided before a socket comes here.

import { sleep } from "../../runtime/wait.js";
import { HANDSHAKE_MS } from "../../sockets/limits.js";
import { Close, type Socket } from "../../sockets/socket.js";
import type { Destinations } from "../allow/destinations.js";
import { HttpRequests } from "../http/requests.js";
import { RETENTION_MS } from "../wire/limits.js";
import type { ExecutorLog } from "../wire/types.js";
import { Handshake } from "./handshake.js";
import { ExecutorSessions } from "./session.js";

export interface ExecutorOptions {
  readonly destinations: Destinations;
  /** How long a client that lost its socket may come back. Default: RETENTION_MS. */
  readonly retentionMs?: number | undefined;
  /** Default: HANDSHAKE_MS. */
  readonly handshakeMs?: number | undefined;
  readonly log?: ExecutorLog | undefined;
}

export interface ExecutorCounts {
  readonly sockets: number;
  /** All sessions, those without a socket included. */
  readonly sessions: number;
  /** Those that wait for their client to come back. */
  readonly retained: number;
  /** Requests under way. */
  readonly requests: number;
}

/** A socket that is being served. */
export interface Served {
  /** The id of the session that it carries; undefined before there is one. */
  readonly sessionId: string | undefined;
  /** Resolves when it has ended, with why. */
  readonly closed: Promise<string>;
}

export interface Executor {
  serve(socket: Socket): Served;
  /** Whether a client could still go on with this session. */
  has(sessionId: string): boolean;
  status(): ExecutorCounts;
  /** Takes no new requests, and resolves when those under way have ended, after `ms` at the latest. */
  finish(ms: number): Promise<void>;
  /** Ends all requests and sockets. */
  close(): Promise<void>;
}

/** How often it is looked whether the last request has ended. */
const LOOK_MS = 20;

const SILENT: ExecutorLog = { debug() {}, info() {}, warn() {} };

export function createExecutor(options: ExecutorOptions): Executor {
  const { destinations, retentionMs = RETENTION_MS, handshakeMs = HANDSHAKE_MS, log = SILENT } = options;
  const http = new HttpRequests({ destinations });
  const sessions = new ExecutorSessions({ http, log, retentionMs });
  const sockets = new Map<Socket, Promise<string>>();
  let closing: Promise<void> | undefined;

  const serve = (socket: Socket): Served => {
    let gone: (why: string) => void = () => {};
    const closed = new Promise<string>((resolve) => {
      gone = resolve;
    });
    sockets.set(socket, closed);
    socket.whenGone((why) => {
      sockets.delete(socket);
      gone(why);
    });
    if (closing !== undefined) {
      socket.close(Close.goingAway, "the executor stops");
      return { sessionId: undefined, closed };
    }
    const handshake = new Handshake(socket, sessions, handshakeMs);
    return {
      get sessionId() {
        return handshake.sessionId;
      },
      closed,
    };
  };

  const close = async (): Promise<void> => {
    sessions.close();
    for (const socket of sockets.keys()) socket.close(Close.goingAway, "the executor stops");
    await Promise.all(sockets.values());
    await http.close();
  };

  const finish = async (ms: number): Promise<void> => {
    sessions.stopTaking();
    const until = performance.now() + ms;
    while (sessions.endingRequests > 0 && closing === undefined && performance.now() < until) await sleep(LOOK_MS);
  };

  return {
    serve,
    finish,
    has: (sessionId) => sessions.find(sessionId)?.isLasting === true,
    status: () => ({
      sockets: sockets.size,
      sessions: sessions.size,
      retained: sessions.retained,
      requests: sessions.openRequests,
    }),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}
