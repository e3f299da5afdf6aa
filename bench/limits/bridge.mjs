// The limit for calls over stdio: node:http in front of one child; lines parsed for their id, which finds the request.
// node bridge.mjs <command> [args…]

import { spawn } from "node:child_process";
import { serve } from "./serve.mjs";

const [, , command, ...args] = process.argv;
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
child.on("exit", () => process.exit(1));
const waiting = new Map();

/** Pieces of a line that is not yet whole. */
let pieces = [];
child.stdout.on("data", (chunk) => {
  let start = 0;
  for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
    pieces.push(chunk.subarray(start, end));
    answer(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces));
    pieces = [];
    start = end + 1;
  }
  if (start < chunk.length) pieces.push(chunk.subarray(start));
});

function answer(line) {
  const { id } = JSON.parse(line.toString());
  const res = waiting.get(id);
  if (res === undefined) return;
  waiting.delete(id);
  res.writeHead(200, { "Content-Type": "application/json", "Content-Length": line.length });
  res.end(line);
}

serve((req, res) => {
  const chunks = [];
  req.on("data", (chunk) => chunks.push(chunk));
  req.on("end", () => {
    const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
    const { id } = JSON.parse(body.toString());
    if (id === undefined) res.writeHead(202).end();
    else waiting.set(id, res);
    child.stdin.write(body);
    child.stdin.write("\n");
  });
});
