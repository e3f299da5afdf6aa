// What single checks on the way of a call cost, without the rest of it: whether a text that is not short has too much to it (short
// ones are not looked at), room for its bytes, and whether a list may be old. `npm run bench:checks`.

import { excessOf, MESSAGE_BOUNDS } from "../dist/protocol/bytes/text-bounds.js";
import { HeldBytes } from "../dist/runtime/memory/held-bytes.js";
import { ListAge } from "../dist/upstream/lists/age.js";

const TIMES = 2_000;
const RUNS = 30;

const call = (args) =>
  Buffer.from(
    JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "echo", arguments: args } }),
  );
const small = call({ text: "hello", count: 3 });
const long = call({
  rows: Array.from({ length: 1_950 }, (_, id) => ({ id, name: `row ${id}`, note: "some text here, and more of it" })),
});

const held = new HeldBytes();
const age = new ListAge();
age.begun(0, 0, 0);
age.ended(true);
const facts = { isAnnounced: true, ttlMs: undefined, endedCalls: 1, calledLately: false, gaps: 0 };

const CHECKS = {
  "too many values, names or levels, of a call of %s bytes": () => excessOf([long], MESSAGE_BOUNDS),
  "room for the body of a call and for its reply": () => {
    for (let n = 0; n < 2; n++) {
      const holder = held.holder("agent");
      holder.hold(3 * small.length);
      holder.release();
    }
  },
  "whether a list may be old, when it is asked for": () => age.asked(1_000, facts),
};

/** The shortest of many, in nanoseconds a time: what others do on the machine makes a run longer, never shorter. */
function nanoseconds(act) {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS; run++) {
    const started = process.hrtime.bigint();
    for (let n = 0; n < TIMES; n++) act();
    best = Math.min(best, Number(process.hrtime.bigint() - started) / TIMES);
  }
  return best;
}

for (const [what, act] of Object.entries(CHECKS)) {
  const name = what.replace("%s", String(long.length));
  console.log(`${name.padEnd(72)} ${nanoseconds(act).toFixed(0).padStart(8)} ns`);
}
