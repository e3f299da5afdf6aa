// Reading what a server sent: the messages in it. Pure; what they mean is the connection's.

import { scanElements } from "../protocol/scan.js";

/** Messages that a server sends as one. Only 2025-03-26 has batches, and there they hold a handful. */
const MAX_BATCH = 1_000;

/** Up to here a reply is parsed before it is passed on: it costs next to nothing, and broken JSON is noticed. */
const CHECKED_REPLY_BYTES = 4096;

/** The messages of what may be a batch. */
export function* textsIn(bytes: Buffer): Iterable<string> {
  const text = bytes.toString();
  if (!/^\s*\[/.test(text)) {
    yield text;
    return;
  }
  for (const { start, end } of scanElements(text, 0, MAX_BATCH)) yield text.slice(start, end);
}

/** Whether a reply can be seen to be no JSON. Of a long one nothing is known. */
export function isBroken(bytes: Buffer): boolean {
  if (bytes.length > CHECKED_REPLY_BYTES) return false;
  try {
    JSON.parse(bytes.toString());
    return false;
  } catch {
    return true;
  }
}
