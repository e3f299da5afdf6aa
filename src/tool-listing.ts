// The tools of a gateway as the program and the operator see them: all of them, whatever the menu shows.

import type { Catalog } from "./catalog/catalog.js";

export interface ToolListing {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  readonly description: string | undefined;
  readonly inputSchema: unknown;
}

export function listTools(catalog: Catalog): ToolListing[] {
  return catalog.tools().map(({ name, server, item, description }) => ({
    name,
    server,
    ownName: item.own,
    description,
    inputSchema: item.value["inputSchema"],
  }));
}
