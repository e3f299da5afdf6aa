// The gateways on one engine as the endpoint of each sees the others: who is there, how what belongs to one of them is passed
// to it, and which requests are for a process that one session has for itself.

import type { Catalog } from "../../catalog/catalog.js";
import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { Homes } from "../../contracts/engine/homes.js";
import { exposedName } from "../../contracts/names.js";
import type { Servers } from "../../contracts/servers.js";

/** Streams of this kind carry HTTP to the endpoint of the gateway that takes them. */
export const AGENTS = "agents";

export function homesOf(engine: GatewayEngine, catalog: Catalog, servers: Servers): Homes {
  const isOwn = (server: string | undefined) => server !== undefined && servers.get(server)?.isolation === "session";
  return {
    self: engine.self,
    gateways: () => engine.partitions.gateways().map(({ gateway }) => gateway),
    connect: (gateway) => engine.peers.connect(gateway, AGENTS),
    isOfSession(method, params, scope) {
      if (scope !== undefined) return isOwn(scope) && !isAboutLists(method);
      const name = params?.["name"];
      if (method !== "tools/call" || typeof name !== "string") return false;
      const found = catalog.resolveTool(exposedName(name), undefined);
      return found.kind === "found" && isOwn(found.server);
    },
  };
}

/** Any gateway knows them. */
function isAboutLists(method: string): boolean {
  return method === "ping" || method === "server/discover" || method.endsWith("/list");
}
