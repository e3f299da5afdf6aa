// Makes its gateway hold bytes: `half` sends the beginning of an answer and, after a while, its end; `tell` says long
// things before it answers. Over stdio, or over HTTP with `--http <port>`.

import { createServer } from "node:http";
import { option } from "../../fixtures/servers/flags.mjs";
import { handshake, result, serveRaw } from "../../fixtures/servers/raw.mjs";

const tools = [
  { name: "half", inputSchema: { type: "object" } },
  { name: "tell", inputSchema: { type: "object" } },
];

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function half(out, id, { bytes, endAfterMs }) {
  out.write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`);
  out.write(Buffer.alloc(bytes, "x"));
  await sleep(endAfterMs);
  out.write('"}]}}');
}

async function answer(message, out, after) {
  if (message.id === undefined || message.method === undefined) return;
  const known = handshake(message, { name: "hoarder" });
  const args = message.params?.arguments;
  if (known !== undefined) out.write(known + after);
  else if (message.method === "tools/list") out.write(result(message, JSON.stringify({ tools })) + after);
  else if (message.params?.name === "half") {
    await half(out, message.id, args);
    out.write(after);
  } else if (message.params?.name === "tell") {
    const { progressToken } = message.params._meta;
    for (let progress = 1; progress <= args.count; progress++) {
      const params = { progressToken, progress, message: "x".repeat(args.bytes) };
      out.write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params }) + after);
      await sleep(1);
    }
    setTimeout(() => out.write(result(message, '{"content":[]}') + after), args.endAfterMs);
  } else {
    const error = { code: -32601, message: "no such method" };
    out.write(JSON.stringify({ jsonrpc: "2.0", id: message.id, error }) + after);
  }
}

const port = option("--http");
if (port === undefined) {
  // A line is written to its end before the next one begins.
  let last = Promise.resolve();
  serveRaw((_text, message) => {
    last = last.then(() => answer(message, process.stdout, "\n"));
  });
} else {
  const http = createServer(async (req, res) => {
    if (req.method !== "POST") return void res.writeHead(405).end();
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    const message = JSON.parse(Buffer.concat(chunks).toString());
    if (message.id === undefined) return void res.writeHead(202).end();
    res.writeHead(200, { "content-type": "application/json" });
    await answer(message, res, "");
    res.end();
  });
  http.listen(Number(port), "127.0.0.1", () => process.stdout.write(`http://127.0.0.1:${port}/mcp\n`));
  process.stdin.on("end", () => process.exit(0)).resume();
}
