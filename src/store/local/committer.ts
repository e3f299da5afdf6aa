// Group commit: collects writes while one commit is on its way to disk, then commits them together. Owns the order
// of writes, the bound on size and the errors of commits; knows nothing of maps and logs.

import type { StoreTrouble } from "../../contracts/store.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import { resultWithin } from "../../runtime/wait.js";
import { StoreError, toStoreError } from "../store-error.js";
import type { Env } from "./env.js";
import type { Space } from "./space.js";

export interface Write {
  readonly key: Buffer;
  /** The value's JSON; undefined deletes. */
  readonly json: string | undefined;
  /** Of key and value. */
  readonly bytes: number;
  /** Whom to tell of it. Undefined where nobody compares or watches the map. */
  readonly change?: TrackedChange | undefined;
}

/** A write to a map whose revisions are counted. */
export interface TrackedChange {
  readonly revision: number;
  /** It is on its way: who compares waits for it. */
  sent(commit: Promise<void>): void;
  /** It can be read. */
  committed(): void;
  failed(): void;
}

/** What waits in memory for the disk: a few seconds of a slow one. Beyond it callers are told, not queued. */
const MAX_PENDING_BYTES = 64 * MIB;
/** One commit, so that a flood of writes cannot delay the first of them without end. */
const MAX_GROUP_BYTES = 8 * MIB;
/** Counted for each write beside its bytes: the object, its promise, LMDB's instruction. */
const WRITE_OVERHEAD = 256;
/** Room kept back for deletes, so that a store on a full disk can be emptied. In pages. */
const RESERVE_PAGES = 64;
/**
 * What nobody waits for goes with the next commit, or by itself after so long. A sync of its own costs as much as one that many
 * share, and what somebody waits for would wait behind it.
 */
const MAX_WAIT_MS = 5;
/**
 * Who was answered by a commit writes again as a rule, at once or after what it wrote for is done. Where those are many, the next
 * commit waits for them while they keep coming, and for so long at most: two that have half of them each take twice the CPU, and no
 * less time.
 */
const MANY_REQUESTS = 8;
/** Nobody came for so long: the others do not come now. */
const QUIET_MS = 1;
const COMPANY_MS = 4;
/** They are not waited for when it has been so long. */
const EXPECTED_MS = 10;
/** LMDB tells the reason of a failed commit a moment after the failure; if it never does, we go on without. */
const REASON_WAIT_MS = 2_000;

interface Request {
  readonly writes: readonly Write[];
  readonly bytes: number;
  readonly growth: boolean;
  /** Nobody waits for it. */
  readonly mayWait: boolean;
  readonly resolve: () => void;
  readonly reject: (error: StoreError) => void;
}

/** What goes to disk in one commit. */
interface Group {
  readonly requests: Request[];
  readonly commits: Set<Promise<unknown>>;
  /** As LMDB was before it. */
  stats: EnvStats | undefined;
  usedBytes: number;
  bytes: number;
  writes: number;
  freshPages: number;
  /** Others that came with these were refused. */
  isPart: boolean;
}

interface TreeStats {
  readonly pageSize: number;
  readonly treeDepth: number;
  readonly treeBranchPageCount: number;
  readonly treeLeafPageCount: number;
  readonly overflowPages: number;
  readonly entryCount: number;
}
export interface EnvStats extends TreeStats {
  readonly lastPageNumber: number;
  readonly free: TreeStats;
}

export function envStats(env: Env): EnvStats {
  return env.getStats() as EnvStats;
}

function pages(tree: TreeStats): number {
  return tree.treeBranchPageCount + tree.treeLeafPageCount + tree.overflowPages;
}

/** What live data occupies. The file may be longer: pages of deleted data are used again, not given back. */
export function usedBytes(stats: EnvStats): number {
  return pages(stats) * stats.pageSize;
}

export function fileEnd(stats: EnvStats): number {
  return (stats.lastPageNumber + 1) * stats.pageSize;
}

