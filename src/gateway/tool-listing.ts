// The tools of a gateway as the program and the operator see them: all of them, whatever the menu shows.

import type { Catalog } from "../catalog/catalog.js";
import { ownToolName } from "../contracts/names.js";
import type { StoredPins } from "./stored-pins.js";

export interface ToolListing {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  readonly description: string | undefined;
  readonly inputSchema: unknown;
  /** Why no agent may use it: its definition changed. Absent for a tool that may be used. */
  readonly quarantined?: string;
}

export function listTools(catalog: Catalog, pins: StoredPins): ToolListing[] {
  return catalog.tools().map(({ name, server, item, description }) => {
    const quarantined = pins.quarantine(server, ownToolName(item.own));
    return {
      name,
      server,
      ownName: item.own,
      description,
      inputSchema: item.value["inputSchema"],
      ...(quarantined === undefined ? {} : { quarantined }),
    };
  });
}
