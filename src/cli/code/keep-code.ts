// Keeps what V8 made of a gateway's scripts for its next start, once this one is over.

import { setImmediate as nextTurn } from "node:timers/promises";
import { cachedDataVersionTag } from "node:v8";
import { atStart } from "../gateway/room/heap-room.js";
import { writeCode } from "./kept-code.js";
import { loadedScripts } from "./loaded-scripts.js";

/** The first calls have been made by then, in most cases: what they needed is kept with the rest. */
const KEEP_AFTER_MS = 5_000;

let isBegun = false;

/** To be called by a process that is a gateway. One that ends sooner keeps nothing. */
export function keepCodeSoon(): void {
  if (isBegun) return;
  isBegun = true;
  setTimeout(() => void keepCode(), KEEP_AFTER_MS).unref();
}

/** It takes some 10 ms of a turn for the largest, once after each update. */
async function keepCode(): Promise<void> {
  for (const { script, tag, path } of loadedScripts().splice(0)) {
    const code = atStart(
      () => cachedDataVersionTag() === tag,
      () => script.createCachedData(),
    );
    if (code !== undefined) writeCode(path, code);
    await nextTurn();
  }
}
