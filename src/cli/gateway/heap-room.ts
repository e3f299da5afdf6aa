// How much a gateway may allocate before V8 marks all of its heap. Buffers that pass count against the limit of the
// heap, and of a heap as small as a gateway's V8 lets them have 8 MB: with a few large results under way it would mark
// all of it again and again, which was a third of what such a result cost. A program that embeds a gateway has a heap of
// its own, and is left alone.

import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { MIB } from "../../runtime/sizes.js";

/**
 * Beyond what the heap holds: eight results of 1 MiB under way, and what passes until the next small collection. More
 * would be cheaper still; but a body of any size goes to a slow reader in under 32 MB, and most of that is this.
 */
const ROOM_BYTES = 28 * MIB;
/** The most by which V8 itself lets a heap grow, where it thinks that worth it: to four times what it holds. */
const MOST_PERCENT = 300;
/** With less than this a heap is large, and V8's own measure is the better one. */
const LEAST_PERCENT = 30;
/** A heap grows with sessions, which come over minutes. */
const LOOK_EVERY_MS = 10_000;

/** By how much a heap that holds so many bytes may grow before it is marked; 0: by V8's own measure. */
export function growingPercent(usedBytes: number): number {
  const percent = Math.min(MOST_PERCENT, Math.floor((ROOM_BYTES / usedBytes) * 100));
  return percent < LEAST_PERCENT ? 0 : percent;
}

let current = 0;
let timer: NodeJS.Timeout | undefined;

function look(): void {
  const percent = growingPercent(getHeapStatistics().used_heap_size);
  if (percent === current) return;
  current = percent;
  // V8 reads it at the end of each marking.
  setFlagsFromString(`--heap-growing-percent=${percent}`);
}

/** From now on, for this process. To be called by a process that is a gateway. */
export function makeHeapRoom(): void {
  if (timer !== undefined) return;
  look();
  timer = setInterval(look, LOOK_EVERY_MS).unref();
}
