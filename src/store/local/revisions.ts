// Revisions of a map's keys, for whoever compares before it writes, and those who watch. Counted in memory: the embedded
// store has one process, and a revision means nothing outside it. What was not written since has the revision 1.

import { tellListener } from "../tell.js";
import type { TrackedChange } from "./committer.js";

/** Of what was found when counting began. */
const FOUND = 1;

export class Revisions<V> {
  #last = FOUND;
  /** Of the keys that were written since, and are there: bounded by the map itself. */
  readonly #written = new Map<string, number>();
  /** The last write to a key that is not on disk yet: bounded by what the committer lets wait. */
  readonly #pending = new Map<string, Promise<void>>();
  readonly #listeners = new Set<(key: string, value: V | undefined) => void>();

  /** Of a key that has a value. */
  of(key: string): number {
    return this.#written.get(key) ?? FOUND;
  }

  /** The last write to this key that is on its way. */
  pending(key: string): Promise<void> | undefined {
    return this.#pending.get(key);
  }

  watch(listener: (key: string, value: V | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** One write; undefined deletes. */
  change(key: string, value: V | undefined): TrackedChange {
    const revision = ++this.#last;
    let own: Promise<void> | undefined;
    const over = () => {
      if (this.#pending.get(key) === own) this.#pending.delete(key);
    };
    return {
      revision,
      sent: (commit) => {
        own = commit;
        this.#pending.set(key, commit);
      },
      committed: () => {
        over();
        if (value === undefined) this.#written.delete(key);
        else this.#written.set(key, revision);
        for (const listener of this.#listeners) tellListener("the store", () => listener(key, value));
      },
      failed: over,
    };
  }
}
