// What is shared, and with whom: what the operator is shown when a gateway begins to share its tools.

import type { Config } from "../../config/config.js";
import { ownToolName } from "../../contracts/names.js";
import type { SharePlan } from "../../contracts/status.js";
import type { Access } from "../../pipeline/access.js";

/** Of a tool, what has to be known here. */
interface ListedTool {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  readonly quarantined?: string;
}

export function planOf(
  config: Config,
  servers: readonly string[],
  listed: readonly ListedTool[],
  access: Access,
): SharePlan {
  // What is quarantined is shared with nobody.
  const tools = listed.filter(({ quarantined }) => quarantined === undefined);
  const nameOf = ({ name, ownName }: ListedTool) => (servers.length === 1 ? ownName : name);
  // Menus are of principals, and one may be called as a role is: what a role has is told without them.
  const sees = (role: string) => (tool: ListedTool) =>
    access.decideUnderWay({ id: role, role }, tool.server, ownToolName(tool.ownName)).kind === "allow";
  const isAsked = ({ server, ownName }: ListedTool) => {
    const entries = config.servers.find(({ name }) => name === server)?.tools;
    return entries !== undefined && Object.hasOwn(entries, ownName) && entries[ownName]?.ask === true;
  };
  return {
    servers: servers.map((name) => ({ name, tools: tools.filter(({ server }) => server === name).length })),
    tools: tools.map(nameOf),
    roles: Object.keys(config.roles).map((role) => ({ role, tools: tools.filter(sees(role)).length })),
    unlistedRoles: config.unlistedRoles,
    asked: tools.filter(isAsked).map(nameOf),
  };
}
