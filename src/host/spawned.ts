// The servers that a program has spawned: which spec each has, how many hold it, and its coming and going. Starting,
// restarting and stopping processes is upstream/'s; this says only when a server is there.

import { isDeepStrictEqual } from "node:util";
import type { ServerConfig } from "../config/config.js";
import { Fault } from "../protocol/errors.js";

/** What the servers are kept in: it starts what is new in the list, stops what is gone, and leaves the rest alone. */
export interface ServerGround {
  apply(servers: readonly ServerConfig[]): Promise<void>;
  /** Resolves when it is up and its lists are read; rejects where the first try failed. */
  whenUp(name: string): Promise<void>;
  /** Resolves when nothing of it runs any more. To be called before it is taken off the list. */
  gone(name: string): () => Promise<void>;
}

interface Hosted {
  readonly config: ServerConfig;
  references: number;
  /** A lazy one that nobody has wanted yet: nothing but us knows of it. */
  asleep: boolean;
  ready: Promise<void>;
  /** Nobody holds it; it goes when this fires. */
  leaving: NodeJS.Timeout | undefined;
  /** It is on its way out, and its name is free when this resolves. */
  gone: Promise<void> | undefined;
}

export class HostServers {
  readonly #ground: ServerGround;
  /** In the order of their coming. */
  readonly #hosted = new Map<string, Hosted>();

  constructor(ground: ServerGround) {
    this.#ground = ground;
  }

  get configs(): ServerConfig[] {
    return this.#present.map(({ config }) => config);
  }

  get #present(): Hosted[] {
    return [...this.#hosted.values()].filter(({ gone }) => gone === undefined);
  }

  isAsleep(name: string): boolean {
    return this.#hosted.get(name)?.asleep === true;
  }

  /** Somebody wants it, lazy or not. */
  async wake(name: string): Promise<void> {
    const hosted = this.#hosted.get(name);
    if (hosted?.asleep !== true) return;
    hosted.asleep = false;
    await this.#apply();
  }

  get(name: string): ServerConfig | undefined {
    const hosted = this.#hosted.get(name);
    return hosted?.gone === undefined ? hosted?.config : undefined;
  }

  references(name: string): number {
    return this.#hosted.get(name)?.references ?? 0;
  }

  /**
   * All or nothing: resolves when the server is up (a lazy one at once), and rejects with nothing left behind. A
   * server that is there with the same spec is shared.
   */
  async add(config: ServerConfig): Promise<void> {
    const { name } = config;
    for (;;) {
      const present = this.#hosted.get(name);
      if (present === undefined) break;
      if (present.gone === undefined && isDeepStrictEqual(present.config, config)) {
        clearTimeout(present.leaving);
        present.leaving = undefined;
        present.references++;
        return present.ready;
      }
      if (present.gone === undefined && present.references > 0) {
        throw new Fault("invalid", `A server "${name}" with another spec is hosted already: stop it first.`);
      }
      // What is there has to be gone before another takes its name.
      await this.#remove(present);
    }
    const hosted: Hosted = {
      config,
      references: 1,
      asleep: config.supervision.lazy,
      ready: Promise.resolve(),
      leaving: undefined,
      gone: undefined,
    };
    this.#hosted.set(name, hosted);
    hosted.ready = this.#bringUp(hosted);
    await hosted.ready;
  }

  /** One holder less. With the last, the server goes, after `lingerMs` where that is given. */
  async release(name: string, lingerMs: number | undefined): Promise<void> {
    const hosted = this.#hosted.get(name);
    if (hosted === undefined || hosted.gone !== undefined) {
      await hosted?.gone;
      return;
    }
    hosted.references = Math.max(0, hosted.references - 1);
    if (hosted.references > 0) return;
    if (lingerMs === undefined) await this.#remove(hosted);
    else {
      clearTimeout(hosted.leaving);
      hosted.leaving = setTimeout(() => void this.#remove(hosted), lingerMs).unref();
    }
  }

  /** Whoever holds it. */
  async remove(name: string): Promise<void> {
    const hosted = this.#hosted.get(name);
    if (hosted !== undefined) await this.#remove(hosted);
  }

  /** Nothing comes or goes any more; what runs is stopped by the ground itself. */
  clear(): void {
    for (const { leaving } of this.#hosted.values()) clearTimeout(leaving);
    this.#hosted.clear();
  }

  async #bringUp(hosted: Hosted): Promise<void> {
    const { name } = hosted.config;
    if (hosted.asleep) return;
    try {
      await this.#apply();
      await this.#ground.whenUp(name);
    } catch (error) {
      await this.#remove(hosted);
      throw error;
    }
    if (hosted.gone !== undefined) throw new Fault("closing", `Server "${name}" was stopped while it started.`);
  }

  async #apply(without?: Hosted): Promise<void> {
    const awake = this.#present.filter((one) => !one.asleep && one !== without);
    await this.#ground.apply(awake.map(({ config }) => config));
  }

  #remove(hosted: Hosted): Promise<void> {
    hosted.gone ??= this.#takeDown(hosted);
    return hosted.gone;
  }

  async #takeDown(hosted: Hosted): Promise<void> {
    const { name } = hosted.config;
    clearTimeout(hosted.leaving);
    hosted.references = 0;
    const gone = this.#ground.gone(name);
    try {
      await this.#apply(hosted);
      await gone();
    } finally {
      if (this.#hosted.get(name) === hosted) this.#hosted.delete(name);
    }
  }
}
