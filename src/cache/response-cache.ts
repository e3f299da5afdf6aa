// The kept replies: by server, shelf and request, within bounds of number, bytes and time. Pure: told the time, it holds
// no timer. Whether a reply may be kept is cacheable.ts, who waits for one is cache.ts.

import type { OwnToolName } from "../contracts/names.js";
import type { CacheLimits } from "../contracts/settings.js";
import type { BytesReply } from "../protocol/reply.js";
import type { Clock } from "../runtime/clock.js";
import { aged, type FreshReply } from "./cacheable.js";

export interface CacheStats {
  /** Answered from what was kept. */
  readonly hits: number;
  /** Sent to the server. */
  readonly misses: number;
  /** Answered with the reply to another call. */
  readonly coalesced: number;
  readonly entries: number;
  readonly bytes: number;
}

/** What is asked for, by whom. */
export interface Wanted {
  readonly server: string;
  /** Undefined for resources. */
  readonly tool: OwnToolName | undefined;
  readonly hash: string;
  /** Whom a private reply is for. */
  readonly owner: string;
}

/** A part of what is kept of a server. `uri`: one resource, with what lies within it and around it. */
export type Part = "tools" | "resources" | { readonly uri: string };

/** The clocks drift and round apart by milliseconds, which is no sleep. */
const LEAP_MS = 1_000;

/** Keys, the entry itself and its places in the maps: so that many tiny replies count for what they hold. */
const ENTRY_BYTES = 512;

interface Entry {
  readonly at: Shelf;
  readonly key: string;
  readonly uri: string | undefined;
  readonly fresh: FreshReply;
  readonly size: number;
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** The entries of one tool, or of a server's resources; what was used last stands last. */
interface Shelf {
  readonly side: Side;
  readonly tool: OwnToolName | undefined;
  readonly entries: Map<string, Entry>;
}

/** One server. */
interface Side {
  readonly shelves: Map<OwnToolName | undefined, Shelf>;
  /** Changes when what is under way must not be kept any more. */
  generation: number;
  hits: number;
  misses: number;
  coalesced: number;
  entries: number;
  bytes: number;
}

export class ResponseCache {
  #limits: CacheLimits;
  readonly #sides = new Map<string, Side>();
  /** All entries; what was used last stands last. */
  readonly #order = new Set<Entry>();
  #bytes = 0;
  /** Of all servers, so that one that goes and comes back has another. */
  #generations = 0;

  constructor(limits: CacheLimits) {
    this.#limits = limits;
  }

