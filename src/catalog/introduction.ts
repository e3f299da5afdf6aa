// What an agent is told at initialize: the union of what the servers can do, and their instructions.

import type { ServerIntro } from "../contracts/upstream.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";

/** Clients put instructions into every prompt, and some cut them at about 2,000 characters. */
const MAX_INSTRUCTIONS_PER_SERVER = 2000;
/** For all servers together: some 4,000 tokens, an eighth of a small model's window. */
const MAX_INSTRUCTIONS = 16_000;

const LISTS = ["tools", "prompts", "resources"] as const;
/**
 * Merged member by member, since the members are names of features and not settings. Where two servers have one of the
 * same name, the first in the config counts, as for URIs: two values of a feature that we do not know cannot be merged.
 */
const MERGED = ["experimental", "extensions"] as const;

/** What clients know, and refuse where it is of a wrong type: nothing of it is passed on as it came. */
const KNOWN: ReadonlySet<string> = new Set([...LISTS, ...MERGED, "logging", "completions", "tasks"]);

/** An intro that is not known yet counts as having everything: what turns out to be missing is an empty list. */
export function mergeCapabilities(intros: readonly (ServerIntro | undefined)[]): JsonObject {
  const merged = new Map<string, unknown>();
  const has = (name: string): boolean =>
    intros.some((intro) => intro === undefined || isObject(intro.capabilities[name]));
  for (const name of LISTS) if (has(name)) merged.set(name, { listChanged: true });
  if (intros.some((intro) => intro === undefined || subscribes(intro))) {
    merged.set("resources", { listChanged: true, subscribe: true });
  }
  for (const name of ["logging", "completions"]) if (has(name)) merged.set(name, {});
  for (const name of MERGED) {
    const members = new Map<string, unknown>();
    for (const intro of intros) {
      const value = intro?.capabilities[name];
      if (!isObject(value)) continue;
      for (const [key, member] of Object.entries(value)) {
        // Clients refuse the whole handshake, and with it every server, for a feature that is no object.
        const feature = member === true ? {} : member;
        if (isObject(feature) && !members.has(key)) members.set(key, feature);
      }
    }
    if (members.size > 0) merged.set(name, Object.fromEntries(members));
  }
  const tasks = mergeTasks(intros);
  if (tasks !== undefined) merged.set("tasks", tasks);
  // What we do not know goes to the only server, by unknown methods; of several, nobody could tell which is meant.
  const only = intros.length === 1 ? intros[0] : undefined;
  for (const [name, value] of Object.entries(only?.capabilities ?? {})) {
    if (!merged.has(name) && !KNOWN.has(name)) merged.set(name, value);
  }
  return Object.fromEntries(merged);
}

/** Which requests may become tasks (2025-11-25). The list of an agent's tasks is our own, whatever the servers have. */
function mergeTasks(intros: readonly (ServerIntro | undefined)[]): JsonObject | undefined {
  const having = intros.flatMap((intro) =>
    isObject(intro?.capabilities["tasks"]) ? [intro.capabilities["tasks"]] : [],
  );
  if (having.length === 0) return undefined;
  if (intros.length === 1) return { ...having[0], list: {} };
  const requests = having.flatMap(({ requests: one }) => (isObject(one) ? [one] : []));
  return {
    list: {},
    ...(having.some(({ cancel }) => cancel !== undefined) ? { cancel: {} } : {}),
    requests: Object.assign({}, ...requests) as JsonObject,
  };
}

function subscribes(intro: ServerIntro): boolean {
  const resources = intro.capabilities["resources"];
  return isObject(resources) && resources["subscribe"] === true;
}

/** One server's instructions stand alone; those of several stand under their names. */
export function mergeInstructions(
  servers: readonly { name: string; intro: ServerIntro | undefined }[],
  alone: boolean,
): string | undefined {
  const parts: string[] = [];
  let left = MAX_INSTRUCTIONS;
  for (const { name, intro } of servers) {
    const text = intro?.instructions?.trim();
    if (text === undefined || text === "") continue;
    const part = alone ? cut(text, left) : `## ${oneLine(name)}\n\n${cut(text, MAX_INSTRUCTIONS_PER_SERVER)}`;
    if (part.length > left) continue;
    left -= part.length + 2;
    parts.push(part);
  }
  return parts.length === 0 ? undefined : parts.join("\n\n");
}

function oneLine(name: string): string {
  return name.replace(/\s+/g, " ");
}

function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  // Half of a surrogate pair is no text.
  const end = /[\ud800-\udbff]/.test(text.charAt(length - 2)) ? length - 2 : length - 1;
  return `${text.slice(0, end)}…`;
}
