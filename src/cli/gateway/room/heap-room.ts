// How much a gateway may allocate before V8 marks all of its heap. Buffers that pass count against the limit of the
// heap, and of a heap as small as a gateway's V8 lets them have 8 MB: with a few large results under way it would mark
// all of it again and again. While the gateway holds much for others it is the reverse: a heap that holds 100 MB may be
// let grow to several times that by V8, and what was refused or has gone would stay beside what is held. A program that
// embeds a gateway has a heap of its own, and is left alone.

import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { HeldWatcher } from "../../../runtime/memory/held-bytes.js";
import { MIB } from "../../../runtime/sizes.js";
import { keepTickShape } from "./kept-tick.js";
import { FLAGS_BEFORE, START_FLAGS, START_GROWTH, setFlags } from "./start-room.js";

/**
 * Beyond what the heap holds: eight results of 1 MiB under way, and what passes until the next small collection. More
 * would be cheaper still; but a body of any size goes to a slow reader in under 32 MB, and most of that is this.
 */
const ROOM_BYTES = 28 * MIB;
/** The most by which V8 itself lets a heap grow, where it thinks that worth it: to four times what it holds. */
const MOST_PERCENT = 300;
/**
 * A heap that is large grows by this: with 100,000 writes that wait it holds 100 MB, and V8's own measure lets it have 120 MB of
 * garbage beside them. A marking for each 30 MB is what a small one costs, too.
 */
const LEAST_PERCENT = 30;
/**
 * While much is held: so little garbage may lie beside it. It costs a marking for each tenth of the heap that is made
 * anew, mostly of long texts, which are marked at once, and beside the main thread.
 */
const HOLDING_PERCENT = 10;
/** Two halves of 16 MiB. */
const MOST_YOUNG_BYTES = 32 * MIB;
/** A heap grows with sessions, which come over minutes. */
const LOOK_EVERY_MS = 10_000;
/**
 * A start is over by then, on most machines. What it makes is kept, or garbage at once, and V8 would answer with more and
 * more room for what is young: some 10 MB that an idle gateway never uses again (start-room.ts).
 */
const STARTED_MS = 2_000;

/** By how much a heap that holds so many bytes may grow before it is marked. */
export function growingPercent(usedBytes: number, isMuchHeld: boolean): number {
  if (isMuchHeld) return HOLDING_PERCENT;
  return Math.max(LEAST_PERCENT, Math.min(MOST_PERCENT, Math.floor((ROOM_BYTES / usedBytes) * 100)));
}

/**
 * Whether the part of the heap for what is young may grow. Newer V8 lets it have 128 MiB, most of which stays resident
 * when a burst is over; 32 MiB is the most that Node 20 gives it.
 */
export function mayYoungGrow(youngBytes: number): boolean {
  return youngBytes < MOST_YOUNG_BYTES;
}

let percent = 0;
let growth = START_GROWTH;
let timer: NodeJS.Timeout | undefined;
let isMuch = false;
let collectYoung: (() => void) | undefined;
/** Held for as long as the process lives. */
const held = new Set<object>();

function look(): void {
  lookAtAll();
  const nextGrowth = mayYoungGrow(youngBytes()) ? 2 : 1;
  if (nextGrowth !== growth) setFlagsFromString(`--semi-space-growth-factor=${nextGrowth}`);
  growth = nextGrowth;
}

function lookAtAll(): void {
  const nextPercent = growingPercent(getHeapStatistics().used_heap_size, isMuch);
  // V8 reads it at the end of each marking.
  if (nextPercent !== percent) setFlagsFromString(percentFlag(nextPercent));
  percent = nextPercent;
}

function youngBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")?.space_size ?? 0;
}

/** What was read for somebody who was then refused dies young. The function for it is made when it is first needed. */
function youngCollector(): () => void {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as (options: { type: "minor" }) => void;
  setFlagsFromString("--no-expose-gc");
  return () => gc({ type: "minor" });
}

const watcher: HeldWatcher = {
  onMuchHeld(isMuchNow) {
    isMuch = isMuchNow;
    // What was held is garbage only now: the small measure stays until the next look, so that it goes.
    if (isMuch) look();
  },
  onTurnover() {
    collectYoung ??= youngCollector();
    collectYoung();
  },
};

/** For a process that lives as long as a gateway, and is none: its start is over. */
export function letYoungGrow(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
  growth = 2;
}

/**
 * V8's code is good for the flags that it was made with. Runs `act` with those of the moment of the start that `fits`: since
 * makeHeapRoom(), behind makeStartRoom(), or before it. Undefined where none does.
 */
export function atStart<T>(fits: () => boolean, act: () => T): T | undefined {
  const moments = [[...START_FLAGS, percentFlag(MOST_PERCENT)], ...[START_FLAGS, ...FLAGS_BEFORE].map(ungrown)];
  try {
    for (const flags of moments) {
      setFlags(flags);
      if (fits()) return act();
    }
    return undefined;
  } finally {
    setFlags([...START_FLAGS, `--semi-space-growth-factor=${growth}`, percentFlag(percent)]);
  }
}

const percentFlag = (grows: number) => `--heap-growing-percent=${grows}`;
/** Zero leaves it to V8. */
const ungrown = (flags: readonly string[]) => [...flags, percentFlag(0)];

/** From now on, for this process. To be called by a process that is a gateway; it tells how much it holds. */
export function makeHeapRoom(): HeldWatcher {
  if (timer === undefined) {
    held.add(keepTickShape());
    // A heap that starts is small; and V8's code, which is kept for these flags, is good for each start then.
    percent = MOST_PERCENT;
    setFlagsFromString(percentFlag(percent));
    setTimeout(look, STARTED_MS).unref();
    timer = setInterval(look, LOOK_EVERY_MS).unref();
  }
  return watcher;
}
