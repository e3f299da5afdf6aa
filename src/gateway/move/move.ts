// Moves what a gateway keeps from disk into an engine, or back. Nothing is taken away from the source: when all of it is at the
// target, and counts and hashes say so, the source is marked, and the target's own mark goes. Whoever opens either of them
// before that is refused, or, on the source, finds it as it was; so it can be cut off anywhere and run again.

import { randomBytes } from "node:crypto";
import type { EngineSettings } from "../../contracts/settings.js";
import type { Store } from "../../contracts/store.js";
import { systemClock } from "../../runtime/clock.js";
import { capital } from "../../runtime/words/sentence.js";
import { idOf, markOf, type StateMark, setId, setMark } from "../state/mark.js";
import { refusalOf } from "../state/mark-text.js";
import { EngineSide } from "./engine-side.js";
import { isMoved, KNOWN_MAPS, MoveError, QUEUES, type QueueKind } from "./kinds.js";
import { LocalSide } from "./local-side.js";
import {
  type Conflict,
  digestOf,
  type KindSum,
  type MapIndex,
  type MapPlan,
  planList,
  planMap,
  sumOfLists,
  sumOfMap,
} from "./plan.js";
import { type Append, ITEM_BYTES, inParallel, type PlacedItem, type Side, sizeOf } from "./side.js";

export interface MovePlaces {
  readonly stateDir: string;
  readonly engine: EngineSettings;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
}

export interface MoveOptions extends MovePlaces {
  readonly to: "engine" | "local";
  /** Looks, counts and compares. */
  readonly dryRun: boolean;
  /** Called before each kind, and now and then within it. */
  readonly progress: (kind: string, done: number, total: number) => void;
}

export interface MovedKind extends KindSum {
  readonly kind: string;
  /** Written now, or in a dry run to be written; the rest was there. */
  readonly written: number;
  /** From an earlier move, and gone at the source since. */
  readonly removed: number;
}

export interface MoveReport {
  readonly from: string;
  readonly to: string;
  /** False in a dry run, and where there are conflicts: nothing is written then. */
  readonly moved: boolean;
  readonly kinds: readonly MovedKind[];
  readonly conflicts: readonly Conflict[];
}

/** So many conflicts are told; whoever has more has the wrong target. */
const MAX_CONFLICTS = 100;
/** Each is up to three writes of one commit, of which an engine takes some thousands. */
const REMOVED_AT_ONCE = 500;
const DEFAULT_TOKEN = "default token";

export async function moveState(options: MoveOptions): Promise<MoveReport> {
  const { stateDir, engine: settings, dryRun, to } = options;
  const local = await LocalSide.open(stateDir, { readOnly: dryRun });
  try {
    const engine = await EngineSide.open(settings, options);
    try {
      const [source, target] = to === "engine" ? [local, engine] : [engine, local];
      return await new Move(source, target, options).run();
    } finally {
      await engine.close();
    }
  } finally {
    await local.close();
  }
}

interface MapWork {
  readonly kind: string;
  readonly index: MapIndex;
  readonly plan: MapPlan;
}

interface QueueWork {
  readonly kind: QueueKind;
  readonly sum: KindSum;
  readonly append: readonly Append[];
  readonly remove: readonly { readonly partition: number; readonly keys: readonly string[] }[];
  readonly conflicts: readonly Conflict[];
}

class Move {
  readonly #source: Side;
  readonly #target: Side;
  readonly #options: MoveOptions;

  constructor(source: Side, target: Side, options: MoveOptions) {
    this.#source = source;
    this.#target = target;
    this.#options = options;
  }

