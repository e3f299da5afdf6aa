// How many bytes the lists of all servers have together: what is known of a server stays for as long as it is in the config,
// also while it is away. It counts, and says which list there is no room for; the catalog holds them.

import type { ListKind } from "../contracts/upstream.js";
import { MIB } from "../runtime/sizes.js";

/**
 * Of the definitions as servers wrote them: 64,000 of 1 kB, which is more than any agent could be shown. Parsed, and
 * rendered for agents, they take some times as much.
 */
export const MAX_LISTS_BYTES = 64 * MIB;

export class ListRoom {
  #used = 0;
  readonly #servers = new Map<string, Map<ListKind, number>>();

  /**
   * Why a list of so many bytes is not taken, as a sentence; undefined where there is room. A server may have as much as it
   * leaves to others: so one alone has half, and there is always some room for the next. What does not grow always fits.
   */
  refusal(server: string, kind: ListKind, bytes: number): string | undefined {
    const lists = this.#servers.get(server);
    const before = lists?.get(kind) ?? 0;
    if (bytes <= before) return undefined;
    let own = bytes - before;
    for (const size of lists?.values() ?? []) own += size;
    const left = MAX_LISTS_BYTES - (this.#used - before + bytes);
    if (own <= left) return undefined;
    return (
      `There is no room for a list of ${bytes} bytes: all servers' lists together may have ${MAX_LISTS_BYTES}, ` +
      "and those of one server no more than they leave to others."
    );
  }

  set(server: string, kind: ListKind, bytes: number): void {
    let lists = this.#servers.get(server);
    if (lists === undefined) {
      lists = new Map();
      this.#servers.set(server, lists);
    }
    this.#used += bytes - (lists.get(kind) ?? 0);
    lists.set(kind, bytes);
  }

  forget(server: string): void {
    for (const bytes of this.#servers.get(server)?.values() ?? []) this.#used -= bytes;
    this.#servers.delete(server);
  }

  get used(): number {
    return this.#used;
  }
}
