// All conversations of an executor: those that have a socket, and those that are kept for theirs to come back, for a
// bounded time and in bounded number.

import { randomUUID } from "node:crypto";
import { Close } from "../../sockets/socket.js";
import type { HttpRequests } from "../http/requests.js";
import { MAX_RETAINED_SESSIONS } from "../wire/limits.js";
import type { ExecutorLog } from "../wire/types.js";
import { ExecutorSession, type SessionOwner } from "./session.js";

export interface ExecutorSessionsOptions {
  readonly http: HttpRequests;
  readonly log: ExecutorLog;
  readonly retentionMs: number;
}

export class ExecutorSessions implements SessionOwner {
  readonly http: HttpRequests;
  readonly log: ExecutorLog;
  readonly retentionMs: number;
  readonly #byId = new Map<string, ExecutorSession>();
  /** Those without a socket, each with the timer that ends it; the one that has waited longest comes first. */
  readonly #retained = new Map<ExecutorSession, NodeJS.Timeout>();

  constructor(options: ExecutorSessionsOptions) {
    this.http = options.http;
    this.log = options.log;
    this.retentionMs = options.retentionMs;
  }

  isStopping = false;

  get size(): number {
    return this.#byId.size;
  }

  get retained(): number {
    return this.#retained.size;
  }

  get openRequests(): number {
    let open = 0;
    for (const session of this.#byId.values()) open += session.openRequests;
    return open;
  }

  get endingRequests(): number {
    let ending = 0;
    for (const session of this.#byId.values()) ending += session.endingRequests;
    return ending;
  }

  /** Nothing more is taken from here on; the clients are told. */
  stopTaking(): void {
    this.isStopping = true;
    for (const session of this.#byId.values()) session.tellStopping();
  }

  /** `window` is what the client offered; undefined where it does not know our extensions. */
  create(window: number | undefined): ExecutorSession {
    const session = new ExecutorSession(randomUUID(), window, this);
    this.#byId.set(session.id, session);
    return session;
  }

  find(id: string): ExecutorSession | undefined {
    return this.#byId.get(id);
  }

  /** It has a socket again. */
  taken(session: ExecutorSession): void {
    clearTimeout(this.#retained.get(session));
    this.#retained.delete(session);
  }

  lost(session: ExecutorSession): void {
    this.taken(session);
    if (this.#retained.size >= MAX_RETAINED_SESSIONS) this.#giveUpOne();
    const over = (): void => {
      this.log.info("executor: a client did not come back; its requests are ended", { session: session.id });
      session.close(Close.goingAway, "it was kept long enough");
    };
    this.#retained.set(session, setTimeout(over, this.retentionMs));
  }

  closed(session: ExecutorSession): void {
    this.taken(session);
    this.#byId.delete(session.id);
  }

  close(): void {
    for (const session of [...this.#byId.values()]) session.close(Close.goingAway, "the executor stops");
  }

  /** Ends the session that is worth least. Of plain clients only the name is kept, so theirs go first. */
  #giveUpOne(): void {
    let first: ExecutorSession | undefined;
    for (const session of this.#retained.keys()) {
      first ??= session;
      if (session.isLasting) continue;
      first = session;
      break;
    }
    first?.close(Close.goingAway, "too many wait for their clients");
  }
}
