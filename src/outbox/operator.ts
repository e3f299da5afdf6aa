// What may be asked of the outbox, and done about it: by a principal about its own writes, and by the operator about all.

import { ownToolName } from "../contracts/names.js";
import type {
  OutboxEntry,
  OutboxFilter,
  OutboxLane,
  OutboxLanes,
  OutboxOperator,
  OutboxTotals,
  Receipt,
  Receipts,
} from "../contracts/outbox.js";
import { ExpectedError } from "../runtime/expected-error.js";
import { holdOfLane, type KeptWrite, type WriteLane } from "./lanes/lane.js";
import type { Step } from "./lanes/step.js";
import { RECORD_VERSION, type StrangeRecord } from "./lanes/write.js";
import type { Outbox } from "./outbox.js";
import type { ChangeListener } from "./parts.js";

class OutboxError extends ExpectedError {
  override readonly name = "OutboxError";
  override readonly kind = "failed";
}

export class OutboxOperations implements Receipts, OutboxOperator {
  readonly #outbox: Outbox;
  readonly #now: () => number;
  readonly #wall: () => number;

  constructor(outbox: Outbox, clock: { readonly now: () => number; readonly wall: () => number }) {
    this.#outbox = outbox;
    this.#now = clock.now;
    this.#wall = clock.wall;
  }

  // ---- of a principal

  get(principal: string, id: string): Receipt | undefined {
    const write = this.#outbox.lanes.get(id);
    // One that is not its own is as one that is not there.
    return write === undefined || write.facts.principal.id !== principal || !write.isCommitted
      ? undefined
      : this.#outbox.receipt(write);
  }

