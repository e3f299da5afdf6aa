// Whose list is read where a server has several sessions, and what they list may differ: that of the one which last told
// of a change of its own. It decides only: no I/O, no clock.

import type { ListKind } from "../../contracts/upstream.js";

/**
 * A server that tells all its sessions of a change tells them within this. Then the list is read by the shared one; a
 * session beside reads what changed for it alone.
 */
export const CHANGE_ECHO_MS = 250;

export class ListSource<S> {
  /** When the shared session last told of a change of a list. */
  readonly #sharedMs = new Map<ListKind, number>();
  /** The session beside whose list it is; absent where it is the shared one's. */
  readonly #sources = new Map<ListKind, S>();

  /** The shared session tells of changes: the lists are its own again. */
  sharedTold(kinds: readonly ListKind[], nowMs: number): void {
    for (const kind of kinds) {
      this.#sharedMs.set(kind, nowMs);
      this.#sources.delete(kind);
    }
  }

  /**
   * A session beside told of changes at `toldMs`, and the shared one has had its time to do so, too. Returns the lists
   * that changed for this session alone; they are its own from now on.
   */
  toldAlone(source: S, kinds: readonly ListKind[], toldMs: number): ListKind[] {
    const alone = kinds.filter(
      (kind) => (this.#sharedMs.get(kind) ?? Number.NEGATIVE_INFINITY) < toldMs - CHANGE_ECHO_MS,
    );
    for (const kind of alone) this.#sources.set(kind, source);
    return alone;
  }

  /** Whoever reads the list again reads it there, or the change that was told would be undone. */
  of(kind: ListKind): S | undefined {
    // Asked of each server with each list, and nearly none has one.
    return this.#sources.size === 0 ? undefined : this.#sources.get(kind);
  }

  /** The session is gone, and what it had of its own with it. Returns its lists, which are the shared one's again. */
  left(session: S): ListKind[] {
    const kinds = [...this.#sources].filter(([, source]) => source === session).map(([kind]) => kind);
    for (const kind of kinds) this.#sources.delete(kind);
    return kinds;
  }
}
