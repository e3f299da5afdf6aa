// Which agents have a session of their own kind at an HTTP server, beside the one that all share: those of one profile
// have one together, so that the server is told what they can be asked. It decides only: no I/O, no clock.

import type { AgentProfile } from "../contracts/caller.js";

/** So many there are at once. People use one or two clients; each session costs the server and us some memory. */
const MAX_SESSIONS = 4;
/** What a server has refused is not asked for again soon: it knows no second session, or not this era. */
const REFUSED_MS = 60 * 60_000;
/** It could not be asked: the next call after this may try. */
const UNREACHED_MS = 10_000;
/** A session whose agents have all gone stays for those who come again, as agents do that are started for a task. */
const UNUSED_MS = 10 * 60_000;
/** Minutes are counted, so seconds are often enough. */
const LOOK_MS = 5_000;

/** A session, as far as it is judged here. */
export interface UsedSession {
  readonly inFlight: number;
  /** Counts the calls that agents sent by it. */
  readonly uses: number;
}

interface Slot<S extends UsedSession> {
  readonly profile: AgentProfile;
  readonly session: S;
  uses: number;
  usedMs: number;
  barredUntilMs: number;
  isBarred: boolean;
}

export class ProfileSessions<S extends UsedSession> {
  readonly #hasAgents: (profile: AgentProfile) => boolean;
  readonly #slots: Slot<S>[] = [];
  /** No slot can be freed before somebody looks again. */
  #isFull = false;
  #lookMs = 0;
  /** Until then nobody has one, since the server keeps one for all. */
  #closedUntilMs: number | undefined;

  /** `hasAgents`: whether an agent of this profile has a session open at us. */
  constructor(hasAgents: (profile: AgentProfile) => boolean) {
    this.#hasAgents = hasAgents;
  }

  /** Those that are there put each other out: nobody has one until the server is likely to be another. */
  close(nowMs: number): void {
    this.#closedUntilMs = nowMs + REFUSED_MS;
    // They go with the next look.
    this.#lookMs = 0;
  }

  get isClosed(): boolean {
    return this.#closedUntilMs !== undefined;
  }

  get all(): S[] {
    return this.#slots.map(({ session }) => session);
  }

  /** The session of these agents; "none" where they have to do without for now. This is on the way of every call. */
  find(profile: AgentProfile): S | "none" | undefined {
    if (this.#closedUntilMs !== undefined) return "none";
    for (const slot of this.#slots) {
      if (slot.profile === profile) return slot.isBarred ? "none" : slot.session;
    }
    return this.#isFull ? "none" : undefined;
  }

  /** Room for one more, by the end of one that nobody uses, if need be; the caller closes that one. */
  makeRoom(): { readonly has: boolean; readonly left: S | undefined } {
    if (this.#slots.length < MAX_SESSIONS) return { has: true, left: undefined };
    const free = this.#slots.find(({ profile, session }) => session.inFlight === 0 && !this.#hasAgents(profile));
    if (free === undefined) this.#isFull = true;
    else this.#remove(free);
    return { has: free !== undefined, left: free?.session };
  }

  add(profile: AgentProfile, session: S, nowMs: number): void {
    const { uses } = session;
    this.#slots.push({ profile, session, uses, usedMs: nowMs, barredUntilMs: 0, isBarred: false });
  }

  /** It could not be opened. `wasRefused`: the server said no; else it could not be asked. */
  bar(session: S, wasRefused: boolean, nowMs: number): void {
    const slot = this.#slots.find((one) => one.session === session);
    if (slot === undefined) return;
    slot.isBarred = true;
    slot.barredUntilMs = nowMs + (wasRefused ? REFUSED_MS : UNREACHED_MS);
  }

  /** The server was met anew: what it refused before it may take now. */
  forgive(): void {
    for (const slot of this.#slots) slot.isBarred = false;
  }

  /** To be called often. Returns those that nobody has used for long; they are out of it, and the caller closes them. */
  look(nowMs: number): S[] {
    if (nowMs < this.#lookMs) return [];
    this.#lookMs = nowMs + LOOK_MS;
    this.#isFull = false;
    const left: S[] = [];
    if (this.#closedUntilMs !== undefined && nowMs >= this.#closedUntilMs) this.#closedUntilMs = undefined;
    const isClosed = this.#closedUntilMs !== undefined;
    for (const slot of [...this.#slots]) {
      if (slot.isBarred && nowMs >= slot.barredUntilMs) slot.isBarred = false;
      const { session, profile } = slot;
      const isUsed = session.uses !== slot.uses || session.inFlight > 0 || this.#hasAgents(profile);
      slot.uses = session.uses;
      if (isClosed && session.inFlight === 0) {
        this.#remove(slot);
        left.push(session);
      } else if (isUsed) slot.usedMs = nowMs;
      else if (nowMs - slot.usedMs >= UNUSED_MS) {
        this.#remove(slot);
        left.push(session);
      }
    }
    return left;
  }

  #remove(slot: Slot<S>): void {
    this.#slots.splice(this.#slots.indexOf(slot), 1);
  }
}
