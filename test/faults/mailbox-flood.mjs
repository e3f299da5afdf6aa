// One sender that delivers as fast as it is read, over many connections to many mailboxes that nobody empties, in a process of its
// own. Arguments: url, the sender, connections, mailboxes (box0, box1, …), bytes of a body, bytes in all. Says "over" with what became of them.

import { WebSocket } from "ws";

const [, , url, sender, connections, mailboxes, bytes, total] = process.argv;
const body = "x".repeat(Number(bytes));
/** What one connection has unread at most: it sends on when the broker reads. */
const AHEAD_BYTES = 4 * 1024 * 1024;

const counts = { delivered: 0, refused: 0, closed: 0 };
const reasons = new Set();
let left = Math.ceil(Number(total) / Number(bytes));
let number = 0;

function flood(n) {
  return new Promise((resolve) => {
    const socket = new WebSocket(url, { perMessageDeflate: false });
    let open = 0;
    let isWelcome = false;
    const more = () => {
      while (isWelcome && left > 0 && socket.bufferedAmount < AHEAD_BYTES && open < 64) {
        left--;
        open++;
        const id = `${n}-${number++}`;
        const message = { id, kind: "note", body: { text: body } };
        socket.send(JSON.stringify({ kind: "deliver", to: `box${number % Number(mailboxes)}`, message }));
      }
      if (left <= 0 && open === 0) socket.close();
    };
    const timer = setInterval(more, 5);
    socket.on("open", () => socket.send(JSON.stringify({ kind: "hello", agent: { session_id: `${sender}#${n}` } })));
    socket.on("message", (data) => {
      const { kind, reason } = JSON.parse(data.toString());
      if (kind === "welcome") isWelcome = true;
      else {
        open--;
        if (kind === "delivered") counts.delivered++;
        else {
          counts.refused++;
          if (reasons.size < 10) reasons.add(reason.replace(/[\d.]+ MiB/g, "N MiB"));
        }
      }
      more();
    });
    socket.on("error", () => {});
    socket.on("close", (code, reason) => {
      clearInterval(timer);
      if (open > 0 || !isWelcome) {
        counts.closed++;
        reasons.add(`closed ${code}: ${reason}`);
      }
      resolve();
    });
  });
}

await Promise.all(Array.from({ length: Number(connections) }, (_, n) => flood(n)));
process.stdout.write(`over ${JSON.stringify({ ...counts, reasons: [...reasons] })}\n`);
