// The HTTP sessions that are in memory: they are restored from their sealed ids when used, and they end, expire, or are
// dropped to make room; those that went on over a restart are told, one after another, that they may have missed something.
// What a session is and does is http-session.ts and session/session.ts.

import type { Principal } from "../../contracts/caller.js";
import type { Homes } from "../../contracts/engine/homes.js";
import type { Service } from "../../contracts/service.js";
import type { SessionRecord } from "../../contracts/session-record.js";
import type { DurableMap } from "../../contracts/store.js";
import { Fault } from "../../protocol/errors.js";
import type { Sealer } from "../../runtime/seal.js";
import { homeOf } from "../session/home.js";
import { type SessionFacts, sealSession, unsealSession } from "../session/session-id.js";
import { HttpSession } from "./http-session.js";
import { type RecordedFacts, SessionRecords } from "./session-records.js";
import type { StreamContext } from "./streams/event-stream.js";

export type SessionLookup =
  | { readonly kind: "session"; readonly session: HttpSession }
  /** It is none of this principal's at this path, or has ended; which of these is nobody's business. */
  | { readonly kind: "unknown" }
  /** All places are taken by sessions that are in use. */
  | { readonly kind: "full" };

const UNKNOWN: SessionLookup = { kind: "unknown" };
const FULL: SessionLookup = { kind: "full" };

/** When the table is full this share of it is dropped at once, so that the search for the oldest is paid rarely. */
const DROP_SHARE = 0.01;

/** Many agents come back within a second of a restart; read over so long, their lists are no burst for anybody. */
const SPREAD_MS = 5_000;
/** A step is short for an agent, and few timers for us. */
export const STEP_MS = 250;
const STEPS = SPREAD_MS / STEP_MS;

export interface HttpSessionsOptions {
  readonly service: Service;
  readonly sealer: Sealer;
  readonly context: StreamContext;
  /** Milliseconds since 1970: the age of a sealed id must mean the same after a restart. */
  wall(): number;
  /** Where the ends of sessions are kept. Undefined where nothing outlives the process. */
  readonly records?: DurableMap<SessionRecord> | undefined;
  /** Tells the operator that something could not be kept. */
  readonly failed?: (error: unknown) => void;
}

export class HttpSessions {
  readonly #options: HttpSessionsOptions;
  readonly #context: StreamContext;
  /** Sessions by their sealed ids, so that a known one costs one look-up. */
  readonly #byId = new Map<string, HttpSession>();
  /** Sessions by their keys, because one sealed id may be written in more than one way. */
  readonly #byKey = new Map<string, { session: HttpSession; id: string }>();
  readonly #records: SessionRecords;
  /** By the wall clock, the last start or dropping of sessions: who was there by then may have been told nothing since. */
  #missedAt: number;
  readonly #startedAt: number;
  readonly #restartNotices = new RestartNotices<HttpSession>();
  /** One for all who have to catch up. */
  #noticeTimer: NodeJS.Timeout | undefined;

  constructor(options: HttpSessionsOptions) {
    this.#options = options;
    this.#context = options.context;
    this.#records = new SessionRecords(options.context.limits, options.records, options.failed);
    this.#startedAt = options.wall();
    this.#missedAt = this.#startedAt - 1;
  }

  get size(): number {
    return this.#byKey.size;
  }

