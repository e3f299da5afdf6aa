// What the servers of a host have in common: whom they tell, what they know of themselves, how they reach theirs.

import type { UpstreamEvents } from "../contracts/upstream.js";
import type { UpstreamContext } from "./driver.js";
import type { EraMemory } from "./era/verdict.js";
import type { OpenWire } from "./http/wire.js";

export interface ServerDeps {
  readonly context: UpstreamContext;
  readonly events: UpstreamEvents;
  readonly clientInfo: { readonly name: string; readonly version: string };
  /** Where the eras of servers are remembered; absent: for as long as each is in the config. */
  readonly eras?: EraMemory | undefined;
  /** Whether the lists of a server are known from before: a lazy one need not be started to be listed. */
  readonly isKnown?: (server: string) => boolean;
  readonly log: (level: "info" | "warn", text: string) => void;
  /** How addresses are reached. Default: over our own network. */
  readonly openWire?: OpenWire | undefined;
}
