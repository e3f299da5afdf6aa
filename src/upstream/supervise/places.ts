// Places that several principals share: how many one of them may hold, and whose idle connection gives way. It does no
// I/O and has no clock. server.ts shares the connections of sessions by it.

/**
 * A principal may hold so many times what it leaves free: one alone gets three quarters, so that there is always room
 * for the next, and each that comes gets the same part of what is left.
 */
const HELD_TO_FREE = 3;

/** A connection of a session that was unused for so long gives way to another session that wants one. */
export const GIVES_WAY_MS = 10 * 60_000;

/** Whether a principal that holds `own` places may take one more of those that are `free`. The last one is a newcomer's. */
function mayTake(own: number, free: number): boolean {
  return free > 0 && (own === 0 || own + 1 <= HELD_TO_FREE * (free - 1));
}

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