  async run(): Promise<MoveReport> {
    const [source, target] = [this.#source, this.#target];
    const kept = demandState(source);
    this.#demandSameKey(kept.key);
    await this.#demandNobody();
    if (this.#isDoneButForItsEnd(kept.store)) return this.#end(kept.store);
    const isCopy = this.#demandMovable(kept.store);
    const maps = this.#planMaps(kept.store, isCopy);
    const token = this.#planToken(isCopy);
    const queues: QueueWork[] = [];
    for (const kind of QUEUES) queues.push(await this.#planQueue(kind, isCopy));
    const all = [...maps, token].flatMap(({ plan }) => plan.conflicts);
    const conflicts = [...all, ...queues.flatMap((one) => one.conflicts)].slice(0, MAX_CONFLICTS);
    const kinds = [
      ...[token, ...maps].map(({ kind, index, plan }) => {
        return { kind, ...sumOfMap(index), written: plan.put.length, removed: plan.remove.length };
      }),
      ...queues.map(({ kind, sum, append, remove }) => {
        const removed = remove.reduce((count, { keys }) => count + keys.length, 0);
        return { kind: kind.name, ...sum, written: append.length, removed };
      }),
    ];
    const report = { from: source.where, to: target.where, kinds, conflicts };
    if (this.#options.dryRun || conflicts.length > 0) return { ...report, moved: false };
    await this.#begin(kept);
    for (const work of maps) await this.#copyMap(work, kept.store);
    if (token.plan.put.length + token.plan.remove.length > 0) await target.setDefaultToken(source.defaultToken());
    for (const work of queues) await this.#copyQueue(work);
    await this.#verify(kinds);
    await target.tidy();
    await this.#demandNobody();
    await this.#marked(kept.store, "moved");
    await setMark(demandStore(target), undefined);
    return { ...report, moved: true };
  }

  // ── Whether it may begin ─────────────────────────────────────────────────────────────────────────────────────────

  #demandSameKey(key: Uint8Array): void {
    const target = this.#target;
    if (target.key === undefined || Buffer.compare(target.key, key) === 0) return;
    const next =
      this.#options.to === "engine"
        ? 'Take another "prefix" in "engine", under which nothing is kept yet.'
        : "Name an empty directory (--state DIR), or the one that was moved to the engine before.";
    throw new MoveError(
      `${capital(target.where)} has a sealing key of its own: sessions, logins and receipts of one would be good for nothing ` +
        `at the other. ${next}`,
    );
  }

  async #demandNobody(): Promise<void> {
    for (const side of [this.#source, this.#target]) {
      const users = await side.users(this.#options.signal);
      if (users.length === 0) continue;
      const who = users.length === 1 ? `Gateway ${users[0]} runs` : `Gateways ${users.join(", ")} run`;
      throw new MoveError(
        `${who} on ${side.where}. Stop all on it first (\`toolway drain NAME\`, or \`toolway down\`).`,
      );
    }
  }

  /** All was there and was verified, and only the target's mark is left. */
  #isDoneButForItsEnd(source: Store): boolean {
    const own = markOf(source);
    const other = this.#target.shared && markOf(this.#target.shared);
    const targetId = this.#target.shared && idOf(this.#target.shared);
    return (
      own?.state === "moved" &&
      own.otherId === targetId &&
      other?.state === "arriving" &&
      other.otherId === idOf(source)
    );
  }

  async #end(source: Store): Promise<MoveReport> {
    if (!this.#options.dryRun) await setMark(demandStore(this.#target), undefined);
    const kinds: MovedKind[] = [];
    for (const { kind, index } of await this.#indexes(source)) {
      kinds.push({ kind, ...sumOfMap(index), written: 0, removed: 0 });
    }
    for (const kind of QUEUES) {
      kinds.push({ kind: kind.name, ...(await this.#sumOfQueue(this.#source, kind)), written: 0, removed: 0 });
    }
    const moved = !this.#options.dryRun;
    return { from: this.#source.where, to: this.#target.where, moved, kinds, conflicts: [] };
  }

  /** Whether what the target has is from here. Throws where one of them is marked for something else. */
  #demandMovable(source: Store): boolean {
    const { shared: target } = this.#target;
    const own = markOf(source);
    const isGoingOn = own?.state === "leaving" && own.otherId === (target && idOf(target));
    if (own !== undefined && !isGoingOn) throw new MoveError(refusalOf(own));
    const there = target && markOf(target);
    if (there === undefined) return false;
    if (there.state !== "leaving" && there.otherId === idOf(source)) return true;
    throw new MoveError(refusalOf(there));
  }

  // ── What is to be done ───────────────────────────────────────────────────────────────────────────────────────────

  #planMaps(source: Store, isCopy: boolean): MapWork[] {
    const names = [...new Set([...KNOWN_MAPS, ...source.mapNames().filter(isMoved)])];
    return names.map((kind) => {
      const index = indexOf(source, kind);
      const target = this.#target.shared === undefined ? new Map<string, string>() : indexOf(this.#target.shared, kind);
      const plan = planMap(kind, index, target, isCopy);
      const large = plan.put.flatMap((key) => this.#tooLarge(kind, key, [jsonIn(source, kind, key)]));
      return { kind, index, plan: { ...plan, conflicts: [...plan.conflicts, ...large] } };
    });
  }

  #planToken(isCopy: boolean): MapWork {
    const index = tokenIndex(this.#source);
    return { kind: DEFAULT_TOKEN, index, plan: planMap(DEFAULT_TOKEN, index, tokenIndex(this.#target), isCopy) };
  }

  async #planQueue(kind: QueueKind, isCopy: boolean): Promise<QueueWork> {
    const [source, target] = [await this.#source.queue(kind), await this.#target.queue(kind)];
    const digests = digestsOf(source);
    const append: Append[] = [];
    const remove: { partition: number; keys: string[] }[] = [];
    const conflicts: Conflict[] = [];
    for (const partition of new Set([...source.keys(), ...target.keys()])) {
      const [mine, there] = [source.get(partition) ?? [], target.get(partition) ?? []];
      const theirs = there.map((item) => digestOf(item.texts()));
      const nameOf = (index: number) => there[index]?.name ?? "";
      const plan = planList(kind.name, digests.get(partition) ?? [], theirs, isCopy, nameOf);
      conflicts.push(...plan.conflicts);
      if (plan.remove > 0) remove.push({ partition, keys: there.slice(plan.same).map(({ key }) => key) });
      for (const item of mine.slice(plan.same)) {
        append.push(appendOf(item, partition));
        conflicts.push(...this.#tooLarge(kind.name, item.name, item.texts()));
      }
    }
    return { kind, sum: this.#sumOf(kind, digests), append, remove, conflicts };
  }

  #tooLarge(kind: string, key: string, texts: readonly (string | undefined)[]): Conflict[] {
    const [bytes, room] = [sizeOf(texts), this.#target.maxValueBytes];
    if (bytes <= room) return [];
    const why = `has ${bytes} bytes, and the engine takes ${room}: raise "max_payload" in the servers' config`;
    return [{ kind, key, why }];
  }

  // ── Doing it ─────────────────────────────────────────────────────────────────────────────────────────────────────

  async #begin({ store, key }: { readonly store: Store; readonly key: Uint8Array }): Promise<void> {
    const target = this.#target;
    await target.prepare(key);
    await demandId(store);
    await demandId(demandStore(target));
    // The lock says it of a directory, and dies with us: what is on disk stays usable until it is marked.
    if (this.#options.to === "local") {
      await this.#marked(store, "leaving");
      await this.#source.shutOut();
    }
    await setMark(demandStore(target), this.#mark("arriving", target, this.#source));
    // Whoever came in that moment has been heard by now, or finds the mark.
    await this.#demandNobody();
  }

  async #copyMap({ kind, index, plan }: MapWork, source: Store): Promise<void> {
    const map = demandStore(this.#target).map(kind);
    const from = source.map(kind);
    let done = index.size - plan.put.length;
    this.#tell(kind, done, index.size);
    await inParallel(plan.put, async (key) => {
      this.#options.signal.throwIfAborted();
      await map.put(key, from.get(key));
      this.#tell(kind, ++done, index.size);
    });
    await inParallel(plan.remove, (key) => map.delete(key));
  }

  async #copyQueue({ kind, sum, append, remove }: QueueWork): Promise<void> {
    const atOnce = Math.max(1, Math.min(REMOVED_AT_ONCE, Math.floor(this.#target.maxValueBytes / ITEM_BYTES)));
    for (const { partition, keys } of remove) {
      for (let n = 0; n < keys.length; n += atOnce) {
        await this.#target.remove(kind, partition, keys.slice(n, n + atOnce));
      }
    }
    let done = sum.count - append.length;
    this.#tell(kind.name, done, sum.count);
    await this.#target.append(kind, append, (count) => {
      this.#options.signal.throwIfAborted();
      done += count;
      this.#tell(kind.name, done, sum.count);
    });
  }

  #tell(kind: string, done: number, total: number): void {
    this.#options.progress(kind, done, total);
  }

  // ── Its end ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** What is at the target now, read anew, against what the source had and has. */
  async #verify(planned: readonly KindSum[]): Promise<void> {
    const [source, target] = [this.#source, this.#target];
    await target.reread();
    const kept = demandState(source).store;
    const there = await this.#indexes(demandStore(target), target);
    const wrong: string[] = [];
    let n = 0;
    const compare = (kind: string, own: KindSum, other: KindSum) => {
      const was = planned[n++];
      if (was?.hash === own.hash && own.hash === other.hash && own.count === other.count) return;
      wrong.push(`${kind}: ${own.count} (${own.hash}) at the source, ${other.count} (${other.hash}) at the target`);
    };
    for (const { kind, index } of await this.#indexes(kept)) {
      compare(kind, sumOfMap(index), sumOfMap(there.find((one) => one.kind === kind)?.index ?? new Map()));
    }
    for (const kind of QUEUES)
      compare(kind.name, await this.#sumOfQueue(source, kind), await this.#sumOfQueue(target, kind));
    if (wrong.length === 0) return;
    throw new MoveError(
      `What arrived is not what left, so nothing was marked as moved. ${wrong.join("; ")}. Somebody may write to one of them: ` +
        "stop that, and run it again.",
    );
  }

  /** The default token first, then maps, as the table of a move has them. */
  async #indexes(store: Store, side = this.#source): Promise<{ readonly kind: string; readonly index: MapIndex }[]> {
    const names = [...new Set([...KNOWN_MAPS, ...store.mapNames().filter(isMoved)])];
    return [
      { kind: DEFAULT_TOKEN, index: tokenIndex(side) },
      ...names.map((kind) => ({ kind, index: indexOf(store, kind) })),
    ];
  }

  async #sumOfQueue(side: Side, kind: QueueKind): Promise<KindSum> {
    return this.#sumOf(kind, digestsOf(await side.queue(kind)));
  }

  /**
   * Which partition a message on a disk would be in follows from the tokens of now; in an engine it was those of when it was sent.
   * On the way to a disk, which has no partitions, they are compared without.
   */
  #sumOf(kind: QueueKind, lists: ReadonlyMap<number, readonly string[]>): KindSum {
    if (this.#options.to === "engine" || kind.group !== "mail") return sumOfLists(lists);
    return sumOfLists(new Map([[0, [...lists.values()].flat().sort()]]));
  }

  async #marked(source: Store, state: "leaving" | "moved"): Promise<void> {
    await setMark(source, this.#mark(state, this.#source, this.#target));
  }

  #mark(state: StateMark["state"], own: Side, other: Side): StateMark {
    const otherId = idOf(demandStore(other)) ?? "";
    return { v: 1, state, at: systemClock.wall(), self: own.where, other: other.where, otherId };
  }
}

function demandState({ key, shared, where }: Side): { readonly store: Store; readonly key: Uint8Array } {
  if (key !== undefined && shared !== undefined) return { store: shared, key };
  throw new MoveError(`Nothing is kept in ${where}: there is nothing to move.`);
}

function demandStore({ shared, where }: Side): Store {
  if (shared === undefined) throw new MoveError(`Nothing is kept in ${where}.`);
  return shared;
}

async function demandId(store: Store): Promise<void> {
  if (idOf(store) === undefined) await setId(store, randomBytes(12).toString("base64url"));
}

function indexOf(store: Store, map: string): MapIndex {
  const index = new Map<string, string>();
  for (const [key, value] of store.map(map).entries()) index.set(key, digestOf([JSON.stringify(value)]));
  return index;
}

function jsonIn(store: Store, map: string, key: string): string {
  return JSON.stringify(store.map(map).get(key));
}

function tokenIndex(side: Side): MapIndex {
  const token = side.defaultToken();
  return new Map(token === undefined ? [] : [["default", digestOf([token])]]);
}

function digestsOf(queue: ReadonlyMap<number, readonly PlacedItem[]>): Map<number, string[]> {
  return new Map([...queue].map(([partition, items]) => [partition, items.map((item) => digestOf(item.texts()))]));
}

function appendOf(item: PlacedItem, partition: number): Append {
  return { partition, name: item.name, atMs: item.atMs, texts: item.texts };
}
