// Of a call that was let through and has waited for its agent since: whether it would still be let through. Menus are not
// asked again, since a change of context touches nothing that is under way.

import type { Catalog } from "../catalog/catalog.js";
import type { Servers } from "../contracts/servers.js";
import type { AgentCall } from "../contracts/service.js";
import type { Access } from "./access.js";
import { NAME, nameAt } from "./name-at.js";
import { foundCall } from "./search-menu.js";
import { unknownName } from "./wait-for-lists.js";

/** Roles, guard and pins once more, of what may be answered by questions. Throws a Fault. */
export function demandStill(call: AgentCall, catalog: Catalog, access: Access, servers: Servers): void {
  const { caller, message, scope } = call;
  const { principal } = caller;
  if (message.method === "tools/call") {
    const name = nameAt(call, NAME);
    const found = catalog.resolveTool(name, scope);
    if (found.kind === "unknown") throw unknownName(servers, "tool", name, found.server);
    if (found.kind === "found") {
      access.demandUnderWay(principal, found.server, found.own);
      access.demandPinned(found.server, found.own);
    } else if (found.tool !== "find_tools") demandStill(foundCall(call), catalog, access, servers);
  } else if (message.method === "prompts/get") {
    const found = catalog.resolvePrompt(nameAt(call, NAME), scope);
    if (found.kind === "found") access.demandUnderWay(principal, found.server, undefined);
  } else if (message.method === "resources/read") {
    const server = catalog.resolveResource(String(message.params?.["uri"]), scope);
    if (server !== undefined) access.demandUnderWay(principal, server, undefined);
  }
}
