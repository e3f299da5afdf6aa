// What servers announced of their lists and turned out to be no change. Who subscribed to a list's changes hears of it
// all the same, since the server may mean more than its definitions; everybody else is told of real changes alone.

import type { ListKind } from "../contracts/upstream.js";

/** A server that announces without end is passed on no more often than this, for each list. */
const DISTANCE_MS = 1_000;
/** So many lists are kept in mind: three for each server, of more servers than anybody has. */
const MAX_LISTS = 10_000;

export class Announcements {
  /** Announced, and being read. */
  readonly #open = new Set<string>();
  /** When an announcement without a change was last passed on. */
  readonly #passedMs = new Map<string, number>();

  announced(server: string, kinds: readonly ListKind[]): void {
    for (const kind of kinds) if (this.#open.size < MAX_LISTS) this.#open.add(keyOf(server, kind));
  }

  /** The list was read, and is another: everybody is told. */
  changed(server: string, kind: ListKind): void {
    this.#open.delete(keyOf(server, kind));
  }

  /** The list was read, and is what it was. True where those who subscribed are to be told. */
  unchanged(server: string, kind: ListKind, nowMs: number): boolean {
    const key = keyOf(server, kind);
    if (!this.#open.delete(key)) return false;
    if (nowMs - (this.#passedMs.get(key) ?? Number.NEGATIVE_INFINITY) < DISTANCE_MS) return false;
    if (this.#passedMs.size >= MAX_LISTS) this.#passedMs.clear();
    this.#passedMs.set(key, nowMs);
    return true;
  }
}

/** Templates are told of with resources. No server's name has a line break in it. */
function keyOf(server: string, kind: ListKind): string {
  return `${kind === "resourceTemplates" ? "resources" : kind}\n${server}`;
}
