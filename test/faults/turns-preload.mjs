// Loaded into a gateway by NODE_OPTIONS: writes down how much CPU time the main thread took in one turn of its event
// loop, each time that is more than before. CPU time, because the machine may be busy with other things. It leaves no
// garbage, so that memory can be measured beside it.

import { appendFileSync, openSync, readSync } from "node:fs";

/** Turns are told apart this finely: shorter ones that follow each other count as one. */
const TICK_MS = 5;
/** What is shorter is not of interest. */
const LEAST_MS = 15;
const ZERO = 0x30;
const NINE = 0x39;

const file = process.env.TOOLWAY_TURNS;

/** The first number that the kernel tells of the thread: how long it ran, in nanoseconds. */
function clock() {
  const stat = openSync(`/proc/self/task/${process.pid}/schedstat`, "r");
  const bytes = Buffer.alloc(64);
  return () => {
    readSync(stat, bytes, 0, bytes.length, 0);
    let ns = 0;
    for (let at = 0; bytes[at] >= ZERO && bytes[at] <= NINE; at++) ns = ns * 10 + bytes[at] - ZERO;
    return ns / 1e6;
  };
}

if (file !== undefined) {
  const cpuMs = clock();
  let last = cpuMs();
  setInterval(() => {
    const now = cpuMs();
    if (now - last > LEAST_MS) appendFileSync(file, `${(now - last).toFixed(1)}\n`);
    last = cpuMs();
  }, TICK_MS).unref();
}
