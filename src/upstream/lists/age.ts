// Decides whether a list may be answered from what is known, has to be read again, or is worth a short wait. It knows
// no clock and no server: it is told what happened, and when.

/** A server that promises less is taken to promise this: one reading a second is what a poll by its agents would cost. */
const LEAST_PROMISE_MS = 1_000;
/** Of a list of which nothing is promised, this much age is borne; and no name is looked for more often. */
export const UNPROMISED_MS = 2_000;
/** Whoever asks waits no longer than this for a reading: a server that is slower has what is known told for it. */
export const WAIT_MS = 250;
/** While nobody asks, a list that calls may have changed is read at distances that double up to this one. */
const LONGEST_DISTANCE_MS = 64_000;

/** How the server stands to one of its lists. */
export interface ListFacts {
  /** It tells of changes, and there is somebody to hear it. */
  readonly isAnnounced: boolean;
  /** A gateway of ours is at the other end and tells of changes: what it has not told of, it does not have. */
  readonly isPushed: boolean;
  /** How long it said that the list is good; undefined where it said nothing. */
  readonly ttlMs: number | undefined;
  /** Counts the calls of agents that have ended at it. */
  readonly endedCalls: number;
  /** One of them ended a moment ago: what it changed may not have been announced yet. */
  readonly calledLately: boolean;
  /** Counts the times in which a change could have been announced and not be heard. */
  readonly gaps: number;
}

/** `known`: answer at once. `wait`: a reading that will do is under way. `read`: begin one, and wait for it. */
export type ListVerdict = "known" | "wait" | "read";

interface Reading {
  /** Since when somebody could wait for it; the time that is waited is counted from here. */
  readonly sinceMs: number;
  readonly begunMs: number;
  /** What it brings knows nothing of calls that ended later. */
  readonly endedCalls: number;
  /** Nor of what was not heard later. */
  readonly gaps: number;
}

export class ListAge {
  #last: Reading | undefined;
  #now: Reading | undefined;
  /** One more reading is to begin after the one that is under way. */
  #nextSinceMs: number | undefined;
  /** Counts the readings in a row that brought nothing new. */
  #unchanged = 0;
  /** A change was announced, and no reading has begun since: one may be paused for. */
  #hasChanged = false;

  /** A reading begins. */
  begun(nowMs: number, endedCalls: number, gaps: number): void {
    this.#now = { sinceMs: this.#nextSinceMs ?? nowMs, begunMs: nowMs, endedCalls, gaps };
    this.#nextSinceMs = undefined;
    this.#hasChanged = false;
  }

  /** The server announces a change. */
  changed(): void {
    this.#hasChanged = true;
  }

  /** It has ended; `isNew` where it brought something else than the one before. One that failed brings nothing. */
  ended(isNew: boolean): void {
    this.#last = this.#now ?? this.#last;
    this.#now = undefined;
    this.#unchanged = isNew ? 0 : this.#unchanged + 1;
  }

  /**
   * True where `asked` says `known` whatever else is to be known of the server. It is asked for each server with each list, and
   * those other facts cost more than this.
   */
  isSurelyKnown(nowMs: number, endedCalls: number, gaps: number, ttlMs: number | undefined): boolean {
    const last = this.#last;
    if (last === undefined || this.#hasChanged || this.#now !== undefined || this.#nextSinceMs !== undefined)
      return false;
    if (last.endedCalls !== endedCalls || last.gaps !== gaps) return false;
    return nowMs - last.begunMs < borneMs(ttlMs);
  }

  /** An agent asks for the list. */
  asked(nowMs: number, facts: ListFacts): ListVerdict {
    return this.#verdict(nowMs, facts, (last) => isOld(last, nowMs, facts));
  }

  /** An agent names something that the list does not have. */
  missed(nowMs: number, facts: ListFacts): ListVerdict {
    return this.#verdict(nowMs, facts, (last) => {
      if (facts.isPushed) return mayBeBehind(last, facts);
      // What tells of changes, or promised too much, may be wrong as well: it is looked at, but not for every name.
      return nowMs - last.begunMs >= UNPROMISED_MS || isOld(last, nowMs, facts);
    });
  }

  /**
   * Nobody asks. True where a reading has to begin, since calls have ended or an announcement may have been lost, and
   * agents wait to be told of changes.
   */
  isDue(nowMs: number, { isAnnounced, endedCalls, gaps }: ListFacts): boolean {
    const last = this.#last;
    if (last === undefined || this.#now !== undefined || this.#nextSinceMs !== undefined) return false;
    if (last.gaps === gaps && (isAnnounced || last.endedCalls === endedCalls)) return false;
    const distance = Math.min(UNPROMISED_MS * 2 ** Math.max(0, this.#unchanged - 1), LONGEST_DISTANCE_MS);
    return nowMs - last.begunMs >= distance;
  }

  #verdict(nowMs: number, facts: ListFacts, isOldNow: (last: Reading) => boolean): ListVerdict {
    if (this.#nextSinceMs !== undefined) return nowMs - this.#nextSinceMs < WAIT_MS ? "wait" : "known";
    if (this.#now !== undefined) {
      if (this.#hasChanged || mayBeBehind(this.#now, facts)) return this.#wants(nowMs);
      return nowMs - this.#now.sinceMs < WAIT_MS ? "wait" : "known";
    }
    // What was never read is read when its server is up, which is not decided here.
    if (this.#last === undefined || !(this.#hasChanged || isOldNow(this.#last))) return "known";
    return this.#wants(nowMs);
  }

  #wants(nowMs: number): "read" {
    this.#nextSinceMs = nowMs;
    return "read";
  }
}

function isOld(last: Reading, nowMs: number, facts: ListFacts): boolean {
  if (mayBeBehind(last, facts)) return true;
  if (facts.ttlMs === undefined && facts.isAnnounced) return false;
  return nowMs - last.begunMs >= borneMs(facts.ttlMs);
}

/** How old a list may be of which no change is told. */
function borneMs(ttlMs: number | undefined): number {
  return ttlMs === undefined ? UNPROMISED_MS : Math.max(LEAST_PROMISE_MS, ttlMs);
}

/**
 * The list may have changed since: calls have ended, unless what they change would have been announced by now; or an
 * announcement was not heard.
 */
function mayBeBehind(reading: Reading, { endedCalls, isAnnounced, calledLately, gaps }: ListFacts): boolean {
  return reading.gaps !== gaps || (endedCalls !== reading.endedCalls && (!isAnnounced || calledLately));
}
