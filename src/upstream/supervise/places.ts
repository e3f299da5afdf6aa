// Which sessions have a connection of their own where there are not enough for all: what one principal gets is
// link/fair-line.ts, whose idle connection gives way is decided here. It does no I/O and has no clock.

import { mayTake } from "../link/fair-line.js";

/** A connection of a session that was unused for so long gives way to another session that wants one. */
export const GIVES_WAY_MS = 10 * 60_000;

/** The connection of one session. */
export interface SessionPlace {
  readonly principal: string;
  /** A process or a connection is there, or is being started. */
  readonly isAlive: boolean;
  readonly inFlight: number;
  /** When it was last used. */
  readonly usedMs: number;
}

/**
 * Which connections must end so that a session of `principal` can have one more: none as a rule. What is neither alive
 * nor in use holds no place, and is only forgotten where there are too many to remember. Undefined where there is no
 * room.
 */
export function makeRoom<P extends SessionPlace>(
  all: readonly P[],
  principal: string,
  capacity: number,
  nowMs: number,
): readonly P[] | undefined {
  const live = all.filter(({ isAlive, inFlight }) => isAlive || inFlight > 0);
  const forgotten = all.length < capacity ? [] : all.filter((place) => !live.includes(place));
  let own = live.filter((place) => place.principal === principal).length;
  let free = capacity - live.length;
  if (mayTake(own, free)) return forgotten;
  const idle = live
    .filter(({ inFlight, usedMs }) => inFlight === 0 && nowMs - usedMs >= GIVES_WAY_MS)
    .sort((a, b) => a.usedMs - b.usedMs);
  // One of its own first: that takes nothing from anybody.
  const oldest = idle.find((place) => place.principal === principal);
  if (oldest !== undefined) return [...forgotten, oldest];
  const ending: P[] = [];
  for (const place of idle) {
    ending.push(place);
    free++;
    if (place.principal === principal) own--;
    if (mayTake(own, free)) return [...forgotten, ...ending];
  }
  return undefined;
}
