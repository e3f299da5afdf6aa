// An engine's prefix as an end of a move: the maps that all gateways share, and the partitions of what is queued. Of these it
// reads without shutting anybody out, and takes only those that it writes to; all of them when a move away from it begins.

import type { EngineSettings } from "../../contracts/settings.js";
import type { SharedMap, Store } from "../../contracts/store.js";
import { createTextVault, createVault, type TextVault } from "../../runtime/seal.js";
import { sleep } from "../../runtime/wait.js";
import { type Engine, engineAddress, openEngine } from "../../store/nats/connection.js";
import { findNatsStores, maxSealedBytes, type NatsStores, openNatsStores } from "../../store/nats/store.js";
import { type GatewayRecord, gatewayOf, LEASE_MS } from "../../store/ownership/ownership.js";
import { PARTITIONS } from "../../store/ownership/partitions.js";
import { engineKeys, findSealingKey, giveSealingKey } from "../engine/keyring.js";
import type { EngineKey, WrappedKey } from "../engine/keys.js";
import { KEPT_WRITES, MOVED_RECEIPTS, MoveError, type QueueKind } from "./kinds.js";
import {
  type Append,
  appendInBatches,
  byPartition,
  inParallel,
  maySendIn,
  type PlacedItem,
  type Side,
} from "./side.js";

/** A person waits: a cluster that is there answers within this, over an election too. */
const CONNECT_MS = 15_000;
/** Partitions that are opened at one time: each has the engine make a consumer. */
const OPENED_AT_ONCE = 8;
/** A gateway that lives renews its record every third of its lease. */
const LOOK_MS = 250;

/** Of a commit, beside its values: the names and keys of what one item consists of. */
const NAMES_BYTES = 8 * 1024;

type Group = "mail" | undefined;

export interface EngineSideOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
}

export class EngineSide implements Side {
  readonly where: string;
  readonly #settings: EngineSettings;
  readonly #options: EngineSideOptions;
  readonly #keys: readonly [EngineKey, ...EngineKey[]];
  readonly #connection: Engine;
  /** Undefined where the engine has nothing of this prefix. */
  #stores: NatsStores | undefined;
  #key: Uint8Array | undefined;
  #shared: Store | undefined;
  readonly #open = new Map<string, Store>();
  /** Records that somebody left who is gone, as they were then. Not more than there were. */
  readonly #silent = new Map<string, number>();

