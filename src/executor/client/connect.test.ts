// How a first connection fails: with an ExecutorError that has all that the dialling found out.

import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { afterEach, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { ExecutorError } from "../wire/types.js";
import { connectExecutor } from "./connect.js";

const undo: (() => void)[] = [];
afterEach(() => {
  for (const one of undo.splice(0)) one();
});

async function portOf(server: Server | TcpServer): Promise<number> {
  const port = await listenOnLoopback(server);
  undo.push(() => server.close());
  return port;
}

const failureAt = (port: number): Promise<unknown> =>
  connectExecutor({ url: `ws://127.0.0.1:${port}` }).catch((reason: unknown) => reason);

it("tells the network's own code where nobody listens", async () => {
  const port = await portOf(createTcpServer());
  for (const one of undo.splice(0)) one();
  const error = await failureAt(port);
  expect(error).toBeInstanceOf(ExecutorError);
  expect(error).toMatchObject({
    code: "unavailable",
    sent: false,
    networkCode: "ECONNREFUSED",
    status: undefined,
    message: expect.stringMatching(/is it running/),
  });
});

it("tells the status that came in place of a WebSocket", async () => {
  const server = createServer();
  server.on("upgrade", (_request, socket) => socket.end("HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n"));
  const error = await failureAt(await portOf(server));
  expect(error).toBeInstanceOf(ExecutorError);
  expect(error).toMatchObject({ code: "unavailable", sent: false, networkCode: undefined, status: 401 });
});

it("ends with the reason of its signal", async () => {
  const port = await portOf(createTcpServer(() => {}));
  const control = new AbortController();
  const connecting = connectExecutor({ url: `ws://127.0.0.1:${port}`, signal: control.signal });
  const ending = expect(connecting).rejects.toThrow("enough");
  control.abort(new Error("enough"));
  await ending;
});

it("refuses a WebSocket that speaks something else", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await new Promise((resolve) => server.once("listening", resolve));
  undo.push(() => server.close());
  server.on("connection", (ws) => ws.send("hello, who are you?"));
  const { port } = server.address() as AddressInfo;
  expect(await failureAt(port)).toMatchObject({
    message: expect.stringMatching(/does not speak an executor's protocol/),
  });
});
