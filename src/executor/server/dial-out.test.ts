// An executor that dials out: a gateway of the test's own takes the socket and is the client on it.

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { patternBytes } from "../../../test/fixtures/executor/origin.js";
import { RawClient } from "../../../test/fixtures/executor/raw-client.js";
import { get, LogLines, type ServedExecutor, startServed, TOKEN } from "../../../test/fixtures/executor/served.js";
import { freePort } from "../../../test/fixtures/free-port.js";
import { type DialledGateway, type DialState, dialGateway } from "./dial-out.js";

/** Quick enough for a test, told apart by their size. */
const BACKOFF = { fast: { baseMs: 5, maxMs: 50 }, slow: { baseMs: 1_000_000, maxMs: 1_000_000 } };

/** Takes executors at any path, as long as it does not refuse them. */
class FakeGateway {
  readonly clients: RawClient[] = [];
  readonly upgrades: IncomingMessage[] = [];
  refuses: number | undefined;
  readonly #server: Server = createServer();
  readonly #upgrader = new WebSocketServer({ noServer: true });

  static async start(port = 0): Promise<FakeGateway> {
    const gateway = new FakeGateway();
    gateway.#server.on("upgrade", (request, socket, head) => {
      gateway.upgrades.push(request);
      if (gateway.refuses !== undefined) socket.end(`HTTP/1.1 ${gateway.refuses} No\r\ncontent-length: 0\r\n\r\n`);
      else {
        gateway.#upgrader.handleUpgrade(request, socket, head, (ws: WebSocket) => {
          gateway.clients.push(new RawClient(ws));
        });
      }
    });
    await new Promise<void>((resolve) => gateway.#server.listen(port, "127.0.0.1", resolve));
    return gateway;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async client(n: number): Promise<RawClient> {
    await expect.poll(() => this.clients.length).toBeGreaterThanOrEqual(n);
    return this.clients[n - 1] as RawClient;
  }

  async close(): Promise<void> {
    for (const { ws } of this.clients) ws.terminate();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

let served: ServedExecutor;
let gateway: FakeGateway;
let dialled: DialledGateway | undefined;
let states: DialState[];
let log: LogLines;

beforeEach(async () => {
  served = await startServed();
  gateway = await FakeGateway.start();
  states = [];
  log = new LogLines();
});

afterEach(async () => {
  await dialled?.close();
  dialled = undefined;
  await gateway.close();
  await served.stop();
});

function dial(): void {
  dialled = dialGateway(served.executor, {
    url: `ws://127.0.0.1:${gateway.port}/executors/office?key=hidden`,
    token: TOKEN,
    log,
    onState: (state) => states.push(state),
    backoff: BACKOFF,
  });
}

test("[exec-8] an executor that dials out serves the gateway as one that is dialled", async () => {
  dial();
  const client = await gateway.client(1);
  expect(gateway.upgrades[0]?.headers.authorization).toBe(`Bearer ${TOKEN}`);
  expect(gateway.upgrades[0]?.headers["toolway-session"]).toBeUndefined();
  await client.agree({ window: 2 ** 40 });
  await client.call("http/request", get(`${served.origin.url}/bytes?n=500000`, "s"));
  await client.whole("s");
  expect(client.bytesOf("s").equals(patternBytes(500_000))).toBe(true);
  expect(states.map(({ state }) => state)).toEqual(["connecting", "connected"]);
});

test("[exec-8] [exec-4] after a cut it dials again, names its session, and the stream goes on", async () => {
  dial();
  const first = await gateway.client(1);
  const { sessionId } = await first.agree({ window: 2 ** 40 });
  first.send({ id: 1, method: "http/request", params: get(`${served.origin.url}/hold`, "s") });
  await expect.poll(() => served.origin.held.length).toBe(1);
  served.origin.held[0]?.response.write("one");
  await first.until(() => (first.bytesOf("s").length === 3 ? true : undefined));
  first.ws.terminate();
  const second = await gateway.client(2);
  expect(gateway.upgrades[1]?.headers["toolway-session"]).toBe(sessionId);
  expect(await second.agree({ from: { sessionId, received: first.received } })).toMatchObject({ resumed: true });
  served.origin.held[0]?.response.end("two");
  await second.whole("s");
  expect(Buffer.concat([first.bytesOf("s"), second.bytesOf("s")]).toString()).toBe("onetwo");
  // After a goodbye there is nothing to go on with.
  second.ws.close(1000);
  await gateway.client(3);
  expect(gateway.upgrades[2]?.headers["toolway-session"]).toBeUndefined();
});

test("[exec-8] a gateway that is not there is tried until it is, and told of once", async () => {
  await gateway.close();
  const port = await freePort();
  dialled = dialGateway(served.executor, {
    url: `ws://127.0.0.1:${port}/executors/office?key=hidden`,
    token: TOKEN,
    log,
    onState: (state) => states.push(state),
    backoff: BACKOFF,
  });
  await expect.poll(() => states.filter(({ state }) => state === "waiting").length).toBeGreaterThan(3);
  expect(log.lines.filter((line) => line.includes("ECONNREFUSED"))).toHaveLength(1);
  gateway = await FakeGateway.start(port);
  const client = await gateway.client(1);
  expect((await client.agree()).resumed).toBe(false);
  expect(log.lines.join()).not.toContain(TOKEN);
  expect(log.lines.join()).not.toContain("hidden");
});

test("a refusal says what to do, and is not tried again soon", async () => {
  for (const [status, advice] of [
    [401, "TOOLWAY_TOKEN"],
    [403, "--role executor"],
    [404, "`executors`"],
  ] as const) {
    gateway.refuses = status;
    dial();
    await expect.poll(() => states.at(-1)?.state).toBe("waiting");
    expect(states.at(-1)).toMatchObject({ why: expect.stringContaining(advice) });
    await dialled?.close();
    states.length = 0;
  }
  expect(gateway.upgrades).toHaveLength(3);
  // No room now, perhaps soon.
  gateway.refuses = 503;
  dial();
  await expect.poll(() => gateway.upgrades.length).toBeGreaterThan(5);
  gateway.refuses = undefined;
  await gateway.client(1);
});

test("close ends the connection, and the waiting for one", async () => {
  dial();
  const client = await gateway.client(1);
  await client.agree();
  await dialled?.close();
  expect((await client.end()).code).toBe(1001);
  const { length } = gateway.upgrades;
  gateway.refuses = 401;
  dial();
  await expect.poll(() => states.at(-1)?.state).toBe("waiting");
  await dialled?.close();
  expect(gateway.upgrades).toHaveLength(length + 1);
});
