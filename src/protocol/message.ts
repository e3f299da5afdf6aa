// One JSON-RPC message as it arrived: parsed once, with its text kept so that it can be passed on spliced.

import type { Holder } from "../runtime/memory/held-bytes.js";
import { excessOf, MESSAGE_BOUNDS } from "./bytes/text-bounds.js";
import { Fault } from "./errors.js";
import { isObject, isRpcError, type JsonObject, type RpcError, type RpcId } from "./jsonrpc.js";
import {
  type Edit,
  type Member,
  type MemberTexts,
  memberEdits,
  movedBy,
  scanLongMessage,
  scanMembers,
  scanMessage,
  splice,
} from "./scan.js";

/** A message's text, and where its members stand: all that it takes to splice it. */
export interface ScannedText {
  /** The text as it came; what we do not understand travels in it unchanged. */
  readonly text: string;
  /** Its members at the top level, where they stand in `text`. */
  readonly members: readonly Member[];
  /** Those of its `params`, where they were found on the way. Absent where they have to be looked for. */
  readonly inParams?: readonly Member[] | undefined;
}

export interface RequestMessage extends ScannedText {
  readonly kind: "request";
  readonly id: RpcId;
  readonly method: string;
  readonly params: JsonObject | undefined;
  /** What it takes of the memory for bodies. Whoever keeps the message claims it, and drops it then. */
  held?: Holder | undefined;
}

export interface NotificationMessage extends ScannedText {
  readonly kind: "notification";
  readonly method: string;
  readonly params: JsonObject | undefined;
}

export interface ResponseMessage extends ScannedText {
  readonly kind: "response";
  /** null: the peer could not read the id of what it answers. */
  readonly id: RpcId | null;
  readonly result: unknown;
  readonly error: RpcError | undefined;
}

export type Message = RequestMessage | NotificationMessage | ResponseMessage;

/** A message or its params with more members than this is an attack, not a call: the SDKs send under ten. */
export const MAX_MEMBERS = 256;

/** Throws a Fault `invalid` that says what is wrong; `value` is what JSON.parse made of `text`. */
export function toMessage(text: string, value: unknown): Message {
  refuseOther(value);
  return ofMembers(text, value, scanMessage(text));
}

/** The same for a text of megabytes, where `pause` lets others have their turn. */
export async function toLongMessage(text: string, value: unknown, pause: () => Promise<void>): Promise<Message> {
  refuseOther(value);
  return ofMembers(text, value, await scanLongMessage(text, pause));
}

function refuseOther(value: unknown): asserts value is JsonObject {
  if (!isObject(value)) throw new Fault("invalid", "A JSON-RPC message is an object.");
  if (value["jsonrpc"] !== "2.0") throw new Fault("invalid", 'A JSON-RPC message has "jsonrpc": "2.0".');
}

function ofMembers(
  text: string,
  value: JsonObject,
  {
    members,
    params: inParams,
  }: { readonly members: readonly Member[]; readonly params: readonly Member[] | undefined },
): Message {
  refuseDuplicates(members, undefined);
  refuseOtherSpelling(members, IN_MESSAGE, undefined);
  const { id, method, params } = value;
  if (method === undefined) return toResponse(text, members, value);
  if (typeof method !== "string") throw new Fault("invalid", '"method" is a string.');
  if (params !== undefined && !isObject(params)) throw new Fault("invalid", '"params" is an object.');
  if (inParams !== undefined && OWN_METHODS.test(method)) refuseOtherSpelling(inParams, IN_PARAMS, "params");
  if (!("id" in value)) return { kind: "notification", method, params, text, members, inParams };
  if (!isRpcId(id)) throw new Fault("invalid", '"id" is a string or an integer.');
  return { kind: "request", id, method, params, text, members, inParams, held: undefined };
}

export function parseMessage(text: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Fault("invalid", "Not JSON.", { cause });
  }
  return toMessage(text, value);
}

/** The same of bytes that a server sent and that nobody has judged inside. Throws a Fault `limit` where it is too much. */
export function parseBytes(bytes: Buffer): Message {
  const excess = bytes.length <= 2 * MESSAGE_BOUNDS.depth ? undefined : excessOf([bytes], MESSAGE_BOUNDS);
  if (excess !== undefined) throw new Fault("limit", `The message ${excess}.`);
  return parseMessage(bytes.toString());
}

/** A message that we make ourselves, of plain JSON values: it is rendered, and not read again. */
export function makeMessage(value: JsonObject): Message {
  return toMessage(JSON.stringify(value), value);
}

export function makeNotification(method: string, params?: JsonObject): NotificationMessage {
  return makeMessage({ jsonrpc: "2.0", method, params }) as NotificationMessage;
}

/** Of a text that is known to be a message: it was read before, or made here. Nothing is parsed. */
export function scanText(text: string): ScannedText {
  const { members, params: inParams } = scanMessage(text);
  return { text, members, inParams };
}

