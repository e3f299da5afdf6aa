// Kept writes in their lanes: which come first, and what each of them waits for, in words. It decides only, and knows no
// browser.

import type { OutboxEntry, OutboxLane } from "../../src/contracts/outbox.js";

export interface LaneRow {
  readonly key: string;
  readonly server: string;
  /** Empty where its writes have no order. */
  readonly lane: string;
  readonly heldFor: string | undefined;
  /** What is held or released is all of its server: held so by an operator, or without an order. */
  readonly isWhole: boolean;
  /** Those that are not over, in the order in which they go. */
  readonly writes: readonly OutboxEntry[];
  /** How many there are; the list may end before. */
  readonly depth: number;
}

/** Those of both lists, each once; what the first says of it goes, which is of all states. */
export function joinedWrites(all: readonly OutboxEntry[], some: readonly OutboxEntry[]): readonly OutboxEntry[] {
  const known = new Set(all.map(({ id }) => id));
  return [...all, ...some.filter(({ id }) => !known.has(id))];
}

/** Those that wait for a person come first, then those that wait longest. */
export function laneRows(writes: readonly OutboxEntry[], lanes: readonly OutboxLane[]): LaneRow[] {
  const rows = new Map<string, { row: Omit<LaneRow, "writes">; writes: OutboxEntry[] }>();
  const rowOf = (server: string, lane: string, lanesOwn?: OutboxLane) => {
    const key = `${server}\n${lane}`;
    const found = rows.get(key);
    const { isServerHeld = false, heldFor, depth = 0 } = lanesOwn ?? {};
    const row = {
      ...{ key, server, lane },
      // What one write without an order is held for is said beside it.
      heldFor: isServerHeld || lane !== "" ? (heldFor ?? found?.row.heldFor) : found?.row.heldFor,
      isWhole: isServerHeld || lane === "" || found?.row.isWhole === true,
      depth: depth + (found?.row.depth ?? 0),
    };
    const made = { row, writes: found?.writes ?? [] };
    rows.set(key, made);
    return made;
  };
  // Writes without an order are each a lane of its own, which has no name that anybody gave: they are one row.
  for (const one of lanes) rowOf(one.server, one.isOrdered ? one.lane : "", one);
  for (const write of writes) {
    if (write.state !== "queued" && write.state !== "sending") continue;
    const { writes: own } = rows.get(`${write.server}\n${write.lane}`) ?? rowOf(write.server, write.lane);
    own.push(write);
  }
  const isHeld = ({ heldFor, writes: own }: LaneRow) =>
    heldFor !== undefined || own.some((write) => write.heldFor !== undefined);
  return [...rows.values()]
    .map(({ row, writes: own }): LaneRow => {
      const inOrder = own.sort((a, b) => (a.position ?? 0) - (b.position ?? 0) || a.takenMs - b.takenMs);
      return { ...row, writes: inOrder, depth: Math.max(row.depth, inOrder.length) };
    })
    .filter(({ writes: own, heldFor }) => own.length > 0 || heldFor !== undefined)
    .sort((a, b) => Number(isHeld(b)) - Number(isHeld(a)) || oldestOf(a) - oldestOf(b));
}

function oldestOf({ writes }: LaneRow): number {
  return writes[0]?.takenMs ?? Number.POSITIVE_INFINITY;
}

/** Why it has not gone yet. */
export function waitWords({ state, position, heldFor, why }: OutboxEntry): string {
  if (heldFor !== undefined) return heldFor;
  if (state === "sending") return "on its way";
  const before = position ?? 0;
  if (before > 0) return `waits for the ${before === 1 ? "one" : before} before it`;
  return why ?? "is next";
}

const A_DAY_MS = 86_400_000;
/** So many the gateway lists at once, the newest: where there are so many, there may be more. */
const MAX_LISTED = 1_000;
/** What was sent in less did not wait. */
const SOON_MS = 1_000;

/** Of the writes that are listed: how many were delivered in a day, and how long the longest waited. Empty where none was. */
export function deliveredWords(writes: readonly OutboxEntry[], nowMs: number, ageText: (ms: number) => string): string {
  const done = writes.filter(({ state, sinceMs }) => state === "done" && nowMs - sinceMs < A_DAY_MS);
  if (done.length === 0) return "";
  const most = writes.length >= MAX_LISTED ? "At least " : "";
  const count = `${done.length.toLocaleString("en")} ${done.length === 1 ? "write was" : "writes were"}`;
  const longestMs = done.reduce((longest, { takenMs, sinceMs }) => Math.max(longest, sinceMs - takenMs), 0);
  const waited = longestMs < SOON_MS ? "none waited longer than a second" : `the longest waited ${ageText(longestMs)}`;
  return `${most}${count} delivered in 24 h, ${waited}.`;
}
