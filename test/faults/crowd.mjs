// A crowd of idle agents in a process of its own, so that its sockets are not the test's: each begins a session, opens
// its GET stream and waits. Arguments: port, how many. Says "open" when all streams are open, then how many closed.

import { connect } from "node:net";

const [, , port, count] = process.argv;
/** Connections that are being opened at the same time: the accept queue is not what is measured. */
const AT_ONCE = 64;

const body = JSON.stringify({
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "crowd", version: "1" } },
});
const HOST = `Host: 127.0.0.1:${port}\r\n`;
const POST = `POST /mcp HTTP/1.1\r\n${HOST}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const GET = `GET /mcp HTTP/1.1\r\n${HOST}Accept: text/event-stream\r\nMcp-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: `;

let closed = 0;

function join() {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), "127.0.0.1", () => socket.write(POST));
    let said = "";
    let asked = false;
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => {
      if (said === undefined) return;
      said += chunk;
      const session = /mcp-session-id: (\S+)/i.exec(said)?.[1];
      if (!asked && session !== undefined && said.endsWith("}")) {
        asked = true;
        said = "";
        socket.write(`${GET}${session}\r\n\r\n`);
      } else if (asked && said.includes("\r\n\r\n")) {
        if (!said.startsWith("HTTP/1.1 200")) reject(new Error(said.slice(0, 300)));
        said = undefined;
        resolve();
      }
    });
    socket.on("error", reject);
    socket.on("close", () => {
      closed++;
      reject(new Error(`Closed early: ${said}`));
    });
  });
}

let left = Number(count);
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    while (left-- > 0) await join();
  }),
);
// Before it is said: whoever hears it may ask at once.
process.on("SIGUSR2", () => process.stdout.write(`closed ${closed}\n`));
process.stdout.write("open\n");
process.stdin.on("end", () => process.exit(0)).resume();
