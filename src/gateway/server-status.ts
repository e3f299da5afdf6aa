// What the gateway's status says of each server: what the server itself says, with what the parts around it know.

import type { Config } from "../config/config.js";
import type { ServerStatus } from "../contracts/status.js";
import type { ServerPool } from "../upstream/servers.js";
import type { Stages } from "./stages.js";
import { redactedText } from "./state/state.js";
import { type Quarantined, quarantinedByServer } from "./tool-listing.js";

/**
 * @param kept what is to be said of a server whose entry before is still in use
 * @param isWanted undefined for all of them
 */
export function serverRows(
  servers: ServerPool,
  stages: Pick<Stages, "catalog" | "cache" | "credentials" | "executors" | "places">,
  pins: Parameters<typeof quarantinedByServer>[1],
  kept: (server: string) => readonly string[],
  entries: Config["servers"],
  isWanted?: (server: string) => boolean,
): ServerStatus[] {
  const { catalog, cache, credentials, executors } = stages;
  const quarantined = quarantinedByServer(catalog, pins);
  return servers
    .status((server) => catalog.counts(server), isWanted)
    .map((one) => ({
      ...executors.seen(one),
      placement: stages.places?.status(servers.supervised(one.name)?.spec),
      credential: credentials.status(servers.supervised(one.name)?.spec.target),
      ...quarantineOf(quarantined.get(one.name)),
      cache: cache.statsOf(one.name),
      problems: [...kept(one.name), ...one.problems, ...catalog.problems(one.name)].map((text) =>
        redactedText(entries, one.name, text),
      ),
    }));
}

function quarantineOf(found: Quarantined | undefined): Pick<ServerStatus, "quarantined" | "quarantinedAt"> {
  if (found === undefined) return { quarantined: 0 };
  const { count, sinceMs } = found;
  return { quarantined: count, ...(sinceMs === undefined ? {} : { quarantinedAt: new Date(sinceMs).toISOString() }) };
}
