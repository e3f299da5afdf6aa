// The key of a write: whose it is, what it counts for, where it goes in the agent's text, and what else of that text a
// delivery without its agent must not carry. Everything else in it stays byte for byte.

import type { OwnToolName } from "../contracts/names.js";
import type { KeyPlace, LaneTerms } from "../contracts/outbox.js";
import type { AgentCall } from "../contracts/service.js";
import { traceEdits } from "../observe/trace/trace-meta.js";
import { canonicalizeText, hashText } from "../protocol/canonical.js";
import { Fault } from "../protocol/errors.js";
import { isObject } from "../protocol/jsonrpc.js";
import {
  edited,
  locate,
  placeOfProgressToken,
  type RequestMessage,
  type Scans,
  withValueAt,
} from "../protocol/message.js";
import { Meta } from "../protocol/modern.js";
import { type Edit, insertFirst, type Member, scanMembers, splice } from "../protocol/scan.js";
import { KIB } from "../runtime/sizes.js";
import { randomWord } from "../runtime/words/random-id.js";
import { MAX_MESSAGE_BYTES } from "./lanes/limits.js";

/** Where an agent says its own key, whatever the server calls it. */
const OWN_KEY = "toolway/idempotencyKey";
/** A key is kept, shown and compared: longer ones are an attack, or a document by mistake. */
const MAX_KEY_CHARACTERS = 512;

export const KEY_USED =
  "This key was used for another call of this tool. Use a new key for a new call, or the same arguments for the same one. Not sent.";

const ARGUMENTS = ["params", "arguments"];
const META = ["params", "_meta"];
const NAME = ["params", "name"];
const PROGRESS_TOKEN = [...META, "progressToken"];

type PlaceInCall = Exclude<KeyPlace, { readonly in: "message" }>;

export interface KeyedCall {
  /** As its agent knows it. */
  readonly key: string;
  /** Over principal, server, tool and key. */
  readonly keyHash: string;
  /** As the server knows it, where that is another one; undefined where it is the same, or the server is given none. */
  readonly sentKey: string | undefined;
  readonly argumentsHash: string;
  /** The agent gave none. */
  readonly isMinted: boolean;
  /** The agent's request with the server's own name of the tool, and with the key where the server wants it. */
  readonly message: RequestMessage;
}

/** Throws a Fault `limit`. */
export function refuseLonger(bytes: number): void {
  if (bytes <= MAX_MESSAGE_BYTES) return;
  const most = `A call of a tool that is kept in the outbox has at most ${MAX_MESSAGE_BYTES} bytes`;
  throw new Fault("limit", `${most}; this one has ${bytes}. Not sent, and not queued.`);
}

/** `minted` is the key of one that has none. Throws a Fault `invalid` where a value that matters stands in the text twice, or where the key has no place. */
export function keyedCall(
  message: RequestMessage,
  to: { readonly server: string; readonly tool: OwnToolName; readonly principal: string },
  said: KeyPlace | undefined,
  minted?: string,
): KeyedCall {
  const place = said === undefined || said.in === "message" ? undefined : said;
  const params = message.params ?? {};
  const inArgument = place?.in === "argument" ? keyAt(params["arguments"], place.path) : undefined;
  const inMeta = place?.in === "meta" ? keyAt(params["_meta"], place.path) : undefined;
  const own = inArgument ?? keyAt(params["_meta"], [OWN_KEY]) ?? inMeta;
  const scans: Scans = [];
  const key = own ?? keyOfNoText(message, place, scans) ?? minted ?? randomWord(16);
  const keyHash = hashText(JSON.stringify([to.principal, to.server, to.tool, key]));
  // What is in an argument is the agent's own word to the server; all else must not meet another agent's there.
  const upstreamKey = inArgument ?? keyHash;
  const edits: Edit[] = [];
  let keyedParams = params;
  const name = locate(message, NAME, scans);
  // Whatever else stands twice in it must be found now: when it is delivered there is nobody to be told.
  locate(message, PROGRESS_TOKEN, scans);
  if (name !== undefined) {
    edits.push({ start: name.start, end: name.end, text: JSON.stringify(to.tool) });
    keyedParams = withValueAt(keyedParams, NAME.slice(1), to.tool);
  }
  if (place !== undefined && inArgument === undefined) {
    const root = place.in === "argument" ? ARGUMENTS : META;
    edits.push(put(message, root, place.path, JSON.stringify(upstreamKey), scans));
    keyedParams = withValueAt(keyedParams, [...root.slice(1), ...place.path], upstreamKey);
  }
  const argumentsHash = hashText(argumentsText(message, place, scans));
  const keyed = edits.length === 0 ? message : edited(message, edits, keyedParams);
  const sentKey = place === undefined || upstreamKey === key ? undefined : upstreamKey;
  return { key, keyHash, sentKey, argumentsHash, isMinted: own === undefined, message: keyed };
}

