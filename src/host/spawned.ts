// The servers that a program has spawned: which spec each has, and its coming and going. Starting, restarting and
// stopping processes is the gateway's, as are references and how long a server stays without; this says only which are there.

import { isDeepStrictEqual } from "node:util";
import type { ServerConfig } from "../config/config.js";
import { Fault } from "../protocol/errors.js";

/** What the servers are kept in: it starts what is new in the list, stops what is gone, and leaves the rest alone. */
export interface ServerSet {
  /** The new list is in force when this returns; the promise is for what went wrong. */
  apply(servers: readonly ServerConfig[]): Promise<void>;
  /** Resolves when it is up and its lists are read; rejects where the first try failed. */
  whenUp(name: string): Promise<void>;
  /** Resolves when nothing of it runs any more. To be called before it is taken off the list. */
  gone(name: string): () => Promise<void>;
  retain(name: string): void;
  /** True where that was the last and the server is to go now; where it is to go later, `later` is called then. */
  release(name: string, later: () => void): boolean;
  /** How many references there are. */
  refs(name: string): number;
}

interface Spawned {
  readonly config: ServerConfig;
  ready: Promise<void>;
  /** It is on its way out, and its name is free when this resolves. */
  gone: Promise<void> | undefined;
}

export class SpawnedServers {
  readonly #servers: ServerSet;
  /** They are in the order of their coming. */
  readonly #spawned = new Map<string, Spawned>();

  constructor(servers: ServerSet) {
    this.#servers = servers;
  }

  get configs(): ServerConfig[] {
    return this.#present.map(({ config }) => config);
  }

  get #present(): Spawned[] {
    return [...this.#spawned.values()].filter(({ gone }) => gone === undefined);
  }

  get(name: string): ServerConfig | undefined {
    const spawned = this.#spawned.get(name);
    return spawned?.gone === undefined ? spawned?.config : undefined;
  }

  /**
   * All or nothing: resolves when the server is up (a lazy one at once), and rejects with nothing left behind. A
   * server that is there with the same spec is shared.
   */
  async add(config: ServerConfig): Promise<void> {
    const { name } = config;
    for (;;) {
      const present = this.#spawned.get(name);
      if (present === undefined) break;
      if (present.gone === undefined && isDeepStrictEqual(present.config, config)) {
        this.#servers.retain(name);
        return present.ready;
      }
      if (present.gone === undefined && this.#servers.refs(name) > 0) {
        throw new Fault("invalid", `A server "${name}" with another spec is hosted already: stop it first.`);
      }
      // What is there has to be gone before another takes its name.
      await this.#remove(present);
    }
    const spawned: Spawned = { config, ready: Promise.resolve(), gone: undefined };
    this.#spawned.set(name, spawned);
    spawned.ready = this.#bringUp(spawned);
    await spawned.ready;
  }

  /** Releases one reference. With the last, the server goes, now or later. */
  async release(name: string): Promise<void> {
    const spawned = this.#spawned.get(name);
    if (spawned === undefined || spawned.gone !== undefined) {
      await spawned?.gone;
      return;
    }
    if (this.#servers.release(name, () => void this.#remove(spawned))) await this.#remove(spawned);
  }

  /** Takes a server away, whoever refers to it. */
  async remove(name: string): Promise<void> {
    const spawned = this.#spawned.get(name);
    if (spawned !== undefined) await this.#remove(spawned);
  }

  /** Nothing comes or goes any more; what runs is stopped by whoever keeps it. */
  clear(): void {
    this.#spawned.clear();
  }

  async #bringUp(spawned: Spawned): Promise<void> {
    const { name, supervision } = spawned.config;
    try {
      const applied = this.#apply();
      this.#servers.retain(name);
      await applied;
      if (supervision.lazy) return;
      await this.#servers.whenUp(name);
    } catch (error) {
      await this.#remove(spawned);
      throw error;
    }
    if (spawned.gone !== undefined) throw new Fault("closing", `Server "${name}" was stopped while it started.`);
  }

  async #apply(without?: Spawned): Promise<void> {
    const servers = this.#present.filter((one) => one !== without);
    await this.#servers.apply(servers.map(({ config }) => config));
  }

  #remove(spawned: Spawned): Promise<void> {
    spawned.gone ??= this.#takeDown(spawned);
    return spawned.gone;
  }

  async #takeDown(spawned: Spawned): Promise<void> {
    const { name } = spawned.config;
    const gone = this.#servers.gone(name);
    try {
      await this.#apply(spawned);
      await gone();
    } finally {
      if (this.#spawned.get(name) === spawned) this.#spawned.delete(name);
    }
  }
}
