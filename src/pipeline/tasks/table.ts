// Which task is whose: a bounded table that knows no disk and no clock. It decides what must go to make room, and when
// there is none. Keeping it over restarts is owners.ts.

import type { Era } from "../../protocol/modern.js";
import type { ListPosition, OwnedTask } from "./ids.js";

/** Most agents have a handful of tasks at a time; one that has more than this begins them and forgets them. */
const MAX_OF_PRINCIPAL = 1_000;
/** Of all principals: some 10 MB of memory and of disk, and ten agents gone wild. */
const MAX_TASKS = 10_000;
/** A task that says nothing of its end is taken to have ended after this: nobody waits a week for a call. */
const MAX_AGE_MS = 7 * 24 * 60 * 60 * 1000;

export interface TaskLimits {
  readonly ofPrincipal: number;
  readonly all: number;
}

export const TASK_LIMITS: TaskLimits = { ofPrincipal: MAX_OF_PRINCIPAL, all: MAX_TASKS };

export interface TaskRecord extends Omit<OwnedTask, "tool"> {
  readonly tool: OwnedTask["tool"] | null;
  /** Tasks of the two eras are different things; this is the one in which it was begun. */
  readonly era: Era;
  /** When it was begun, in milliseconds since 1970. */
  readonly at: number;
  /** When its server may forget it; null where it did not say. */
  readonly until: number | null;
  /** It is known to have ended. */
  ended: boolean;
  /** The JSON text of the task as its server described it last; absent where that was too long. */
  task?: string | undefined;
}

/** `put`: it is in the table, and these had to go for it. */
export type Admission =
  | { readonly kind: "put"; readonly evicted: readonly string[] }
  | { readonly kind: "full"; readonly whose: "principal" | "all" };

export class TaskTable {
  readonly #limits: TaskLimits;
  readonly #byKey = new Map<string, TaskRecord>();
  /** principal → its tasks, the oldest first. */
  readonly #ofPrincipal = new Map<string, Map<string, TaskRecord>>();

  constructor(limits: TaskLimits = TASK_LIMITS) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): TaskRecord | undefined {
    return this.#byKey.get(key);
  }

  /** Whether one more task of this principal could be kept. */
  hasRoom(principal: string, nowMs: number): boolean {
    return this.#room(principal, nowMs).kind === "put";
  }

  /** A task under the key of another takes its place: a server that was restarted may count anew. */
  put(key: string, record: TaskRecord, nowMs: number): Admission {
    this.delete(key);
    const room = this.#room(record.principal, nowMs);
    if (room.kind === "full") return room;
    for (const evicted of room.evicted) this.delete(evicted);
    this.#add(key, record);
    return room;
  }

  /** For what was kept by an earlier gateway, the oldest first; what is beyond the bounds is not taken. */
  restore(key: string, record: TaskRecord, nowMs: number): boolean {
    return this.put(key, record, nowMs).kind === "put";
  }

  delete(key: string): void {
    const record = this.#byKey.get(key);
    if (record === undefined) return;
    this.#byKey.delete(key);
    const own = this.#ofPrincipal.get(record.principal);
    own?.delete(key);
    if (own?.size === 0) this.#ofPrincipal.delete(record.principal);
  }

  /** The principal's tasks behind a position, the oldest first. */
  *of(principal: string, behind: ListPosition | undefined): IterableIterator<[key: string, record: TaskRecord]> {
    const own = [...(this.#ofPrincipal.get(principal) ?? [])].sort(byAge);
    for (const entry of own) {
      if (behind === undefined || comesAfter({ at: entry[1].at, key: entry[0] }, behind)) yield entry;
    }
  }

  #add(key: string, record: TaskRecord): void {
    this.#byKey.set(key, record);
    const own = this.#ofPrincipal.get(record.principal) ?? new Map<string, TaskRecord>();
    this.#ofPrincipal.set(record.principal, own.set(key, record));
  }

  /** The oldest that has ended goes: the principal's own where it has too many, else anybody's. */
  #room(principal: string, nowMs: number): Admission {
    const own = this.#ofPrincipal.get(principal);
    if (own !== undefined && own.size >= this.#limits.ofPrincipal) {
      const oldest = oldestEnded(own, nowMs);
      return oldest === undefined ? { kind: "full", whose: "principal" } : { kind: "put", evicted: [oldest] };
    }
    if (this.#byKey.size < this.#limits.all) return { kind: "put", evicted: [] };
    const oldest = oldestEnded(this.#byKey, nowMs);
    return oldest === undefined ? { kind: "full", whose: "all" } : { kind: "put", evicted: [oldest] };
  }
}

/** They stand in the order in which they were begun. */
function oldestEnded(records: ReadonlyMap<string, TaskRecord>, nowMs: number): string | undefined {
  for (const [key, record] of records) if (hasEnded(record, nowMs)) return key;
  return undefined;
}

function hasEnded({ ended, at, until }: TaskRecord, nowMs: number): boolean {
  // A clock that was set back must not keep a task for longer.
  return ended || (until !== null && until <= nowMs) || Math.abs(nowMs - at) > MAX_AGE_MS;
}

function byAge([a, one]: [string, TaskRecord], [b, other]: [string, TaskRecord]): number {
  return one.at - other.at || (a < b ? -1 : 1);
}

function comesAfter(one: ListPosition, other: ListPosition): boolean {
  return one.at > other.at || (one.at === other.at && one.key > other.key);
}
