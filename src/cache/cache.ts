// The cache on a call's way: answers it from what is kept, lets it wait for an identical one that is under way, or
// passes it on with an eye on its reply. What may be kept is cacheable.ts, how much of it response-cache.ts.

import type { Caller } from "../contracts/caller.js";
import type { OwnToolName } from "../contracts/names.js";
import type { AgentCall } from "../contracts/service.js";
import type { CacheLimits } from "../contracts/settings.js";
import type { CacheStats } from "../contracts/status.js";
import { shared } from "../protocol/arrived.js";
import { Fault, toRpcError } from "../protocol/errors.js";
import type { RequestMessage } from "../protocol/message.js";
import { faultReply, type Reply } from "../protocol/reply.js";
import type { Clock } from "../runtime/clock.js";
import { freshReply, requestHash } from "./cacheable.js";
import { AgeClock, type Part, privateKey, ResponseCache, type Wanted } from "./response-cache.js";

export type { Part } from "./response-cache.js";

/** Calls that wait for the same reply. Each holds an open request; a crowd beyond this is sent to its server. */
const MAX_FOLLOWERS = 1_000;

/**
 * `hit`: answered; `coalesced`: it waits for another's reply; `miss`: it is sent; `bypass`: it is sent and not kept.
 */
export type CacheOutcome = "hit" | "coalesced" | "miss" | "bypass";

/** Sends a call on its way. It may throw a Fault, where the call cannot be sent. */
export type Send = (call: AgentCall) => void;

/** What the last reply of a tool, or of a server's resources, was good for. Decides who waits, never who gets what. */
type LastScope = "public" | "private" | "nothing";

interface Follower {
  readonly call: AgentCall;
  readonly wanted: Wanted;
  readonly send: Send;
}

/** What the cache knows of one server of the config. */
interface CachedServer {
  readonly tools: ReadonlySet<OwnToolName>;
  /** Calls under way that others may wait for: by hash and owner, and where replies are for everybody by hash too. */
  readonly leads: Map<string, Lead>;
  readonly lastScope: Map<OwnToolName | undefined, LastScope>;
}

export class Cache {
  readonly #clock: AgeClock;
  readonly #kept: ResponseCache;
  readonly #servers = new Map<string, CachedServer>();

  constructor(limits: CacheLimits, clock: Clock) {
    this.#clock = new AgeClock(clock);
    this.#kept = new ResponseCache(limits);
  }

  setLimits(limits: CacheLimits): void {
    this.#kept.setLimits(limits);
  }

  /** Tells of a server, or of a change to it. `tools`: those that the config lets us cache. */
  setServer(server: string, tools: ReadonlySet<OwnToolName>): void {
    const before = this.#servers.get(server);
    this.#servers.set(server, { tools, leads: before?.leads ?? new Map(), lastScope: before?.lastScope ?? new Map() });
    for (const tool of before?.tools ?? []) {
      if (tools.has(tool)) continue;
      this.#kept.forgetTool(server, tool);
      before?.leads.clear();
      before?.lastScope.delete(tool);
    }
  }

  /** The server is no longer in the config. */
  removeServer(server: string): void {
    this.#servers.delete(server);
    this.#kept.forget(server);
  }

  /**
   * Whether a call is worth handing to handle(). `modern`: the server is. The legacy era has no words for caching, and
   * no config speaks of resources.
   */
  covers(server: string, method: string, tool: OwnToolName | undefined, modern: boolean): boolean {
    if (tool !== undefined) return this.#servers.get(server)?.tools.has(tool) === true && method === "tools/call";
    return modern && method === "resources/read" && this.#servers.has(server);
  }

  /**
   * To be called for calls that policy has let pass. `owner` is whom private replies are for. Throws what `send`
   * throws, and a Fault `invalid` for a request that could not be sent.
   */
  handle(call: AgentCall, server: string, tool: OwnToolName | undefined, owner: string, send: Send): CacheOutcome {
    const cached = this.#servers.get(server);
    const hash = cached === undefined ? undefined : requestHash(call.message, tool);
    if (cached === undefined || hash === undefined) {
      send(call);
      return "bypass";
    }
    const wanted: Wanted = { server, tool, hash, owner };
    const hit = this.#kept.get(wanted, this.#clock.now());
    if (hit !== undefined) {
      call.reply(hit);
      return "hit";
    }
    const lead = this.#leadFor(cached, wanted);
    if (lead !== undefined && lead.followers.size < MAX_FOLLOWERS) {
      this.#follow(lead, { call, wanted, send });
      return "coalesced";
    }
    this.#lead(cached, wanted, call, send);
    return "miss";
  }

  /** To be called after list_changed, resources/updated, a reload or a stop. Without `part`, all of it goes. */
  invalidate(server: string, part?: Part): void {
    this.#kept.invalidate(server, part);
    // Whoever asks from now on must not get what was asked before.
    this.#servers.get(server)?.leads.clear();
  }

  stats(): ReadonlyMap<string, CacheStats> {
    const all = new Map<string, CacheStats>();
    for (const server of this.#servers.keys()) all.set(server, this.#kept.statsOf(server));
    return all;
  }

  statsOf(server: string): CacheStats {
    return this.#kept.statsOf(server);
  }

  #leadFor(cached: CachedServer, { tool, hash, owner }: Wanted): Lead | undefined {
    const lastScope = cached.lastScope.get(tool);
    // Waiting would only double the time: its replies are for one call each.
    if (lastScope === "nothing") return undefined;
    return cached.leads.get(privateKey(hash, owner)) ?? (lastScope === "public" ? cached.leads.get(hash) : undefined);
  }

