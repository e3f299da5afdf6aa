// What a version of nats-server can and cannot do, by its number: what it lacks it drops without a word, so that the
// absence of an error proves nothing.

export type NatsVersion = readonly [major: number, minor: number, patch: number];

/** What Debian stable has. Nothing older was ever run. */
export const OLDEST_VERSION: NatsVersion = [2, 9, 10];

/** `sync_interval` is known; a removal outlives kill -9. */
const WITH_SYNC: NatsVersion = [2, 10, 0];
/** Below it, kill -9 of a node could lose a whole stream. */
const WITH_SAFE_KILL: NatsVersion = [2, 10, 23];
/** Below it, an id could be remembered as a duplicate although its message was not kept. */
const WITH_SAFE_DUPLICATES: NatsVersion = [2, 11, 0];

/** Undefined for what is no version. What follows the numbers ("-beta.1") is not looked at. */
export function readVersion(text: string): NatsVersion | undefined {
  const match = /^v?(\d{1,5})\.(\d{1,5})\.(\d{1,5})/.exec(text);
  return match === null ? undefined : [Number(match[1]), Number(match[2]), Number(match[3])];
}

export function isAtLeast(version: NatsVersion, other: NatsVersion): boolean {
  for (let n = 0; n < 3; n++) {
    const [a = 0, b = 0] = [version[n], other[n]];
    if (a !== b) return a > b;
  }
  return true;
}

/** Why a node of this version cannot be used; undefined where it can. */
export function versionProblem(text: string): string | undefined {
  const version = readVersion(text);
  if (version === undefined)
    return `It says that its version is ${JSON.stringify(text)}, which is none of nats-server.`;
  if (isAtLeast(version, OLDEST_VERSION)) return undefined;
  return `It runs nats-server ${version.join(".")}, and Toolway needs ${OLDEST_VERSION.join(".")} or newer: upgrade it.`;
}

/** What is known of how the engine keeps what it acknowledges. */
export interface EngineFacts {
  /** The oldest of the nodes that were met. */
  readonly version: string;
  readonly nodes: number;
  readonly replicas: number;
  /** As the monitoring address says it; undefined where there is none, or it does not say. */
  readonly syncsAlways: boolean | undefined;
}

export interface EnginePromise {
  readonly holds: boolean;
  /** A sentence that says what holds, or what does not and what to do. */
  readonly sentence: string;
}

/** Which promises an engine can keep, as a start says them. */
export function enginePromises({ version: text, nodes, replicas, syncsAlways }: EngineFacts): EnginePromise[] {
  const version = readVersion(text) ?? OLDEST_VERSION;
  const has = (since: NatsVersion) => isAtLeast(version, since);
  const promises: EnginePromise[] = [
    copiesPromise(nodes, replicas),
    fsyncPromise(has(WITH_SYNC), syncsAlways, replicas),
    has(WITH_SAFE_KILL)
      ? { holds: true, sentence: "A kill -9 of a node loses no stream." }
      : {
          holds: false,
          sentence: `A kill -9 of a node can lose a stream below ${WITH_SAFE_KILL.join(".")}, and this is ${text}: upgrade.`,
        },
  ];
  if (!has(WITH_SYNC)) {
    promises.push({
      holds: false,
      sentence: `What was removed may come back after a kill -9 below ${WITH_SYNC.join(".")}. The journal keeps it from happening twice.`,
    });
  }
  if (!has(WITH_SAFE_DUPLICATES)) {
    promises.push({
      holds: false,
      sentence: `Below ${WITH_SAFE_DUPLICATES.join(".")} an answer "duplicate" is no proof that a write was kept.`,
    });
  }
  return promises;
}

function copiesPromise(nodes: number, replicas: number): EnginePromise {
  // First of all: with too few nodes nothing is acknowledged, and no other sentence about copies is true.
  if (nodes < replicas) {
    return {
      holds: false,
      sentence: `"replicas" is ${replicas}, and the cluster has ${nodes} node${nodes === 1 ? "" : "s"}: nothing can be created.`,
    };
  }
  if (replicas > 1) {
    return {
      holds: true,
      sentence: `Acknowledged means kept by a majority of ${replicas} nodes: the loss of one loses nothing.`,
    };
  }
  return {
    holds: false,
    sentence:
      "Acknowledged means kept by one node: what its disk loses is lost, and while it is away nothing is written. " +
      'Run three nodes and set "replicas" to 3.',
  };
}

function fsyncPromise(canSync: boolean, syncsAlways: boolean | undefined, replicas: number): EnginePromise {
  const others = replicas > 1 ? "unless all nodes lose power at once" : "unless the machine loses power";
  if (!canSync) {
    return {
      holds: false,
      sentence: `Acknowledged is not yet on disk: below ${WITH_SYNC.join(".")} it is synced later. Nothing is lost ${others}.`,
    };
  }
  if (syncsAlways === undefined) {
    return {
      holds: false,
      sentence:
        "Whether acknowledged means on disk is unknown: only the monitoring port says it. " +
        'Set "monitor" in "engine" to the address of one, as "http://127.0.0.1:8222".',
    };
  }
  return syncsAlways
    ? { holds: true, sentence: "Acknowledged means on disk: the nodes sync each write." }
    : {
        holds: false,
        sentence:
          `Acknowledged is not yet on disk: the nodes sync every two minutes by default. Nothing is lost ${others}; ` +
          "set `sync_interval: always` under `jetstream` in the servers' config where that is not enough.",
      };
}
