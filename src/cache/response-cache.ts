// Keeps replies by server, tool and request, within bounds of number, bytes and time. It is told the time and holds no
// timer. Whether a reply may be kept is cacheable.ts, who waits for one is cache.ts.

import type { OwnToolName } from "../contracts/names.js";
import type { CacheLimits } from "../contracts/settings.js";
import type { CacheStats } from "../contracts/status.js";
import type { BytesReply } from "../protocol/reply.js";
import type { Clock } from "../runtime/clock.js";
import { aged, type FreshReply } from "./cacheable.js";

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
  readonly of: ToolReplies;
  readonly key: string;
  readonly uri: string | undefined;
  readonly fresh: FreshReply;
  readonly size: number;
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** The entries of one tool, or of a server's resources; what was used last stands last. */
interface ToolReplies {
  readonly ofServer: ServerReplies;
  readonly tool: OwnToolName | undefined;
  readonly entries: Map<string, Entry>;
}

/** The replies of one server, and their counts. */
interface ServerReplies {
  readonly byTool: Map<OwnToolName | undefined, ToolReplies>;
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
  readonly #servers = new Map<string, ServerReplies>();
  /** All entries; what was used last stands last. */
  readonly #order = new Set<Entry>();
  #bytes = 0;
  /** Counts over all servers, so that one that goes and comes back has another generation. */
  #generations = 0;

  constructor(limits: CacheLimits) {
    this.#limits = limits;
  }

