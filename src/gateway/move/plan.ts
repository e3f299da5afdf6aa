// What a move has to do, from what the source and the target hold: no I/O, no clock. Things are compared by digests, so that
// of a large state only these are in memory.

import { createHash, hash } from "node:crypto";

/** Why the move stops before anything is written. */
export interface Conflict {
  /** As the table of a move names it. */
  readonly kind: string;
  readonly key: string;
  readonly why: string;
}

export interface MapPlan {
  readonly same: number;
  readonly put: readonly string[];
  /** Of an earlier move from the same source, and gone there since. */
  readonly remove: readonly string[];
  readonly conflicts: readonly Conflict[];
}

/** By key, the digests of values. */
export type MapIndex = ReadonlyMap<string, string>;

/**
 * `isCopy`: what the target has is from the source, by a move that was cut off or one the other way; it is replaced. Else what
 * differs there, or is only there, is somebody's, and nothing of it is touched.
 */
export function planMap(kind: string, source: MapIndex, target: MapIndex, isCopy: boolean): MapPlan {
  let same = 0;
  const put: string[] = [];
  const conflicts: Conflict[] = [];
  for (const [key, digest] of source) {
    const there = target.get(key);
    if (there === digest) same++;
    else if (there === undefined || isCopy) put.push(key);
    else conflicts.push({ kind, key, why: "is there already, and differs" });
  }
  const remove: string[] = [];
  for (const key of target.keys()) {
    if (source.has(key)) continue;
    if (isCopy) remove.push(key);
    else conflicts.push({ kind, key, why: "is only there" });
  }
  return { same, put, remove, conflicts };
}

export interface ListPlan {
  /** So many, from the first, are the same. */
  readonly same: number;
  /** So many behind these go, from the last. */
  readonly remove: number;
  /** So many of the source, to its last, come behind those that are the same. */
  readonly append: number;
  readonly conflicts: readonly Conflict[];
}

/** Of what has an order: digests of the source and of the target. */
export function planList(
  kind: string,
  source: readonly string[],
  target: readonly string[],
  isCopy: boolean,
  nameOf: (index: number) => string,
): ListPlan {
  let same = 0;
  while (same < source.length && same < target.length && source[same] === target[same]) same++;
  const remove = target.length - same;
  const why = "is there already, and not in this place at the source";
  const conflicts = remove === 0 || isCopy ? [] : [{ kind, key: nameOf(same), why }];
  return { same, remove, append: source.length - same, conflicts };
}

export function digestOf(texts: readonly (string | undefined)[]): string {
  // Lengths stand between them: two lists never come to the same text.
  return hash("sha256", JSON.stringify(texts.map((text) => text ?? null)), "base64url");
}

/** How much of a kind there is, and what it comes to. The same at the source and at the target, wherever each lies there. */
export interface KindSum {
  readonly count: number;
  readonly hash: string;
}

export function sumOfMap(index: MapIndex): KindSum {
  const sum = createHash("sha256");
  for (const key of [...index.keys()].sort((a, b) => (a < b ? -1 : 1)))
    sum.update(JSON.stringify([key, index.get(key)]));
  return { count: index.size, hash: short(sum.digest("hex")) };
}

/** Of lists by partition. */
export function sumOfLists(lists: ReadonlyMap<number, readonly string[]>): KindSum {
  const sum = createHash("sha256");
  let count = 0;
  for (const partition of [...lists.keys()].sort((a, b) => a - b)) {
    const digests = lists.get(partition) ?? [];
    // One that is empty is none.
    if (digests.length === 0) continue;
    count += digests.length;
    sum.update(JSON.stringify([partition, digests]));
  }
  return { count, hash: short(sum.digest("hex")) };
}

/** Read by people; 64 bits are enough to tell a mistake. */
function short(hex: string): string {
  return hex.slice(0, 16);
}

/** One of several lists, and a place in it. */
export interface Turn {
  readonly list: number;
  readonly index: number;
}

/** The order in which several lists become one: each keeps its own, and of their firsts the oldest comes first. */
export function mergeByTime(times: readonly (readonly number[])[]): Turn[] {
  const next = times.map(() => 0);
  const turns: Turn[] = [];
  const total = times.reduce((sum, { length }) => sum + length, 0);
  // There are at most as many lists as partitions: to look at each one's first is cheap.
  while (turns.length < total) {
    let first = -1;
    for (const [list, own] of times.entries()) {
      const at = own[next[list] as number];
      if (at === undefined) continue;
      if (first < 0 || at < (times[first]?.[next[first] as number] as number)) first = list;
    }
    turns.push({ list: first, index: next[first] as number });
    next[first] = (next[first] as number) + 1;
  }
  return turns;
}
