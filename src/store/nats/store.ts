// The stores that several gateways share, in two streams of JetStream: one of keys, of each of which the last commit is kept,
// and one of partitions. Makes the streams where they are missing, and holds what was made against what was asked: a server
// that does not know a field leaves it out without a word.

import { DiscardPolicy, jetstreamManager, RetentionPolicy, StorageType, type StreamConfig } from "@nats-io/jetstream";
import type { Store } from "../../contracts/store.js";
import { systemClock } from "../../runtime/clock.js";
import type { TextVault } from "../../runtime/seal.js";
import { sleepUnref } from "../../runtime/wait.js";
import { CommitRoom } from "../commits/room.js";
import { HEAD_BYTES, openCommitStore } from "../commits/store.js";
import type { TryPace } from "../commits/stream.js";
import { StoreError } from "../store-error.js";
import { type EngineConnection, JetStreamStream, maxBodyBytes } from "./stream.js";

/** Servers from 2.15 on allow a thousand unless a number is said: one for each gateway that follows, and those it left behind. */
const MAX_CONSUMERS = 100_000;
/** Longer than any write is tried. */
const DEDUPE_NS = 2 * 60 * 1e9;
/** To make a stream, or to be told of it, over an election. */
const MANAGE_MS = 20_000;
const STREAM_NOT_FOUND = 10059;
const PREFIX = /^[A-Za-z0-9_-]{1,32}$/;

export interface NatsStoreOptions {
  readonly engine: EngineConnection;
  /** Tells the streams and subjects of one Toolway from those of others on the same engine. */
  readonly prefix: string;
  readonly replicas: number;
  readonly warn?: ((text: string) => void) | undefined;
}

export interface NatsStores {
  /** Of the sealing key alone, which is what the values of the others are sealed under. */
  keys(): Promise<Store>;
  /** What all gateways read: maps with one key a write. Its values are sealed, but for tests. */
  shared(vault?: TextVault): Promise<Store>;
  /** For its owner alone: whoever opened it before is refused from then on. Those of a group are apart from all others. */
  partition(number: number, vault?: TextVault, group?: string): Promise<Store>;
  /** For a look at what its owner keeps: it stays that one's, and nothing can be written. */
  readPartition(number: number, vault?: TextVault, group?: string): Promise<Store>;
  /** The partitions that anything was ever written to. */
  partitionsInUse(): Promise<readonly PartitionName[]>;
}

export interface PartitionName {
  readonly number: number;
  readonly group: string | undefined;
}

const realPace: TryPace = {
  now: systemClock.now,
  random: Math.random,
  sleep: sleepUnref,
};

export async function openNatsStores(options: NatsStoreOptions): Promise<NatsStores> {
  const { keys, parts } = streamsOf(options.prefix);
  await makeStream(options, keys);
  await makeStream(options, parts);
  return storesOf(options);
}

/** The same where they are there already; undefined, and nothing is made, where one of them is not. */
export async function findNatsStores(options: NatsStoreOptions): Promise<NatsStores | undefined> {
  const { keys, parts } = streamsOf(options.prefix);
  const manager = await jetstreamManager(options.engine.connection, { checkAPI: false, timeout: MANAGE_MS });
  for (const { name } of [keys, parts]) {
    try {
      await manager.streams.info(name);
    } catch (error) {
      if ((error as { code?: number }).code === STREAM_NOT_FOUND) return undefined;
      throw madeError(name, error);
    }
  }
  return storesOf(options);
}

/** What a sealed value may have, by what the engine says of its messages now. */
export function maxSealedBytes(engine: EngineConnection): number {
  return Math.floor((maxBodyBytes(engine) - HEAD_BYTES) * (3 / 4));
}

function streamsOf(prefix: string): { readonly keys: Asked; readonly parts: Asked } {
  if (!PREFIX.test(prefix)) {
    throw new StoreError(
      "invalid",
      `"${prefix}" cannot be the engine's prefix: letters, digits, "_" and "-", at most 32.`,
    );
  }
  return {
    keys: { name: `${prefix}_state`, subjects: [`${prefix}.state.>`], max_msgs_per_subject: 1 },
    parts: { name: `${prefix}_parts`, subjects: [`${prefix}.parts.>`] },
  };
}

