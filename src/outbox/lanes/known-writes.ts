// All writes that are known, by their ids and by their keys, and those that are over, for as long as somebody may ask.

import type { KeptWrite } from "./lane.js";
import { ENDED_MS, FORGOTTEN_A_SWEEP, MAX_ENDED_A_PRINCIPAL } from "./limits.js";

export class KnownWrites {
  readonly #byId = new Map<string, KeptWrite>();
  readonly #byKey = new Map<string, KeptWrite>();
  /** Ended writes by principal, the oldest end first. */
  readonly #ended = new Map<string, Set<KeptWrite>>();

  get(id: string): KeptWrite | undefined {
    return this.#byId.get(id);
  }

  ofKey(keyHash: string): KeptWrite | undefined {
    return this.#byKey.get(keyHash);
  }

  get all(): Iterable<KeptWrite> {
    return this.#byId.values();
  }

  get hasEnded(): boolean {
    return this.#ended.size > 0;
  }

  add(write: KeptWrite): void {
    this.#byId.set(write.facts.id, write);
    this.#byKey.set(write.facts.keyHash, write);
  }

  remove(write: KeptWrite): void {
    const { id, keyHash } = write.facts;
    this.#byId.delete(id);
    if (this.#byKey.get(keyHash) === write) this.#byKey.delete(keyHash);
    this.revived(write);
  }

  /** It is over. The one that has to go for it, where its principal has too many. */
  ended(write: KeptWrite): KeptWrite | undefined {
    const { id } = write.facts.principal;
    let ended = this.#ended.get(id);
    if (ended === undefined) {
      ended = new Set();
      this.#ended.set(id, ended);
    }
    ended.add(write);
    if (ended.size <= MAX_ENDED_A_PRINCIPAL) return undefined;
    const [oldest] = ended;
    if (oldest !== undefined) this.remove(oldest);
    return oldest;
  }

  /** It is not over any more. */
  revived(write: KeptWrite): void {
    const { id } = write.facts.principal;
    const ended = this.#ended.get(id);
    ended?.delete(write);
    if (ended?.size === 0) this.#ended.delete(id);
  }

  /** Forgets some of those whose time is over, and gives them. */
  sweep(nowMs: number): KeptWrite[] {
    const old: KeptWrite[] = [];
    for (const ended of this.#ended.values()) {
      for (const write of ended) {
        if (old.length >= FORGOTTEN_A_SWEEP || nowMs - write.endedMs < ENDED_MS) break;
        old.push(write);
      }
    }
    for (const write of old) this.remove(write);
    return old;
  }
}
