// A tiny HTTP server for the workload `executor`: /small answers a small JSON, /body/<bytes> a body of that length.
// Prints its port as one line of JSON, and ends when its stdin does.

import { createServer } from "node:http";

/** As much as a socket brings at once. */
const PIECE = 64 * 1024;
const piece = Buffer.alloc(PIECE);
// Each place in a piece is told from its neighbours; who reads it knows the rule.
for (let i = 0; i < PIECE; i++) piece[i] = (i * 31 + (i >> 8)) & 0xff;
const small = Buffer.from(JSON.stringify({ ok: true, text: "x".repeat(100) }));

const server = createServer((req, res) => {
  if (req.url === "/small") {
    res.writeHead(200, { "Content-Type": "application/json", "Content-Length": small.length });
    res.end(small);
    return;
  }
  let left = Number(req.url.slice("/body/".length));
  res.writeHead(200, { "Content-Type": "application/octet-stream", "Content-Length": left });
  const write = () => {
    while (left > 0) {
      const next = left >= PIECE ? piece : piece.subarray(0, left);
      left -= next.length;
      if (!res.write(next)) break;
    }
    if (left === 0) res.end();
  };
  res.on("drain", () => left > 0 && write());
  write();
});
// Pauses between rounds must not close connections under a request.
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));
process.stdin.on("end", () => process.exit(0)).resume();
