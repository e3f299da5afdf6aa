// Loaded into a gateway by NODE_OPTIONS: writes down how much CPU time the main thread took in one turn of its event
// loop, each time that is more than before. CPU time, because the machine may be busy with other things.

import { appendFileSync, readFileSync } from "node:fs";

/** Turns are told apart this finely: shorter ones that follow each other count as one. */
const TICK_MS = 5;
/** What is shorter is not of interest. */
const LEAST_MS = 15;

const file = process.env.TOOLWAY_TURNS;
const cpuMs = () => Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "latin1").split(" ", 1)[0]) / 1e6;

if (file !== undefined) {
  let last = cpuMs();
  setInterval(() => {
    const now = cpuMs();
    if (now - last > LEAST_MS) appendFileSync(file, `${(now - last).toFixed(1)}\n`);
    last = cpuMs();
  }, TICK_MS).unref();
}
