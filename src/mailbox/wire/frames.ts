// The frames that peers send to a broker: JSON texts with a `kind`. Read here with all that can be wrong with them, their
// bodies as they were written; what they lead to is the broker's. What the broker sends is in broker-frames.ts.

import { excessOf, type TextBounds } from "../../protocol/bytes/text-bounds.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { type Member, scanMembers, scanNested } from "../../protocol/scan.js";
import { KIB } from "../../runtime/sizes.js";
import { isTooLong } from "./address.js";
import { FrameError } from "./frame-error.js";
import {
  MAX_EXTENDED,
  MAX_FRAME_BYTES,
  MAX_FRAME_NAMES,
  MAX_FRAME_VALUES,
  MAX_ID_BYTES,
  MAX_ID_CHARS,
  MAX_KIND_CHARS,
  MAX_LIVE_BYTES,
  MAX_REASON_CHARS,
  MAX_SUBSCRIBED_KINDS,
} from "./limits.js";

export interface Hello {
  readonly kind: "hello";
  /** The mailbox: `studio`, or an address of a worker's own, `worker-1#mcp-x7`. */
  readonly address: string;
  readonly role: string | undefined;
  readonly token: string | undefined;
  /** Set by peers that know more than the bare frames. */
  readonly version: number | undefined;
  /** Where this consumer writes down what it has begun. */
  readonly journal: string | undefined;
}

export interface Subscribe {
  readonly kind: "subscribe";
  readonly kinds: ReadonlySet<string> | undefined;
}

export interface Deliver {
  readonly kind: "deliver";
  readonly to: string;
  readonly message: {
    readonly id: string;
    readonly kind: string;
    /** JSON, as it was written. */
    readonly body: string;
    readonly correlationId: string | undefined;
    /** Two messages of one id that have the same are one, whatever their bodies say. Without it the bodies are compared. */
    readonly digest?: string | undefined;
  };
  /** The only one that may have it; undefined is any. */
  readonly journal?: string | undefined;
  /** How long it may wait and run, in milliseconds from now. */
  readonly leftMs: number | undefined;
  /** The message that it answers is finished with it, in one commit. */
  readonly acknowledges: MessageName | undefined;
}

/** A message that a consumer holds: bare peers know its id alone. */
export interface MessageName {
  readonly id: string;
  /** The address of its sender. */
  readonly from: string | undefined;
}

export interface Ack {
  readonly kind: "ack";
  readonly messages: readonly MessageName[];
}

export interface Cancel {
  readonly kind: "cancel";
  readonly to: string;
  readonly correlationId: string;
}

export interface Extend {
  readonly kind: "extend";
  readonly messages: readonly MessageName[];
  /** They were begun, and may run twice: another may have them, should this consumer go. */
  readonly isRepeatable: boolean;
}

export interface Release extends MessageName {
  readonly kind: "release";
  readonly failed: boolean;
  readonly reason: string | undefined;
}

export interface Credit {
  readonly kind: "credit";
  readonly messages: number;
}

/** Passed to whoever is connected, or dropped: never stored. */
export interface LiveFrame {
  readonly kind: "live";
  readonly to: string;
  /** The message that it is about. */
  readonly correlationId: string | undefined;
  /** JSON, as it was written. */
  readonly body: string;
}

/** Asks whether somebody takes from a mailbox, now and whenever that changes. */
export interface Watch {
  readonly kind: "presence";
  readonly mailbox: string;
}

/** A sharer wants a code, with which somebody gets a token that sends to its mailbox. */
export interface AskPair {
  readonly kind: "pair";
  readonly role: string | undefined;
}

export type ClientFrame =
  | Hello
  | Subscribe
  | Deliver
  | Ack
  | Cancel
  | Extend
  | Release
  | Credit
  | LiveFrame
  | Watch
  | AskPair;

/** A frame that is shorter has no room for as many values as are too many. */
const COUNTED_BYTES = 64 * KIB;

const FRAME_BOUNDS: TextBounds = {
  depth: Number.POSITIVE_INFINITY,
  values: MAX_FRAME_VALUES,
  names: MAX_FRAME_NAMES,
};

/** The text of a frame that a peer sent. Throws a FrameError where it is too much to be read. */
export function textOfFrame(bytes: Buffer): string {
  if (bytes.length > MAX_FRAME_BYTES) throw new FrameError(`a frame has at most ${MAX_FRAME_BYTES} bytes`);
  refuseHeavy(bytes);
  return bytes.toString();
}