  setLimits(limits: CacheLimits): void {
    this.#limits = limits;
    for (const { byTool } of this.#servers.values()) for (const ofTool of byTool.values()) this.#trimTool(ofTool);
    this.#trim();
    // Some were taken in under a longer limit.
    for (const entry of this.#order) if (entry.untilMs - entry.sinceMs > limits.maxTtlMs) this.#evict(entry);
  }

  /** The reply with its age taken off, if there is one for this owner. Counts a hit. */
  get({ server, tool, hash, owner }: Wanted, nowMs: number): BytesReply | undefined {
    const entries = this.#servers.get(server)?.byTool.get(tool)?.entries;
    if (entries === undefined || entries.size === 0) return undefined;
    const entry = this.#live(entries, hash, nowMs) ?? this.#live(entries, privateKey(hash, owner), nowMs);
    if (entry === undefined) return undefined;
    entries.delete(entry.key);
    entries.set(entry.key, entry);
    this.#order.delete(entry);
    this.#order.add(entry);
    entry.of.ofServer.hits++;
    return aged(entry.fresh, nowMs - entry.sinceMs);
  }

  /** To be asked for when a request is sent, and shown when its reply is put. */
  generation(server: string): number {
    return this.#ofServer(server).generation;
  }

  /** `uri` is given for what is no tool. Keeps a copy: replies are often parts of much larger buffers. */
  put(wanted: Wanted, uri: string | undefined, fresh: FreshReply, generation: number, nowMs: number): void {
    const ofServer = this.#servers.get(wanted.server);
    const size = fresh.reply.bytes.length + ENTRY_BYTES;
    const ttlMs = Math.min(fresh.ttlMs, this.#limits.maxTtlMs);
    if (ofServer?.generation !== generation || size > this.#limits.maxBytes || !(ttlMs > 0)) return;
    const ofTool = this.#ofTool(ofServer, wanted.tool);
    const own = privateKey(wanted.hash, wanted.owner);
    // The newer answer decides for whom it is.
    for (const key of [wanted.hash, own]) this.#evictKey(ofTool, key);
    const key = fresh.scope === "public" ? wanted.hash : own;
    // Its text is left out: it would be the same once more, and is not counted.
    const reply: BytesReply = { ...fresh.reply, bytes: copyOf(fresh.reply.bytes), latin1: undefined };
    const kept: FreshReply = { ...fresh, reply };
    const entry: Entry = { of: ofTool, key, uri, fresh: kept, size, sinceMs: nowMs, untilMs: nowMs + ttlMs };
    ofTool.entries.set(key, entry);
    this.#order.add(entry);
    ofServer.entries++;
    ofServer.bytes += size;
    this.#bytes += size;
    this.#trimTool(ofTool);
    this.#trim();
  }

  countMiss(server: string): void {
    const ofServer = this.#servers.get(server);
    if (ofServer !== undefined) ofServer.misses++;
  }

  countCoalesced(server: string): void {
    const ofServer = this.#servers.get(server);
    if (ofServer !== undefined) ofServer.coalesced++;
  }

  /** Whatever is on its way from this server is not kept either. */
  invalidate(server: string, part?: Part): void {
    const ofServer = this.#servers.get(server);
    if (ofServer === undefined) return;
    ofServer.generation = ++this.#generations;
    for (const ofTool of ofServer.byTool.values()) {
      for (const entry of ofTool.entries.values()) if (concerns(part, entry)) this.#evict(entry);
    }
  }

  /** Nothing of this tool is kept any more. */
  forgetTool(server: string, tool: OwnToolName): void {
    const ofServer = this.#servers.get(server);
    const ofTool = ofServer?.byTool.get(tool);
    if (ofServer === undefined || ofTool === undefined) return;
    ofServer.generation = ++this.#generations;
    for (const entry of ofTool.entries.values()) this.#evict(entry);
    ofServer.byTool.delete(tool);
  }

  /** The server is gone, with its counts. */
  forget(server: string): void {
    this.invalidate(server);
    this.#servers.delete(server);
  }

  statsOf(server: string): CacheStats {
    const { hits = 0, misses = 0, coalesced = 0, entries = 0, bytes = 0 } = this.#servers.get(server) ?? {};
    return { hits, misses, coalesced, entries, bytes };
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How many there are of a tool, or of resources; expired ones that nobody has asked for included. */
  countOf(server: string, tool: OwnToolName | undefined): number {
    return this.#servers.get(server)?.byTool.get(tool)?.entries.size ?? 0;
  }

  #ofServer(server: string): ServerReplies {
    let ofServer = this.#servers.get(server);
    if (ofServer === undefined) {
      const generation = ++this.#generations;
      ofServer = { byTool: new Map(), generation, hits: 0, misses: 0, coalesced: 0, entries: 0, bytes: 0 };
      this.#servers.set(server, ofServer);
    }
    return ofServer;
  }

  #ofTool(ofServer: ServerReplies, tool: OwnToolName | undefined): ToolReplies {
    let ofTool = ofServer.byTool.get(tool);
    if (ofTool === undefined) {
      ofTool = { ofServer, tool, entries: new Map() };
      ofServer.byTool.set(tool, ofTool);
    }
    return ofTool;
  }

  #live(entries: ReadonlyMap<string, Entry>, key: string, nowMs: number): Entry | undefined {
    const entry = entries.get(key);
    if (entry === undefined || nowMs < entry.untilMs) return entry;
    this.#evict(entry);
    return undefined;
  }

  #trimTool(ofTool: ToolReplies): void {
    for (const entry of ofTool.entries.values()) {
      if (ofTool.entries.size <= this.#limits.entriesPerTool) return;
      this.#evict(entry);
    }
  }

  #trim(): void {
    for (const entry of this.#order) {
      if (this.#bytes <= this.#limits.maxBytes) return;
      this.#evict(entry);
    }
  }

  #evictKey(ofTool: ToolReplies, key: string): void {
    const entry = ofTool.entries.get(key);
    if (entry !== undefined) this.#evict(entry);
  }

  #evict(entry: Entry): void {
    const { of, size } = entry;
    of.entries.delete(entry.key);
    this.#order.delete(entry);
    of.ofServer.entries--;
    of.ofServer.bytes -= size;
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

function concerns(part: Part | undefined, { of, uri }: Entry): boolean {
  if (part === undefined) return true;
  if (part === "tools") return of.tool !== undefined;
  if (part === "resources" || uri === undefined) return of.tool === undefined;
  return of.tool === undefined && (uri.startsWith(part.uri) || part.uri.startsWith(uri));
}
