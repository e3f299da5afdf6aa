// A crowd of idle peers of a broker, in a process of its own, so that its sockets are not the test's: each says hello at
// an address of its own, subscribes and waits. Arguments: url, how many. Says "open" when all are welcome, then how many closed.

import { WebSocket } from "ws";

const [, , url, count] = process.argv;
/** Connections that are being opened at the same time: the accept queue is not what is measured. */
const AT_ONCE = 64;

let closed = 0;

function join(n) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { perMessageDeflate: false });
    const agent = { session_id: `idle-${process.pid}-${n}` };
    socket.on("open", () => socket.send(JSON.stringify({ kind: "hello", agent })));
    socket.on("message", () => {
      socket.send('{"kind":"subscribe"}');
      resolve();
    });
    socket.on("error", reject);
    socket.on("close", (_code, reason) => {
      closed++;
      reject(new Error(`Closed early: ${reason}`));
    });
  });
}

let left = Number(count);
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    while (left-- > 0) await join(left);
  }),
);
// Before it is said: whoever hears it may ask at once.
process.on("SIGUSR2", () => process.stdout.write(`closed ${closed}\n`));
process.stdout.write("open\n");
process.stdin.on("end", () => process.exit(0)).resume();
