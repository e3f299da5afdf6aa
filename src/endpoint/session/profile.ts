// The profiles of agents: one object for all who declared the same capabilities, in whatever order they wrote them.

import type { AgentProfile } from "../../contracts/caller.js";
import { canonicalizeText } from "../../protocol/canonical.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { boundCapabilities } from "./session-id.js";

/** So many are told apart. Clients that people use come to a handful; more is somebody who plays with us. */
const MAX_PROFILES = 64;

/** By canonical text. Whoever uses one holds it: what nobody uses any more is forgotten. */
const profiles = new Map<string, WeakRef<AgentProfile>>();

/** Undefined where there are too many, or where the capabilities are no JSON that can be compared. */
export function profileOf(capabilities: JsonObject): AgentProfile | undefined {
  let key: string;
  try {
    key = canonicalizeText(JSON.stringify(capabilities));
  } catch {
    return undefined;
  }
  const known = profiles.get(key)?.deref();
  if (known !== undefined) return known;
  if (profiles.size >= MAX_PROFILES) {
    for (const [text, ref] of profiles) if (ref.deref() === undefined) profiles.delete(text);
  }
  if (profiles.size >= MAX_PROFILES) return undefined;
  const profile: AgentProfile = { capabilities };
  profiles.set(key, new WeakRef(profile));
  return profile;
}

/** For a modern agent, which declares with each request what it declared with the last, as a rule. */
export class LastProfile {
  #capabilities: JsonObject | undefined;
  #profile: AgentProfile | undefined;

  of(capabilities: JsonObject): AgentProfile | undefined {
    if (this.#capabilities !== undefined && isSame(this.#capabilities, capabilities)) return this.#profile;
    // What is too large to be kept is made small each time.
    const bounded = boundCapabilities(capabilities);
    this.#capabilities = bounded;
    this.#profile = profileOf(bounded);
    return this.#profile;
  }
}

/** Compares without a copy and without a text: it is on the way of calls. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, at) => isSame(item, b[at]));
  if (!isObject(a) || !isObject(b)) return false;
  let members = 0;
  for (const key in a) {
    if (!Object.hasOwn(b, key) || !isSame(a[key], b[key])) return false;
    members++;
  }
  for (const _ in b) members--;
  return members === 0;
}
