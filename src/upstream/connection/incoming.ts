// Reading what a server sent: the messages in it. Pure; what they mean is the connection's.

import { scanElements } from "../../protocol/scan.js";

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

/**
 * A short reply as text, a character a byte, after a look whether it is JSON; undefined for a long one, of which
 * nothing is known. Throws where it is none. What UTF-8 needs several bytes for stands in strings only, so that
 * reading bytes as characters changes nothing of the verdict, and costs half.
 */
export function checkedText(bytes: Buffer): string | undefined {
  if (bytes.length > CHECKED_REPLY_BYTES) return undefined;
  const text = bytes.toString("latin1");
  JSON.parse(text);
  return text;
}
