// Which sessions are over although their sealed ids are whole: those that ended, and those that nobody used for too
// long. It is kept over restarts in a map that it is given; it has no clock, and is told the time.

import type { Caller } from "../../contracts/caller.js";
import type { SessionRecord, SessionSettings } from "../../contracts/session-record.js";
import type { DurableMap } from "../../contracts/store.js";
import type { EndpointLimits } from "../session/limits.js";
import type { SessionFacts } from "../session/session-id.js";

/** What of a session decides whether it is over. */
export type RecordedFacts = Pick<SessionFacts, "principalId" | "key" | "createdAt">;

/** The settings as an open session has them. */
type LiveSettings = Partial<Pick<Caller, "logLevel" | "subscribed">>;

/** Session keys are base64url, so that none of them begins like this. */
const BEFORE = "before:";

/**
 * A use is written down when the last that was is this share of `sessionIdleMs` old: some writes a day for each session.
 * A gateway that is killed forgets no more than that, so that an id may be restored for so much longer.
 */
const RECORD_SHARE = 1 / 8;

/**
 * So much of its subscriptions is kept for a session, in characters of URIs: some tens of them. An editor that has more asks
 * for them again; and all records together, of agents that mean harm too, stay some tens of megabytes.
 */
const MAX_SUBSCRIBED_CHARS = 4096;

/** Records of uses, for each session that may be in memory: those that were dropped to make room have theirs too. */
const USES_PER_SESSION = 2;

export class SessionRecords {
  readonly #limits: EndpointLimits;
  /** Undefined where nothing outlives the process. */
  readonly #map: DurableMap<SessionRecord> | undefined;
  readonly #failed: (error: unknown) => void;
  /** When ended sessions began, by principal and key, in the order of their ends. */
  readonly #ended = new Map<string, Map<string, number>>();
  #endedCount = 0;
  /** What began then or earlier is over, by principal; see SessionRecord. */
  readonly #before = new Map<string, number>();
  /** The latest known uses, by key, oldest record first. */
  readonly #used = new Map<string, { readonly principal: string; readonly began: number; readonly used: number }>();

  constructor(
    limits: EndpointLimits,
    map: DurableMap<SessionRecord> | undefined,
    failed: (error: unknown) => void = () => {},
  ) {
    this.#limits = limits;
    this.#map = map;
    this.#failed = failed;
    for (const [key, record] of map?.entries() ?? []) this.#learn(key, record);
  }

