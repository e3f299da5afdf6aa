// Loaded into the profiled process (`node --import`): the first SIGUSR2 begins a CPU profile, the second writes it to
// TOOLWAY_PROFILE. `--cpu-prof` would count the start and the warming up as well.

import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector";

/** A call takes a few dozen µs: at the default of 1,000 µs, small functions would be seen too rarely. */
const SAMPLE_US = 200;

const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.setSamplingInterval", { interval: SAMPLE_US });

/**
 * CPU time so far, in µs. The samples of a profile are of the clock on the wall, which goes on while another process
 * has the core: they say the shares, and this says of how much.
 */
function cpu() {
  let mainUs = 0;
  let otherUs = 0;
  for (const thread of readdirSync("/proc/self/task")) {
    const us = Number(readFileSync(`/proc/self/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1000;
    if (Number(thread) === process.pid) mainUs += us;
    else otherUs += us;
  }
  return { mainUs, otherUs };
}

let before;
process.on("SIGUSR2", () => {
  if (before === undefined) {
    before = cpu();
    session.post("Profiler.start");
    return;
  }
  const after = cpu();
  const used = { mainUs: after.mainUs - before.mainUs, otherUs: after.otherUs - before.otherUs };
  session.post("Profiler.stop", (error, result) => {
    if (error !== null) throw error;
    const file = process.env.TOOLWAY_PROFILE;
    // Renamed, so that whoever waits for the file finds all of it.
    writeFileSync(`${file}.part`, JSON.stringify({ ...result.profile, cpu: used }));
    renameSync(`${file}.part`, file);
  });
});