/** A key is a text that says something. */
function keyAt(value: unknown, path: readonly string[]): string | undefined {
  let at: unknown = value;
  for (const name of path) at = isObject(at) ? at[name] : undefined;
  if (typeof at !== "string" || at === "") return undefined;
  if (at.length > MAX_KEY_CHARACTERS) {
    throw new Fault("invalid", `An idempotency key has at most ${MAX_KEY_CHARACTERS} characters. Not sent.`);
  }
  return at;
}

/**
 * The key of ours in the stead of a number, or what else is no text, where the agent's own would stand: made of that value as it
 * is written, so that the same one again is the same write. Nothing (null, an empty text) is no word of the agent's.
 */
function keyOfNoText(message: RequestMessage, place: PlaceInCall | undefined, scans: Scans): string | undefined {
  const places = [[...META, OWN_KEY]];
  if (place !== undefined) places.unshift([...(place.in === "argument" ? ARGUMENTS : META), ...place.path]);
  for (const path of places) {
    const at = locate(message, path, scans);
    const text = at === undefined ? "null" : message.text.slice(at.start, at.end);
    if (text !== "null" && !text.startsWith('"')) return hashText(comparable(text));
  }
  return undefined;
}

/** The arguments without the key, in one text for the ways to write them. */
function argumentsText(message: RequestMessage, place: PlaceInCall | undefined, scans: Scans): string {
  const at = locate(message, ARGUMENTS, scans);
  if (at === undefined) return "{}";
  let text = message.text.slice(at.start, at.end);
  if (place?.in === "argument") {
    const key = locate(message, [...ARGUMENTS, ...place.path], scans);
    if (key !== undefined) text = without(text, place.path);
  }
  return comparable(text);
}

/**
 * Longer texts count as they are written: to put hundreds of thousands of values into their one order holds up everybody else for
 * hundreds of milliseconds. Whoever repeats a call repeats its text.
 */
const MAX_CANONICAL_CHARACTERS = 64 * KIB;

function comparable(text: string): string {
  return text.length > MAX_CANONICAL_CHARACTERS ? text : canonicalizeText(text);
}

/**
 * JSON text of an object without the member at `path`, which is there. All else stays as it is written: a number may say more
 * than a double holds, and two calls that differ in one are two.
 */
function without(text: string, path: readonly string[]): string {
  let open = 0;
  for (const [depth, name] of path.entries()) {
    const members = scanMembers(text, open);
    const index = members.findIndex(({ key }) => key === name);
    const member = members[index];
    if (member === undefined) return text;
    if (depth < path.length - 1) {
      open = member.start;
      continue;
    }
    // With the comma before it, or, of the first, with the one behind it.
    const from = members[index - 1]?.end ?? open + 1;
    const isFirstOfSeveral = index === 0 && members.length > 1;
    const to = isFirstOfSeveral ? text.indexOf(",", member.end) + 1 : member.end;
    return text.slice(0, from) + text.slice(to);
  }
  return text;
}

