// What the gateway's status says: of each server, which is what it says itself with what the parts around it know; of the
// engine; and of the store of this machine where that cannot be written.

import type { Config } from "../config/config.js";
import type { GatewayEngine } from "../contracts/engine/engine.js";
import type { EngineSeen, ServerStatus, StoreSeen } from "../contracts/status.js";
import { type Clock, isoTime } from "../runtime/clock.js";
import type { ServerPool } from "../upstream/servers.js";
import type { Stages } from "./stages.js";
import type { ConfigMarks } from "./state/config-marks.js";
import { type GatewayState, redactedText } from "./state/state.js";
import { type Quarantined, quarantinedOf } from "./tool-listing.js";

/**
 * @param kept what is to be said of a server whose entry before is still in use
 * @param isWanted undefined for all of them
 */
export function serverRows(
  servers: ServerPool,
  stages: Pick<Stages, "catalog" | "cache" | "credentials" | "executors" | "places">,
  pins: Parameters<typeof quarantinedOf>[1],
  kept: (server: string) => readonly string[],
  entries: Config["servers"],
  isWanted?: (server: string) => boolean,
): ServerStatus[] {
  const { catalog, cache, credentials, executors } = stages;
  return servers
    .status((server) => catalog.counts(server), isWanted)
    .map((one) => ({
      ...executors.seen(one),
      placement: stages.places?.status(servers.supervised(one.name)?.spec),
      credential: credentials.status(servers.supervised(one.name)?.spec.target),
      ...quarantineRow(quarantinedOf(catalog, pins, one.name)),
      cache: cache.statsOf(one.name),
      problems: [...kept(one.name), ...one.problems, ...catalog.problems(one.name)].map((text) =>
        redactedText(entries, one.name, text),
      ),
    }));
}

function quarantineRow({ count, sinceMs }: Quarantined): Pick<ServerStatus, "quarantined" | "quarantinedAt"> {
  return { quarantined: count, ...(sinceMs === undefined ? {} : { quarantinedAt: new Date(sinceMs).toISOString() }) };
}

/** What it means to people: even who acts for a queue has to be written down. */
const NOTHING_KEPT = "nothing is kept, delivered or handed out; what it has already stays.";
const NO_ROOM = `Until it has, ${NOTHING_KEPT}`;
const NO_LEADER = `Until one does, ${NOTHING_KEPT}`;

function unwritable(why: string | undefined, meaning: string): string | undefined {
  return why === undefined ? undefined : `${why} ${meaning}`;
}

export function engineSeen(
  engine: GatewayEngine | undefined,
  marks: Pick<ConfigMarks, "differences" | "seen"> | undefined,
  clock: Clock,
): EngineSeen | undefined {
  if (engine === undefined) return undefined;
  const { state, node, version, sinceMs, nextTryMs, problem, full, mute } = engine.status();
  // To a second: two clocks that are read one after the other differ by a little each time, and pages are sent what changed.
  const iso = (ms: number) => new Date(Math.round((clock.wall() + ms - clock.now()) / 1_000) * 1_000).toISOString();
  return {
    state,
    gateway: engine.self,
    node,
    version,
    since: iso(sinceMs),
    problem: problem ?? unwritable(full, NO_ROOM) ?? unwritable(mute?.why, NO_LEADER),
    nextTry: nextTryMs === undefined ? undefined : iso(nextTryMs),
    isStale: engine.staleForMs() !== undefined,
    held: engine.shared.stats().held ?? 0,
    differences: marks?.differences() ?? [],
    gateways: engine.partitions
      .gateways()
      .map(({ gateway, isLeaving, partitions }) => ({
        gateway,
        isThis: gateway === engine.self,
        isLeaving,
        partitions,
        place: marks?.seen(gateway)?.place,
        version: marks?.seen(gateway)?.version,
        config: marks?.seen(gateway)?.config,
      }))
      .sort((a, b) => Number(b.isThis) - Number(a.isThis) || (a.gateway < b.gateway ? -1 : 1)),
  };
}

/** No key of the config sets how much a store takes. What people put there, and can take out, are writes and messages. */
const WHAT_TO_DROP =
  "`toolway outbox` and `toolway mailbox` show what waits and what failed, `toolway outbox drop` and `toolway mailbox drop` take it out.";

export function storeSeen({ dir, store }: Pick<GatewayState, "dir" | "store">): StoreSeen | undefined {
  const trouble = store?.trouble;
  if (dir === undefined || trouble === undefined) return undefined;
  const { code, problem, sinceMs } = trouble;
  const why = code === "full" ? `${problem} ${WHAT_TO_DROP}` : problem;
  return { path: dir, problem: why, since: isoTime(sinceMs), isDiskFull: code === "disk-full" };
}
