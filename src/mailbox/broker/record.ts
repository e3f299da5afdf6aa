// A message as the store has it: `[length,header,message]`. The header is for the broker; the message is what its
// recipient gets, as it was written when it came. Neither needs the other to be read.

import { hash } from "node:crypto";
import { ownerOf } from "../wire/address.js";
import { type Binding, keyOf, type QueuedMessage } from "./queue-terms.js";

/** How the kind of a message ends that is owed an answer, and that of the answer instead. */
export const REQUEST = "_request";
export const REPLY = "_reply";

/** Of the answer to a request of this kind. */
export function replyKind(request: string): string {
  return `${request.slice(0, -REQUEST.length)}${REPLY}`;
}

/** A message in the store, as it is kept in memory: its body stays there. */
export interface Letter extends QueuedMessage {
  /** Of its sender and id: messages are found by it. */
  readonly key: string;
  /** The mailbox that it is for. */
  readonly to: string;
  /** Where its answer goes: the address of its sender. */
  readonly from: string;
  /** Of recipient, kind and body: tells a repeat from another message of the same id. */
  readonly hash: string;
  /** When it came, in milliseconds since 1970. */
  readonly at: number;
  readonly correlationId: string | undefined;
  /** Whom it was handed to stands beside it in the store, and goes with it. */
  isRebound: boolean;
}

export interface Header {
  readonly to: string;
  readonly from: string;
  readonly id: string;
  readonly kind: string;
  readonly hash: string;
  /** When it came, in milliseconds since 1970, and how long it had then. */
  readonly at: number;
  readonly leftMs: number;
  readonly correlationId?: string | undefined;
  /** Whom it was expected to be handed to at once. */
  readonly bound?: StoredBinding | undefined;
  /** The only journal that may have it. */
  readonly only?: string | undefined;
}

/** Whom a message was handed to: a journal, somebody without one, or nobody any more. */
export interface StoredBinding {
  readonly journal?: string | undefined;
  readonly isFree?: true;
}

/** It was given back before it was begun. */
export const FREE: StoredBinding = { isFree: true };

export function storedOf(binding: Binding | undefined): StoredBinding | undefined {
  return binding === undefined ? undefined : { journal: binding.journal };
}

export function bindingOf(stored: StoredBinding | undefined): Binding | undefined {
  return stored === undefined || stored.isFree === true ? undefined : { journal: stored.journal };
}

export interface MessageParts {
  readonly id: string;
  readonly from: string;
  readonly role: string;
  readonly kind: string;
  /** It is kept as JSON text. */
  readonly body: string;
  readonly at: number;
  readonly correlationId: string | undefined;
  /** The correlation id that the message which it answers had of its own. */
  readonly requestCorrelationId: string | undefined;
  readonly digest?: string | undefined;
}

export function messageText(parts: MessageParts): string {
  const { id, from, role, kind, body, at, correlationId, requestCorrelationId: requests, digest } = parts;
  const own = correlationId === undefined ? "" : `,"correlation_id":${JSON.stringify(correlationId)}`;
  const correlation = requests === undefined ? own : `${own},"request_correlation_id":${JSON.stringify(requests)}`;
  const same = digest === undefined ? "" : `,"digest":${JSON.stringify(digest)}`;
  const sender = `{"session_id":${JSON.stringify(from)},"role":${JSON.stringify(role)}}`;
  const created = new Date(at).toISOString();
  return (
    `{"id":${JSON.stringify(id)},"from":${sender},"kind":${JSON.stringify(kind)},"body":${body},` +
    `"created_at":"${created}"${correlation}${same}}`
  );
}

export function recordText(header: Header, message: string): string {
  const head = JSON.stringify(header);
  return `[${head.length},${head},${message}]`;
}

export function headerOf(record: string): Header {
  const [start, end] = headerSpan(record);
  return JSON.parse(record.slice(start, end)) as Header;
}

export function letterOf(
  { to, from, id, kind, hash, at, correlationId, only }: Header,
  sequence: number,
  bytes: number,
  endMs: number,
  bound: Binding | undefined,
  isRebound: boolean,
): Letter {
  const sender = ownerOf(from);
  const key = keyOf(sender, id);
  return { key, sequence, to, from, id, sender, kind, bytes, endMs, hash, at, correlationId, bound, only, isRebound };
}

export function messageOf(record: string): string {
  const [, end] = headerSpan(record);
  return record.slice(end + 1, -1);
}

function headerSpan(record: string): [start: number, end: number] {
  const comma = record.indexOf(",");
  const start = comma + 1;
  return [start, start + Number(record.slice(1, comma))];
}

/** `digest` stands for the body, where its sender gave one. No body is so written: it is JSON. */
export function hashOf(to: string, kind: string, body: string, digest?: string): string {
  const said = digest === undefined ? body : `digest ${digest}`;
  return hash("sha256", `${to}\0${kind}\0${said}`, "base64url");
}