function toResponse(text: string, members: readonly Member[], value: JsonObject): ResponseMessage {
  const { id, result, error } = value;
  if (id !== null && !isRpcId(id)) throw new Fault("invalid", 'A message has a "method", or answers an "id".');
  if (error !== undefined && !isRpcError(error)) throw new Fault("invalid", '"error" has a code and a message.');
  if (error === undefined && !("result" in value)) {
    throw new Fault("invalid", 'A response has a "result" or an "error".');
  }
  return { kind: "response", id, result, error, text, members };
}

/**
 * Two members of one name are read differently by different parsers: what we judged is what must be sent. `of` is the
 * member that has them; undefined for the message itself.
 */
function refuseDuplicates(members: readonly Member[], of: string | undefined): void {
  if (members.length > MAX_MEMBERS) throw new Fault("invalid", `More than ${MAX_MEMBERS} members in ${shown(of)}.`);
  for (let i = 1; i < members.length; i++) {
    const key = members[i]?.key;
    for (let j = 0; j < i; j++) {
      if (members[j]?.key !== key) continue;
      throw new Fault("invalid", `Duplicate member ${JSON.stringify(key)} in ${shown(of)}.`);
    }
  }
}

const IN_MESSAGE = namesOf("jsonrpc", "id", "method", "params", "result", "error");
/** What is read of the params of MCP's own methods, to decide and to find the way. */
const IN_PARAMS = namesOf("name", "arguments", "uri", "ref", "argument", "taskId", "task", "_meta");
const IN_REF = namesOf("type", "name", "uri");
/** Params of other methods are nobody's but their server's. */
const OWN_METHODS = /^(?:tools|prompts|resources|completion|tasks)\//i;

interface Names {
  readonly exact: ReadonlySet<string>;
  readonly folded: ReadonlyMap<string, string>;
}

function namesOf(...names: string[]): Names {
  return { exact: new Set(names), folded: new Map(names.map((name) => [fold(name), name])) };
}

/**
 * Names that differ from ours in upper and lower case alone: some parsers, Go's own among them, take them for the same, and a
 * server with one would do what was never judged.
 */
function refuseOtherSpelling(members: readonly Member[], { exact, folded }: Names, of: string | undefined): void {
  if (members.length > MAX_MEMBERS) throw new Fault("invalid", `More than ${MAX_MEMBERS} members in ${shown(of)}.`);
  for (const { key } of members) {
    if (key.length > LONGEST_NAME || exact.has(key)) continue;
    const name = folded.get(fold(key));
    if (name === undefined) continue;
    throw new Fault(
      "invalid",
      `${JSON.stringify(key)} in ${shown(of)} is read as ${JSON.stringify(name)} by some parsers and not by others. Spell it as the protocol does.`,
    );
  }
}

const LONGEST_NAME = "arguments".length;

/** Two letters beyond ASCII have a letter of ASCII for their other case: the long s, and the sign of Kelvin. */
function fold(text: string): string {
  return text.toUpperCase().toLowerCase();
}

const shown = (key: string | undefined): string => (key === undefined ? "the message" : JSON.stringify(key));

function isRpcId(value: unknown): value is RpcId {
  return typeof value === "string" || (typeof value === "number" && Number.isFinite(value));
}

/** Objects that were scanned already: several paths of one message lead through its `params`. */
export type Scans = { readonly start: number; readonly members: readonly Member[] }[];

/**
 * Where `path` (names of members, from the message down) stands in the message's text. Throws a Fault `invalid` where
 * an object on the way has two members of one name. Pass the same `scans` for more than one path.
 */
export function locate(message: ScannedText, path: readonly string[], scans: Scans = []): Member | undefined {
  let members = message.members;
  for (let depth = 0; ; depth++) {
    const found = memberOf(members, path[depth]);
    if (found === undefined || depth + 1 >= path.length) return found;
    members =
      depth === 0 && found.key === "params" && message.inParams !== undefined
        ? unique(message.inParams)
        : membersAt(message.text, found, scans);
    if (depth === 1 && found.key === "ref") refuseOtherSpelling(members, IN_REF, "ref");
  }
}

const PROGRESS_TOKEN = ["params", "_meta", "progressToken"];

/**
 * Where the request's progress token stands, if it has one. Its text is what must come back: a number may say more than
 * a double holds. Throws as `locate` does.
 */
export function placeOfProgressToken(message: RequestMessage, scans?: Scans): Member | undefined {
  const meta = message.params?.["_meta"];
  const token = isObject(meta) ? meta["progressToken"] : undefined;
  return typeof token === "string" || typeof token === "number" ? locate(message, PROGRESS_TOKEN, scans) : undefined;
}

/** The members of its params. Throws a Fault `invalid` where two have one name. */
export function paramMembers(message: ScannedText): readonly Member[] {
  const params = memberOf(message.members, "params");
  if (params === undefined) return [];
  return message.inParams === undefined ? membersAt(message.text, params, []) : unique(message.inParams);
}

function memberOf(members: readonly Member[], key: string | undefined): Member | undefined {
  for (const member of members) if (member.key === key) return member;
  return undefined;
}

/** Judged when somebody goes into them: what nobody reads may be as it is. */
function unique(members: readonly Member[]): readonly Member[] {
  refuseDuplicates(members, "params");
  return members;
}

