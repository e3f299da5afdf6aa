// What came from a server and is no plain reply, as far as that can be told before it is a message: the messages in a batch,
// the call that something is about which is none, what is too much to be parsed, and what the ends of that say. What is done
// about it is the connection's. Replies whose id was found are not parsed, and are judged elsewhere (check-reply.ts).

import { excessOf, MESSAGE_BOUNDS } from "../../protocol/bytes/text-bounds.js";
import { isNameOfAnswer } from "../../protocol/check-reply.js";
import { isObject } from "../../protocol/jsonrpc.js";
import type { Message } from "../../protocol/message.js";
import { deeperThan, scanElements } from "../../protocol/scan.js";
import { MIB } from "../../runtime/sizes.js";

/** What is no message is not parsed beyond this: noise on a pipe may be of any length. */
const MAX_CLAIM_CHARS = 64 * 1024;

/** So many messages may come as one. Only 2025-03-26 has batches, and there they hold a handful. */
const MAX_BATCH = 1_000;

/**
 * The id that something which is no message answers to, where it has one and is no plain request: on a pipe nothing else
 * says whose call it was for, and that call would wait in vain.
 */
export function claimedId(text: string): number | undefined {
  if (text.length > MAX_CLAIM_CHARS) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value) || ("method" in value && !Object.keys(value).some(isNameOfAnswer))) return undefined;
    return typeof value["id"] === "number" ? value["id"] : undefined;
  } catch {
    return undefined;
  }
}

/** The id of a request that is an answer too: which of both it is to be, nobody can tell, and a call may wait for it. */
export function answeredId(message: Message): number | undefined {
  if (message.kind !== "request" || !message.members.some(({ key }) => isNameOfAnswer(key))) return undefined;
  return Number(message.id);
}

/** The messages in what may be a batch. */
export function* textsIn(bytes: Buffer): Iterable<string> {
  const text = bytes.toString();
  if (!/^\s*\[/.test(text)) {
    yield text;
    return;
  }
  for (const { start, end } of scanElements(text, 0, MAX_BATCH)) yield text.slice(start, end);
}

/**
 * What a server says or asks of its own accord, and a reply whose id stands where nobody looks, are parsed, in one turn
 * of the event loop. It is less than what may wait for one reader of an event stream (4 MiB), so that no single message
 * of a server cuts an agent off from the reply to its call.
 */
const MAX_PARSED_BYTES = 3 * MIB;

/** From here on bytes are counted as they lie; below, the text is looked at once it was made. */
const SHORT_BYTES = 64 * 1024;

/** So far an id or a method is looked for, from either end. */
const ENDS_BYTES = 256;

const METHOD = /"method"\s*:/;
/** Not inside a longer name or a string: it follows a brace or a comma. */
const ID_AT_HEAD = /[{,]\s*"id"\s*:\s*(\d{1,15}|"[^"\\]{1,64}")\s*[,}]/;
const ID_AT_TAIL = /,\s*"id"\s*:\s*(\d{1,15}|"[^"\\]{1,64}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;

/** Why what came is not parsed, as the end of a sentence; undefined where it may be. */
export function excessOfMessage(pieces: readonly Buffer[]): string | undefined {
  let size = 0;
  for (const piece of pieces) size += piece.length;
  if (size > MAX_PARSED_BYTES) return `has ${size} bytes, and ${MAX_PARSED_BYTES} is the limit`;
  return size < SHORT_BYTES ? undefined : excessOf(pieces, MESSAGE_BOUNDS);
}

/** The same of one that is short: only its depth can be too much. */
export function excessOfShort(text: string): string | undefined {
  const { depth } = MESSAGE_BOUNDS;
  // What nests so deep has a bracket that opens and one that closes for each level; JSON.parse refuses the rest.
  if (text.length <= 2 * depth || text.length >= SHORT_BYTES) return undefined;
  return deeperThan(text, depth) ? `is nested deeper than ${depth} levels` : undefined;
}

/** Only members that nothing can be inside of stand before it, so it is one of the message itself. */
const ANSWER_AT_HEAD = /^\s*\{(?:\s*"[^"\\]{1,64}"\s*:\s*(?:\d{1,15}|"[^"\\]{0,64}")\s*,)*\s*"(?:result|error)"\s*:/i;

/** What can be told of a message without reading it. */
export interface MessageEnds {
  /** Its id, as JSON text. */
  readonly id: string | undefined;
  /** It is a request or a notification. */
  readonly hasMethod: boolean;
  /** It is seen to be an answer, also where it has a method. */
  readonly hasAnswer: boolean;
}

export function endsOf(pieces: readonly Buffer[]): MessageEnds {
  const [first, last] = [pieces[0], pieces.at(-1)];
  const head = first?.toString("latin1", 0, ENDS_BYTES) ?? "";
  const tail = last?.toString("latin1", Math.max(0, last.length - ENDS_BYTES)) ?? "";
  const id = (ID_AT_HEAD.exec(head) ?? ID_AT_TAIL.exec(tail))?.[1];
  return { id, hasMethod: METHOD.test(head) || METHOD.test(tail), hasAnswer: ANSWER_AT_HEAD.test(head) };
}
