// Answers `fill` with a result of so many bytes: over HTTP written piece by piece, no faster than it is read, as JSON
// or as one event (`--sse`); over stdio as one line.

import { createServer } from "node:http";
import { option } from "../../fixtures/servers/flags.mjs";
import { handshake, result, serveRaw } from "../../fixtures/servers/raw.mjs";

const PIECE = Buffer.alloc(64 * 1024, "x");
const tools = [
  { name: "fill", inputSchema: { type: "object" } },
  { name: "pid", inputSchema: { type: "object" } },
];

/** `out` is a response or stdout. */
async function fill(out, id, bytes) {
  const gone = new Promise((resolve) => out.once("close", resolve));
  const write = async (piece) => {
    if (!out.write(piece)) await Promise.race([new Promise((resolve) => out.once("drain", resolve)), gone]);
  };
  await write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`);
  for (let left = bytes; left > 0 && !out.destroyed; left -= PIECE.length) {
    await write(left < PIECE.length ? PIECE.subarray(0, left) : PIECE);
  }
  await write('"}]}}');
}

function simple(message) {
  if (message.method === "tools/list") return result(message, JSON.stringify({ tools }));
  if (message.params?.name === "pid") return result(message, `{"content":[{"type":"text","text":"${process.pid}"}]}`);
  if (message.params?.name === "fill") return undefined;
  const error = { code: -32601, message: "no such method" };
  return handshake(message, { name: "large" }) ?? JSON.stringify({ jsonrpc: "2.0", id: message.id, error });
}

const port = option("--http");
if (port === undefined) {
  // One line after another.
  let last = Promise.resolve();
  serveRaw((_text, message, peer) => {
    if (message.id === undefined || message.method === undefined) return;
    last = last.then(async () => {
      const answer = simple(message);
      if (answer !== undefined) return peer.send(answer);
      await fill(process.stdout, message.id, message.params.arguments.bytes);
      process.stdout.write("\n");
    });
  });
} else {
  const http = createServer(async (req, res) => {
    if (req.method !== "POST") return void res.writeHead(405).end();
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    const message = JSON.parse(Buffer.concat(chunks).toString());
    if (message.id === undefined) return void res.writeHead(202).end();
    const answer = simple(message);
    if (answer !== undefined) return void res.writeHead(200, { "content-type": "application/json" }).end(answer);
    const sse = process.argv.includes("--sse");
    res.writeHead(200, { "content-type": sse ? "text/event-stream" : "application/json" });
    if (sse) res.write("event: message\ndata: ");
    await fill(res, message.id, message.params.arguments.bytes);
    res.end(sse ? "\n\n" : undefined);
  });
  http.listen(Number(port), "127.0.0.1", () => process.stdout.write(`http://127.0.0.1:${port}/mcp\n`));
  process.stdin.on("end", () => process.exit(0)).resume();
}