function membersAt(text: string, { key, start }: Member, scans: Scans): readonly Member[] {
  for (const scan of scans) if (scan.start === start) return scan.members;
  const members = scanMembers(text, start);
  refuseDuplicates(members, key);
  scans.push({ start, members });
  return members;
}

/** The message's text with the value at each path replaced by JSON text; paths that are absent stay absent. */
export function rewrite(message: ScannedText, changes: readonly { path: readonly string[]; json: string }[]): string {
  const edits: Edit[] = [];
  const scans: Scans = [];
  for (const { path, json } of changes) {
    const at = locate(message, path, scans);
    if (at !== undefined) edits.push({ start: at.start, end: at.end, text: json });
  }
  return edits.length === 0 ? message.text : splice(message.text, edits);
}

/** What a hop changes in a message that it passes on, beside its id. All else in it stays as it was written. */
export interface HopChanges {
  /** Of `params`, but for `_meta`. */
  readonly params?: MemberTexts | undefined;
  /** Of `params._meta`. */
  readonly meta?: MemberTexts | undefined;
}

const PARAMS = ["params"];
const META = ["params", "_meta"];

/** The changes as edits of the message's text: only its params' outside and its `_meta` are looked at. */
export function hopEdits(message: ScannedText, { params = [], meta = [] }: HopChanges): Edit[] {
  const { text } = message;
  const at = locate(message, PARAMS);
  const metaAt = locate(message, META);
  if (metaAt !== undefined && text[metaAt.start] === "{") {
    const edits = memberEdits(text, metaAt.start, scanMembers(text, metaAt.start), meta);
    if (at !== undefined && params.length > 0) {
      edits.push(...memberEdits(text, at.start, paramMembers(message), params));
    }
    return edits;
  }
  const added = objectText({}, meta);
  const wanted: MemberTexts = added === "{}" ? params : [["_meta", added], ...params];
  if (at !== undefined) return memberEdits(text, at.start, paramMembers(message), wanted);
  const end = text.lastIndexOf("}");
  return wanted.length === 0 ? [] : [{ start: end, end, text: `,"params":${objectText({}, wanted)}` }];
}

/** The message's text with these changes. */
export function withChanges(message: ScannedText, changes: HopChanges): string {
  const edits = hopEdits(message, changes);
  return edits.length === 0 ? message.text : splice(message.text, edits);
}

/** The text of a request of our own, with the changes of the hop that sends it. */
export function requestText(id: number, method: string, params: JsonObject | undefined, changes?: HopChanges): string {
  if (changes === undefined) return JSON.stringify({ jsonrpc: "2.0", id, method, params });
  const { _meta, ...others } = params ?? {};
  const meta = objectText(isObject(_meta) ? _meta : {}, changes.meta ?? []);
  const all = objectText(others, [["_meta", meta], ...(changes.params ?? [])]);
  return `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${all}}`;
}

/** The object as JSON text, with these members first. */
function objectText(object: JsonObject, members: MemberTexts): string {
  const named = new Set(members.map(([key]) => key));
  const others = Object.entries(object).filter(([key, value]) => value !== undefined && !named.has(key));
  const all = [...members, ...others.map(([key, value]) => [key, JSON.stringify(value)] as const)];
  const texts = all.flatMap(([key, json]) => (json === undefined ? [] : [`${JSON.stringify(key)}:${json}`]));
  return `{${texts.join(",")}}`;
}

/**
 * The same message after edits in its params, which are `params` then. Neither its text nor its values are read again: they may be
 * as long as a body can be. What a request takes of the memory for bodies stays with the one that it was.
 */
export function edited<M extends RequestMessage | NotificationMessage>(
  message: M,
  edits: readonly Edit[],
  params: JsonObject,
): M {
  const { members, inParams } = message;
  // Where a member came to them or went they are to be looked for.
  const isOfSame = inParams?.length === Object.keys(params).length;
  const changed: RequestMessage | NotificationMessage = {
    ...message,
    params,
    text: splice(message.text, edits),
    members: movedBy(edits, members),
    inParams: isOfSame ? movedBy(edits, inParams) : undefined,
  };
  if (changed.kind === "request") changed.held = undefined;
  return changed as M;
}

/** The same object with `value` at `path`; what is not there on the way to it is made. */
export function withValueAt(object: JsonObject, [name = "", ...rest]: readonly string[], value: unknown): JsonObject {
  if (rest.length === 0) return { ...object, [name]: value };
  const inner = object[name];
  return { ...object, [name]: withValueAt(isObject(inner) ? inner : {}, rest, value) };
}

/** Where the id stands, in bytes. */
export function idSpan(message: ScannedText): { readonly idStart: number; readonly idEnd: number } | undefined {
  const at = locate(message, ["id"]);
  if (at === undefined) return undefined;
  const idStart = Buffer.byteLength(message.text.slice(0, at.start));
  return { idStart, idEnd: idStart + Buffer.byteLength(message.text.slice(at.start, at.end)) };
}