  values(): HttpSession[] {
    return [...this.#byKey.values()].map((entry) => entry.session);
  }

  /** Makes a new id. Nothing is held for it. */
  seal(facts: SessionFacts): string {
    return sealSession(this.#options.sealer, facts);
  }

  /** Makes a session that is not in the table, for the introduction at initialize. */
  transient(principal: Principal, facts: SessionFacts): HttpSession {
    return new HttpSession(principal, facts, this.#context);
  }

  /** The gateway that has the session's streams and settings; undefined for an id that is none. */
  homeOf(id: string, homes: Homes): string | undefined {
    const known = this.#byId.get(id);
    if (known !== undefined) return homeOf(known.madeAt, known.sessionKey, homes);
    const facts = unsealSession(this.#options.sealer, id);
    return facts === undefined ? undefined : homeOf(facts.home, facts.key, homes);
  }

  /** Whether anything of it is in memory. */
  has(id: string): boolean {
    return this.#byId.has(id);
  }

  find(id: string, principal: Principal, scope: string | undefined): SessionLookup {
    const session = this.#byId.get(id);
    if (session === undefined) return this.#restore(id, principal, scope);
    return this.#admit(session, principal, scope);
  }

  #admit(session: HttpSession, principal: Principal, scope: string | undefined): SessionLookup {
    if (session.principal.id !== principal.id || session.scope !== scope) return UNKNOWN;
    session.principal = principal;
    session.lastUsedMs = this.#context.now();
    return { kind: "session", session };
  }

  #restore(id: string, principal: Principal, scope: string | undefined): SessionLookup {
    const facts = unsealSession(this.#options.sealer, id);
    if (facts === undefined || facts.principalId !== principal.id || facts.scope !== scope) return UNKNOWN;
    const known = this.#byKey.get(facts.key);
    if (known !== undefined) return this.#admit(known.session, principal, scope);
    const wallMs = this.#options.wall();
    if (wallMs - facts.createdAt > this.#context.limits.sealedMs || this.#records.isOver(facts, wallMs)) return UNKNOWN;
    if (this.#byKey.size >= this.#context.limits.sessions && !this.#makeRoom()) return FULL;
    const session = new HttpSession(principal, facts, this.#context, this.#records.settingsOf(facts), this.#keep);
    this.#byId.set(id, session);
    this.#byKey.set(facts.key, { session, id });
    session.mayHaveMissed = facts.createdAt <= this.#missedAt;
    this.#options.service.sessionOpened(session, scope, facts.createdAt < this.#startedAt);
    return { kind: "session", session };
  }

  readonly #keep = (session: HttpSession): Promise<void> | undefined =>
    this.#records.keep(factsOf(session), this.#options.wall(), session);

  /** The session listens again for the first time since it was gone from here: it is told soon that it may have missed something. */
  catchUp(session: HttpSession): void {
    session.mayHaveMissed = false;
    this.#restartNotices.add(session);
    if (this.#restartNotices.size > 1) return;
    this.#noticeTimer ??= setTimeout(() => this.#stepCatchUps(), STEP_MS).unref();
    this.#noticeTimer.refresh();
  }

  #stepCatchUps(): void {
    for (const session of this.#restartNotices.step()) {
      if (!session.closed) this.#options.service.catchUp(session, session.scope);
    }
    if (this.#restartNotices.size > 0) this.#noticeTimer?.refresh();
  }

  /** Drops those that were used least recently and have nothing under way; they can be restored. */
  #makeRoom(): boolean {
    const idle = this.values().filter((session) => session.idle);
    idle.sort((a, b) => a.lastUsedMs - b.lastUsedMs);
    const drop = Math.max(1, Math.floor(this.#context.limits.sessions * DROP_SHARE));
    for (const session of idle.slice(0, drop)) this.#remove(session, "The session was dropped to make room.");
    if (idle.length > 0) this.#missedAt = this.#options.wall();
    return idle.length > 0;
  }

  #remove(session: HttpSession, why: string | Fault): void {
    const entry = this.#byKey.get(session.sessionKey);
    if (entry === undefined) return;
    this.#records.used(factsOf(session), this.#lastUse(session), session);
    this.#byKey.delete(session.sessionKey);
    this.#byId.delete(entry.id);
    session.close(typeof why === "string" ? new Fault("closing", why) : why);
    this.#options.service.sessionClosed(session, typeof why === "string" ? undefined : why.code);
  }

  /** Ends a session for good: its id is refused from now on, and after a restart once the promise has resolved. */
  end(session: HttpSession, why: string): Promise<void> {
    const written = this.#records.end(factsOf(session));
    this.#remove(session, why);
    return written;
  }

  /** What is kept of a session by now, whoever wrote it: one that ended at another gateway has ended here. */
  told(key: string, record: SessionRecord | undefined): void {
    this.#records.told(key, record);
    const session = record?.ended === true ? this.#byKey.get(key)?.session : undefined;
    if (session !== undefined) this.#remove(session, "The session has ended.");
  }

  /** By the wall clock; one with something under way is in use. */
  #lastUse(session: HttpSession): number {
    const wallMs = this.#options.wall();
    return session.idle ? wallMs - (this.#context.now() - session.lastUsedMs) : wallMs;
  }

  /** Ends what has been idle for too long. To be called now and then. */
  sweep(): void {
    const now = this.#context.now();
    for (const session of this.values()) {
      session.sweepStreams(now);
      if (session.idle && now - session.lastUsedMs > this.#context.limits.sessionIdleMs) {
        // It may be in use at another gateway, which writes that down now and then: then it is only forgotten here.
        if (this.#records.isUsedElsewhere(factsOf(session), this.#lastUse(session), this.#options.wall())) {
          this.#remove(session, "The session was dropped to make room.");
          continue;
        }
        this.end(session, "The session expired.").catch((error: unknown) => this.#options.failed?.(error));
        continue;
      }
      if (!session.idle) session.lastUsedMs = now;
      this.#records.used(factsOf(session), this.#lastUse(session), session);
    }
    this.#records.sweep(this.#options.wall());
  }

  /** Their token is no longer good: nothing of theirs goes on, but a new token may take their sessions up again. */
  dropPrincipals(ended: (principal: Principal) => boolean, fault: Fault): void {
    for (const { session } of this.#byKey.values()) {
      if (ended(session.principal)) this.#remove(session, fault);
    }
  }

  /** The endpoint closes. The ids stay good for the gateway's next run. */
  closeAll(): void {
    clearTimeout(this.#noticeTimer);
    for (const session of this.values()) this.#remove(session, "The gateway is closing.");
  }
}

function factsOf({ principal, sessionKey, createdAt }: HttpSession): RecordedFacts {
  return { principalId: principal.id, key: sessionKey, createdAt };
}

/**
 * When sessions that went on over a restart are told that they may have missed something: not all at once, since each of them may
 * read its lists then. It decides only: it is told that a step of time has passed. The sessions of the endpoint bound it: each is in
 * it once.
 */
export class RestartNotices<S> {
  readonly #steps: S[][] = Array.from({ length: STEPS }, () => []);
  #now = 0;
  #added = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The first has its turn at the next step, those after it at one of the next each. */
  add(session: S): void {
    if (this.#size === 0) this.#added = 0;
    this.#steps[(this.#now + (this.#added++ % STEPS)) % STEPS]?.push(session);
    this.#size++;
  }

  /** A step has passed: those whose turn it is. */
  step(): S[] {
    const turn = this.#steps[this.#now] ?? [];
    this.#steps[this.#now] = [];
    this.#now = (this.#now + 1) % STEPS;
    this.#size -= turn.length;
    return turn;
  }
}
