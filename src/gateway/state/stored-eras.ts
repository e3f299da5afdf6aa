// Which era each server was found to speak, kept over restarts, so that it is not asked again at every connect.

import type { DurableMap } from "../../contracts/store.js";
import type { Era } from "../../protocol/modern.js";

/**
 * A server that has moved on answers as it did before for as long as nobody asks: a legacy verdict is good for a day.
 * A modern one that no longer holds shows itself at once.
 */
const LEGACY_VERDICT_MS = 24 * 60 * 60 * 1000;

export interface EraRecord {
  /** Names the entry that was asked: another command or address may be another server. */
  readonly identity: string;
  readonly era: Era;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export class StoredEras {
  readonly #map: DurableMap<EraRecord>;
  readonly #wall: () => number;
  readonly #failed: (error: unknown) => void;
  /** What was found and is not on disk yet. */
  readonly #fresh = new Map<string, EraRecord | undefined>();

  constructor(map: DurableMap<EraRecord>, wall: () => number, failed: (error: unknown) => void) {
    this.#map = map;
    this.#wall = wall;
    this.#failed = failed;
  }

  get(server: string, identity: string): Era | undefined {
    const record = this.#fresh.has(server) ? this.#fresh.get(server) : this.#map.get(server);
    if (record === undefined || record.identity !== identity) return undefined;
    const age = this.#wall() - record.at;
    // A clock that was set back must not keep a verdict for longer.
    const expired = record.era === "legacy" && (age > LEGACY_VERDICT_MS || age < 0);
    return expired ? undefined : record.era;
  }

  /** `undefined` drops the verdict. A disk that is full costs a question at the next start, and nothing else. */
  put(server: string, identity: string, era: Era | undefined): void {
    const record = era === undefined ? undefined : { identity, era, at: this.#wall() };
    this.#fresh.set(server, record);
    const written = record === undefined ? this.#map.delete(server) : this.#map.put(server, record);
    // Once it is written the map says it, and what another gateway finds later goes before it.
    const settled = () => {
      if (this.#fresh.get(server) === record) this.#fresh.delete(server);
    };
    written.then(settled, this.#failed);
  }
}
