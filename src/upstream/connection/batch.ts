// What came as one from a server: the messages in it, where it is a batch, and the call that it is about, where it is no message.

import { isNameOfAnswer } from "../../protocol/check-reply.js";
import { isObject } from "../../protocol/jsonrpc.js";
import type { Message } from "../../protocol/message.js";
import { scanElements } from "../../protocol/scan.js";

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
