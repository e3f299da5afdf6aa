// Sockets that the executor opens: a door of ours, a real executor that comes to it.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WebSocketServer } from "ws";
import { closeHttp, listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { dialSocket } from "../../sockets/dial.js";
import { Socket } from "../../sockets/socket.js";
import { Destinations } from "../allow/destinations.js";
import { createExecutor, type Executor } from "../server/executor.js";
import { SocketClient } from "./client.js";

let door: WebSocketServer;
let executor: Executor;
let client: SocketClient;
let states: string[];
let sockets: Socket[];
const answers: ServerResponse[] = [];
const server = createServer((_request, response) => {
  response.write("one ");
  answers.push(response);
});

beforeEach(async () => {
  await listenOnLoopback(server);
  door = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await new Promise((resolve) => door.once("listening", resolve));
  executor = createExecutor({ destinations: Destinations.parse(["127.0.0.1"]) });
  states = [];
  sockets = [];
  client = new SocketClient({ onState: () => states.push(client.state) });
  door.on("connection", (ws, request) => {
    const socket = new Socket(ws, request.socket, "none");
    sockets.push(socket);
    client.adopt(socket);
  });
});

afterEach(async () => {
  await client.close();
  await executor.close();
  door.close();
  answers.length = 0;
  await closeHttp(server);
});

const comeIn = async () => executor.serve(await dialSocket(`ws://127.0.0.1:${(door.address() as AddressInfo).port}`));
const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

describe("a client that is given its sockets", () => {
  it("[exec-8] has no executor until one comes, and is ready then", async () => {
    const early = client.request({ method: "GET", url: url(), headers: [] });
    await expect(early).rejects.toMatchObject({ code: "unavailable", sent: false });
    const waiting = client.ready();
    const impatient = client.ready(AbortSignal.timeout(1));
    await expect(impatient).rejects.toMatchObject({ name: "TimeoutError" });
    await comeIn();
    await waiting;
    expect(states).toEqual(["ready"]);
    const answer = client.request({ method: "GET", url: url(), headers: [] });
    await expect.poll(() => answers.length).toBe(1);
    answers[0]?.end("two");
    expect((await answer).body.toString()).toBe("one two");
  });

  it("[exec-4] goes on with the next socket, after a loss and while the old one seems alive", async () => {
    await comeIn();
    await client.ready();
    const session = client.sessionId;
    const { body } = await client.requestStream({ method: "GET", url: url(), headers: [] });
    sockets[0]?.destroy("cut by the test");
    await expect.poll(() => client.state).toBe("lost");
    await comeIn();
    await client.ready();
    answers[0]?.write("two ");
    // The executor dials anew though nobody told the gateway that anything is wrong.
    const second = await comeIn();
    await expect.poll(() => second.sessionId).toBe(session);
    answers[0]?.end("three");
    let text = "";
    for await (const chunk of body) text += String(chunk);
    expect(text).toBe("one two three");
    expect(client.sessionId).toBe(session);
    expect(executor.status()).toMatchObject({ sessions: 1, sockets: 1 });
  });

  it("[exec-3] is told that nobody comes back, though its timer fires before the clock says so", async () => {
    const hasty = new SocketClient({ retentionMs: 30 });
    client = hasty;
    await comeIn();
    await hasty.ready();
    const { body } = await hasty.requestStream({ method: "GET", url: url(), headers: [] });
    // As timers do: a third of them fire in the millisecond before.
    const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now());
    try {
      sockets[0]?.destroy("cut by the test");
      await expect(body.toArray()).rejects.toMatchObject({ code: "disconnected", sent: true });
      expect(hasty.state).toBe("connecting");
    } finally {
      clock.mockRestore();
    }
  });

  it("[exec-8] takes none once it is closed", async () => {
    await comeIn();
    await client.ready();
    await client.close();
    const late = await comeIn();
    expect(await late.closed).toContain("the client was closed");
    expect(states.at(-1)).toBe("closed");
  });
});
