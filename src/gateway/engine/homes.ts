// The gateways on one engine as the endpoint of each sees the others: who is there, how what belongs to one of them is passed
// to it, and which requests are for a process that one session has for itself.

import type { Catalog } from "../../catalog/catalog.js";
import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { Homes } from "../../contracts/engine/homes.js";
import { exposedName } from "../../contracts/names.js";
import type { Servers } from "../../contracts/servers.js";

type Params = Parameters<Homes["isOfSession"]>[1];

/** Streams of this kind carry HTTP to the endpoint of the gateway that takes them. */
export const AGENTS = "agents";

/** Gateways that are known to be gone. Each start of one has a name of its own; beyond these the first is told of anew. */
const MAX_GONE = 1_000;

export function homesOf(
  engine: GatewayEngine,
  catalog: Catalog,
  servers: Servers,
  info: (text: string) => void,
): Homes {
  const gone = new Set<string>();
  const isOwn = (server: string | undefined) => server !== undefined && servers.get(server)?.isolation === "session";
  return {
    self: engine.self,
    gateways: () => engine.partitions.gateways().map(({ gateway }) => gateway),
    left: () => engine.partitions.left(),
    connect: (gateway) => engine.peers.connect(gateway, AGENTS),
    gone(gateway) {
      // Without the engine nobody knows who is there.
      if (gone.has(gateway) || engine.status().state !== "connected") return;
      for (const first of gone) if (gone.size >= MAX_GONE) gone.delete(first);
      gone.add(gateway);
      info(
        `gateway ${gateway} is gone: its sessions go on at the gateways that are there, and processes that sessions have for ` +
          "themselves start anew; calls that waited there for answers are to be repeated",
      );
    },
    isOfSession(method, params, scope) {
      if (scope !== undefined) return isOwn(scope) && !isAboutLists(method);
      return isOwn(serverOf(catalog, method, params));
    },
  };
}

/** The server that a request at `/mcp` is for, also where its list has not been read yet. */
function serverOf(catalog: Catalog, method: string, params: Params): string | undefined {
  if (method === "resources/read") {
    const uri = params?.["uri"];
    return typeof uri === "string" ? catalog.resolveResource(uri, undefined) : undefined;
  }
  const name = params?.["name"];
  if (typeof name !== "string") return undefined;
  if (method === "prompts/get") return catalog.resolvePrompt(exposedName(name), undefined).server;
  if (method !== "tools/call") return undefined;
  const found = catalog.resolveTool(exposedName(name), undefined);
  if (found.kind !== "menu") return found.server;
  // The search menu's own tool names the one that it calls.
  const inner = (params?.["arguments"] as Params | null)?.["name"];
  const called = typeof inner === "string" ? catalog.resolveTool(exposedName(inner), undefined) : undefined;
  return called === undefined || called.kind === "menu" ? undefined : called.server;
}

/** Any gateway knows them. */
function isAboutLists(method: string): boolean {
  return method === "ping" || method === "server/discover" || method.endsWith("/list");
}
