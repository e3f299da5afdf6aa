// Which gateway on the engine has executors of which names: what dialled in here is told to the others, and theirs to whoever
// sends requests from here. One record for each gateway, written when it changes.

import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { SharedMap } from "../../contracts/store.js";

/** How often those that are gone are looked for: a gateway that was killed is missed after some seconds anyway. */
const LOOK_MS = 2_000;
/** A record of the dead is removed by whoever is left, long after everybody took it for that. */
const REMOVED_MS = 60_000;

/** `lost`: it may come back, and requests wait for it. */
export type PlaceState = "ready" | "lost";

export interface PlaceRecord {
  readonly v: 1;
  /** By the names of executors. */
  readonly executors: Readonly<Record<string, PlaceState>>;
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
  #written = "{}";
  #isWriting = false;
  #told = "";
  /** Since when a gateway of which there is a record was not seen: no more than there are records. */
  readonly #missed = new Map<string, number>();

  constructor(options: PlacesOptions) {
    this.#options = options;
    this.#unwatch = options.map.watch((gateway) => {
      if (gateway !== options.self) this.#tell();
    });
  }

  /** What is here now. */
  publish(executors: Readonly<Record<string, PlaceState>>): void {
    this.#own = executors;
    void this.#write();
  }

  at(name: string): Places {
    const { map, self, gateways } = this.#options;
    const places = new Map<string, PlaceState>();
    for (const gateway of gateways()) {
      const record = gateway === self ? undefined : map.get(gateway);
      const state = record?.v === 1 ? record.executors[name] : undefined;
      if (state !== undefined) places.set(gateway, state);
    }
    return places;
  }

  /** Now and then: who is gone, and what the engine did not take. */
  look(): void {
    const { map, self, now } = this.#options;
    const living = new Set(this.#options.gateways());
    for (const [gateway] of map.entries()) {
      if (gateway === self || living.has(gateway)) {
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
    void this.#write();
  }

  async close(): Promise<void> {
    this.#unwatch();
    this.#own = {};
    await this.#options.map.delete(this.#options.self).catch(() => {});
  }

  #tell(): void {
    const { map, self, gateways } = this.#options;
    const seen = gateways().map((gateway) => (gateway === self ? [] : [gateway, map.get(gateway)?.executors]));
    const text = JSON.stringify(seen.sort());
    if (text === this.#told) return;
    this.#told = text;
    this.#options.onChange();
  }

  /** One write at a time: what changes meanwhile is in the next. What the engine does not take comes with the next look. */
  async #write(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    try {
      for (let text = JSON.stringify(this.#own); text !== this.#written; text = JSON.stringify(this.#own)) {
        await this.#options.map.put(this.#options.self, { v: 1, executors: this.#own });
        this.#written = text;
      }
    } catch {
      // Later.
    } finally {
      this.#isWriting = false;
    }
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