/**
 * An upper bound of the pages that a commit appends: LMDB copies each page on the path to a change, may split it, and
 * writes its list of free pages anew.
 */
function pagesNeeded(stats: EnvStats, writes: number, freshPages: number): number {
  const path = stats.treeDepth + 1;
  const copied = Math.min(writes * path, pages(stats) + path);
  return Math.ceil(freshPages) + 2 * copied + 2 * pages(stats.free) + path + 8;
}

/** Pages for new values. Above about half a page a value gets its own; smaller ones leave pages a third full. */
function freshPages(writes: readonly Write[], pageSize: number): number {
  let sum = 0;
  for (const { json, bytes } of writes) {
    if (json === undefined) continue;
    sum += bytes > pageSize / 4 ? Math.ceil((bytes + 64) / pageSize) + 1 : (3 * bytes) / pageSize;
  }
  return sum;
}

export class Committer {
  /** Hears how long each commit took. */
  onCommit: ((ms: number) => void) | undefined;
  readonly #env: Env;
  readonly #space: Space;
  readonly #path: string;
  readonly #maxBytes: number;
  #queue: Request[] = [];
  #pendingBytes = 0;
  #running = false;
  /** For what may wait, and found no other to go with. */
  #timer: NodeJS.Timeout | undefined;
  /** How many requests the next commit waits for, and since when. */
  #expected = 0;
  #endedMs = 0;
  /** Called when they are there, while it waits. */
  #onExpected: (() => void) | undefined;
  /** LMDB was told of it, and begins at the end of this turn of the event loop: what comes before is in it too. */
  #open: Group | undefined;
  #idle: Array<() => void> = [];
  #trouble: (StoreTrouble & { readonly growth: number }) | undefined;

  constructor(env: Env, space: Space, path: string, maxBytes: number) {
    this.#env = env;
    this.#space = space;
    this.#path = path;
    this.#maxBytes = maxBytes;
  }

  /** Why the last commit that adds something failed, until one of them does not. */
  get trouble(): StoreTrouble | undefined {
    return this.#trouble;
  }

