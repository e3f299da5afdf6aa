// Loaded into a gateway by NODE_OPTIONS: for each turn of its event loop that is not short, writes down how much CPU time
// the main thread took, how much of that V8's collector had, and how many requests Node began to read in it. CPU time,
// because the machine may be busy with other things. It leaves next to no garbage, so that memory can be measured beside it.

import { subscribe } from "node:diagnostics_channel";
import { appendFileSync, openSync, readSync } from "node:fs";
import { PerformanceObserver, performance } from "node:perf_hooks";

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
  let activeBefore = performance.eventLoopUtilization().active;
  let collectedMs = 0;
  let requests = 0;
  const count = (entries) => {
    for (const { duration } of entries) collectedMs += duration;
  };
  const collections = new PerformanceObserver((list) => count(list.getEntries()));
  collections.observe({ entryTypes: ["gc"] });
  subscribe("http.server.request.start", () => requests++);
  setInterval(() => {
    const ms = cpuMs() - last;
    if (ms > LEAST_MS) {
      count(collections.takeRecords());
      // V8 tells a collection's time by the clock on the wall. Where others had the core in this turn, they had it in its
      // collections too: the collector has as much of its time as the turn had of its own.
      const active = performance.eventLoopUtilization().active - activeBefore;
      const collector = Math.min(ms, active > ms ? (collectedMs * ms) / active : collectedMs);
      appendFileSync(file, `${ms.toFixed(1)} ${collector.toFixed(1)} ${requests}\n`);
    }
    collectedMs = 0;
    requests = 0;
    activeBefore = performance.eventLoopUtilization().active;
    last = cpuMs();
  }, TICK_MS).unref();
}
