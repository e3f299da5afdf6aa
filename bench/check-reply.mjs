// What it costs to judge one long reply before it is passed on, without the rest of a call: three kinds of results in
// three sizes, beside a search by Buffer.indexOf for the same names, and as a share of the whole call over HTTP as it is
// recorded. `npm run bench:replies`.

import { readFileSync } from "node:fs";
import { flawOfLong } from "../dist/protocol/check-reply.js";
import { kindAndSize } from "./servers/results.mjs";

const SIZES = [16 * 1024, 128 * 1024, 1024 * 1024];
/** What it may be of a call, and how fast each byte would have to be looked at for that. */
const GOAL = 0.03;
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

const recorded = JSON.parse(readFileSync(new URL("recorded/node20.json", import.meta.url), "utf8")).rows;

/** The gateway's CPU time for a whole call with such a result. */
function callUs(name, bytes) {
  const workload = kindAndSize(name, bytes / 1024);
  const row = recorded.find((one) => one.target === "toolway" && one.upstream === "http" && one.workload === workload);
  if (row === undefined) throw new Error(`No "${workload}" is recorded.`);
  return row.cpuUs;
}

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

const line = (name, ...cells) => console.log(name.padEnd(14), ...cells.map((cell) => cell.padStart(12)));

line("result", "bytes", "judged", "indexOf", "whole call", "share of it", `${GOAL * 100} % of it is`);
for (const bytes of SIZES) {
  for (const [name, make] of Object.entries(RESULTS)) {
    const reply = Buffer.from(`${HEAD}${JSON.stringify(make(bytes))}}`);
    const flaw = flawOfLong([reply], ID);
    if (flaw !== undefined) throw new Error(`The reply ${flaw}.`);
    const judged = microseconds(() => flawOfLong([reply], ID));
    const searched = microseconds(() => NAMES.map((one) => reply.indexOf(one, ID.idEnd)));
    const call = callUs(name, bytes);
    const us = (value) => `${value.toFixed(1)} µs`;
    const share = `${((judged / call) * 100).toFixed(1)} %`;
    const speed = `${(reply.length / (call * GOAL) / 1000).toFixed(0)} GB/s`;
    line(name, String(reply.length), us(judged), us(searched), us(call), share, speed);
  }
}
