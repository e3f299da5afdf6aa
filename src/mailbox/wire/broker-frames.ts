// The frames that a broker sends, as the other end reads them. Kinds and members that are not known here are passed over:
// a broker may be newer than its peers.

import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { bodyOf, bodyOfMessage } from "./frames.js";

/** A message that was handed out. */
export interface HandedOut {
  readonly kind: "message";
  readonly message: ReceivedMessage;
}

export interface ReceivedMessage {
  readonly id: string;
  /** The address of its sender. */
  readonly from: string;
  /** The role of its sender's token. */
  readonly role: string | undefined;
  readonly kind: string;
  /** JSON, as it was written. */
  readonly body: string;
  /** The id of the message that it answers. */
  readonly correlationId: string | undefined;
  /** The correlation id that the message which it answers had of its own. */
  readonly requestCorrelationId: string | undefined;
  /** By which its sender tells a repeat from another message; undefined where that is the body. */
  readonly digest?: string | undefined;
  readonly leftMs: number | undefined;
  /** It was handed out before. */
  readonly repeated: boolean;
}

/** A live frame, as it comes. */
export interface ReceivedLive {
  readonly from: string;
  readonly role: string | undefined;
  readonly correlationId: string | undefined;
  /** JSON, as it was written. */
  readonly body: string;
}

/** Whether somebody takes from a mailbox. */
export interface MailboxPresence {
  readonly mailbox: string;
  readonly connected: boolean;
  /** When that began, where it is known: as ISO 8601. */
  readonly since: string | undefined;
  /** What its consumers know beyond the bare frames; undefined is nothing. */
  readonly version: number | undefined;
  /** Where its consumers write down what they begin; undefined where one of them does not, or they do in several. */
  readonly journal?: string | undefined;
}

export type BrokerFrame =
  | { readonly kind: "welcome"; readonly address: string; readonly role: string }
  | { readonly kind: "delivered"; readonly ids: readonly string[] }
  /** `of` is the kind of the frame that it is about. */
  | {
      readonly kind: "error";
      readonly reason: string;
      readonly id: string | undefined;
      readonly of: string | undefined;
    }
  | HandedOut
  | { readonly kind: "cancel"; readonly correlationId: string; readonly from: string | undefined }
  | { readonly kind: "cancelled"; readonly correlationId: string; readonly removed: boolean }
  | { readonly kind: "extended"; readonly names: readonly { readonly id: string; readonly from: string }[] }
  | { readonly kind: "live"; readonly live: ReceivedLive }
  | { readonly kind: "presence"; readonly presence: MailboxPresence }
  | { readonly kind: "pair"; readonly code: string; readonly expiresInMs: number };

/** Undefined for what is not known here. Throws where it is no JSON object, or lacks what its kind needs. */
export function readBrokerFrame(text: string): BrokerFrame | undefined {
  const frame: unknown = JSON.parse(text);
  if (!isObject(frame)) throw new Error("a frame is a JSON object");
  switch (frame["kind"]) {
    case "welcome": {
      const agent = objectOf(frame, "agent");
      return { kind: "welcome", address: needed(agent, "session_id"), role: needed(agent, "role") };
    }
    case "delivered":
      return { kind: "delivered", ids: deliveredIds(frame) };
    case "error":
      return { kind: "error", reason: needed(frame, "reason"), id: textOf(frame, "id"), of: textOf(frame, "of") };
    case "message":
      return { kind: "message", message: receivedMessage(frame, text) };
    case "cancel":
      return { kind: "cancel", correlationId: needed(frame, "correlation_id"), from: textOf(frame, "from") };
    case "cancelled":
      return {
        kind: "cancelled",
        correlationId: needed(frame, "correlation_id"),
        removed: frame["removed"] === true,
      };
    case "extended":
      return { kind: "extended", names: namesOf(frame["ids"]) };
    case "live":
      return {
        kind: "live",
        live: { ...senderOf(frame), correlationId: textOf(frame, "correlation_id"), body: bodyOf(text) },
      };
    case "presence":
      return { kind: "presence", presence: readPresence(frame) };
    case "pair":
      return { kind: "pair", code: needed(frame, "code"), expiresInMs: Number(frame["expires_in_ms"]) };
    default:
      return undefined;
  }
}

function receivedMessage(frame: JsonObject, text: string): ReceivedMessage {
  const message = objectOf(frame, "message");
  return {
    id: needed(message, "id"),
    ...senderOf(message),
    kind: needed(message, "kind"),
    body: bodyOfMessage(text),
    correlationId: textOf(message, "correlation_id"),
    requestCorrelationId: textOf(message, "request_correlation_id"),
    digest: textOf(message, "digest"),
    leftMs: numberOf(frame, "left_ms"),
    repeated: frame["repeated"] === true,
  };
}

function readPresence(frame: JsonObject): MailboxPresence {
  return {
    mailbox: needed(frame, "mailbox"),
    connected: frame["connected"] === true,
    since: textOf(frame, "since"),
    version: numberOf(frame, "version"),
    journal: textOf(frame, "journal"),
  };
}

function senderOf(object: JsonObject): { from: string; role: string | undefined } {
  const from = objectOf(object, "from");
  return { from: needed(from, "session_id"), role: textOf(from, "role") };
}

/** One, or those that came to the disk together. */
function deliveredIds(frame: JsonObject): string[] {
  const { ids } = frame;
  return Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [needed(frame, "id")];
}

function namesOf(ids: unknown): { id: string; from: string }[] {
  if (!Array.isArray(ids)) throw new Error(`"ids" is a list`);
  return ids.filter(isObject).map((one) => ({ id: needed(one, "id"), from: needed(one, "from") }));
}

function objectOf(object: JsonObject, key: string): JsonObject {
  const value = object[key];
  if (!isObject(value)) throw new Error(`"${key}" is missing`);
  return value;
}

function needed(object: JsonObject, key: string): string {
  const value = object[key];
  if (typeof value !== "string") throw new Error(`"${key}" is missing`);
  return value;
}

function textOf(object: JsonObject, key: string): string | undefined {
  const value = object[key];
  return typeof value === "string" ? value : undefined;
}

function numberOf(object: JsonObject, key: string): number | undefined {
  const value = object[key];
  return typeof value === "number" ? value : undefined;
}