/** Puts a member at `path` below `root`, and the objects on the way to it that are not there. */
function put(
  message: RequestMessage,
  root: readonly string[],
  path: readonly string[],
  json: string,
  scans: Scans,
): Edit {
  const whole = [...root, ...path];
  for (let depth = whole.length; depth > 0; depth--) {
    const at = locate(message, whole.slice(0, depth), scans);
    if (at === undefined) continue;
    const left = whole.slice(depth);
    if (left.length === 0) return { start: at.start, end: at.end, text: json };
    if (message.text.charCodeAt(at.start) !== OPEN_BRACE) {
      const where = whole.slice(1, depth).join(".");
      throw new Fault("invalid", `"${where}" is no object, so that the idempotency key has no place in it. Not sent.`);
    }
    return insertFirst(message.text, at.start, nested(left, json));
  }
  throw new Fault("invalid", "A call of a tool has params. Not sent.");
}

const OPEN_BRACE = 0x7b;

/** `"a":{"b":json}` of the path a, b. */
function nested([name = "", ...rest]: readonly string[], json: string): string {
  return `${JSON.stringify(name)}:${rest.length === 0 ? json : `{${nested(rest, json)}}`}`;
}

/** Which lane a call is of; undefined where its writes have no order. */
export function laneOf(message: RequestMessage, principal: string, terms: LaneTerms): string | undefined {
  if (terms.by === "none") return undefined;
  if (terms.by === "principal") return `principal ${principal}`;
  // Refuses names that stand twice on the way: the server might take the other, and the lane would be no order.
  locate(message, [...ARGUMENTS, ...terms.path]);
  let at: unknown = message.params?.["arguments"];
  for (const name of terms.path) at = isObject(at) ? at[name] : undefined;
  const text = JSON.stringify(at) ?? "absent";
  // A lane is a name in lists and in memory: a long value goes by its hash.
  const value = text.length > MAX_LANE_CHARACTERS ? `sha256:${hashText(text)}` : text;
  return `${terms.path.join(".")} ${value}`;
}

const MAX_LANE_CHARACTERS = 200;

/** As it is kept, or passed to another gateway: its place in a trace goes along, for whoever sends it without the call. */
export function placedText(message: RequestMessage, { notes }: AgentCall): string {
  const { text } = message;
  if (notes?.trace === undefined) return text;
  try {
    return splice(text, traceEdits(message, notes.trace));
  } catch {
    // A name stands in it twice: whoever sends it refuses that.
    return text;
  }
}

/** The same call as from a client that can be asked nothing and hears no progress: its agent is not there any more. */
export function withoutAgent(message: RequestMessage): RequestMessage {
  const edits: Edit[] = [];
  const scans: Scans = [];
  const given = message.params?.["_meta"];
  let meta = isObject(given) ? given : {};
  const token = placeOfProgressToken(message, scans);
  const metaAt = token === undefined ? undefined : locate(message, META, scans);
  if (metaAt !== undefined) {
    edits.push(cutOut(message.text, metaAt, "progressToken"));
    const { progressToken: _, ...rest } = meta;
    meta = rest;
  }
  const able = locate(message, [...META, Meta.capabilities], scans);
  if (able !== undefined) {
    edits.push({ start: able.start, end: able.end, text: "{}" });
    meta = { ...meta, [Meta.capabilities]: {} };
  }
  return edits.length === 0 ? message : edited(message, edits, { ...message.params, _meta: meta });
}

/** Takes a member out of the object at `at`, with its name and one comma. */
function cutOut(text: string, at: Member, key: string): Edit {
  const members = scanMembers(text, at.start);
  const index = members.findIndex((member) => member.key === key);
  const member = members[index] as Member;
  const before = members[index - 1];
  if (before !== undefined) return { start: before.end, end: member.end, text: "" };
  const next = members[index + 1];
  if (next === undefined) return { start: at.start, end: at.end, text: "{}" };
  // From the brace to behind the comma: what follows is the name of the next.
  return { start: at.start + 1, end: text.indexOf(",", member.end) + 1, text: "" };
}