  /**
   * Resolves once all writes are on disk, in one commit; rejects with a StoreError when none of them is. What may wait keeps its
   * place among the others.
   */
  submit(writes: readonly Write[], mayWait = false): Promise<void> {
    if (writes.length === 0) return Promise.resolve();
    let bytes = 0;
    let growth = false;
    for (const write of writes) {
      bytes += write.bytes + WRITE_OVERHEAD;
      if (write.json !== undefined) growth = true;
    }
    if (this.#pendingBytes > 0 && this.#pendingBytes + bytes > MAX_PENDING_BYTES) {
      const limit = `${MAX_PENDING_BYTES / MIB} MiB`;
      return Promise.reject(
        new StoreError("busy", `More than ${limit} wait for the disk of ${this.#path}; try later.`),
      );
    }
    return new Promise((resolve, reject) => {
      this.#pendingBytes += bytes;
      const request = { writes, bytes, growth, mayWait, resolve, reject };
      if (this.#open !== undefined && this.#join(this.#open, request)) return;
      this.#queue.push(request);
      if (this.#queue.length >= this.#expected) this.#onExpected?.();
      if (mayWait) this.#startLater();
      else this.#start();
    });
  }

  #start(): void {
    if (this.#running) return;
    this.#running = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // Behind all that this turn of the event loop reads: what comes from many sockets at once is one commit.
    setImmediate(() => void this.#run());
  }

  #startLater(): void {
    if (!this.#running) this.#timer ??= setTimeout(() => this.#start(), MAX_WAIT_MS);
  }

  /** Resolves when nothing is pending. */
  drained(): Promise<void> {
    if (!this.#running && this.#queue.length === 0) return Promise.resolve();
    this.#start();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Somebody waits for some of what is queued. */
  #isAwaited(): boolean {
    return this.#idle.length > 0 || this.#queue.some(({ mayWait }) => !mayWait);
  }

  async #run(): Promise<void> {
    do {
      if (this.#isExpecting()) await this.#othersCame();
      const group = this.#takeGroup();
      let failure: StoreError | undefined;
      if (group.requests.length > 0) {
        const beganMs = performance.now();
        try {
          await this.#commit(group);
          this.onCommit?.(performance.now() - beganMs);
          if (this.#trouble !== undefined) this.#wentWell(group, this.#trouble);
        } catch (error) {
          failure = toStoreError(await reasonOf(error), this.#path);
          this.#failed(failure, group.requests);
        }
      }
      this.#endedMs = performance.now();
      const { requests } = group;
      this.#expected = requests.length < MANY_REQUESTS ? 0 : requests.length + this.#queue.length;
      for (const request of requests) {
        this.#pendingBytes -= request.bytes;
        if (failure === undefined) request.resolve();
        else request.reject(failure);
      }
    } while (this.#queue.length > 0 && this.#isAwaited());
    this.#running = false;
    if (this.#queue.length > 0) this.#startLater();
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #isExpecting(): boolean {
    const isFull = this.#queue.length >= this.#expected || this.#pendingBytes >= MAX_GROUP_BYTES;
    return !isFull && performance.now() - this.#endedMs < EXPECTED_MS;
  }

  async #othersCame(): Promise<void> {
    const untilMs = performance.now() + COMPANY_MS;
    await new Promise<void>((resolve) => {
      let came = this.#queue.length;
      const look = () => {
        if (this.#queue.length === came || performance.now() + QUIET_MS > untilMs) resolve();
        else timer = setTimeout(look, QUIET_MS);
        came = this.#queue.length;
      };
      let timer = setTimeout(look, QUIET_MS);
      this.#onExpected = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#onExpected = undefined;
  }

  async #commit(group: Group): Promise<void> {
    this.#open = group;
    // Before LMDB's own, by which it begins.
    setImmediate(() => {
      if (this.#open === group) this.#open = undefined;
    });
    try {
      group.commits.add(this.#write(group.requests));
      // LMDB's promise of those who join is the same one; were it not, they would be in another transaction, and waited for too.
      let awaited: number;
      do {
        awaited = group.commits.size;
        await Promise.all(group.commits);
      } while (group.commits.size > awaited);
    } finally {
      // It may be over before it began, where it fails: nobody joins it then.
      this.#open = undefined;
    }
  }

  #write(requests: readonly Request[]): Promise<unknown> {
    // Inside a batch the promises of single writes mean nothing; the batch's own is the commit.
    return this.#env.batch(() => {
      for (const { writes } of requests) {
        for (const { key, json } of writes) {
          if (json === undefined) void this.#env.remove(key);
          else void this.#env.put(key, json);
        }
      }
    });
  }

  /** False where it has to wait for the next one. */
  #join(group: Group, request: Request): boolean {
    if (this.#queue.length > 0 || group.bytes + request.bytes > MAX_GROUP_BYTES) return false;
    try {
      if (request.growth) this.#checkBound(request, group.usedBytes + group.bytes);
    } catch {
      return false;
    }
    if (this.#claim(group, [request]) !== undefined) return false;
    group.requests.push(request);
    group.commits.add(this.#write([request]));
    return true;
  }

  /** Takes from the queue what fits into one commit, the bound and the disk; refuses what does not fit at all. */
  #takeGroup(): Group {
    const none = { stats: undefined, usedBytes: 0, bytes: 0, writes: 0, freshPages: 0, isPart: false };
    const group: Group = { requests: [], commits: new Set(), ...none };
    try {
      group.stats = envStats(this.#env);
    } catch (error) {
      for (const request of this.#queue.splice(0)) this.#refuse(request, toStoreError(error, this.#path));
      return group;
    }
    group.usedBytes = usedBytes(group.stats);
    const candidates: Request[] = [];
    let bytes = 0;
    let taken = 0;
    for (const request of this.#queue) {
      if (bytes > 0 && bytes + request.bytes > MAX_GROUP_BYTES) break;
      taken++;
      try {
        if (request.growth) this.#checkBound(request, group.usedBytes + bytes);
        bytes += request.bytes;
        candidates.push(request);
      } catch (error) {
        group.isPart = true;
        this.#refuse(request, toStoreError(error, this.#path));
      }
    }
    this.#queue.splice(0, taken);
    if (candidates.length === 0) return group;
    if (this.#claim(group, candidates) === undefined) {
      group.requests.push(...candidates);
      return group;
    }
    // Not room for all: see whom there is room for, each in its turn.
    for (const request of candidates) {
      const error = this.#claim(group, [request]);
      if (error === undefined) group.requests.push(request);
      else {
        group.isPart = true;
        this.#refuse(request, error);
      }
    }
    return group;
  }

  /** Room on disk for these with those that it has; they are counted where there is. */
  #claim(group: Group, requests: readonly Request[]): StoreError | undefined {
    const { stats } = group;
    if (stats === undefined) return undefined;
    let { bytes, writes, freshPages: fresh } = group;
    for (const request of requests) {
      bytes += request.bytes;
      writes += request.writes.length;
      fresh += freshPages(request.writes, stats.pageSize);
    }
    const reserve = fresh > 0 ? RESERVE_PAGES : 0;
    try {
      this.#space.claim(fileEnd(stats), (pagesNeeded(stats, writes, fresh) + reserve) * stats.pageSize);
    } catch (error) {
      return toStoreError(error, this.#path);
    }
    group.bytes = bytes;
    group.writes = writes;
    group.freshPages = fresh;
    return undefined;
  }

  #refuse(request: Request, error: StoreError): void {
    this.#pendingBytes -= request.bytes;
    this.#failed(error, [request]);
    request.reject(error);
  }

  /** What went wrong first is when it began. */
  #failed({ code, message }: StoreError, requests: readonly Request[]): void {
    const growth = Math.min(...requests.map(growthOf));
    this.#trouble = {
      code: code === "full" || code === "disk-full" ? code : "failed",
      problem: message,
      sinceMs: this.#trouble?.sinceMs ?? Date.now(),
      growth,
    };
  }

  /** On a full disk deletes go on, and at the bound what replaces, too: that says nothing of what was refused. */
  #wentWell({ requests, isPart }: Group, { code, growth }: { readonly code: string; readonly growth: number }): void {
    if (isPart) return;
    const isOver =
      code === "full"
        ? usedBytes(envStats(this.#env)) + growth <= this.#maxBytes
        : requests.some((request) => request.growth);
    if (isOver) this.#trouble = undefined;
  }

  #checkBound(request: Request, used: number): void {
    let growth = growthOf(request);
    if (used + growth <= this.#maxBytes) return;
    // At the bound, what replaces or moves without growing is still let through: a queue must be able to drain.
    for (const { key } of request.writes) {
      const old = this.#env.getBinary(key);
      if (old !== undefined) growth -= key.length + old.length;
    }
    if (growth <= 0) return;
    throw new StoreError(
      "full",
      `The store at ${this.#path} has reached its limit of ${formatBytes(this.#maxBytes)}. ` +
        "Reading and deleting go on; delete what is no longer needed and writing goes on.",
    );
  }
}

function growthOf({ writes }: Request): number {
  let growth = 0;
  for (const write of writes) if (write.json !== undefined) growth += write.bytes;
  return growth;
}

function formatBytes(bytes: number): string {
  return bytes >= MIB ? `${Math.round(bytes / MIB)} MiB` : `${Math.round(bytes / KIB)} KiB`;
}

/** LMDB rejects with a general error that carries a promise, which in turn rejects with the reason. */
async function reasonOf(error: unknown): Promise<unknown> {
  const reason = (error as { commitError?: unknown } | null)?.commitError;
  if (!(reason instanceof Promise)) return error;
  const told = reason.then(
    () => error,
    (cause: unknown) => cause,
  );
  return (await resultWithin(told, REASON_WAIT_MS)) ?? error;
}