  #learn(key: string, { principal, began, ended, used }: SessionRecord): void {
    if (key.startsWith(BEFORE)) this.#before.set(principal, Math.max(began, this.#before.get(principal) ?? began));
    else if (ended === true) this.#addEnded(principal, key, began);
    else if (used !== undefined) this.#used.set(key, { principal, began, used });
  }

  /** What is kept of a session by now, whoever wrote it. */
  told(key: string, record: SessionRecord | undefined): void {
    const used = this.#used.get(key);
    if (record?.ended === true) this.#used.delete(key);
    else if (record?.used !== undefined && record.used <= (used?.used ?? Number.NEGATIVE_INFINITY)) return;
    if (record !== undefined) this.#learn(key, record);
    // What is dropped here is still in the map.
    for (const oldest of this.#used.keys()) {
      if (this.#used.size <= this.#limits.sessions * USES_PER_SESSION) break;
      this.#used.delete(oldest);
    }
  }

  /** Whether another gateway says that the session was used since its last use here, and not too long ago. */
  isUsedElsewhere({ key }: RecordedFacts, usedHere: number, wallMs: number): boolean {
    const used = this.#used.get(key)?.used ?? usedHere;
    return used > usedHere && wallMs - used <= this.#limits.sessionIdleMs * (1 + RECORD_SHARE);
  }

  /** Whether an id that is not in memory must not be restored. */
  isOver({ principalId, key, createdAt }: RecordedFacts, wallMs: number): boolean {
    if (this.#ended.get(principalId)?.has(key) === true) return true;
    const used = this.#used.get(key)?.used ?? this.#map?.get(key)?.used;
    if (used === undefined && createdAt <= (this.#before.get(principalId) ?? Number.NEGATIVE_INFINITY)) return true;
    const last = Math.max(createdAt, used ?? createdAt);
    return wallMs - last > this.#limits.sessionIdleMs * (1 + RECORD_SHARE);
  }

  /** The session is over for good. Resolves when that is on disk; it holds in this process in any case. */
  async end({ principalId, key, createdAt }: RecordedFacts): Promise<void> {
    if (this.#ended.get(principalId)?.has(key) === true) return;
    this.#used.delete(key);
    this.#addEnded(principalId, key, createdAt);
    const written = this.#map?.put(key, { principal: principalId, began: createdAt, ended: true });
    if (this.#of(principalId).size > this.#limits.endedPerPrincipal) this.#forgetOne(principalId);
    else if (this.#endedCount > this.#limits.endedSessions) this.#forgetOne(this.#largest());
    await written;
  }

  /** A session is in use, and has asked for this. `used` is by the wall clock; most uses are not worth a write. */
  used(facts: RecordedFacts, used: number, settings: LiveSettings = {}): void {
    const last = this.#used.get(facts.key)?.used ?? facts.createdAt;
    // A clock that was set back must not keep what it said before.
    if (Math.abs(used - last) >= this.#limits.sessionIdleMs * RECORD_SHARE) void this.keep(facts, used, settings);
  }

  /** Writes down what a session that is in use has asked for. Resolves when it is on disk, or cannot be. */
  keep(
    { principalId: principal, key, createdAt: began }: RecordedFacts,
    used: number,
    settings: LiveSettings,
  ): Promise<void> | undefined {
    if (this.#ended.get(principal)?.has(key) === true) return undefined;
    this.#used.delete(key);
    this.#used.set(key, { principal, began, used });
    const written = this.#map?.put(key, { principal, began, used, ...settingsToKeep(settings) }).catch(this.#failed);
    if (this.#used.size > this.#limits.sessions * USES_PER_SESSION) {
      const [oldest] = this.#used.keys();
      if (oldest !== undefined) this.#forgetUse(oldest);
    }
    return written;
  }

  /** What a session asked for that is restored now. It is on disk alone: most are never restored. */
  settingsOf({ principalId, key }: RecordedFacts): SessionSettings {
    if (!this.#used.has(key)) return {};
    try {
      const record = this.#map?.get(key);
      return record?.principal === principalId ? record : {};
    } catch (error) {
      this.#failed(error);
      return {};
    }
  }

  /** Forgets what no longer decides anything: ids that are refused for their age. It is to be called now and then. */
  sweep(wallMs: number): void {
    const { sealedMs, sessionIdleMs } = this.#limits;
    for (const [principal, ended] of this.#ended) {
      for (const [key, began] of ended) if (wallMs - began > sealedMs) this.#forgetEnd(principal, key);
    }
    for (const [principal, began] of this.#before) {
      if (wallMs - began <= sealedMs) continue;
      this.#before.delete(principal);
      this.#deleteKept(BEFORE + principal);
    }
    for (const [key, { began, used }] of this.#used) {
      // Who is idle for so long is refused without the record as well, as it says that the id is older than its use.
      if (wallMs - began > sealedMs || wallMs - used > sessionIdleMs * 2) this.#forgetUse(key);
    }
  }

  /** Of the ends that are kept, the one of the oldest session goes; what is as old is over without a record. */
  #forgetOne(principal: string): void {
    let key: string | undefined;
    let began = Number.POSITIVE_INFINITY;
    for (const [one, at] of this.#of(principal)) if (at < began) [key, began] = [one, at];
    if (key === undefined) return;
    const before = Math.max(began, this.#before.get(principal) ?? began);
    this.#before.set(principal, before);
    this.#write(this.#map?.put(BEFORE + principal, { principal, began: before }));
    this.#forgetEnd(principal, key);
  }

  #forgetEnd(principal: string, key: string): void {
    const ended = this.#ended.get(principal);
    if (ended?.delete(key) !== true) return;
    this.#endedCount--;
    if (ended.size === 0) this.#ended.delete(principal);
    this.#deleteKept(key);
  }

  #forgetUse(key: string): void {
    this.#used.delete(key);
    this.#deleteKept(key);
  }

  /** Of several gateways the first to forget it has deleted it. */
  #deleteKept(key: string): void {
    if (this.#map?.get(key) !== undefined) this.#write(this.#map.delete(key));
  }

  #addEnded(principal: string, key: string, began: number): void {
    const ended = this.#of(principal);
    if (ended.has(key)) return;
    ended.set(key, began);
    this.#endedCount++;
  }

  #of(principal: string): Map<string, number> {
    const known = this.#ended.get(principal);
    if (known !== undefined) return known;
    const made = new Map<string, number>();
    this.#ended.set(principal, made);
    return made;
  }

  /** Whoever ended the most makes room for the others. */
  #largest(): string {
    let largest = "";
    let most = 0;
    for (const [principal, { size }] of this.#ended) if (size > most) [largest, most] = [principal, size];
    return largest;
  }

  #write(written: Promise<void> | undefined): void {
    written?.catch(this.#failed);
  }
}

/** What is kept of the settings of a session: of its subscriptions, the first that fit. */
function settingsToKeep({ logLevel: level, subscribed }: LiveSettings): SessionSettings {
  const kept: Record<string, string[]> = Object.create(null);
  let chars = 0;
  for (const [server, uris] of subscribed ?? []) {
    for (const uri of uris) {
      chars += uri.length;
      if (chars > MAX_SUBSCRIBED_CHARS) break;
      kept[server] ??= [];
      kept[server].push(uri);
    }
  }
  return {
    ...(level === undefined ? {} : { level }),
    ...(Object.keys(kept).length === 0 ? {} : { subscribed: kept }),
  };
}
