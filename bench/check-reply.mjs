// What it costs to judge one long reply before it is passed on, without the rest of a call: three kinds of results in
// three sizes, beside a search by Buffer.indexOf for the same names. `npm run bench:replies`.

import { flawOfLong } from "../dist/protocol/check-reply.js";

const SIZES = [16 * 1024, 128 * 1024, 1024 * 1024];
const WARM = 200;
const RUNS = 300;

const HEAD = '{"jsonrpc":"2.0","id":12345,"result":';
const ID = { id: 12345, idStart: 22, idEnd: 27 };
const NAMES = ['"id"', '"method"', "\\u006", "\\u007"].map((name) => Buffer.from(name));

const row = (id) => ({ id, name: `row ${id}`, value: id * 3.5, tags: ["a", "b"], note: "some text here" });
const rows = (bytes, each) => Array.from({ length: Math.floor(bytes / each) }, (_, id) => row(id));
const text = (value) => ({ content: [{ type: "text", text: value }] });

const RESULTS = {
  prose: (bytes) => text("the quick brown fox jumps over a lazy dog ".repeat(bytes / 42)),
  "JSON as text": (bytes) => text(JSON.stringify(rows(bytes, 150), undefined, 2)),
  "rows with ids": (bytes) => ({ structuredContent: { rows: rows(bytes, 85) } }),
};

/** The shortest of many: what others do on the machine makes a run longer, never shorter. */
function microseconds(act) {
  for (let i = 0; i < WARM; i++) act();
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < RUNS; i++) {
    const started = process.hrtime.bigint();
    act();
    best = Math.min(best, Number(process.hrtime.bigint() - started) / 1000);
  }
  return best;
}

console.log(`${"result".padEnd(14)} ${"bytes".padStart(8)} ${"judged".padStart(10)} ${"indexOf".padStart(10)}`);
for (const bytes of SIZES) {
  for (const [name, make] of Object.entries(RESULTS)) {
    const reply = Buffer.from(`${HEAD}${JSON.stringify(make(bytes))}}`);
    const flaw = flawOfLong([reply], ID);
    if (flaw !== undefined) throw new Error(`The reply ${flaw}.`);
    const judged = microseconds(() => flawOfLong([reply], ID));
    const searched = microseconds(() => NAMES.map((one) => reply.indexOf(one, ID.idEnd)));
    const us = (value) => `${value.toFixed(1)} µs`.padStart(10);
    console.log(`${name.padEnd(14)} ${String(reply.length).padStart(8)} ${us(judged)} ${us(searched)}`);
  }
}
