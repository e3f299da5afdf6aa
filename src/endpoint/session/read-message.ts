// A text that an agent sent becomes a message or a batch: its bounds are checked before it is parsed, and it is parsed
// once. Every transport reads by this; which era a message is of is decided by whoever gets it.

import { Fault } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import { type Message, type RequestMessage, toMessage } from "../../protocol/message.js";
import { deeperThan, scanElements, skipValue } from "../../protocol/scan.js";
import type { Holder } from "../../runtime/memory/held-bytes.js";
import type { EndpointLimits } from "./limits.js";

/**
 * How many times its bytes a message is counted while somebody keeps it: its text, what was parsed of it, and the text
 * that goes to its server.
 */
export const BODY_COST = 3;

/** Notes what the messages of one text take of the memory, for those who keep one. */
export function heldBy(read: Message | readonly Message[] | Unreadable, holder: Holder): void {
  if (Array.isArray(read)) for (const message of read as readonly Message[]) heldBy(message, holder);
  else if ((read as Message | Unreadable).kind === "request") (read as RequestMessage).held = holder;
}

/** A text that is no message. */
export interface Unreadable {
  readonly kind: "unreadable";
  readonly code: number;
  readonly why: string;
}

/** How a transport speaks of the texts that it reads. */
export interface TextWords {
  readonly noun: string;
  readonly notJson: string;
  longBatch(limit: number): string;
}

export const BODY: TextWords = {
  noun: "body",
  notJson: "The body is not JSON.",
  longBatch: (limit) => `The batch has more than ${limit} messages, which is the limit.`,
};

export const PIPED: TextWords = {
  noun: "message",
  notJson: "Not JSON.",
  longBatch: (limit) => `A batch has at most ${limit} messages.`,
};

/** A batch is an array, and may be empty. */
export function readMessage(
  text: string,
  { depth, members, batchMessages }: EndpointLimits,
  words: TextWords,
): Message | Message[] | Unreadable {
  // What nests so deep has a bracket that opens and one that closes for each level; JSON.parse refuses the rest.
  if (text.length > 2 * depth && deeperThan(text, depth)) {
    return invalid(`The ${words.noun} is nested deeper than ${depth} levels, which is the limit.`);
  }
  if (hasMoreMembers(text, members)) {
    return invalid(`The ${words.noun} has more than ${members} members, which is the limit.`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "unreadable", code: ErrorCode.parse, why: words.notJson };
  }
  try {
    if (!Array.isArray(value)) return toMessage(text, value);
    return value.length > batchMessages ? invalid(words.longBatch(batchMessages)) : splitBatch(text, value);
  } catch (error) {
    if (error instanceof Fault) return invalid(error.message);
    throw error;
  }
}

function invalid(why: string): Unreadable {
  return { kind: "unreadable", code: ErrorCode.invalidRequest, why };
}

/** Throws a Fault `invalid` for the first element that is no message. */
function splitBatch(text: string, values: readonly unknown[]): Message[] {
  const spans = scanElements(text, 0);
  return spans.map(({ start, end }, index) => toMessage(text.slice(start, end), values[index]));
}

const QUOTE = 0x22;
const COLON = 0x3a;

/** `"":0,` is the shortest member, so a short text needs no look. */
const SHORTEST_MEMBER = 5;

/**
 * True where all objects of `text` together have more than `limit` members: objects with very many keys cost V8 far
 * more than their bytes. Works on any text, and judges nothing else.
 */
function hasMoreMembers(text: string, limit: number): boolean {
  if (text.length < limit * SHORTEST_MEMBER) return false;
  let members = 0;
  let i = 0;
  while (i < text.length) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      i = skipValue(text, i);
      continue;
    }
    if (c === COLON && ++members > limit) return true;
    i++;
  }
  return false;
}
