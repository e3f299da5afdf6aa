// Which gateway on the engine has executors of which names: what dialled in here is told to the others, and theirs to whoever
// sends requests from here. One record for each gateway, written when it changes.

import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { PlaceState } from "../../contracts/executors.js";
import type { SharedMap } from "../../contracts/store.js";

/** How often those that are gone are looked for: a gateway that was killed is missed after some seconds anyway. */
const LOOK_MS = 2_000;
/** A record of the dead is removed by whoever is left, long after everybody took it for that. */
const REMOVED_MS = 60_000;

/** A gateway that leaves is no longer among those that live, and says by its record alone that it is still there: at each look. */
const SILENT_MS = 4 * LOOK_MS;

export interface PlaceRecord {
  readonly v: 1;
  /** By the names of executors. */
  readonly executors: Readonly<Record<string, PlaceState>>;
  /** It has handed its partitions over, and goes on until its executors have gone elsewhere. Rises at each look. */
  readonly leaving?: number;
}

/** What other gateways have of one name. */
export type Places = ReadonlyMap<string, PlaceState>;

interface PlacesOptions {
  readonly self: string;
  readonly map: SharedMap<PlaceRecord>;
  /** Those that live. */
  readonly gateways: () => readonly string[];
  readonly now: () => number;
  /** What other gateways have may be another now. */
  readonly onChange: () => void;
}

export class ExecutorPlaces {
  readonly #options: PlacesOptions;
  readonly #unwatch: () => void;
  #own: Readonly<Record<string, PlaceState>> = {};
  #written = JSON.stringify({ v: 1, executors: {} });
  #isWriting = false;
  #leaving: number | undefined;
  #isClosed = false;
  #told = "";
  /** When the record of another was last written, by our clock: no more than there are records. */
  readonly #movedMs = new Map<string, number>();
  /** Since when a gateway of which there is a record was not seen: no more than there are records. */
  readonly #missed = new Map<string, number>();

  constructor(options: PlacesOptions) {
    this.#options = options;
    for (const [gateway] of options.map.entries()) this.#movedMs.set(gateway, options.now());
    this.#unwatch = options.map.watch((gateway) => {
      if (gateway === options.self) return;
      if (options.map.get(gateway) === undefined) this.#movedMs.delete(gateway);
      else this.#movedMs.set(gateway, options.now());
      this.#tell();
    });
  }

  /** What is here now. */
  publish(executors: Readonly<Record<string, PlaceState>>): void {
    this.#own = executors;
    void this.#write();
  }

  /** From now on the others go by this record, until it is removed: this gateway is missing among those that live. */
  leave(): void {
    this.#leaving ??= 0;
    void this.#write();
  }

  at(name: string): Places {
    const places = new Map<string, PlaceState>();
    for (const [gateway, { executors }] of this.#others()) {
      const state = executors[name];
      if (state !== undefined) places.set(gateway, state);
    }
    return places;
  }

  /** Those that live, and those that leave and have not gone yet. */
  *#others(): Iterable<[string, PlaceRecord]> {
    const { map, self, gateways, now } = this.#options;
    const living = new Set(gateways());
    for (const [gateway, record] of map.entries()) {
      if (gateway === self || record.v !== 1) continue;
      const isLeaving = record.leaving !== undefined && now() - (this.#movedMs.get(gateway) ?? 0) < SILENT_MS;
      if (isLeaving || living.has(gateway)) yield [gateway, record];
    }
  }

  /** Now and then: who is gone, and what the engine did not take. */
  look(): void {
    const { map, self, now } = this.#options;
    const living = new Set(this.#options.gateways());
    for (const [gateway] of map.entries()) {
      if (gateway === self || living.has(gateway) || now() - (this.#movedMs.get(gateway) ?? 0) < SILENT_MS) {
        this.#missed.delete(gateway);
        continue;
      }
      const sinceMs = this.#missed.get(gateway) ?? now();
      this.#missed.set(gateway, sinceMs);
      if (now() - sinceMs > REMOVED_MS) {
        this.#missed.delete(gateway);
        map.delete(gateway).catch(() => {});
      }
    }
    this.#tell();
    if (this.#leaving !== undefined) this.#leaving++;
    void this.#write();
  }

  async close(): Promise<void> {
    this.#unwatch();
    this.#isClosed = true;
    await this.#options.map.delete(this.#options.self).catch(() => {});
  }

  #tell(): void {
    const seen = [...this.#others()].map(([gateway, { executors }]) => JSON.stringify([gateway, executors]));
    const text = seen.sort((a, b) => (a < b ? -1 : 1)).join("\n");
    if (text === this.#told) return;
    this.#told = text;
    this.#options.onChange();
  }

  get #record(): PlaceRecord {
    return { v: 1, executors: this.#own, ...(this.#leaving === undefined ? {} : { leaving: this.#leaving }) };
  }

  /** One write at a time: what changes meanwhile is in the next. What the engine does not take comes with the next look. */
  async #write(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    try {
      for (let text = this.#text; text !== this.#written && !this.#isClosed; text = this.#text) {
        await this.#options.map.put(this.#options.self, this.#record);
        this.#written = text;
      }
    } catch {
      // Later.
    } finally {
      this.#isWriting = false;
    }
  }

  get #text(): string {
    return JSON.stringify(this.#record);
  }
}

export function placesOf(engine: GatewayEngine, now: () => number, onChange: () => void): ExecutorPlaces {
  const places = new ExecutorPlaces({
    self: engine.self,
    map: engine.shared.shared<PlaceRecord>("executors"),
    gateways: () => engine.partitions.gateways().map(({ gateway }) => gateway),
    now,
    onChange,
  });
  const timer = setInterval(() => places.look(), LOOK_MS).unref();
  engine.onClose(async () => {
    clearInterval(timer);
    await places.close();
  });
  return places;
}