  #lead(cached: CachedServer, wanted: Wanted, call: AgentCall, send: Send): void {
    const lead: Lead = new Lead(call, wanted, this.#kept.generation(wanted.server), {
      onReply: (reply) => this.#answered(lead, reply),
      onLeft: () => this.#left(lead),
    });
    const lastScope = cached.lastScope.get(wanted.tool);
    for (const key of lastScope === "nothing" ? [] : keysOf(wanted)) {
      if ((key !== wanted.hash || lastScope === "public") && !cached.leads.has(key)) cached.leads.set(key, lead);
    }
    this.#kept.countMiss(wanted.server);
    try {
      send(lead);
    } catch (error) {
      // It is refused to whoever sends it; the others find out for themselves.
      this.#release(lead);
      for (const follower of lead.takeFollowers()) this.#sendAlone(follower);
      throw error;
    }
  }

  #follow(lead: Lead, follower: Follower): void {
    const { call } = follower;
    lead.followers.add(follower);
    call.onCancel = (reason) => {
      lead.followers.delete(follower);
      call.onCancel = undefined;
      call.reply(faultReply(new Fault("cancelled", reason ?? "Cancelled.")));
    };
  }

  #answered(lead: Lead, reply: Reply): void {
    this.#release(lead);
    const { wanted } = lead;
    const fresh = freshReply(reply, wanted.tool !== undefined);
    // A fault of ours says nothing of what the server's replies are good for.
    if (reply.kind !== "error") this.#servers.get(wanted.server)?.lastScope.set(wanted.tool, fresh?.scope ?? "nothing");
    if (fresh !== undefined) this.#kept.put(wanted, uriOf(lead), fresh, lead.generation, this.#clock.now());
    const followers = lead.takeFollowers();
    lead.call.reply(followers.length === 0 ? reply : shared(reply));
    for (const follower of followers) {
      if (fresh === undefined) this.#sendAlone(follower);
      else if (fresh.scope === "private" && follower.wanted.owner !== wanted.owner) this.#again(follower);
      else {
        this.#kept.countCoalesced(wanted.server);
        follower.call.onCancel = undefined;
        follower.call.reply(reply);
      }
    }
  }

  /** The agent of the first call took it back: the next one takes its place, and the rest waits for that one. */
  #left(lead: Lead): void {
    this.#release(lead);
    for (const follower of lead.takeFollowers()) this.#again(follower);
  }

  #again({ call, wanted: { server, tool, owner }, send }: Follower): void {
    call.onCancel = undefined;
    guarded(call, () => this.handle(call, server, tool, owner, send));
  }

  /** Nobody waits for this one, and it waits for nobody: a server that fails is not asked by one after another. */
  #sendAlone({ call, wanted: { server }, send }: Follower): void {
    call.onCancel = undefined;
    this.#kept.countMiss(server);
    guarded(call, () => send(call));
  }

  #release(lead: Lead): void {
    const leads = this.#servers.get(lead.wanted.server)?.leads;
    for (const key of keysOf(lead.wanted)) if (leads?.get(key) === lead) leads.delete(key);
  }
}

interface LeadEvents {
  onReply(reply: Reply): void;
  onLeft(): void;
}

/** A call that is sent in place of the agent's own; others may wait for its reply. */
class Lead implements AgentCall {
  readonly call: AgentCall;
  readonly wanted: Wanted;
  readonly generation: number;
  readonly followers = new Set<Follower>();
  readonly #events: LeadEvents;
  #onCancel: AgentCall["onCancel"];
  #left = false;

  constructor(call: AgentCall, wanted: Wanted, generation: number, events: LeadEvents) {
    this.call = call;
    this.wanted = wanted;
    this.generation = generation;
    this.#events = events;
  }

  get caller(): Caller {
    return this.call.caller;
  }

  get message(): RequestMessage {
    return this.call.message;
  }

  get scope(): string | undefined {
    return this.call.scope;
  }

  /** Its span and its attempts are told of by these, whoever sends it. */
  get notes(): AgentCall["notes"] {
    return this.call.notes;
  }

  get onCancel(): AgentCall["onCancel"] {
    return this.#onCancel;
  }

  set onCancel(cancel: AgentCall["onCancel"]) {
    this.#onCancel = cancel;
    if (cancel === undefined) {
      this.call.onCancel = undefined;
      return;
    }
    this.call.onCancel = (reason) => {
      this.#left = true;
      cancel(reason);
      this.#events.onLeft();
    };
  }

  reply(reply: Reply): void {
    if (this.#left) this.call.reply(reply);
    else this.#events.onReply(reply);
  }

  takeFollowers(): Follower[] {
    const taken = [...this.followers];
    this.followers.clear();
    return taken;
  }
}

function keysOf({ hash, owner }: Wanted): readonly [string, string] {
  return [hash, privateKey(hash, owner)];
}

function uriOf({ message: { params } }: Lead): string | undefined {
  const uri = params?.["uri"];
  return typeof uri === "string" ? uri : undefined;
}

/** Whoever waited has long returned to his caller: what goes wrong now is a reply. */
function guarded(call: AgentCall, act: () => void): void {
  try {
    act();
  } catch (error) {
    call.reply(error instanceof Fault ? faultReply(error) : { kind: "error", error: toRpcError(error) });
  }
}
