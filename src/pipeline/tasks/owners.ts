// The owners of tasks, kept over restarts: on disk before an agent is told of its task. What is kept and what goes is
// decided in table.ts.

import { createHash } from "node:crypto";
import type { DurableMap } from "../../contracts/store.js";
import { Fault } from "../../protocol/errors.js";
import type { ListPosition, OwnedTask } from "./ids.js";
import { type Admission, type TaskLimits, type TaskRecord, TaskTable } from "./table.js";

/** What is kept of a task's description, for lists while its server does not answer. They are a few hundred bytes. */
const MAX_DESCRIPTION = 2 * 1024;

export interface TaskOwnersOptions {
  readonly map: DurableMap<TaskRecord>;
  /** Milliseconds since 1970. */
  readonly wall: () => number;
  /** What could not be written, where nobody waits for it. */
  readonly failed: (error: unknown) => void;
  readonly limits?: TaskLimits;
}

export class TaskOwners {
  readonly #map: DurableMap<TaskRecord>;
  readonly #wall: () => number;
  readonly #failed: (error: unknown) => void;
  readonly #limits: TaskLimits | undefined;
  /** It is read when the first task is asked for: most gateways have none. */
  #read: TaskTable | undefined;

  constructor({ map, wall, failed, limits }: TaskOwnersOptions) {
    this.#map = map;
    this.#wall = wall;
    this.#failed = failed;
    this.#limits = limits;
  }

  /** The task as it is known now; undefined where it is not, or has become somebody else's. */
  find(task: OwnedTask): TaskRecord | undefined {
    const record = this.at(task);
    return record?.principal === task.principal && (record.tool ?? undefined) === task.tool ? record : undefined;
  }

  /** The task that a server means by an id. */
  at(task: Pick<OwnedTask, "server" | "place" | "own">): TaskRecord | undefined {
    return this.#table.get(keyOf(task));
  }

  /** Throws a Fault `limit` where one more task of this principal could not be kept. */
  demandRoom(principal: string): void {
    if (!this.#table.hasRoom(principal, this.#wall())) throw full("principal");
  }

  /** Resolves once it is on disk. Rejects with a Fault `limit`, or with what the store says; nobody has it then. */
  async begun(task: OwnedTask, era: TaskRecord["era"], lifetimeMs: number | null, text: string): Promise<void> {
    const at = this.#wall();
    const key = keyOf(task);
    const record: TaskRecord = {
      ...task,
      tool: task.tool ?? null,
      era,
      at,
      until: lifetimeMs === null ? null : at + lifetimeMs,
      ended: false,
      ...(era === "legacy" && text.length <= MAX_DESCRIPTION ? { task: text } : {}),
    };
    const admission = this.#table.put(key, record, at);
    if (admission.kind === "full") {
      // What stood under this key was another task, and that one is gone.
      this.#map.delete(key).catch(this.#failed);
      throw full(admission.whose);
    }
    for (const evicted of admission.evicted) this.#map.delete(evicted).catch(this.#failed);
    try {
      await this.#map.put(key, record);
    } catch (error) {
      if (this.#table.get(key) === record) this.#table.delete(key);
      // Whoever had a task under this key before has it no more.
      this.#map.delete(key).catch(this.#failed);
      throw error;
    }
  }

  /** What its server says of a task by now; empty where it does not know it any more. Only its end is written: it makes room for others. */
  described(record: TaskRecord, text: string, ended: boolean): void {
    // In the modern era the result is part of it, and there are no lists.
    if (record.era === "legacy" && text !== "" && text.length <= MAX_DESCRIPTION) record.task = text;
    if (!ended || record.ended) return;
    record.ended = true;
    const key = keyOf(record);
    if (this.#table.get(key) === record) this.#map.put(key, record).catch(this.#failed);
  }

  /** What is kept of a task by now, whoever wrote it. */
  told(key: string, record: TaskRecord | undefined): void {
    const table = this.#read;
    // It is read when it is needed, with this in it.
    if (table === undefined) return;
    const known = table.get(key);
    if (record === undefined) table.delete(key);
    else if (known?.principal === record.principal && known.at === record.at && known.tool === record.tool) {
      // The same task: whoever holds the record goes on with it.
      known.ended ||= record.ended;
      known.task = record.task ?? known.task;
    } else table.restore(key, record, this.#wall());
  }

  of(principal: string, behind: ListPosition | undefined): IterableIterator<[key: string, record: TaskRecord]> {
    return this.#table.of(principal, behind);
  }

  get #table(): TaskTable {
    this.#read ??= this.#restore();
    return this.#read;
  }

  #restore(): TaskTable {
    const table = new TaskTable(this.#limits);
    const nowMs = this.#wall();
    for (const [key, record] of [...this.#map.entries()].sort(([, a], [, b]) => a.at - b.at)) {
      if (!table.restore(key, record, nowMs)) this.#map.delete(key).catch(this.#failed);
    }
    return table;
  }
}

/** Ids may be long, and the keys of a store may not. */
function keyOf({ server, place, own }: Pick<OwnedTask, "server" | "place" | "own">): string {
  return createHash("sha256")
    .update(JSON.stringify([server, place, own]))
    .digest("base64url");
}

function full(whose: (Admission & { kind: "full" })["whose"]): Fault {
  const who = whose === "principal" ? "You have" : "The gateway has";
  return new Fault("limit", `${who} too many tasks that have not ended: cancel some, or wait for their end.`);
}
