// The engine as `toolway status` shows it, and the store of this machine where that cannot be written.

import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { EngineSeen, StoreSeen } from "../../contracts/status.js";
import { type Clock, isoTime } from "../../runtime/clock.js";
import type { ConfigMarks } from "./config-marks.js";
import type { GatewayState } from "./state.js";

/** What an engine without room means to people: even who acts for a queue has to be written down. */
const NOTHING_KEPT = "Until it has, nothing is kept, delivered or handed out; what it has already stays.";

export function engineSeen(
  engine: GatewayEngine | undefined,
  marks: Pick<ConfigMarks, "differences" | "seen"> | undefined,
  clock: Clock,
): EngineSeen | undefined {
  if (engine === undefined) return undefined;
  const { state, node, version, sinceMs, nextTryMs, problem, full } = engine.status();
  // To a second: two clocks that are read one after the other differ by a little each time, and pages are sent what changed.
  const iso = (ms: number) => new Date(Math.round((clock.wall() + ms - clock.now()) / 1_000) * 1_000).toISOString();
  return {
    state,
    gateway: engine.self,
    node,
    version,
    since: iso(sinceMs),
    problem: problem ?? (full === undefined ? undefined : `${full} ${NOTHING_KEPT}`),
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

export function storeSeen({ dir, store }: Pick<GatewayState, "dir" | "store">): StoreSeen | undefined {
  const trouble = store?.trouble;
  if (dir === undefined || trouble === undefined) return undefined;
  const { code, problem, sinceMs } = trouble;
  return { path: dir, problem, since: isoTime(sinceMs), isDiskFull: code === "disk-full" };
}

/** Whether agents may be sent to a gateway: without its engine too, unless the config says otherwise. */
export function isThereForAgents(engine: GatewayEngine | undefined): boolean {
  return engine?.isNeededToBeReady !== true || engine.status().state === "connected";
}
