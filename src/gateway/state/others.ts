// What other gateways on the same engine write, passed on to whoever has it in memory here. One place for all of it: a part
// that keeps what it once read, and never hears of others, would go on by what is no longer so. Eras and whether a server's
// lists are known are read from the maps each time; tokens follow theirs from the start (state.ts).

import type { TaskRecord } from "../../pipeline/tasks/table.js";
import type { ContextChanges, Contexts } from "../../policy/contexts.js";
import { Fault } from "../../protocol/errors.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import type { GatewayState } from "./state.js";
import type { PinRecord } from "./stored-pins.js";

/** Those who keep something in memory. What they are told may be what they wrote themselves. */
export interface Followers {
  readonly pins: { told(key: string, record: PinRecord | undefined): void };
  readonly tasks: { told(key: string, record: TaskRecord | undefined): void };
  readonly contexts: Pick<Contexts, "of">;
  changeContext(principal: string, changes: ContextChanges): void;
  /** A server whose lists nobody here has read. */
  lists(server: string, snapshot: JsonObject): void;
  /** The engine is back: what could not be written meanwhile is to be tried again. */
  back(): void;
}

/** Nothing where the gateway is alone: it hears of its own writes where it makes them. */
export function followOthers(state: GatewayState, followers: Followers): void {
  if (state.engine === undefined) return;
  const { pins, tasks, contexts } = followers;
  state.pins.watch((key, record) => pins.told(key, record));
  state.tasks.watch((key, record) => tasks.told(key, record));
  state.known.watch((server, snapshot) => {
    if (snapshot !== undefined) followers.lists(server, snapshot);
  });
  let isAway = false;
  state.engine.watch(({ state: now, mute }) => {
    const wasAway = isAway;
    isAway = now !== "connected" || mute !== undefined;
    if (wasAway && !isAway) followers.back();
  });
  state.contexts.watch((principal, kept = {}) => {
    const changes = contextDifference(contexts.of(principal) ?? new Map(), kept);
    try {
      if (Object.keys(changes).length > 0) followers.changeContext(principal, changes);
    } catch (error) {
      // What no longer counts as a context is left out, as at a start.
      if (!(error instanceof Fault)) throw error;
    }
  });
}

/** What makes the one of the other. */
function contextDifference(now: ReadonlyMap<string, string>, wanted: ContextChanges): ContextChanges {
  const changes: Record<string, string | null> = {};
  for (const key of now.keys()) if (wanted[key] === undefined) changes[key] = null;
  for (const [key, value] of Object.entries(wanted)) if (now.get(key) !== value) changes[key] = value;
  return changes;
}