/** Throws a FrameError where there is more in a frame than is parsed at once. */
export function refuseHeavy(bytes: Buffer): void {
  const excess = bytes.length < COUNTED_BYTES ? undefined : excessOf([bytes], FRAME_BOUNDS);
  if (excess === undefined) return;
  const id = idOfMessage(bytes.toString());
  throw new FrameError(`the frame ${excess}`, id, id === undefined ? undefined : "deliver");
}

/** Of a frame that nobody parses: whoever waits for what becomes of its message is told by this. It need not be JSON. */
function idOfMessage(frame: string): string | undefined {
  try {
    const id = only(scanNested(frame, "message").inner ?? [], "id");
    return id === undefined ? undefined : idOf(JSON.parse(frame.slice(id.start, id.end)), "id");
  } catch {
    return undefined;
  }
}

/** Throws a FrameError. */
export function readFrame(text: string): ClientFrame {
  let frame: unknown;
  try {
    frame = JSON.parse(text);
  } catch {
    throw new FrameError("a frame is a JSON text, and this is none");
  }
  if (!isObject(frame)) throw new FrameError("a frame is a JSON object");
  const { kind } = frame;
  const read = typeof kind === "string" ? READERS.get(kind) : undefined;
  if (read !== undefined) return read(frame, text);
  const known = [...READERS.keys()].join(", ");
  throw new FrameError(`there is no frame of the kind ${JSON.stringify(kind) ?? "undefined"}; there are ${known}`);
}

type Reader = (frame: JsonObject, text: string) => ClientFrame;

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ["hello", readHello],
  ["subscribe", readSubscribe],
  ["deliver", readDeliver],
  ["ack", readAck],
  ["cancel", readCancel],
  ["extend", readExtend],
  ["release", readRelease],
  ["credit", readCredit],
  ["live", readLive],
  ["pair", ({ role }) => ({ kind: "pair", role: roleOf(role) })],
  ["presence", ({ mailbox }) => ({ kind: "presence", mailbox: idOf(mailbox, "mailbox") })],
]);

function readHello(frame: JsonObject): Hello {
  const { agent, token, version, journal } = frame;
  if (!isObject(agent)) throw new FrameError('"hello" wants an "agent" with its "session_id"');
  if (token !== undefined && typeof token !== "string") throw new FrameError('"token" is a text');
  return {
    kind: "hello",
    address: addressOf(agent["session_id"]),
    role: roleOf(agent["role"]),
    token,
    version: typeof version === "number" ? version : undefined,
    journal: journal === undefined ? undefined : idOf(journal, "journal"),
  };
}

function readSubscribe({ kinds }: JsonObject): Subscribe {
  if (kinds === undefined || kinds === null) return { kind: "subscribe", kinds: undefined };
  if (!Array.isArray(kinds) || kinds.length === 0 || kinds.length > MAX_SUBSCRIBED_KINDS) {
    throw new FrameError(`"kinds" is a list of 1 to ${MAX_SUBSCRIBED_KINDS} kinds of messages, or is left out for all`);
  }
  return { kind: "subscribe", kinds: new Set(kinds.map((kind) => kindOf(kind))) };
}

function readDeliver(frame: JsonObject, text: string): Deliver {
  const { message, left_ms: leftMs, ack, journal } = frame;
  if (!isObject(message)) throw new FrameError('"deliver" wants a "message"');
  const id = idOf(message["id"], "id");
  try {
    if (leftMs !== undefined && !(typeof leftMs === "number" && leftMs > 0)) {
      throw new FrameError('"left_ms" is a number of milliseconds above 0');
    }
    const correlation = message["correlation_id"] ?? undefined;
    const digest = message["digest"] ?? undefined;
    return {
      kind: "deliver",
      to: idOf(frame["to"], "to"),
      message: {
        id,
        kind: kindOf(message["kind"]),
        body: bodyOfMessage(text),
        correlationId: correlation === undefined ? undefined : idOf(correlation, "correlation_id"),
        digest: digest === undefined ? undefined : idOf(digest, "digest"),
      },
      journal: journal === undefined || journal === null ? undefined : idOf(journal, "journal"),
      leftMs,
      acknowledges: isObject(ack) ? nameOf(ack) : undefined,
    };
  } catch (error) {
    throw error instanceof FrameError ? new FrameError(error.message, id, "deliver") : error;
  }
}

