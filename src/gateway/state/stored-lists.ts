// Keeps the lists of servers for the next start, soon after they change. What is in them is the catalog's.

import { setImmediate as nextTurn } from "node:timers/promises";
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
  /** The server whose lists are on their way to the disk, unless it is forgotten meanwhile. */
  #saving: string | undefined;
  #saved: Promise<void> = Promise.resolve();

  constructor(options: StoredListsOptions) {
    this.#options = options;
  }

  saveSoon(server: string): void {
    this.#unsaved.add(server);
    this.#timer ??= setTimeout(() => void this.save(), SAVE_AFTER_MS);
  }

  /** A disk that is full costs the lists of the next start, and nothing else. */
  save(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // One after another: what is older must not be written later.
    this.#saved = this.#saved.then(() => this.#saveAll());
    return this.#saved;
  }

  async #saveAll(): Promise<void> {
    for (const server of this.#unsaved) {
      this.#unsaved.delete(server);
      this.#saving = server;
      try {
        await this.#saveOne(server);
      } catch (error) {
        this.#warn(`the lists of server "${server}" could not be kept for the next start`, error);
      }
    }
    this.#saving = undefined;
  }

  /** A list of thousands of tools is megabytes: each step has a turn of the event loop for itself. */
  async #saveOne(server: string): Promise<void> {
    const { map } = this.#options;
    const snapshot = this.#options.snapshot(server);
    if (snapshot === undefined) return;
    await nextTurn();
    const text = JSON.stringify(snapshot);
    await nextTurn();
    const kept = map.get(server);
    await nextTurn();
    // Of several gateways the first to read a list has written it.
    if (kept !== undefined && JSON.stringify(kept) === text) return;
    if (this.#saving === server) await map.put(server, snapshot);
  }

  forget(server: string): void {
    this.#unsaved.delete(server);
    if (this.#saving === server) this.#saving = undefined;
    this.#options.map
      .delete(server)
      .catch((error: unknown) => this.#warn(`the lists of server "${server}" could not be deleted`, error));
  }

  #warn(what: string, error: unknown): void {
    this.#options.log.warn(`${what}: ${(error as Error).message}`);
  }
}
