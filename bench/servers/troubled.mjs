// A tiny MCP server on stdin and stdout that is in trouble: node troubled.mjs TROUBLE
// `hangs` in every call, `floods` its stdout without end, `dies-at-start`, `dies-in-calls`, `wrong-ids` answers what
// nobody asked.

import { createInterface } from "node:readline";
import { answering } from "./answers.mjs";

/** Answers differ by far from every id that is in use. */
const WRONG_BY = 1_000_000_000;
const NOISE = `${"x".repeat(99)}\n`.repeat(100);

const trouble = process.argv[2];
if (trouble === "dies-at-start") process.exit(1);

const answer = answering({ era: "legacy", tools: 2 });

/** As fast as the pipe takes it. */
function flood() {
  if (process.stdout.write(NOISE)) setImmediate(flood);
  else process.stdout.once("drain", flood);
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  const isCall = message.method === "tools/call";
  if (isCall && trouble === "hangs") continue;
  if (isCall && trouble === "dies-in-calls") process.kill(process.pid, "SIGKILL");
  if (isCall && trouble === "wrong-ids") message.id += WRONG_BY;
  const pieces = answer(message);
  if (pieces !== undefined) process.stdout.write(`${pieces[0]}\n`);
  if (message.method === "tools/list" && trouble === "floods") flood();
}
process.exit(0);
