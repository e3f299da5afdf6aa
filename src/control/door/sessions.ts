// Who may look through the operator's door, and for how long: codes of one use, and the sessions that they are exchanged
// for. It decides only: no I/O and no clock; codes and secrets are given to it, and it keeps their hashes.

import { createHash, createHmac } from "node:crypto";

/** A viewer sees; an operator acts too. */
export type Power = "viewer" | "operator";

/** A link is followed at once; one that lies in a history or a log is worth nothing. */
const CODE_MS = 60_000;
/** Links that were asked for and not followed yet. People open one. */
const MAX_CODES = 16;
/** A person has a few browsers. Each session costs a record in the state. */
const MAX_SESSIONS = 16;
/** A working day. Then a new link is asked for. */
const SESSION_MS = 12 * 60 * 60_000;
/** A page that was closed by mistake finds its session again; one that was left for good does not hold the door open. */
const UNSEEN_MS = 60 * 60_000;

/** So often it is kept that a page is open: well within the hour that a session outlives its pages. */
const SEEN_EVERY_MS = 10 * 60_000;

/** What is kept of a session over a restart. Times are of the wall clock. */
export interface SessionKept {
  readonly power: Power;
  /** SHA-256 of the secret, in base64url. */
  readonly hash: string;
  readonly bornAt: number;
  /** When its last page was seen to be open. */
  readonly seenAt: number;
}

interface Session {
  readonly id: string;
  readonly power: Power;
  readonly hash: string;
  readonly bornAt: number;
  seenAt: number;
  /** Pages that are open by it. */
  pages: number;
}

export interface PageSession {
  readonly id: string;
  readonly power: Power;
}

export type RedeemedCode =
  /** `ended` had to give way. */
  { readonly kept: SessionKept; readonly ended?: string } | { readonly refused: "unknown" | "full" };

export class DoorSessions {
  /** By the hash of the code. */
  readonly #codes = new Map<string, { readonly power: Power; readonly untilMs: number }>();
  readonly #sessions = new Map<string, Session>();
  /** By the hash of the secret, and by that of the key which the page makes of it for this start. */
  readonly #byHash = new Map<string, Session>();
  readonly #start: string;

