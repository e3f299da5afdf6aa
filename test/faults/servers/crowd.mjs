// Has as many tools as it is told (`crowd.mjs <count>`), on one page; with `--words`, each is described by 30 words of its own,
// and with `--long` by 2,000 characters.

import { handshake, result, serveRaw } from "../../fixtures/servers/raw.mjs";

const hasWords = process.argv.includes("--words");
const WORDS = 30;
const repeats = process.argv.includes("--long") ? 100 : 10;

/** Words that have little in common: a step through all numbers of some letters. */
const word = (n) => ((n * 2_654_435_761) % 2 ** 41).toString(36);
const words = (n) => Array.from({ length: WORDS }, (_, k) => word(n * WORDS + k + 1)).join(" ");

const tool = (n) => ({
  name: `tool_${n}`,
  description: hasWords ? words(n) : `Does the thing number ${n}. `.repeat(repeats),
  inputSchema: {
    type: "object",
    properties: {
      a: { type: "string", description: "x".repeat(100) },
      b: { type: "array", items: { type: "string" } },
    },
    required: ["a"],
  },
});

const tools = Array.from({ length: Number(process.argv[2]) }, (_, n) => tool(n));

serveRaw((_text, message, peer) => {
  if (message.id === undefined || message.method === undefined) return;
  const known = handshake(message, { name: "crowd" });
  if (known !== undefined) peer.send(known);
  else if (message.method === "tools/list") peer.send(result(message, JSON.stringify({ tools })));
  else
    peer.send(JSON.stringify({ jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "no such method" } }));
});