function readLive(frame: JsonObject, text: string): LiveFrame {
  // A character has at most three bytes.
  const isLong = text.length > MAX_LIVE_BYTES / 3 && Buffer.byteLength(text) > MAX_LIVE_BYTES;
  if (isLong) throw new FrameError(`a live frame has at most ${MAX_LIVE_BYTES} bytes`);
  const correlation = frame["correlation_id"] ?? undefined;
  return {
    kind: "live",
    to: idOf(frame["to"], "to"),
    correlationId: correlation === undefined ? undefined : idOf(correlation, "correlation_id"),
    body: bodyOf(text),
  };
}

function readCancel(frame: JsonObject): Cancel {
  return {
    kind: "cancel",
    to: idOf(frame["to"], "to"),
    correlationId: idOf(frame["correlation_id"], "correlation_id"),
  };
}

function readAck(frame: JsonObject): Ack {
  const { ids } = frame;
  return { kind: "ack", messages: ids === undefined ? [nameOf(frame)] : namesOf(ids) };
}

function readExtend({ ids, repeatable }: JsonObject): Extend {
  return { kind: "extend", messages: namesOf(ids), isRepeatable: repeatable === true };
}

function namesOf(ids: unknown): MessageName[] {
  if (!Array.isArray(ids) || ids.length > MAX_EXTENDED) {
    throw new FrameError(`"ids" is a list of at most ${MAX_EXTENDED} messages, each with "id" and "from"`);
  }
  return ids.map((one) => (isObject(one) ? nameOf(one) : nameOf({ id: one })));
}

function readRelease(frame: JsonObject): Release {
  const { failed, reason } = frame;
  return {
    kind: "release",
    ...nameOf(frame),
    failed: failed === true,
    reason: typeof reason === "string" ? reason.slice(0, MAX_REASON_CHARS) : undefined,
  };
}

function readCredit({ messages }: JsonObject): Credit {
  if (!(typeof messages === "number" && Number.isSafeInteger(messages) && messages > 0)) {
    throw new FrameError('"messages" is a whole number above 0');
  }
  return { kind: "credit", messages };
}

function nameOf({ id, from }: JsonObject): MessageName {
  return { id: idOf(id, "id"), from: from === undefined ? undefined : idOf(from, "from") };
}

function roleOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw new FrameError('"role" is a text, or is left out');
  return value;
}

/** Ids are opaque, and reach no other mailbox whatever is in them; only their length is bounded. */
function idOf(value: unknown, key: string): string {
  if (typeof value !== "string" || value === "") throw new FrameError(`"${key}" is a text that is not empty`);
  if (isTooLong(value)) {
    throw new FrameError(`"${key}" has at most ${MAX_ID_CHARS} characters and ${MAX_ID_BYTES} bytes`);
  }
  // Where ids are joined, a zero byte stands between them; a lone surrogate has no UTF-8.
  if (/\0|\p{Surrogate}/u.test(value)) {
    throw new FrameError(`"${key}" has a character that is none, or a zero byte`);
  }
  return value;
}

/** It stands in lists and logs: what a terminal would obey, or would show in another order, is no part of a name. */
function addressOf(value: unknown): string {
  const address = idOf(value, "session_id");
  if (/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u.test(address)) {
    throw new FrameError('"session_id" has a control character in it');
  }
  return address;
}

function kindOf(value: unknown): string {
  if (typeof value === "string" && value !== "" && value.length <= MAX_KIND_CHARS) return value;
  throw new FrameError(`the "kind" of a message is a text of 1 to ${MAX_KIND_CHARS} characters`);
}

/** The body of a frame that has one of its own. */
export function bodyOf(frame: string): string {
  return textOf(frame, scanMembers(frame, 0), "body");
}

/** The body of the message in a frame. */
export function bodyOfMessage(frame: string): string {
  const { members, inner } = scanNested(frame, "message");
  only(members, "message");
  return textOf(frame, inner ?? [], "body");
}

function textOf(frame: string, members: readonly Member[], key: string): string {
  const member = only(members, key);
  return member === undefined ? "null" : frame.slice(member.start, member.end);
}

/** Of two members of one name readers may take either: such a frame is nobody's. */
function only(members: readonly Member[], key: string): Member | undefined {
  let found: Member | undefined;
  for (const member of members) {
    if (member.key !== key) continue;
    if (found !== undefined) throw new FrameError(`"${key}" stands twice in the frame`);
    found = member;
  }
  return found;
}
