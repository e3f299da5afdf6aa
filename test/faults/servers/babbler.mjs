// A server whose stdout is full of garbage: beside each good answer it writes lines that are none, or nearly one.
// Started with: how many lines an `echo` brings along. The garbage never answers a call: its ids are never ours.

import { handshake, result, serveRaw } from "../../fixtures/servers/raw.mjs";

const [, , linesPerCall = "0", seed = "1"] = process.argv;
const tools = [{ name: "babble", inputSchema: { type: "object" } }];

let state = Number(seed) >>> 0;
function next() {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = Math.imul(state ^ (state >>> 15), state | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
}
const int = (below) => Math.floor(next() * below);
const pick = (from) => from[int(from.length)];

/** Neither a number that we could have been given, nor one written as a string. */
const ids = [
  "-1",
  "0",
  "1e15",
  "0.5",
  '"x"',
  '"__proto__"',
  "null",
  "true",
  "{}",
  "[]",
  '""',
  "9007199254740993",
  "1e999",
];
const methods = [
  ...["notifications/progress", "notifications/cancelled", "notifications/message", "notifications/resources/updated"],
  ...["notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/elicitation/complete"],
  ...[
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "ping",
    "",
    "__proto__",
    "constructor",
    "tools/call",
  ],
];
const values = [
  "null",
  "true",
  "-0",
  "1e999",
  '""',
  '"\\u0000"',
  '"\\ud800"',
  "{}",
  "[]",
  '{"__proto__":{"x":1}}',
  "[[[[]]]]",
];

function line() {
  const params = `{"progressToken":${pick(ids)},"requestId":${pick(ids)},"uri":${pick(values)},"level":"debug","data":${pick(values)}}`;
  switch (int(12)) {
    case 0:
      return `{"jsonrpc":"2.0","id":${pick(ids)},"result":${pick(values)}}`;
    case 1:
      return `{"result":${pick(values)},"jsonrpc":"2.0","id":${pick(ids)}}`;
    case 2:
      return `{"jsonrpc":"2.0","id":${pick(ids)},"error":${pick(['{"code":-1,"message":"x"}', ...values])}}`;
    case 3:
    case 4:
      return `{"jsonrpc":"2.0","method":"${pick(methods)}","params":${params}}`;
    case 5:
      return `{"jsonrpc":"2.0","id":${pick(ids)},"method":"${pick(methods)}","params":${pick([params, ...values])}}`;
    case 6:
      return `[${line()},${line()}]`;
    case 7: {
      const whole = line();
      return whole.slice(0, int(whole.length));
    }
    case 8:
      return pick([
        "DEBUG: ready",
        "{",
        "}",
        "[",
        "\u001b[31mred\u001b[0m",
        "{{{",
        "\ufeff{}",
        "\r",
        " ",
        '{"jsonrpc":"2.0"}',
      ]);
    case 9:
      return "[".repeat(int(5000));
    case 10:
      return `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"${"x".repeat(int(5000))}"}}`;
    default:
      return Buffer.from(Array.from({ length: int(200) }, () => int(256)))
        .toString("latin1")
        .replace(/\n/g, "");
  }
}

serveRaw((_text, message, peer) => {
  if (message.id === undefined || message.method === undefined) return;
  const known = handshake(message, { name: "babbler", capabilities: { tools: { listChanged: true }, logging: {} } });
  if (known !== undefined) peer.send(known);
  else if (message.method === "tools/list") peer.send(result(message, JSON.stringify({ tools })));
  else if (message.method === "tools/call") {
    const before = int(Number(linesPerCall));
    for (let n = 0; n < before; n++) peer.send(line());
    peer.send(result(message, JSON.stringify({ content: [{ type: "text", text: message.params.arguments.word }] })));
    for (let n = before; n < Number(linesPerCall); n++) peer.send(line());
  } else peer.send(result(message, "{}"));
});
