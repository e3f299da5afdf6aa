// All conversations of an executor: those that have a socket, and those that are kept for theirs to come back, for a
// bounded time and in bounded number.

import { randomUUID } from "node:crypto";
import { Close } from "../../sockets/socket.js";
import type { HttpRunner } from "../http/requests.js";
import { MAX_RETAINED_SESSIONS } from "../wire/limits.js";
import type { ExecutorLog } from "../wire/types.js";
import { Session, type SessionHost } from "./session.js";

export interface SessionsOptions {
  readonly runner: HttpRunner;
  readonly log: ExecutorLog;
  readonly retentionMs: number;
}

export class Sessions implements SessionHost {
  readonly runner: HttpRunner;
  readonly log: ExecutorLog;
  readonly retentionMs: number;
  readonly #byId = new Map<string, Session>();
  /** Without a socket, with what ends them; the one that has waited longest comes first. */
  readonly #retained = new Map<Session, NodeJS.Timeout>();

  constructor(options: SessionsOptions) {
    this.runner = options.runner;
    this.log = options.log;
    this.retentionMs = options.retentionMs;
  }

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

  /** `window`: what the client offered, where it knows our extensions. */
  create(window: number | undefined): Session {
    const session = new Session(randomUUID(), window, this);
    this.#byId.set(session.id, session);
    return session;
  }

  find(id: string): Session | undefined {
    return this.#byId.get(id);
  }

  /** It has a socket again. */
  taken(session: Session): void {
    clearTimeout(this.#retained.get(session));
    this.#retained.delete(session);
  }

  lost(session: Session): void {
    this.taken(session);
    if (this.#retained.size >= MAX_RETAINED_SESSIONS) this.#giveUpOne();
    const over = (): void => {
      this.log.info("executor: a client did not come back; its requests are ended", { session: session.id });
      session.end(Close.goingAway, "it was kept long enough");
    };
    this.#retained.set(session, setTimeout(over, this.retentionMs));
  }

  ended(session: Session): void {
    this.taken(session);
    this.#byId.delete(session.id);
  }

  close(): void {
    for (const session of [...this.#byId.values()]) session.end(Close.goingAway, "the executor stops");
  }

  /** Of plain clients only the name is kept, so theirs goes before one with requests under way. */
  #giveUpOne(): void {
    let first: Session | undefined;
    for (const session of this.#retained.keys()) {
      first ??= session;
      if (session.isLasting) continue;
      first = session;
      break;
    }
    first?.end(Close.goingAway, "too many wait for their clients");
  }
}
