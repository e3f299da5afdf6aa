// A pin as it is kept.

import { createHash } from "node:crypto";
import type { OwnToolName } from "../../contracts/names.js";
import type { PinSide } from "../../contracts/pins.js";
import type { Store } from "../../contracts/store.js";
import type { Pin } from "../../policy/pins.js";

export interface KeptDefinition {
  readonly hash: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** RFC 8785's text; absent where it was too large. */
  readonly definition?: string;
}

export interface PinRecord {
  readonly server: string;
  readonly tool: OwnToolName;
  /** Of several gateways: which server the name means, as a hash. Where it means another, the pin is another. */
  readonly target?: string;
  readonly firstSeen: number;
  readonly accepted: KeptDefinition;
  readonly changed?: KeptDefinition & {
    /** When it was rejected, as it is there. */
    readonly rejected?: number;
  };
}

export function keptOf(
  { hash, seenMs }: { hash: string; seenMs: number },
  known: KeptDefinition | undefined,
): KeptDefinition {
  return known?.hash === hash ? known : { hash, at: seenMs };
}

export function toPin({ firstSeen, accepted, changed }: PinRecord): Pin {
  return {
    hash: accepted.hash,
    firstSeenMs: firstSeen,
    acceptedMs: accepted.at,
    changed:
      changed === undefined
        ? undefined
        : {
            hash: changed.hash,
            seenMs: changed.at,
            ...(changed.rejected === undefined ? {} : { rejectedMs: changed.rejected }),
          },
  };
}

/** Names are the servers' and of any length; a key of the store is not. */
export function keyOf(server: string, tool: OwnToolName, target: string | undefined): string {
  return createHash("sha256")
    .update(JSON.stringify(target === undefined ? [server, tool] : [server, tool, target]))
    .digest("base64url");
}

/** So many tools are joined in one commit. */
const JOINED_AT_ONCE = 100;

/**
 * For a gateway that is alone: what came from an engine has a pin for each server that a name meant there, and here a name means
 * one. Of each tool the pin that was accepted last stays, where this gateway reads and writes it. Were another left beside
 * it, a later start might take that one, and undo what was accepted since.
 */
export async function joinPins(store: Store): Promise<void> {
  const map = store.map<PinRecord>("pins");
  // By where it belongs. The definitions are not kept: there may be many megabytes of them.
  const found = new Map<string, { readonly key: string; readonly at: readonly [number, number] }[]>();
  for (const [key, { server, tool, accepted, changed }] of map.entries()) {
    const own = keyOf(server, tool, undefined);
    const all = found.get(own) ?? [];
    found.set(own, all);
    all.push({ key, at: [accepted.at, changed?.at ?? 0] });
  }
  const wrong = [...found].filter(([own, all]) => all.some(({ key }) => key !== own));
  for (let n = 0; n < wrong.length; n += JOINED_AT_ONCE) {
    await store.batch((batch) => {
      for (const [own, all] of wrong.slice(n, n + JOINED_AT_ONCE)) {
        // Of two that were accepted at one time, the one that saw a change last: it is hidden until a list says otherwise.
        const [last] = all.sort((a, b) => b.at[0] - a.at[0] || b.at[1] - a.at[1]);
        const record = last && map.get(last.key);
        if (record === undefined) continue;
        const { target: _, ...rest } = record;
        batch.put(map, own, rest);
        for (const { key } of all) if (key !== own) batch.delete(map, key);
      }
    });
  }
}

export function sizeOf(record: PinRecord | undefined): number {
  return (record?.accepted.definition?.length ?? 0) + (record?.changed?.definition?.length ?? 0);
}

export function side({ hash, at, definition }: KeptDefinition): PinSide {
  return { hash, at: iso(at), ...(definition === undefined ? {} : { definition }) };
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}
