// Saves the past once a minute to the state directory, and gives it back to the next gateway there. A file that cannot be
// read is told once and written over: what was called before is worth no start that fails.

import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { CaughtDay } from "../../observe/calls/caught-day.js";
import type { History } from "../../observe/calls/history.js";
import type { Clock } from "../../runtime/clock.js";

/** So much of the past is lost at a kill. */
const SAVE_MS = 60_000;
const OWNER_ALONE = 0o600;

export interface SavedHistoryParts {
  readonly history: History;
  readonly caught: CaughtDay;
  /** Undefined where nothing outlives the process. */
  readonly stateDir: string | undefined;
  readonly clock: Pick<Clock, "wall">;
  readonly warn: (text: string) => void;
}

export class SavedHistory {
  readonly #parts: SavedHistoryParts;
  readonly #path: string | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  /** What is done, one after the other. */
  #work: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(parts: SavedHistoryParts) {
    this.#parts = parts;
    this.#path = parts.stateDir === undefined ? undefined : join(parts.stateDir, "history");
    if (this.#path === undefined) return;
    this.#work = this.#read(this.#path);
    this.#timer = setInterval(() => void this.save(), SAVE_MS).unref();
  }

  /** Resolves when what was called until now is on disk, or cannot be. */
  save(): Promise<void> {
    const path = this.#path;
    if (path !== undefined) this.#work = this.#work.then(() => this.#write(path));
    return this.#work;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.save();
  }

  async #read(path: string): Promise<void> {
    const { history, caught, clock, warn } = this.#parts;
    try {
      const bytes = await readFile(path);
      const { joinHistory } = await import("../../observe/calls/history-bytes.js");
      joinHistory(history, bytes, clock.wall(), caught);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      warn(`what was called before is not known any more: ${path} cannot be read (${(error as Error).message})`);
    }
  }

  async #write(path: string): Promise<void> {
    const { history, caught, warn } = this.#parts;
    if (!history.isChanged && !caught.isChanged) return;
    history.isChanged = false;
    caught.isChanged = false;
    try {
      const { historyBytes } = await import("../../observe/calls/history-bytes.js");
      // Whole or not at all: a kill in the middle leaves the one before.
      const file = await open(`${path}.new`, "w", OWNER_ALONE);
      try {
        await file.writeFile(historyBytes(history, caught));
        await file.datasync();
      } finally {
        await file.close();
      }
      await rename(`${path}.new`, path);
      this.#hasFailed = false;
    } catch (error) {
      history.isChanged = true;
      if (!this.#hasFailed) warn(`what was called could not be saved: ${(error as Error).message}`);
      this.#hasFailed = true;
    }
  }
}
