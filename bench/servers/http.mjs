// A tiny MCP server over HTTP, under any path: node http.mjs --era legacy|modern --answers json|sse [--tools N] [--results]
// Prints its port as one line of JSON, and ends when its stdin does.

import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { answering } from "./answers.mjs";

const { values } = parseArgs({
  options: {
    era: { type: "string", default: "legacy" },
    answers: { type: "string", default: "json" },
    tools: { type: "string", default: "2" },
    results: { type: "boolean", default: false },
  },
});
const answer = answering({ era: values.era, tools: Number(values.tools), results: values.results });
const sse = values.answers === "sse";
const SSE_HEAD = { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" };

const server = createServer((req, res) => {
  if (req.method !== "POST") return void res.writeHead(405).end();
  let text = "";
  req.setEncoding("utf8");
  req.on("data", (chunk) => {
    text += chunk;
  });
  req.on("end", () => reply(res, JSON.parse(text)));
});
// The load and the targets keep their connections over pauses between rounds; closing them would race with requests.
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));
process.stdin.on("end", () => process.exit(0)).resume();

function reply(res, message) {
  const pieces = answer(message);
  if (pieces === undefined) return void res.writeHead(202).end();
  const [head, rest] = pieces;
  if (!sse) {
    const length = Buffer.byteLength(head) + (rest?.length ?? 0);
    res.writeHead(200, { "Content-Type": "application/json", "Content-Length": length });
    if (rest === undefined) return void res.end(head);
    res.write(head);
    return void res.end(rest);
  }
  res.writeHead(200, SSE_HEAD);
  if (rest === undefined) return void res.end(`event: message\ndata: ${head}\n\n`);
  res.write(`event: message\ndata: ${head}`);
  res.write(rest);
  res.end("\n\n");
}