  setLimits(limits: CacheLimits): void {
    this.#limits = limits;
    for (const { shelves } of this.#sides.values()) for (const shelf of shelves.values()) this.#trimShelf(shelf);
    this.#trim();
    // What was taken in under a longer limit.
    for (const entry of this.#order) if (entry.untilMs - entry.sinceMs > limits.maxTtlMs) this.#drop(entry);
  }

  /** The reply with its age taken off, if there is one for this owner. Counts a hit. */
  get({ server, tool, hash, owner }: Wanted, nowMs: number): BytesReply | undefined {
    const entries = this.#sides.get(server)?.shelves.get(tool)?.entries;
    if (entries === undefined || entries.size === 0) return undefined;
    const entry = this.#live(entries, hash, nowMs) ?? this.#live(entries, privateKey(hash, owner), nowMs);
    if (entry === undefined) return undefined;
    entries.delete(entry.key);
    entries.set(entry.key, entry);
    this.#order.delete(entry);
    this.#order.add(entry);
    entry.at.side.hits++;
    return aged(entry.fresh, nowMs - entry.sinceMs);
  }

  /** To be asked for when a request is sent, and shown when its reply is put. */
  generation(server: string): number {
    return this.#side(server).generation;
  }

  /** `uri`: of what is no tool. Keeps a copy: replies are often parts of much larger buffers. */
  put(wanted: Wanted, uri: string | undefined, fresh: FreshReply, generation: number, nowMs: number): void {
    const side = this.#sides.get(wanted.server);
    const size = fresh.reply.bytes.length + ENTRY_BYTES;
    const ttlMs = Math.min(fresh.ttlMs, this.#limits.maxTtlMs);
    if (side?.generation !== generation || size > this.#limits.maxBytes || !(ttlMs > 0)) return;
    const shelf = this.#shelf(side, wanted.tool);
    const own = privateKey(wanted.hash, wanted.owner);
    // The newer answer decides for whom it is.
    for (const key of [wanted.hash, own]) this.#dropKey(shelf, key);
    const key = fresh.scope === "public" ? wanted.hash : own;
    // Without its text, which would be the same once more, and is not counted.
    const reply: BytesReply = { ...fresh.reply, bytes: copyOf(fresh.reply.bytes), latin1: undefined };
    const kept: FreshReply = { ...fresh, reply };
    const entry: Entry = { at: shelf, key, uri, fresh: kept, size, sinceMs: nowMs, untilMs: nowMs + ttlMs };
    shelf.entries.set(key, entry);
    this.#order.add(entry);
    side.entries++;
    side.bytes += size;
    this.#bytes += size;
    this.#trimShelf(shelf);
    this.#trim();
  }

  countMiss(server: string): void {
    const side = this.#sides.get(server);
    if (side !== undefined) side.misses++;
  }

  countCoalesced(server: string): void {
    const side = this.#sides.get(server);
    if (side !== undefined) side.coalesced++;
  }

  /** Whatever is on its way from this server is not kept either. */
  invalidate(server: string, part?: Part): void {
    const side = this.#sides.get(server);
    if (side === undefined) return;
    side.generation = ++this.#generations;
    for (const shelf of side.shelves.values()) {
      for (const entry of shelf.entries.values()) if (concerns(part, entry)) this.#drop(entry);
    }
  }

  /** Of this tool nothing is kept any more. */
  dropTool(server: string, tool: OwnToolName): void {
    const side = this.#sides.get(server);
    const shelf = side?.shelves.get(tool);
    if (side === undefined || shelf === undefined) return;
    side.generation = ++this.#generations;
    for (const entry of shelf.entries.values()) this.#drop(entry);
    side.shelves.delete(tool);
  }

  /** The server is gone, with its counts. */
  forget(server: string): void {
    this.invalidate(server);
    this.#sides.delete(server);
  }

  statsOf(server: string): CacheStats {
    const { hits = 0, misses = 0, coalesced = 0, entries = 0, bytes = 0 } = this.#sides.get(server) ?? {};
    return { hits, misses, coalesced, entries, bytes };
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How many there are of a tool, or of resources; expired ones that nobody has asked for included. */
  countOf(server: string, tool: OwnToolName | undefined): number {
    return this.#sides.get(server)?.shelves.get(tool)?.entries.size ?? 0;
  }

  #side(server: string): Side {
    let side = this.#sides.get(server);
    if (side === undefined) {
      const generation = ++this.#generations;
      side = { shelves: new Map(), generation, hits: 0, misses: 0, coalesced: 0, entries: 0, bytes: 0 };
      this.#sides.set(server, side);
    }
    return side;
  }

  #shelf(side: Side, tool: OwnToolName | undefined): Shelf {
    let shelf = side.shelves.get(tool);
    if (shelf === undefined) {
      shelf = { side, tool, entries: new Map() };
      side.shelves.set(tool, shelf);
    }
    return shelf;
  }

  #live(entries: ReadonlyMap<string, Entry>, key: string, nowMs: number): Entry | undefined {
    const entry = entries.get(key);
    if (entry === undefined || nowMs < entry.untilMs) return entry;
    this.#drop(entry);
    return undefined;
  }

  #trimShelf(shelf: Shelf): void {
    for (const entry of shelf.entries.values()) {
      if (shelf.entries.size <= this.#limits.entriesPerTool) return;
      this.#drop(entry);
    }
  }

  #trim(): void {
    for (const entry of this.#order) {
      if (this.#bytes <= this.#limits.maxBytes) return;
      this.#drop(entry);
    }
  }

  #dropKey(shelf: Shelf, key: string): void {
    const entry = shelf.entries.get(key);
    if (entry !== undefined) this.#drop(entry);
  }

  #drop(entry: Entry): void {
    const { at, size } = entry;
    at.entries.delete(entry.key);
    this.#order.delete(entry);
    at.side.entries--;
    at.side.bytes -= size;
    this.#bytes -= size;
  }
}

/**
 * The time by which kept replies grow old. A machine's monotonic clock stands still while it sleeps, and what was kept
 * before the night would be fresh in the morning; so where the other clock leaps ahead, this one does too.
 */
export class AgeClock {
  readonly #clock: Clock;
  #now: number;
  #wall: number;
  #slept = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#now = clock.now();
    this.#wall = clock.wall();
  }

  /** Milliseconds that only go forward. A clock that is set ahead ages what is kept, one that is set back does not. */
  now(): number {
    const now = this.#clock.now();
    const wall = this.#clock.wall();
    const leapMs = wall - this.#wall - (now - this.#now);
    if (Math.abs(leapMs) > LEAP_MS) {
      this.#now = now;
      this.#wall = wall;
      this.#slept += Math.max(0, leapMs);
    }
    return now + this.#slept;
  }
}

/** No owner's key is another's, nor anybody's: a hash has no space. */
export function privateKey(hash: string, owner: string): string {
  return `${hash} ${owner}`;
}

function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

function concerns(part: Part | undefined, { at, uri }: Entry): boolean {
  if (part === undefined) return true;
  if (part === "tools") return at.tool !== undefined;
  if (part === "resources" || uri === undefined) return at.tool === undefined;
  return at.tool === undefined && (uri.startsWith(part.uri) || part.uri.startsWith(uri));
}
