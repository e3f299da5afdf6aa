// What the servers of the config have in common, as they and their drivers are given it: types only.

import type { AgentProfile, Caller } from "../contracts/caller.js";
import type { ServerSpec } from "../contracts/server-spec.js";
import type { UpstreamEvents } from "../contracts/upstream.js";
import type { HeldBytes } from "../runtime/memory/held-bytes.js";
import type { EraMemory } from "./era/verdict.js";
import type { OpenRequester } from "./http/requester.js";
import type { Link, LinkEvents } from "./link/link.js";

/** What all drivers share. */
export interface UpstreamContext {
  readonly now: () => number;
  readonly random: () => number;
  readonly makeLink: (spec: ServerSpec, events: LinkEvents) => Link;
  /** The gateway's count of the bytes that it holds. */
  readonly held?: HeldBytes | undefined;
  /** Hears of starts and ends, for who counts them. Undefined where nobody does. */
  readonly lifecycle?: ServerLifecycle | undefined;
}

/** Who hears of starts and ends of servers, and of how their calls go. */
export interface ServerLifecycle {
  /** `idle`: it was closed for want of calls, and is wanted again. */
  started(server: string, reason: "first" | "restart" | "idle"): void;
  /** A connection that was up has ended after `ms`. `fault` is undefined where we closed it by our own will. */
  disconnected(server: string, ms: number, fault: string | undefined): void;
  /** Its breaker. */
  turned?(server: string, circuit: "open" | "closed"): void;
  /** It is up again that was up before and went away. */
  cameBack?(server: string): void;
  /** It answered a call, the first after calls that found something wrong with it. */
  answers?(server: string): void;
}

/** What the agents that are there can do, as far as a server is told of it. */
export interface AgentProfiles {
  /** Whether one of this profile has a session open. */
  hasProfile(profile: AgentProfile): boolean;
  /** Whether all that have sessions open can do what this one can. */
  areAllLike(agent: Caller): boolean;
}

/** What the servers of the config have in common: whom they tell, what is known of them, how they are reached. */
export interface ServerDeps {
  readonly context: UpstreamContext;
  readonly events: UpstreamEvents;
  readonly clientInfo: { readonly name: string; readonly version: string };
  /** Remembers the eras of servers. By default each is remembered for as long as it is in the config. */
  readonly eras?: EraMemory | undefined;
  /** Whether the lists of a server are known from before: a lazy one need not be started to be listed. */
  readonly isKnown?: (server: string) => boolean;
  readonly agents?: AgentProfiles | undefined;
  /** The one agent that the gateway was started by and for; undefined where there is none. */
  readonly soleAgent?: () => AgentProfile | undefined;
  /** Counts for all servers what may have changed a list. */
  readonly listEvents?: { count: number } | undefined;
  /** `facts` are what the text says, for a program: the server's name among them. */
  readonly log: (level: "info" | "warn", text: string, facts: Readonly<Record<string, unknown>>) => void;
  /** How addresses are reached. By default it is over our own network. */
  readonly openRequester?: OpenRequester | undefined;
}
