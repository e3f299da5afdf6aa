// Streamable HTTP in front of a peer that only speaks the old HTTP+SSE, so that the same load can drive it. Its own CPU is
// charged to nobody; the peer's latencies have it in them. node sse-front.mjs <url of the peer's event stream>
// Prints its port as one line of JSON, and ends when its stdin does.

import { Agent, createServer, get, request } from "node:http";

const peer = new URL(process.argv[2]);
const agent = new Agent({ keepAlive: true });
/** @type {Map<string, { endpoint: URL, stream: import("node:http").IncomingMessage, waiting: Map<any, any> }>} */
const sessions = new Map();

/** A session of the agent is an event stream of the peer: its first event says where to post to. */
function openSession() {
  return new Promise((resolve, reject) => {
    const asked = get(peer, { headers: { accept: "text/event-stream" } }, (stream) => {
      if (stream.statusCode !== 200) return reject(new Error(`The peer answered with ${stream.statusCode}.`));
      const session = { endpoint: undefined, stream, waiting: new Map() };
      let rest = "";
      stream.setEncoding("utf8");
      stream.on("data", (chunk) => {
        const events = (rest + chunk).split("\n\n");
        rest = events.pop();
        for (const event of events) {
          const data = event.slice(event.indexOf("data: ") + 6);
          if (!event.startsWith("event: endpoint")) deliver(session, data);
          else resolve(Object.assign(session, { endpoint: new URL(data, peer) }));
        }
      });
      stream.on("error", () => undefined);
    });
    asked.on("error", reject);
  });
}

function deliver(session, data) {
  const { id } = JSON.parse(data);
  const res = session.waiting.get(id);
  if (res === undefined) return;
  session.waiting.delete(id);
  res.setHeader("Content-Type", "application/json");
  res.end(data);
}

const http = createServer((req, res) => {
  let text = "";
  req.setEncoding("utf8");
  req.on("data", (chunk) => {
    text += chunk;
  });
  req.on("end", () => void handle(req, res, text).catch(() => res.destroy()));
});

async function handle(req, res, text) {
  const known = req.headers["mcp-session-id"];
  const session = known === undefined ? await openSession() : sessions.get(known);
  if (session === undefined) return void res.writeHead(404).end();
  const key = session.endpoint.searchParams.get("sessionId");
  if (req.method === "DELETE") {
    session.stream.destroy();
    sessions.delete(key);
    return void res.writeHead(200).end();
  }
  if (req.method !== "POST") return void res.writeHead(405).end();
  sessions.set(key, session);
  res.setHeader("Mcp-Session-Id", key);
  const { id } = JSON.parse(text);
  if (id !== undefined) session.waiting.set(id, res);
  pass(session.endpoint, text, res, id !== undefined);
}

/** The reply comes by the event stream; what the post itself is answered with only matters if it is refused. */
function pass(endpoint, text, res, hasReply) {
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
  const out = request(endpoint, { method: "POST", agent, headers }, (reply) => {
    reply.resume();
    if (!hasReply || reply.statusCode >= 400) res.writeHead(reply.statusCode).end();
  });
  out.on("error", (error) => {
    // The peer closed an idle connection just as we took it: nothing has reached it.
    if (out.reusedSocket && error.code === "ECONNRESET") pass(endpoint, text, res, hasReply);
    else res.destroy();
  });
  out.end(text);
}

http.keepAliveTimeout = 0;
http.listen(0, "127.0.0.1", () => process.stdout.write(`${JSON.stringify({ port: http.address().port })}\n`));
process.stdin.on("end", () => process.exit(0)).resume();
