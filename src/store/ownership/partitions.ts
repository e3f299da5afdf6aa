// The driver of ownership: keeps the state machine's records in the shared store, opens and closes partitions as it says, and asks it
// with the time of now.

import type { GatewaySeen, PartitionKeeper, Partitions } from "../../contracts/engine/partitions.js";
import type { SharedMap, Store } from "../../contracts/store.js";
import type { Clock } from "../../runtime/clock.js";
import { messageOf } from "../../runtime/expected-error.js";
import { resultWithin } from "../../runtime/wait.js";
import { StoreError } from "../store-error.js";
import {
  type GatewayRecord,
  gatewayOf,
  type Moment,
  Ownership,
  type OwnershipStep,
  type PartitionRecord,
} from "./ownership.js";

/** Enough for a hundred gateways to have some each, and few enough for one to have them all. */
export const PARTITIONS = 64;
/** What a keeper may still finish when it has lost a partition: longer, and others would wait for what they may take. */
const REST_MS = 5_000;
/**
 * The same where it gives away one that is still its own, as when it drains: as long as calls in flight have, and some more to
 * write them down.
 */
const GIVING_MS = 24_000;
/** While a partition is given away, whether its lease still runs. */
const LOOK_MS = 250;
/** For everything to be handed over: the rest of what is under way, and two writes for each partition. */
const RELEASE_MS = GIVING_MS + 5_000;

export interface PartitionsOptions {
  /** What all gateways read. */
  readonly shared: Store;
  /** Of one partition, from which its former owner is shut out. */
  readonly open: (partition: number) => Promise<Store>;
  /** This gateway, with another name at each start. No dot in it. */
  readonly self: string;
  readonly clock: Clock;
  readonly warn: (text: string) => void;
  readonly count?: number;
  /** Those who own partitions of one kind: each group has its own, and its own members. Default: all gateways. */
  readonly group?: string;
}

interface LayoutRecord {
  readonly v: 1;
  readonly partitions: number;
}

/** Knows who owns what when it resolves. Throws where the engine was made for another number of partitions. */
export async function openPartitions(options: PartitionsOptions): Promise<Partitions> {
  const count = options.count ?? PARTITIONS;
  const layout = options.shared.shared<LayoutRecord>("layout");
  const name = mapOf("partitions", options.group);
  await layout.create(name, { v: 1, partitions: count });
  const kept = layout.get(name);
  if (kept === undefined || kept.v !== 1 || kept.partitions !== count) {
    const has = typeof kept?.partitions === "number" ? `${kept.partitions} partitions` : "partitions of another form";
    throw new StoreError(
      "invalid",
      `The engine has ${has}, fixed when it was first used, and this Toolway wants ${count}: the queues would be looked for ` +
        'in the wrong places. Run the version that made it, or give this one another "prefix" in "engine".',
    );
  }
  return new OwnedPartitions(options, count);
}

/** FNV-1a: small, and the same everywhere. */
export function partitionOf(key: string, count: number): number {
  let hash = 0x811c9dc5;
  for (let n = 0; n < key.length; n++) hash = Math.imul(hash ^ key.charCodeAt(n), 0x01000193);
  return (hash >>> 0) % count;
}

class OwnedPartitions implements Partitions {
  readonly count: number;
  readonly #options: PartitionsOptions;
  readonly #ownership: Ownership;
  readonly #gateways: SharedMap<GatewayRecord>;
  readonly #records: SharedMap<PartitionRecord>;
  readonly #stores = new Map<number, Store>();
  /** Those that are being taken: what is lost meanwhile is closed afterwards. */
  readonly #taking = new Map<number, Promise<void>>();
  /** Those of which all who act for them were told that they are lost. */
  readonly #ending = new Set<number>();
  readonly #listeners = new Set<(partition: number) => void>();
  readonly #losers = new Set<(partition: number, isInTime: boolean) => Promise<void>>();
  /** As it was last told. */
  readonly #owners: (string | undefined)[] = [];
  /** Who is there, as it was last asked: calls ask. Undefined when something was seen or done since. */
  #seen: readonly GatewaySeen[] | undefined;
  #keeper: PartitionKeeper | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isDue = false;
  #isOver = false;
  #released: Promise<void> | undefined;
  #gone: (() => void) | undefined;

