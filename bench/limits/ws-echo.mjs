// The limit for frames over a WebSocket: says what it was told.
// node ws-echo.mjs

import { WebSocketServer } from "ws";

const TEXT = { binary: false };

const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false, skipUTF8Validation: true });
server.on("connection", (ws) => ws.on("message", (data) => ws.send(data, TEXT)));
server.on("listening", () => process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`));
