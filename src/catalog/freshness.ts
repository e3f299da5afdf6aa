// How long a merged list is good, and for whom: the shortest time and the most private scope of its parts.

import type { Freshness, ListKind } from "../contracts/upstream.js";
import type { KnownServer } from "./snapshot.js";

/** A legacy server does not say, and may change its mind without telling: to be asked for again each time. */
const LEGACY: Freshness = { ttlMs: 0, cacheScope: "private" };

/** `common`: everybody sees the same list; where roles differ, no cache may serve one's to another. */
export function mergeFreshness(servers: readonly KnownServer[], kind: ListKind, common: boolean): Freshness {
  let ttlMs = Number.POSITIVE_INFINITY;
  let cacheScope: Freshness["cacheScope"] = common ? "public" : "private";
  for (const { lists, freshness } of servers) {
    // A list that has not been read yet may come at any moment.
    const known = lists.has(kind) ? (freshness.get(kind) ?? LEGACY) : LEGACY;
    // Nothing of this server is in the list, and nothing will be without notice.
    if (lists.get(kind)?.items.length === 0 && !freshness.has(kind)) continue;
    ttlMs = Math.min(ttlMs, known.ttlMs);
    if (known.cacheScope === "private") cacheScope = "private";
  }
  return { ttlMs: Number.isFinite(ttlMs) ? ttlMs : 0, cacheScope };
}
