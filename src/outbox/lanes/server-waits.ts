// How long a server that is not there is left alone, and what is tried when it answers others again. It decides nothing about
// a write.

import type { Away, LaneServer, WriteLane } from "./lane.js";
import type { LaneTable } from "./lane-table.js";
import { RETRY_BACKOFF } from "./limits.js";
import { isFromServer, type Result } from "./step.js";

/** Whether a server is there is tried with one write, not with all that wait. */
export function triedFirst(why: string, nowMs: number): Away {
  return { kind: "away", why, tries: 0, sinceMs: nowMs, untilMs: 0, probing: undefined, wasHastened: false };
}

/** What the server is missing by this result, if anything. `wasProbe`: it is of the one write that was to find out. */
export function missing(result: Result, wasProbe: boolean): Away["kind"] | undefined {
  if (result.kind === "login") return "login";
  return result.kind === "not-sent" || (result.kind === "maybe" && wasProbe) ? "away" : undefined;
}

/** The wait that follows from it. Where our breaker says how long it holds writes back, that is as long as they wait. */
export function nextAway(
  table: LaneTable,
  before: Away | undefined,
  kind: Away["kind"],
  result: Result,
  nowMs: number,
): Away {
  const tries = (before?.tries ?? 0) + 1;
  const sinceMs = before?.sinceMs ?? nowMs;
  const heldForMs = result.kind === "not-sent" ? result.heldForMs : undefined;
  const ownMs = kind === "login" ? table.jitter(tries - 1) : table.awayJitter(tries - 1, nowMs - sinceMs);
  const waitMs = heldForMs === undefined ? ownMs : Math.min(Math.max(1, Math.ceil(heldForMs)), RETRY_BACKOFF.maxMs);
  return {
    kind,
    why: "why" in result ? result.why : "",
    tries,
    sinceMs,
    untilMs: nowMs + waitMs,
    probing: before?.probing,
    wasHastened: before?.untilMs === 0,
  };
}

/**
 * The server answers others: what waits because it did not is tried now, one write first. A wait after one that was cut short in
 * vain is not cut short: a server may answer others and still fail at these.
 */
export function sendSooner(table: LaneTable, server: LaneServer): void {
  const { away, first } = server;
  if (away?.kind === "away" && !away.wasHastened) away.untilMs = 0;
  if (first !== undefined && (first.sending !== undefined || server.ready.has(first))) return;
  server.first = undefined;
  for (const lane of server.delayed) {
    if (!mayHasten(lane)) continue;
    server.first = lane;
    cutShort(table, lane);
    return;
  }
}

/** What came of a write of the lane. Where it was tried first and the server took it, the others follow. */
export function triedLane(table: LaneTable, lane: WriteLane, result: Result): void {
  const { server } = lane;
  const isThere = isFromServer(result) && result.kind !== "not-done";
  if (isThere) lane.wasHastened = false;
  if (server.first !== lane) return;
  server.first = undefined;
  if (!isThere) return;
  for (const other of [...server.delayed]) if (mayHasten(other)) cutShort(table, other);
}

/** One without writes has nothing to try: it lets the next one wait. */
function mayHasten(lane: WriteLane): boolean {
  return lane.isForServer && !lane.wasHastened && lane.hold === undefined && lane.writes.length > 0;
}

function cutShort(table: LaneTable, lane: WriteLane): void {
  lane.wasHastened = true;
  table.undelay(lane);
}