  /** `start` is another with each start of the gateway: keys of before are worth nothing. */
  constructor(start: string, kept: Iterable<readonly [id: string, SessionKept]> = []) {
    this.#start = start;
    for (const [id, { power, hash, bornAt, seenAt }] of kept) {
      if (this.#sessions.size < MAX_SESSIONS) this.#add({ id, power, hash, bornAt, seenAt, pages: 0 });
    }
  }

  get size(): number {
    return this.#sessions.size;
  }

  get ids(): string[] {
    return [...this.#sessions.keys()];
  }

  /** Whether anybody may still come in: by a session, or by a link that was not followed yet. */
  isWanted(nowMs: number): boolean {
    this.#forgetCodes(nowMs);
    return this.#sessions.size > 0 || this.#codes.size > 0;
  }

  /** The oldest link gives way where too many were asked for. `nowMs` is monotonic, here and where a code is redeemed. */
  addCode(code: string, power: Power, nowMs: number): void {
    this.#forgetCodes(nowMs);
    const oldest = this.#codes.keys().next();
    if (this.#codes.size >= MAX_CODES && oldest.done !== true) this.#codes.delete(oldest.value);
    this.#codes.set(hashOf(code), { power, untilMs: nowMs + CODE_MS });
  }

  /**
   * A code is good once. Where there is no room, the session without a page that was seen last the longest ago gives way:
   * whoever opens a link each time, and closes the tab, has many. Where all have pages the code is used up all the same:
   * it has been shown.
   */
  redeem(code: string, id: string, secret: string, nowMs: number, wallMs: number): RedeemedCode {
    this.#forgetCodes(nowMs);
    const hash = hashOf(code);
    const found = this.#codes.get(hash);
    if (found === undefined) return { refused: "unknown" };
    this.#codes.delete(hash);
    const ended = this.#sessions.size >= MAX_SESSIONS ? this.#longestUnseen() : undefined;
    if (ended !== undefined) this.end(ended);
    else if (this.#sessions.size >= MAX_SESSIONS) return { refused: "full" };
    const session: Session = {
      id,
      power: found.power,
      hash: hashOf(secret),
      bornAt: wallMs,
      seenAt: wallMs,
      pages: 0,
    };
    this.#add(session);
    return { kept: keptOf(session), ...(ended === undefined ? {} : { ended }) };
  }

  #longestUnseen(): string | undefined {
    let found: Session | undefined;
    for (const session of this.#sessions.values()) {
      if (session.pages === 0 && (found === undefined || session.seenAt < found.seenAt)) found = session;
    }
    return found?.id;
  }

  /** Whose secret or key it is; undefined where it is nobody's, or its time is over. */
  find(secret: string, wallMs: number): PageSession | undefined {
    const session = this.#byHash.get(hashOf(secret));
    return session === undefined || isOver(session, wallMs) ? undefined : session;
  }

  /** Shows that we know the secret of a session, without a word of it; undefined where there is no such session. */
  prove(id: string, nonce: string, wallMs: number): string | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined || isOver(session, wallMs)) return undefined;
    return proofOf(session.hash, nonce);
  }

  pageOpened(id: string): void {
    const session = this.#sessions.get(id);
    if (session !== undefined) session.pages++;
  }

  /** What is to be kept of the session now; undefined where it has ended meanwhile. */
  pageClosed(id: string, wallMs: number): SessionKept | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined) return undefined;
    session.pages--;
    session.seenAt = wallMs;
    return keptOf(session);
  }

  /** What is to be kept of the sessions whose pages are open, and of which that was not kept lately. */
  seenLately(wallMs: number): [id: string, kept: SessionKept][] {
    const seen = [...this.#sessions.values()].filter(
      ({ pages, seenAt }) => pages > 0 && Math.abs(wallMs - seenAt) >= SEEN_EVERY_MS,
    );
    return seen.map((session) => {
      session.seenAt = wallMs;
      return [session.id, keptOf(session)];
    });
  }

  /** Forgets the sessions whose time is over, and says which. */
  sweep(wallMs: number): string[] {
    const over = [...this.#sessions.values()].filter((session) => isOver(session, wallMs));
    for (const session of over) this.end(session.id);
    return over.map(({ id }) => id);
  }

  end(id: string): void {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    this.#sessions.delete(id);
    this.#byHash.delete(session.hash);
    this.#byHash.delete(this.#hashOfKey(session));
  }

  /** Every session and every link. */
  endAll(): string[] {
    const { ids } = this;
    for (const id of ids) this.end(id);
    this.#codes.clear();
    return ids;
  }

  #add(session: Session): void {
    this.#sessions.set(session.id, session);
    this.#byHash.set(session.hash, session);
    this.#byHash.set(this.#hashOfKey(session), session);
  }

  #hashOfKey({ hash }: Session): string {
    return hashOf(keyOf(hash, this.#start));
  }

  #forgetCodes(nowMs: number): void {
    for (const [hash, { untilMs }] of this.#codes) if (untilMs <= nowMs) this.#codes.delete(hash);
  }
}

/** A clock that was set back makes no session older than it is; one that was set on ends it. */
function isOver({ bornAt, seenAt, pages }: Session, wallMs: number): boolean {
  if (wallMs - bornAt >= SESSION_MS) return true;
  return pages === 0 && wallMs - seenAt >= UNSEEN_MS;
}

function keptOf({ power, hash, bornAt, seenAt }: Session): SessionKept {
  return { power, hash, bornAt, seenAt };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

/** The page makes the same of the hash of its secret. */
function proofOf(hash: string, nonce: string): string {
  return createHmac("sha256", hash).update(`toolway-door:${nonce}`).digest("base64url");
}

/**
 * What the page sends in place of its secret, which it makes likewise. A browser sends a request again, on a connection to
 * whoever listens then, where its gateway dies over it: what that one learns opens nothing.
 */
function keyOf(hash: string, start: string): string {
  return createHmac("sha256", hash).update(`toolway-door-key:${start}`).digest("base64url");
}