function storesOf({ engine, prefix, warn }: NatsStoreOptions): NatsStores {
  const keys = streamsOf(prefix).keys.name;
  const parts = streamsOf(prefix).parts.name;
  const rest = { pace: realPace, warn };
  // What is kept for all gateways is small, and who owns what is among it: it waits for no mail.
  const room = new CommitRoom();
  const sharedStore = async (part: string, vault: TextVault | undefined) => {
    const stream = await JetStreamStream.open(engine, keys, realPace);
    const where = `the engine (${keys})`;
    const told = () => engine.heard();
    return openCommitStore({
      ...rest,
      stream,
      layout: "shared",
      prefix: `${prefix}.state.${part}.`,
      where,
      vault,
      told,
    });
  };
  const partition = async ({ number, group }: PartitionName, vault: TextVault | undefined, readOnly: boolean) => {
    const stream = await JetStreamStream.open(engine, parts, realPace);
    const name = group === undefined ? String(number) : `${group}-${number}`;
    const where = `partition ${name} of the engine (${parts})`;
    const own = `${prefix}.parts.${name}.`;
    return openCommitStore({ ...rest, stream, layout: "partition", prefix: own, where, vault, room, readOnly });
  };
  return {
    keys: () => sharedStore("keys", undefined),
    shared: (vault) => sharedStore("maps", vault),
    partition: (number, vault, group) => partition({ number, group }, vault, false),
    readPartition: (number, vault, group) => partition({ number, group }, vault, true),
    async partitionsInUse() {
      const manager = await jetstreamManager(engine.connection, { checkAPI: false, timeout: MANAGE_MS });
      const { state } = await manager.streams.info(parts, { subjects_filter: `${prefix}.parts.>` });
      return Object.keys(state.subjects ?? {}).flatMap((subject) => {
        const found = /^(?:(.+)-)?(\d+)$/.exec(subject.slice(`${prefix}.parts.`.length).split(".")[0] ?? "");
        return found === null ? [] : [{ number: Number(found[2]), group: found[1] }];
      });
    },
  };
}

type Asked = Partial<StreamConfig> & { readonly name: string };

async function makeStream({ engine, replicas }: NatsStoreOptions, own: Asked): Promise<void> {
  const asked: Asked = {
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    num_replicas: replicas,
    max_consumers: MAX_CONSUMERS,
    duplicate_window: DEDUPE_NS,
    // Copies may be behind the leader.
    allow_direct: false,
    ...own,
  };
  const manager = await jetstreamManager(engine.connection, { checkAPI: false, timeout: MANAGE_MS });
  let made: StreamConfig;
  try {
    made = (await manager.streams.info(own.name)).config;
  } catch (error) {
    if ((error as { code?: number }).code !== STREAM_NOT_FOUND) throw madeError(own.name, error);
    try {
      made = (await manager.streams.add({ ...asked })).config;
    } catch (cause) {
      throw madeError(own.name, cause);
    }
  }
  for (const [field, value] of Object.entries(asked)) {
    const has = (made as unknown as Record<string, unknown>)[field];
    // What is false is left out of what servers say.
    if (JSON.stringify(has ?? false) === JSON.stringify(value)) continue;
    const text = `The stream ${own.name} has ${field} ${JSON.stringify(has)}, and Toolway needs ${JSON.stringify(value)}.`;
    throw new StoreError(
      "invalid",
      `${text} Change it with \`nats stream edit ${own.name}\`, or take another "prefix".`,
    );
  }
}

function madeError(name: string, cause: unknown): StoreError {
  const text = `The engine did not make the stream ${name}: ${(cause as Error).message}.`;
  return new StoreError("io", `${text} Is JetStream on, with room, and as many nodes as "replicas" says?`, cause);
}