  /** Writes nothing. */
  static async open(settings: EngineSettings, options: EngineSideOptions): Promise<EngineSide> {
    const keys = engineKeys(settings.key, options.env);
    const { env, signal } = options;
    const connection = await openEngine(settings, { env, signal, firstConnectMs: CONNECT_MS, name: "toolway state" });
    const side = new EngineSide(settings, options, keys, connection);
    try {
      side.#stores = await findNatsStores(side.#storeOptions());
      if (side.#stores !== undefined) await side.#begin(side.#stores);
      return side;
    } catch (error) {
      await side.close();
      throw error;
    }
  }

  private constructor(
    settings: EngineSettings,
    options: EngineSideOptions,
    keys: readonly [EngineKey, ...EngineKey[]],
    connection: Engine,
  ) {
    this.#settings = settings;
    this.#options = options;
    this.#keys = keys;
    this.#connection = connection;
    this.where = `the engine at ${engineAddress(settings)} (prefix "${settings.prefix}")`;
  }

  get key(): Uint8Array | undefined {
    return this.#key;
  }

  get shared(): Store | undefined {
    return this.#shared;
  }

  get maxValueBytes(): number {
    return maxSealedBytes(this.#connection) - NAMES_BYTES;
  }

  async prepare(key: Uint8Array): Promise<void> {
    this.#stores ??= await openNatsStores(this.#storeOptions());
    if (this.#key !== undefined) return;
    {
      await using store = await this.#stores.keys();
      await giveSealingKey(store.shared<WrappedKey>("keys"), this.#keys, key);
    }
    await this.#begin(this.#stores);
  }

  defaultToken(): string | undefined {
    const sealed = this.#shared?.map<{ readonly sealed: string }>("default-token").get("default")?.sealed;
    if (sealed === undefined || this.#key === undefined) return undefined;
    const token = createVault(this.#key).unseal("default token", sealed);
    if (typeof token !== "string")
      throw new MoveError("The default token in the engine cannot be read: update Toolway.");
    return token;
  }

  async setDefaultToken(token: string | undefined): Promise<void> {
    const map = this.#opened().map<{ readonly v: 1; readonly sealed: string }>("default-token");
    if (token === undefined) await map.delete("default");
    else await map.put("default", { v: 1, sealed: createVault(this.#key as Uint8Array).seal("default token", token) });
  }

  async queue(kind: QueueKind): Promise<ReadonlyMap<number, readonly PlacedItem[]>> {
    const found = new Map<number, readonly PlacedItem[]>();
    const maySend = maySendIn(this.#shared);
    for (const [partition, store] of await this.#partitionsOf(kind.group)) {
      found.set(
        partition,
        [...kind.items(store, maySend)].map((item) => ({ ...item, store })),
      );
    }
    return found;
  }

  async append(kind: QueueKind, all: readonly Append[], written: (count: number) => void): Promise<void> {
    for (const [partition, items] of byPartition(all)) {
      if (kind === KEPT_WRITES) await this.#knowReceipts(partition, items);
      await appendInBatches(kind, await this.#owned(kind.group, partition), items, this.maxValueBytes, written);
    }
  }

  async remove(kind: QueueKind, partition: number, keys: readonly string[]): Promise<void> {
    await kind.remove(await this.#owned(kind.group, partition), keys);
  }

  async reread(): Promise<void> {
    await this.#closeStores();
    if (this.#stores !== undefined) await this.#begin(this.#stores);
  }

  /** Receipts of an earlier move may have been forgotten since, on the disk that this one comes from. */
  async tidy(): Promise<void> {
    const map = this.#opened().map(MOVED_RECEIPTS);
    const there = await this.queue(KEPT_WRITES);
    const ids = new Set([...there.values()].flatMap((items) => items.map(({ name }) => name)));
    const gone = [...map.entries()].map(([id]) => id).filter((id) => !ids.has(id));
    await inParallel(gone, (id) => map.delete(id));
  }

  /** A gateway that is frozen renews nothing, and may wake up: who opens a partition for its owner shuts out the last one. */
  async shutOut(): Promise<void> {
    const stores = this.#stores;
    if (stores === undefined || this.#key === undefined) return;
    const vault = this.#vault();
    const waiting = (await stores.partitionsInUse()).values();
    const openSome = async () => {
      for (const { number, group } of waiting) await (await stores.partition(number, vault, group)).close();
    };
    await Promise.all(Array.from({ length: OPENED_AT_ONCE }, openSome));
  }

  /** A record that moves is of one that lives; one that a killed gateway left is silent for a lease. */
  async users(signal: AbortSignal): Promise<readonly string[]> {
    if (this.#shared === undefined) return [];
    const maps = ["gateways", "mail-gateways"].map((name) => this.#opened().shared<GatewayRecord>(name));
    const revisionsIn = (map: SharedMap<GatewayRecord>) => {
      return new Map([...revisionsOf(map)].filter(([name, revision]) => this.#silent.get(name) !== revision));
    };
    const first = maps.map(revisionsIn);
    const begun = performance.now();
    const seen = new Set<string>();
    const isOver = () => {
      const waited = performance.now() - begun;
      if (waited > LEASE_MS + LOOK_MS) return true;
      // All who live have been heard once within half a lease.
      if (seen.size > 0) return waited > LEASE_MS / 2;
      return maps.every((map) => revisionsIn(map).size === 0);
    };
    while (!isOver()) {
      await sleep(LOOK_MS);
      // With its own reason, by which the command line knows that it was interrupted.
      signal.throwIfAborted();
      for (const [n, map] of maps.entries()) {
        for (const [name, revision] of revisionsIn(map))
          if (first[n]?.get(name) !== revision) seen.add(gatewayOf(name));
      }
    }
    if (seen.size === 0) for (const map of maps) for (const [name, at] of revisionsIn(map)) this.#silent.set(name, at);
    return [...seen];
  }

  async close(): Promise<void> {
    try {
      await this.#closeStores();
    } finally {
      await this.#connection.close();
    }
  }

  async #begin(stores: NatsStores): Promise<void> {
    {
      await using store = await stores.keys();
      this.#key = findSealingKey(store.shared<WrappedKey>("keys"), this.#keys);
    }
    if (this.#key === undefined) return;
    this.#shared = await stores.shared(createTextVault(this.#key));
    const held = this.#shared.stats().held ?? 0;
    if (held > 0) {
      throw new MoveError(
        `${held} records in ${this.where} cannot be read: a newer Toolway wrote them, or they are sealed under another key. ` +
          "Update this one, then move.",
      );
    }
    for (const group of ["partitions", "mail-partitions"]) {
      const count = this.#shared.map<{ readonly partitions?: number }>("layout").get(group)?.partitions ?? PARTITIONS;
      if (count !== PARTITIONS) {
        throw new MoveError(`${this.where} has ${count} partitions, and this Toolway knows ${PARTITIONS}.`);
      }
    }
  }

  async #partitionsOf(group: Group): Promise<(readonly [number, Store])[]> {
    const stores = this.#stores;
    if (stores === undefined || this.#key === undefined) return [];
    const vault = this.#vault();
    const inUse = (await stores.partitionsInUse()).filter((one) => one.group === group);
    const found: (readonly [number, Store])[] = [];
    const waiting = inUse.values();
    const openSome = async () => {
      for (const { number } of waiting) {
        const name = nameOf(group, number);
        const store = this.#open.get(name) ?? (await stores.readPartition(number, vault, group));
        this.#open.set(name, store);
        found.push([number, store]);
      }
    };
    await Promise.all(Array.from({ length: OPENED_AT_ONCE }, openSome));
    return found.sort(([a], [b]) => a - b);
  }

  /** Opened for its owner: whoever had it is refused from then on. */
  async #owned(group: Group, partition: number): Promise<Store> {
    const name = `own ${nameOf(group, partition)}`;
    let store = this.#open.get(name);
    if (store === undefined) {
      store = await (this.#stores as NatsStores).partition(partition, this.#vault(), group);
      this.#open.set(name, store);
    }
    return store;
  }

  /** Receipts name their partition there. Of those that were given on a disk it is written down, before they are there. */
  async #knowReceipts(partition: number, items: readonly Append[]): Promise<void> {
    const map = this.#opened().map(MOVED_RECEIPTS);
    const unnamed = items.filter(({ name }) => !name.startsWith(`p${partition}_`));
    await inParallel(unnamed, ({ name }) => map.put(name, { v: 1, partition }));
  }

  async #closeStores(): Promise<void> {
    const all = [...this.#open.values(), ...(this.#shared === undefined ? [] : [this.#shared])];
    this.#open.clear();
    this.#shared = undefined;
    await Promise.all(all.map((store) => store.close()));
  }

  #vault(): TextVault {
    return createTextVault(this.#key as Uint8Array);
  }

  #opened(): Store {
    if (this.#shared === undefined) throw new MoveError(`${this.where} was not prepared.`);
    return this.#shared;
  }

  #storeOptions() {
    const { prefix, replicas } = this.#settings;
    return { engine: this.#connection, prefix, replicas, warn: this.#options.warn };
  }
}

function nameOf(group: Group, partition: number): string {
  return group === undefined ? String(partition) : `${group}-${partition}`;
}

/** Of those that have not ended. */
function revisionsOf(map: SharedMap<GatewayRecord>): Map<string, number> {
  const found = new Map<string, number>();
  for (const [name, { isEnded }] of map.entries()) {
    const revision = map.read(name)?.revision;
    if (isEnded !== true && revision !== undefined) found.set(name, revision);
  }
  return found;
}
