// What V8 is told before a gateway's own code is loaded, so that a start takes little memory, and does no work that may never
// pay. It stands by itself because loading that code is most of what a start does.

import { setFlagsFromString } from "node:v8";

/** By how much V8 may make the room for what is young larger at a time: not at all. heap-room.ts lets it after the start. */
export const START_GROWTH = 1;

/**
 * How much WebAssembly runs (V8 counts about the bytes of code that it passes through) before it is compiled once more, to be
 * faster. By V8's own measure a server's first answers are enough: the parser of HTTP is one large function, and to
 * compile it takes 35 MB for a moment, of which up to 10 stay, and a quarter of the time of a start. With a hundred times
 * that measure it happens after some tens of calls, and what looks through large replies is made faster after some 20 MiB.
 */
const TIERING_BUDGET = 180_000_000;

export function makeStartRoom(): void {
  setFlags(START_FLAGS);
}

export const START_FLAGS: readonly string[] = [
  `--semi-space-growth-factor=${START_GROWTH}`,
  `--wasm-tiering-budget=${TIERING_BUDGET}`,
];

/** V8's own values of these: nobody can ask for them, and newer ones have another budget. */
export const FLAGS_BEFORE: readonly (readonly string[])[] = [1_800_000, 13_000_000].map((budget) => [
  "--semi-space-growth-factor=2",
  `--wasm-tiering-budget=${budget}`,
]);

export function setFlags(flags: readonly string[]): void {
  for (const flag of flags) setFlagsFromString(flag);
}
