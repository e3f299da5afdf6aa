// What the catalog is told of each server of a config.

import type { CatalogServer } from "../catalog/catalog.js";
import { type Config, inFileOrder } from "../config/config.js";

/** What agents are shown of each server. Of one whose entry is wrong it is what is known from before, if anything. */
export function menusOf({ servers, misconfigured }: Config): (CatalogServer & { readonly isShown: boolean })[] {
  return inFileOrder(servers, misconfigured).map((one) =>
    "place" in one ? { name: one.name, ...one.menu, isShown: one.menu !== undefined } : { ...one, isShown: true },
  );
}
