// One kind of trouble for each argument: `hangs` in every call, `floods` its stdout without end, `dies_at_start`,
// `dies_in_calls`, `wrong_ids` answers what nobody asked. Its tool is `echo`, as the plain server's.

import { handshake, result, serveRaw } from "../../fixtures/servers/raw.mjs";

const trouble = process.argv[2];
if (trouble === "dies_at_start") process.exit(1);

const tools = [{ name: "echo", inputSchema: { type: "object" } }];
const NOISE = `${"x".repeat(99)}\n`.repeat(100);

/** As fast as the pipe takes it, and no faster: the trouble is the reader's. */
function flood() {
  if (process.stdout.write(NOISE)) setImmediate(flood);
  else process.stdout.once("drain", flood);
}

serveRaw((_text, message, peer) => {
  if (message.id === undefined || message.method === undefined) return;
  const known = handshake(message, { name: trouble });
  if (known !== undefined) return peer.send(known);
  if (message.method === "tools/list") {
    peer.send(result(message, JSON.stringify({ tools })));
    if (trouble === "floods") flood();
    return;
  }
  if (message.method !== "tools/call" || trouble === "hangs") return;
  if (trouble === "dies_in_calls") process.kill(process.pid, "SIGKILL");
  const id = trouble === "wrong_ids" ? message.id + 1_000_000 : message.id;
  peer.send(result({ ...message, id }, '{"content":[{"type":"text","text":"troubled"}]}'));
});
