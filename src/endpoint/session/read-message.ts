// A text that an agent sent becomes a message or a batch: its bounds are checked before it is parsed, and it is parsed
// once. Every transport reads by this; which era a message is of is decided by whoever gets it.

import { StringDecoder } from "node:string_decoder";
import { JsonShape } from "../../protocol/bytes/scan-bytes.js";
import { weightBy } from "../../protocol/bytes/weight.js";
import { Fault } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import { type Message, type RequestMessage, toLongMessage, toMessage } from "../../protocol/message.js";
import { deeperThan, scanElements, scanLongElements } from "../../protocol/scan.js";
import { BODY_COST, type HeldBytes, type Holder } from "../../runtime/memory/held-bytes.js";
import { KIB } from "../../runtime/sizes.js";
import type { EndpointLimits } from "./limits.js";

/**
 * A text that is shorter is read before room is asked for it: it may be a cancellation or an answer, which nobody keeps,
 * and which is taken although there is no room.
 */
export const SHORT_BYTES = 4 * KIB;

/** A text that is shorter is judged when it is there; a longer one as it comes. */
export const SMALL_BYTES = 64 * KIB;

/** From here on, reading a text is work for more than one turn of the loop: each step takes some milliseconds. */
export const LONG_BYTES = 1024 * KIB;

/** So much is decoded in one turn. */
const DECODED_A_TURN = 4 * 1024 * KIB;

/**
 * So much of a long batch becomes messages in one turn of the event loop, which takes a few milliseconds where all of it
 * is members of a few characters.
 */
const BATCH_CHARS_A_TURN = 128 * KIB;

/** What a text of `bytes` is counted while one of its requests is kept; `weight` is what its values take besides. */
export const costOf = (bytes: number, weight: number): number => bytes * BODY_COST + weight;

/** Why a text of `bytes`, counted as `cost`, is refused that finds no room even where nothing else is held. */
export function tooLargeToHold(noun: string, bytes: number, cost: number, { limit, largestBody }: HeldBytes): string {
  const has =
    bytes > largestBody ? `has ${bytes} bytes` : `counts as ${Math.ceil(cost / BODY_COST)} bytes, for its many values`;
  return `The ${noun} ${has}, and with limits.heldBytes at ${limit} there is never room for more than ${largestBody} at once. Send less, or have limits.heldBytes raised.`;
}

/** Whether somebody may keep something of it: only requests are. */
export function hasRequest(
  read: Message | readonly Message[] | Unreadable,
): read is RequestMessage | readonly Message[] {
  if (!Array.isArray(read)) return (read as Message | Unreadable).kind === "request";
  return (read as readonly Message[]).some(({ kind }) => kind === "request");
}

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

/** A batch is an array, and may be empty. A text that is not short has been judged by a TextCheck as it came. */
export function readMessage(text: string, limits: EndpointLimits, words: TextWords): Message | Message[] | Unreadable {
  const { depth } = limits;
  // What nests so deep has a bracket that opens and one that closes for each level; JSON.parse refuses the rest.
  if (text.length > 2 * depth && text.length < SMALL_BYTES && deeperThan(text, depth)) {
    return invalid(`The ${words.noun} is nested deeper than ${depth} levels, which is the limit.`);
  }
  const parsed = parseText(text, words);
  return "value" in parsed ? toMessages(text, parsed.value, limits, words) : parsed;
}

/** The same for a text of megabytes, where `pause` lets others have their turn. */
export async function readLongMessage(
  text: string,
  limits: EndpointLimits,
  words: TextWords,
  pause: () => Promise<void>,
): Promise<Message | Message[] | Unreadable> {
  const parsed = parseText(text, words);
  await pause();
  return "value" in parsed ? toLongMessages(text, parsed.value, limits, words, pause) : parsed;
}

/** Lets go of the pieces as it goes. The parts are joined at once: a string of many parts is slow to be read. */
export async function decodeLong(pieces: Buffer[], pause: () => Promise<void>): Promise<string> {
  const decoder = new StringDecoder("utf8");
  const parts: string[] = [];
  let bytes = 0;
  for (let i = 0; i < pieces.length; i++) {
    const piece = pieces[i] as Buffer;
    parts.push(decoder.write(piece));
    pieces[i] = NOTHING;
    bytes += piece.length;
    if (bytes < DECODED_A_TURN) continue;
    bytes = 0;
    await pause();
  }
  await pause();
  parts.push(decoder.end());
  const text = parts.join("");
  await pause();
  return text;
}

const NOTHING = Buffer.alloc(0);

/** The first half of reading. */
function parseText(text: string, words: TextWords): { readonly value: unknown } | Unreadable {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { kind: "unreadable", code: ErrorCode.parse, why: words.notJson };
  }
}

/** The second half of it; `value` is what JSON.parse made of `text`. */
function toMessages(
  text: string,
  value: unknown,
  { batchMessages }: EndpointLimits,
  words: TextWords,
): Message | Message[] | Unreadable {
  try {
    if (!Array.isArray(value)) return toMessage(text, value);
    if (value.length > batchMessages) return invalid(words.longBatch(batchMessages));
    return scanElements(text, 0).map(({ start, end }, index) => toMessage(text.slice(start, end), value[index]));
  } catch (error) {
    return unreadableBy(error);
  }
}

async function toLongMessages(
  text: string,
  value: unknown,
  { batchMessages }: EndpointLimits,
  words: TextWords,
  pause: () => Promise<void>,
): Promise<Message | Message[] | Unreadable> {
  try {
    if (!Array.isArray(value)) return await toLongMessage(text, value, pause);
    if (value.length > batchMessages) return invalid(words.longBatch(batchMessages));
    const messages: Message[] = [];
    let chars = text.length;
    for (const { start, end } of await scanLongElements(text, pause)) {
      const element = text.slice(start, end);
      if (chars >= BATCH_CHARS_A_TURN) await pause();
      chars = (chars >= BATCH_CHARS_A_TURN ? 0 : chars) + element.length;
      messages.push(await toLongMessage(element, value[messages.length], pause));
    }
    return messages;
  } catch (error) {
    return unreadableBy(error);
  }
}

function unreadableBy(error: unknown): Unreadable {
  if (error instanceof Fault) return invalid(error.message);
  throw error;
}

/** Judges a text that is not short while it comes, before anybody parses it. */
export class TextCheck {
  readonly #shape = new JsonShape();
  readonly #limits: EndpointLimits;
  readonly #noun: string;

  constructor(limits: EndpointLimits, { noun }: TextWords) {
    this.#limits = limits;
    this.#noun = noun;
  }

  /** What the values that have come will take of the memory, beside their text. */
  get weight(): number {
    return weightBy(this.#shape.values, this.#shape.names);
  }

  /** Why it is refused; undefined as long as it is not. */
  push(piece: Uint8Array): Unreadable | undefined {
    const shape = this.#shape;
    const { depth, values, names } = this.#limits;
    shape.push(piece);
    if (shape.depth > depth)
      return invalid(`The ${this.#noun} is nested deeper than ${depth} levels, which is the limit.`);
    if (shape.values > values)
      return invalid(`The ${this.#noun} has more than ${values} values (members and elements), which is the limit.`);
    if (shape.names > names)
      return invalid(`The ${this.#noun} has more than ${names} different names of members, which is the limit.`);
    return undefined;
  }
}

function invalid(why: string): Unreadable {
  return { kind: "unreadable", code: ErrorCode.invalidRequest, why };
}
