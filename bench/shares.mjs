// What the checks on the way of a call cost, each as a share of the CPU of the whole call, measured in one run: first whole
// calls over HTTP with results of each kind and size, then each check by itself, on the bytes of such a result.
// `npm run bench:shares`; options are those of the bench (`--quick`, `--rounds N`, `--calls N`).

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { excessOf, MESSAGE_BOUNDS } from "../dist/protocol/bytes/text-bounds.js";
import { weightOf } from "../dist/protocol/bytes/weight.js";
import { flawOfLong, judgeShort, PARSED_REPLY_BYTES } from "../dist/protocol/check-reply.js";
import { HeldBytes } from "../dist/runtime/memory/held-bytes.js";
import { ListAge } from "../dist/upstream/lists/age.js";
import { RESULT_TOOLS, resultOf, titleOf } from "./servers/results.mjs";

const HEAD = '{"jsonrpc":"2.0","id":12345,"result":';
const ID = { id: 12345, idStart: 22, idEnd: 27 };
const SMALL = "a small call";
/** From here on the values of a body are counted exactly, as it comes. */
const COUNTED_BYTES = 64 * 1024;
/** The shortest of so many runs counts: what others do on the machine makes one longer, never shorter. */
const RUNS = 40;
/** Of each run. */
const RUN_US = 2_000;

const held = new HeldBytes();
const age = new ListAge();
age.begun(0, 0, 0);
age.ended(true);
const FACTS = { isAnnounced: true, isPushed: false, ttlMs: undefined, endedCalls: 1, calledLately: false, gaps: 0 };

/** What is done with a message of these bytes, by what it is for. */
const CHECKS = {
  // A reply is one answer with one id.
  reply: (bytes) => {
    if (bytes.length > PARSED_REPLY_BYTES) return () => flawOfLong([bytes], ID);
    const text = bytes.toString("latin1");
    return () => judgeShort(bytes, text);
  },
  // How much its values take, were it the body of a call: that is no part of a call that has it as its result.
  "were it a body": (bytes) =>
    bytes.length < COUNTED_BYTES ? () => weightOf(bytes) : () => excessOf([bytes], MESSAGE_BOUNDS),
  // Room for the body of the call, for what becomes of it, and for its reply.
  room: (bytes) => () => {
    const body = held.holder("agent");
    body.hold(200);
    body.hold(600);
    const reply = held.serverHolder("server");
    reply.hold(bytes.length);
    reply.release();
    body.release();
  },
  // Whether a list may be old.
  "list age": () => () => age.asked(1_000, FACTS),
};

const result = (tool) => (tool === SMALL ? { content: [{ type: "text", text: "hello" }] } : resultOf(tool));

/** CPU of whole calls, by what is called. */
async function wholeCalls(args) {
  const dir = await mkdtemp(join(tmpdir(), "toolway-shares-"));
  try {
    const run = fileURLToPath(new URL("run.mjs", import.meta.url));
    const line = [run, "small-http", "results-http", "--targets", "toolway", "--no-peers", "--out", dir, ...args];
    const child = spawn(process.execPath, line, { stdio: ["ignore", "ignore", "inherit"] });
    const code = await new Promise((resolve) => child.on("close", resolve));
    if (code !== 0) throw new Error(`The bench ended with code ${code}.`);
    const { rows } = JSON.parse(await readFile(join(dir, "latest.json"), "utf8"));
    const isPlain = ({ answers, era, inFlight, workload }) =>
      workload !== "small" || (answers === "json" && era === "legacy" && inFlight === 1);
    return new Map(rows.filter(isPlain).map(({ workload, cpuUs }) => [workload === "small" ? SMALL : workload, cpuUs]));
  } finally {
    await rm(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

function microseconds(act) {
  const lasts = (times) => {
    const started = process.hrtime.bigint();
    for (let n = 0; n < times; n++) act();
    return Number(process.hrtime.bigint() - started) / 1000;
  };
  let times = 1;
  while (lasts(times) < RUN_US) times *= 2;
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS; run++) best = Math.min(best, lasts(times) / times);
  return best;
}

const AS_BODY = "were it a body";
const names = Object.keys(CHECKS).filter((name) => name !== AS_BODY);
const line = (first, ...cells) => console.log(first.padEnd(24) + cells.map((cell) => cell.padStart(20)).join(""));
const whole = await wholeCalls(process.argv.slice(2));
const messages = [SMALL, ...RESULT_TOOLS].map((tool) => ({
  title: tool === SMALL ? SMALL : titleOf(tool),
  bytes: Buffer.from(`${HEAD}${JSON.stringify(result(tool))}}`),
}));
// The JIT compiles each of them before any is measured.
for (const { bytes } of messages) for (const check of Object.values(CHECKS)) microseconds(check(bytes));
line("result", "whole call", ...names, "together", AS_BODY);
for (const { title, bytes } of messages) {
  const callUs = whole.get(title);
  if (callUs === undefined) throw new Error(`No call of "${title}" was measured.`);
  const all = names.map((name) => microseconds(CHECKS[name](bytes)));
  const cell = (us) => `${us.toFixed(2)} µs ${((us / callUs) * 100).toFixed(2)} %`;
  const together = all.reduce((sum, us) => sum + us, 0);
  const asBody = `${microseconds(CHECKS[AS_BODY](bytes)).toFixed(2)} µs`;
  line(title, `${callUs.toFixed(0)} µs`, ...all.map(cell), cell(together), asBody);
}
