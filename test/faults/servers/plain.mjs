// Answers every request at once, whatever is in it: `echo` gives its arguments back, unknown methods are refused.

import { handshake, result, serveRaw } from "../../fixtures/servers/raw.mjs";

const tools = [{ name: "echo", inputSchema: { type: "object" } }];

serveRaw((_text, message, peer) => {
  if (message.id === undefined || message.method === undefined) return;
  const known = handshake(message, { name: "plain" });
  if (known !== undefined) peer.send(known);
  else if (message.method === "tools/list") peer.send(result(message, JSON.stringify({ tools })));
  else if (message.method === "tools/call") {
    const text = JSON.stringify(message.params?.arguments ?? null);
    peer.send(result(message, JSON.stringify({ content: [{ type: "text", text }] })));
  } else {
    const error = { code: -32601, message: "no such method" };
    peer.send(JSON.stringify({ jsonrpc: "2.0", id: message.id, error }));
  }
});
