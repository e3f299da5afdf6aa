// The near end of the bare tunnel: asks, and takes the pieces apart. What it says is in tunnel.mjs.

import { once } from "node:events";
import { WebSocket } from "ws";

const HEADER = 8;
const DATA = "d".charCodeAt(0);

/** @returns a way of bench/body-load.mjs */
export async function openTunnel(url) {
  const ws = new WebSocket(url, { perMessageDeflate: false, skipUTF8Validation: true });
  await once(ws, "open");
  const open = new Map();
  let lastId = 0;
  ws.on("message", (data) => {
    const id = Number(data.latin1Slice(1, HEADER));
    const reader = open.get(id);
    if (data[0] === DATA) {
      reader.onData(Buffer.from(data.latin1Slice(HEADER), "base64"));
      return;
    }
    open.delete(id);
    reader.onEnd();
  });
  ws.on("close", () => {
    for (const reader of open.values()) reader.onError(new Error("The tunnel closed."));
  });
  return (target, reader) => {
    const id = ++lastId;
    open.set(id, reader);
    ws.send(`${id} ${target}`);
  };
}
