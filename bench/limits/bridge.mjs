// The limit for calls over stdio: node:http in front of one child. The id, which finds the request, is looked for in the
// first bytes of a line; the rest of the line is passed on unread, piece by piece as it comes.
// node bridge.mjs <command> [args…]

import { spawn } from "node:child_process";
import { serve } from "./serve.mjs";

const [, , command, ...args] = process.argv;
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
child.on("exit", () => process.exit(1));
const waiting = new Map();

/** The id stands among so many bytes, as all servers write it. */
const HEAD_BYTES = 60;
const ID = /"id":(\d+)/;

/** The start of a line that is too short to show its id. */
let head = Buffer.alloc(0);
/** Whom the line under way is for; undefined between lines, null where nobody waits for it. */
let reader;

child.stdout.on("data", (chunk) => {
  let start = 0;
  while (start < chunk.length) {
    const end = chunk.indexOf(10, start);
    const piece = chunk.subarray(start, end < 0 ? chunk.length : end);
    if (reader === undefined) begin(piece, end >= 0);
    else if (end >= 0) reader?.end(piece);
    else reader?.write(piece);
    if (end < 0) return;
    reader = undefined;
    start = end + 1;
  }
});

function begin(piece, isWhole) {
  const first = head.length === 0 ? piece : Buffer.concat([head, piece]);
  if (!isWhole && first.length < HEAD_BYTES) {
    head = first;
    return;
  }
  head = Buffer.alloc(0);
  const id = ID.exec(first.latin1Slice(0, HEAD_BYTES))?.[1];
  const res = waiting.get(id);
  waiting.delete(id);
  reader = res ?? null;
  if (res === undefined) return;
  if (isWhole) {
    res.writeHead(200, { "Content-Type": "application/json", "Content-Length": first.length });
    res.end(first);
  } else {
    res.writeHead(200, { "Content-Type": "application/json" });
    res.write(first);
  }
}

serve((req, res) => {
  const chunks = [];
  req.on("data", (chunk) => chunks.push(chunk));
  req.on("end", () => {
    const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
    const { id } = JSON.parse(body.toString());
    if (id === undefined) res.writeHead(202).end();
    else waiting.set(String(id), res);
    child.stdin.write(body);
    child.stdin.write("\n");
  });
});
