// What may be asked of the lanes and their writes. It changes nothing.

import type { KnownWrites } from "./known-writes.js";
import { type Hold, holdOfLane, type KeptWrite, laneKey, type WriteLane } from "./lane.js";
import type { LaneTable } from "./lane-table.js";
import type { Room } from "./room.js";

/** What there is, from counts that are kept while it changes: of all writes only those with an unknown outcome are walked over. */
export interface LaneTotals {
  /** Writes that wait or are being sent. */
  readonly waiting: number;
  /** Since when the oldest of them waits, by the wall clock. */
  readonly oldestMs: number | undefined;
  readonly unknown: number;
  /** Since when the first of them is, by the wall clock. */
  readonly unknownMs: number | undefined;
  /** Lanes that do not go on by themselves, the first of them. */
  readonly held: readonly WriteLane[];
  readonly heldCount: number;
}

export class LaneQuestions {
  readonly room: Room;
  protected readonly table: LaneTable;
  protected readonly known: KnownWrites;

  constructor(table: LaneTable, known: KnownWrites, room: Room) {
    this.table = table;
    this.known = known;
    this.room = room;
  }

  get(id: string): KeptWrite | undefined {
    return this.known.get(id);
  }

  hasKey(keyHash: string): boolean {
    return this.known.ofKey(keyHash) !== undefined;
  }

  get all(): Iterable<KeptWrite> {
    return this.known.all;
  }

  *lanes(): Iterable<WriteLane> {
    for (const server of this.table.servers.values()) yield* server.lanes.values();
  }

  get laneCount(): number {
    let count = 0;
    for (const { lanes } of this.table.servers.values()) count += lanes.size;
    return count;
  }

  /** Undefined where it waits for nothing any more. */
  laneOf(write: KeptWrite): WriteLane | undefined {
    return this.table.servers.get(write.facts.server)?.lanes.get(laneKey(write));
  }

  position(write: KeptWrite): number | undefined {
    return write.state === "queued" ? this.laneOf(write)?.placeOf(write) : undefined;
  }

  /** What it waits for that is no matter of time, if anything. */
  holdOf(write: KeptWrite): Hold | undefined {
    if (write.isOver) return undefined;
    if (write.held) return { kind: "person", why: write.why ?? "" };
    const lane = this.laneOf(write);
    return lane === undefined ? undefined : holdOfLane(lane);
  }

  /** True where the write does not go on by itself in the next moments: whoever waits for it gets a receipt. */
  isStuck(write: KeptWrite): boolean {
    const lane = this.laneOf(write);
    if (lane === undefined) return true;
    if (lane.sending === write) return false;
    return this.holdOf(write) !== undefined || lane.server.away !== undefined || lane.server.delayed.has(lane);
  }

  totals(maxHeld: number, nowMs: number, wallMs: number): LaneTotals {
    const held: WriteLane[] = [];
    let heldCount = 0;
    for (const server of this.table.servers.values()) {
      const isWhole = server.isHeld || server.away?.kind === "login";
      heldCount += isWhole ? server.lanes.size : server.heldLanes.size;
      for (const lane of isWhole ? server.lanes.values() : server.heldLanes) {
        if (held.length >= maxHeld) break;
        held.push(lane);
      }
    }
    const { oldest, writes: waiting } = this.room;
    const oldestMs = oldest === undefined ? undefined : Math.round(wallMs - (nowMs - oldest.bornMs));
    let unknownMs: number | undefined;
    for (const { sinceMs } of this.known.unknown) unknownMs = Math.min(unknownMs ?? sinceMs, sinceMs);
    return { waiting, oldestMs, unknown: this.known.unknown.size, unknownMs, held, heldCount };
  }

  get nextWakeMs(): number {
    return this.table.nextWakeMs;
  }
}