  /** Without their results, which may be megabytes: they are asked for one by one. */
  of(principal: string, limit: number): readonly Receipt[] {
    const own = [...this.#outbox.lanes.all].filter(
      (write) => write.facts.principal.id === principal && write.isCommitted,
    );
    return newest(own, limit).map((write) => this.#outbox.receipt(write, false));
  }

  async cancel(principal: string, id: string): Promise<Receipt | undefined> {
    const write = this.#outbox.lanes.get(id);
    if (write === undefined || write.facts.principal.id !== principal) return undefined;
    await this.#outbox.cancel(write);
    return this.#outbox.receipt(write);
  }

  onChange(listener: ChangeListener): () => void {
    return this.#outbox.onChange(listener);
  }

  // ---- of the operator

  get own(): this {
    return this;
  }

  /** Without their results and lives, which are shown one at a time. */
  list(filter: OutboxFilter): readonly OutboxEntry[] {
    const { server, principal, state, limit } = filter;
    const fits = ({ facts, state: is }: KeptWrite) =>
      (server === undefined || facts.server === server) &&
      (principal === undefined || facts.principal.id === principal) &&
      (state === undefined || is === state);
    const strange = [...this.#outbox.strange.values()].filter(
      (one) =>
        (server === undefined || one.server === server) &&
        (principal === undefined || one.principal === principal) &&
        (state === undefined || state === "queued"),
    );
    const known = newest([...this.#outbox.lanes.all].filter(fits), Math.max(0, limit - strange.length));
    return [...strange.slice(0, limit).map(strangeEntry), ...known.map((write) => this.#entry(write, false))];
  }

  show(id: string): OutboxEntry | undefined {
    const write = this.#outbox.lanes.get(id);
    if (write !== undefined) return this.#entry(write);
    const strange = this.#outbox.strange.get(id);
    return strange === undefined ? undefined : strangeEntry(strange);
  }

  lanes(): readonly OutboxLane[] {
    return [...this.#outbox.lanes.lanes()].map((lane) => this.#lane(lane));
  }

  firstLanes(max: number): OutboxLanes {
    const { lanes: all } = this.#outbox;
    const lanes: OutboxLane[] = [];
    for (const lane of all.lanes()) {
      if (lanes.length >= max) break;
      lanes.push(this.#lane(lane));
    }
    return { lanes, more: all.laneCount - lanes.length };
  }

  totals(maxHeld: number): OutboxTotals {
    const totals = this.#outbox.lanes.totals(maxHeld, this.#now(), this.#wall());
    return { ...totals, held: totals.held.map((lane) => this.#lane(lane)) };
  }

  async retry(id: string): Promise<OutboxEntry> {
    const write = this.#demand(id);
    return this.#done(write, "sent again", this.#outbox.lanes.retry(write, this.#now(), this.#wall()));
  }

  async drop(id: string): Promise<OutboxEntry> {
    const strange = this.#outbox.strange.get(id);
    if (strange !== undefined) {
      await this.#outbox.journal.forget([{ sequence: strange.sequence, hasText: true }]);
      this.#outbox.strange.delete(id);
      return strangeEntry(strange);
    }
    const write = this.#demand(id);
    return this.#done(write, "dropped", this.#outbox.lanes.drop(write, this.#now(), this.#wall()));
  }

  async hold(server: string, lane: string | undefined): Promise<number> {
    await this.#outbox.journal.hold(server, lane);
    return this.#outbox.lanes.hold(server, lane);
  }

  async release(server: string, lane: string | undefined): Promise<number> {
    await this.#outbox.journal.release(server, lane);
    const { count, steps } = this.#outbox.lanes.release(server, lane, this.#now(), this.#wall());
    this.#outbox.run(steps);
    await this.#outbox.settled();
    return count;
  }

  async resolve(id: string, as: "done" | "failed" | "again"): Promise<OutboxEntry> {
    const write = this.#demand(id);
    return this.#done(write, "resolved", this.#outbox.lanes.resolve(write, as, this.#now(), this.#wall()));
  }

  async #done(write: KeptWrite, what: string, steps: string | readonly Step[]): Promise<OutboxEntry> {
    const { id } = write.facts;
    if (typeof steps === "string") throw new OutboxError(`Receipt ${id} cannot be ${what}: ${steps}.`);
    this.#outbox.run(steps);
    await this.#outbox.settled(write);
    return this.#entry(write);
  }

  #demand(id: string): KeptWrite {
    const write = this.#outbox.lanes.get(id);
    if (write !== undefined) return write;
    const strange = this.#outbox.strange.get(id);
    if (strange === undefined) throw new OutboxError(`There is no receipt ${id} (\`toolway outbox list\`).`);
    throw new OutboxError(`Receipt ${id}: ${strangeWhy(strange)}`);
  }

  #entry(write: KeptWrite, isWhole = true): OutboxEntry {
    const lane = this.#outbox.lanes.laneOf(write);
    const waitsUntilMs = lane === undefined ? 0 : Math.max(lane.notBeforeMs, lane.server.away?.untilMs ?? 0);
    const inMs = waitsUntilMs - this.#now();
    return {
      ...this.#outbox.receipt(write, isWhole),
      principal: write.facts.principal.id,
      lane: write.facts.lane ?? "",
      heldFor: this.#outbox.lanes.holdOf(write)?.why,
      nextTryMs: write.state === "queued" && inMs > 0 ? Math.round(this.#wall() + inMs) : undefined,
      bytes: write.facts.bytes,
      ...(isWhole && { life: write.life ?? [] }),
    };
  }

  #lane(lane: WriteLane): OutboxLane {
    const [first] = lane.writes;
    // One that is empty may wait to be told what became of its write.
    const known = first ?? lane.hold?.of;
    return {
      server: lane.server.name,
      lane: lane.key,
      depth: lane.writes.length,
      oldestMs: first?.facts.takenMs,
      heldFor: holdOfLane(lane)?.why,
      isServerHeld: lane.server.isHeld,
      isOrdered: known === undefined || known.facts.lane !== undefined,
    };
  }
}

function newest(writes: KeptWrite[], limit: number): KeptWrite[] {
  return writes.sort((a, b) => b.sequence - a.sequence).slice(0, limit);
}

/** One that this program cannot read is shown as what it is: held, until another version of it is there. */
function strangeEntry(strange: StrangeRecord): OutboxEntry {
  const why = strangeWhy(strange);
  return {
    id: strange.id,
    server: strange.server,
    tool: ownToolName(strange.tool),
    state: "queued",
    idempotencyKey: "",
    position: undefined,
    takenMs: 0,
    sinceMs: 0,
    why,
    attempts: 0,
    result: undefined,
    error: undefined,
    principal: strange.principal,
    lane: "",
    heldFor: why,
    nextTryMs: undefined,
    bytes: 0,
  };
}

function strangeWhy({ version }: StrangeRecord): string {
  const what =
    version === String(RECORD_VERSION)
      ? `its record is of this version ("v": ${version}), and has words that this program does not know. It is kept as it is: start the Toolway that wrote it`
      : `it was written by another version of Toolway (its record has "v": ${version}). It is kept as it is: start that version`;
  return `${what} to deliver it, or drop it.`;
}
