// The limit for HTTP through a WebSocket: requests come as `<id> <url>`, answers go back in text frames of a header of
// eight letters (a kind and the id) and base64. No JSON, no credit, no numbers, no bounds but the socket's own.
// node tunnel.mjs

import { Agent, request } from "node:http";
import { WebSocketServer } from "ws";

/** As many letters as an id and its kind have; see tunnel-near.mjs. */
const HEADER = 8;
/** More unwritten than this, and nobody reads from the network; half of it, and they go on. */
const FULL_BYTES = 8 * 1024 * 1024;

const TEXT = { binary: false };

const agent = new Agent({ keepAlive: true });
const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false, skipUTF8Validation: true });

server.on("connection", (ws) => {
  const paused = new Set();
  const written = () => {
    if (paused.size === 0 || ws.bufferedAmount > FULL_BYTES / 2) return;
    for (const reply of paused) reply.resume();
    paused.clear();
  };
  ws.on("message", (data) => {
    const text = data.toString();
    const at = text.indexOf(" ");
    const id = text.slice(0, at).padStart(HEADER - 1, "0");
    const out = request(text.slice(at + 1), { agent }, (reply) => {
      reply.on("data", (chunk) => {
        // As bytes: a text put together of two is copied once more before it is written.
        const frame = Buffer.allocUnsafeSlow(HEADER + Math.ceil(chunk.length / 3) * 4);
        frame.latin1Write(`d${id}`, 0);
        frame.latin1Write(chunk.toString("base64"), HEADER);
        ws.send(frame, TEXT, written);
        if (ws.bufferedAmount <= FULL_BYTES) return;
        reply.pause();
        paused.add(reply);
      });
      reply.on("end", () => ws.send(`e${id}`));
    });
    out.on("error", () => ws.terminate());
    out.end();
  });
});
server.on("listening", () => console.log(JSON.stringify({ port: server.address().port })));
process.stdin.on("end", () => process.exit(0)).resume();