  constructor(options: PartitionsOptions, count: number) {
    this.#options = options;
    this.count = count;
    this.#ownership = new Ownership(options.self, count);
    this.#gateways = options.shared.shared<GatewayRecord>(mapOf("gateways", options.group));
    this.#records = options.shared.shared<PartitionRecord>(mapOf("partitions", options.group));
    for (const [name] of this.#gateways.entries()) this.#sawGateway(name);
    for (let partition = 0; partition < count; partition++) this.#sawPartition(partition);
    this.#gateways.watch((name) => {
      this.#sawGateway(name);
      this.#soon();
    });
    this.#records.watch((key) => {
      this.#sawPartition(Number(key));
      this.#soon();
    });
  }

  of(key: string): number {
    return partitionOf(key, this.count);
  }

  ownerOf(partition: number): string | undefined {
    return this.#ownership.ownerOf(partition);
  }

  mayAct(partition: number): boolean {
    return !this.#isOver && this.#ownership.mayAct(partition, this.#moment());
  }

  keeps(partition: number): boolean {
    return !this.#isOver && !this.#ending.has(partition) && this.#ownership.keeps(partition, this.#moment());
  }

  gateways(): readonly GatewaySeen[] {
    this.#seen ??= this.#ownership.living().map(({ name, isLeaving, held }) => {
      return { gateway: gatewayOf(name), isLeaving, partitions: held };
    });
    return this.#seen;
  }

  left(): readonly string[] {
    return this.#ownership.left();
  }

  run(keeper: PartitionKeeper): void {
    this.#keeper = keeper;
    this.#ownership.run();
    this.#turn();
  }

  onChange(listener: (partition: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onLost(listener: (partition: number, isInTime: boolean) => Promise<void>): () => void {
    this.#losers.add(listener);
    return () => this.#losers.delete(listener);
  }

  release(): Promise<void> {
    this.#released ??= this.#release();
    return this.#released;
  }

  async #release(): Promise<void> {
    this.#ownership.leave();
    const gone = new Promise<void>((resolve) => {
      this.#gone = resolve;
    });
    this.#turn();
    // Without the engine nothing can be handed over: others take it when they have heard nothing for a lease.
    await resultWithin(gone, RELEASE_MS);
    // Who has what is seen until the store is closed: this gateway goes on answering, and asks the others.
    this.#isOver = true;
    clearTimeout(this.#timer);
    await Promise.all([...this.#stores.keys()].map((partition) => this.#closeStore(partition)));
  }

  #moment(): Moment {
    return { nowMs: this.#options.clock.now(), wallMs: this.#options.clock.wall() };
  }

  #sawGateway(name: string): void {
    this.#seen = undefined;
    const seen = this.#gateways.read(name);
    this.#ownership.sawGateway(name, seen?.value, seen?.revision, this.#options.clock.now());
    // One that has ended owns nothing any more.
    if (seen?.value.isEnded !== true) return;
    for (let partition = 0; partition < this.count; partition++) {
      if (this.#owners[partition] !== this.ownerOf(partition)) this.#changed(partition);
    }
  }

  #sawPartition(partition: number): void {
    this.#seen = undefined;
    const seen = this.#records.read(String(partition));
    this.#ownership.sawPartition(partition, seen?.value, seen?.revision);
    this.#changed(partition);
  }

  #changed(partition: number): void {
    this.#owners[partition] = this.ownerOf(partition);
    for (const listener of this.#listeners) listener(partition);
  }

  /** What is seen in one turn of the event loop is decided on together. */
  #soon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => this.#turn());
  }

  #turn(): void {
    this.#isDue = false;
    if (this.#isOver) return;
    for (const step of this.#ownership.next(this.#moment())) this.#do(step);
    this.#seen = undefined;
    if (this.#ownership.isGone) this.#gone?.();
    clearTimeout(this.#timer);
    const waitMs = this.#ownership.wakeMs - this.#options.clock.now();
    this.#timer = setTimeout(() => this.#turn(), Math.max(1, Math.ceil(waitMs)));
    this.#timer.unref();
  }

  #do(step: OwnershipStep): void {
    switch (step.do) {
      case "open":
        this.#taking.set(step.partition, this.#open(step.partition));
        break;
      case "close":
        void this.#close(step.partition);
        break;
      case "forget":
        this.#gateways.delete(step.name).catch(() => {});
        break;
      case "gateway":
        void this.#write(step, this.#gateways, step.name, step.record, () => this.#sawGateway(step.name));
        break;
      default: {
        const { partition, record } = step;
        void this.#write(step, this.#records, String(partition), record, () => this.#sawPartition(partition));
      }
    }
  }

  async #write<V>(
    step: OwnershipStep & { readonly revision: number | undefined },
    map: SharedMap<V>,
    key: string,
    value: V,
    saw: () => void,
  ): Promise<void> {
    let outcome: "written" | "refused" | "unknown" = "unknown";
    try {
      const { revision } = step;
      const written = await (revision === undefined ? map.create(key, value) : map.update(key, value, revision));
      outcome = written === undefined ? "refused" : "written";
    } catch {
      // The engine is away, or nobody can say: what is seen next says it.
    }
    saw();
    this.#ownership.answered(step, outcome, this.#options.clock.now());
    this.#soon();
  }

  async #open(partition: number): Promise<void> {
    try {
      const store = await this.#options.open(partition);
      this.#stores.set(partition, store);
      this.#ownership.opened(partition);
      await this.#keeper?.taken(partition, store);
      this.#changed(partition);
    } catch (error) {
      // One that is fenced or lost while it is opened is only somebody else's.
      if ((error as { code?: string }).code !== "fenced") {
        this.#options.warn(`Partition ${partition} could not be opened, and is left to others: ${messageOf(error)}`);
      }
      await this.#closeStore(partition);
      this.#ownership.notOpened(partition, this.#options.clock.now());
    }
    this.#taking.delete(partition);
    this.#soon();
  }

  async #close(partition: number): Promise<void> {
    await this.#taking.get(partition);
    try {
      const isInTime = this.#ownership.holds(this.#moment());
      const lost = this.#keeper?.lost(partition, isInTime) ?? Promise.resolve();
      const own = resultWithin(lost, isInTime ? GIVING_MS : REST_MS);
      // Whoever else acts for it need not wait beside it, and goes on until then.
      await this.#whileHeld(own);
      this.#ending.add(partition);
      const isStillInTime = this.#ownership.holds(this.#moment());
      const others = [...this.#losers].map((told) => told(partition, isStillInTime));
      await Promise.all([own, resultWithin(Promise.all(others), REST_MS)]);
    } catch (error) {
      this.#options.warn(`Partition ${partition} was not closed in good order: ${messageOf(error)}`);
    }
    await this.#closeStore(partition);
    this.#ownership.closed(partition);
    this.#ending.delete(partition);
    this.#soon();
  }

  /** Until it is done, or nobody can say any more that what is ours is nobody else's. */
  async #whileHeld(work: Promise<unknown>): Promise<void> {
    const done = work.then(() => true);
    while (this.#ownership.holds(this.#moment()) && (await resultWithin(done, LOOK_MS)) !== true);
  }

  /** What a silent engine still has to say is not waited for. */
  async #closeStore(partition: number): Promise<void> {
    const store = this.#stores.get(partition);
    this.#stores.delete(partition);
    if (store !== undefined)
      await resultWithin(
        store.close().catch(() => {}),
        REST_MS,
      );
  }
}

function mapOf(name: string, group: string | undefined): string {
  return group === undefined ? name : `${group}-${name}`;
}
