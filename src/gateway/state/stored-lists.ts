// Keeps the lists of servers for the next start, soon after they change. What is in them is the catalog's.

import type { DurableMap } from "../../contracts/store.js";
import type { Log } from "../../observe/log.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";

/** A burst of list changes is one write. */
const SAVE_AFTER_MS = 200;

export interface StoredListsOptions {
  readonly map: DurableMap<JsonObject>;
  readonly snapshot: (server: string) => JsonObject | undefined;
  readonly log: Log;
}

export class StoredLists {
  readonly #options: StoredListsOptions;
  readonly #unsaved = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: StoredListsOptions) {
    this.#options = options;
  }

  saveSoon(server: string): void {
    this.#unsaved.add(server);
    this.#timer ??= setTimeout(() => void this.save(), SAVE_AFTER_MS);
  }

  /** A disk that is full costs the lists of the next start, and nothing else. */
  async save(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const servers = [...this.#unsaved];
    this.#unsaved.clear();
    for (const server of servers) {
      const snapshot = this.#options.snapshot(server);
      // Of several gateways the first to read a list has written it.
      if (snapshot === undefined || JSON.stringify(snapshot) === JSON.stringify(this.#options.map.get(server)))
        continue;
      try {
        await this.#options.map.put(server, snapshot);
      } catch (error) {
        this.#warn(`the lists of server "${server}" could not be kept for the next start`, error);
      }
    }
  }

  forget(server: string): void {
    this.#unsaved.delete(server);
    this.#options.map
      .delete(server)
      .catch((error: unknown) => this.#warn(`the lists of server "${server}" could not be deleted`, error));
  }

  #warn(what: string, error: unknown): void {
    this.#options.log.warn(`${what}: ${(error as Error).message}`);
  }
}
