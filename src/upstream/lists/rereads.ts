// How long a modern server's lists are good, and when they are read again where the server does not tell of changes.

import { createHash } from "node:crypto";
import type { Freshness, Listed, ListKind } from "../../contracts/upstream.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { type BackoffLimits, backoffCeiling } from "../../runtime/backoff.js";

/** A list is not read more often, whatever the server says: most say 0, for want of a better number. */
const MIN_WAIT_MS = 30_000;
/** A list that stays as it is is asked for at growing distances, up to this one. */
const MAX_WAIT_MS = 10 * 60_000;
/** Up to this share of the wait is added by chance, so that many servers are not asked together. */
const JITTER = 0.2;
/** A longer time counts as this one: timers take no more than some weeks, and nobody waits for it. */
const MAX_TTL_MS = 24 * 60 * 60_000;

/** Gathers what the pages of one list say: the shortest time, and the most private scope. */
export class FreshnessReader {
  #ttlMs: number | undefined;
  #isPromised = true;
  #cacheScope: "private" | "public" = "public";

  page(result: JsonObject): void {
    const { ttlMs, cacheScope } = result;
    if (typeof ttlMs !== "number") this.#isPromised = false;
    const ttl = typeof ttlMs === "number" && ttlMs > 0 ? Math.min(ttlMs, MAX_TTL_MS) : 0;
    this.#ttlMs = Math.min(this.#ttlMs ?? ttl, ttl);
    // What does not say that it may be shared may not.
    if (cacheScope !== "public") this.#cacheScope = "private";
  }

  /** Undefined where a page did not say. */
  get promisedMs(): number | undefined {
    return this.#isPromised ? this.#ttlMs : undefined;
  }

  get freshness(): Freshness {
    return { ttlMs: this.#ttlMs ?? 0, cacheScope: this.#ttlMs === undefined ? "private" : this.#cacheScope };
  }
}

interface Schedule {
  readonly hash: string;
  readonly unchanged: number;
  readonly timer: NodeJS.Timeout;
}

/** When each list is read again. `read` decides whether that is still wanted, and comes back by wasRead(). */
export class Rereads {
  readonly #random: () => number;
  readonly #read: (kind: ListKind) => void;
  readonly #schedules = new Map<ListKind, Schedule>();

  constructor(random: () => number, read: (kind: ListKind) => void) {
    this.#random = random;
    this.#read = read;
  }

  wasRead(kind: ListKind, hash: string, ttlMs: number): void {
    const before = this.#schedules.get(kind);
    clearTimeout(before?.timer);
    const unchanged = before?.hash === hash ? before.unchanged + 1 : 0;
    const waitMs = rereadWait(ttlMs, unchanged, this.#random());
    const timer = setTimeout(() => this.#read(kind), waitMs).unref();
    this.#schedules.set(kind, { hash, unchanged, timer });
  }

  stop(): void {
    for (const { timer } of this.#schedules.values()) clearTimeout(timer);
    this.#schedules.clear();
  }
}

export function rereadWait(ttlMs: number, unchanged: number, random: number): number {
  const baseMs = Math.max(MIN_WAIT_MS, ttlMs);
  const limits: BackoffLimits = { baseMs, maxMs: Math.max(baseMs, MAX_WAIT_MS) };
  return backoffCeiling(unchanged, limits) * (1 + JITTER * random);
}

/** Equal for the same list, text for text. */
export function hashOf(items: readonly Listed[]): string {
  const hash = createHash("sha256");
  for (const { json } of items) hash.update(json).update("\n");
  return hash.digest("base64");
}
