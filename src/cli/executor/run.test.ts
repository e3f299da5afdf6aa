// `toolway executor` at work, in process: real sockets at both of its ends, told to stop as a signal does.

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WebSocketServer } from "ws";
import { fakeGateway } from "../../../test/fixtures/fake-gateway.js";
import { freePort } from "../../../test/fixtures/free-port.js";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { closeHttp, listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { SocketClient } from "../../executor/client/client.js";
import { type ConnectOptions, connectExecutor, type ExecutorClient } from "../../executor/client/connect.js";
import { Socket } from "../../sockets/socket.js";
import { replaceGatewayPort } from "../gateway/port.js";
import { Stopped } from "../line/io.js";
import { runCli } from "../program.js";

const TOKEN = "a-token-of-enough-length";
/** Only reached where a test fails. */
const WAIT = { timeout: 60_000, interval: 20 };

let origin: Server;
let originPort: number;
const closers: (() => unknown)[] = [];

beforeEach(async () => {
  origin = createServer((request, response) => {
    if (request.url === "/endless") response.write("first ");
    else response.end(`${request.method} ${request.url}`);
  });
  originPort = await listenOnLoopback(origin);
});

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await closeHttp(origin);
});

interface Running {
  readonly out: () => string;
  readonly err: () => string;
  /** The lines of --json. */
  readonly events: () => Record<string, unknown>[];
  /** As Ctrl-C and SIGTERM do; the exit code. */
  stop(by?: "SIGINT" | "SIGTERM"): Promise<number>;
  readonly ended: Promise<number>;
}

function start(line: string, env: Record<string, string> = { TOOLWAY_TOKEN: TOKEN }): Running {
  const stop = new AbortController();
  const { io, out, err } = heldIo({ env, signal: stop.signal });
  const ended = runCli(["executor", ...line.split(" ")], io);
  const running: Running = {
    out,
    err,
    events: () =>
      out()
        .split("\n")
        .filter((text) => text !== "")
        .map((text) => JSON.parse(text) as Record<string, unknown>),
    stop(by = "SIGTERM") {
      stop.abort(new Stopped(by));
      return ended;
    },
    ended,
  };
  closers.push(() => running.stop());
  return running;
}

async function listening(running: Running): Promise<string> {
  return vi.waitFor(() => {
    const url = /ws:\/\/[^\s"]+/.exec(running.out())?.[0];
    expect(url, running.err()).toBeDefined();
    return url ?? "";
  }, WAIT);
}

async function connected(options: ConnectOptions): Promise<ExecutorClient> {
  const client = await connectExecutor(options);
  closers.push(() => client.close());
  return client;
}

const textOf = async (client: { fetch: ExecutorClient["fetch"] }, url: string): Promise<string> =>
  (await client.fetch(url)).text();

describe("--listen", () => {
  it("[exec-7] prints where it is, serves whoever has the token, and nobody else", async () => {
    const running = start(`--listen ws://127.0.0.1:0 --allow 127.0.0.1:${originPort}`);
    const url = await listening(running);
    expect(url).not.toContain(":0");
    expect(running.out()).toContain(`"url": "${url}"`);
    expect(running.out()).not.toContain(TOKEN);
    await expect(connectExecutor({ url })).rejects.toThrow("401");
    await expect(connectExecutor({ url, token: "another-token-of-enough-length" })).rejects.toThrow("401");
    const client = await connected({ url, token: TOKEN });
    expect(await textOf(client, `http://127.0.0.1:${originPort}/page`)).toBe("GET /page");
    expect(await running.stop("SIGINT")).toBe(0);
    expect(running.out() + running.err()).not.toContain("another-token");
  });

  it("[exec-6] logs what it refuses by its host, and no more of it", async () => {
    const running = start(`--listen ws://127.0.0.1:0 --allow 127.0.0.1:${originPort} --json`);
    const client = await connected({ url: await listening(running), token: TOKEN });
    const headers = [{ name: "x-key", value: "hunter2-header" }];
    const url = "http://wiki.internal:81/hunter2-path?key=hunter2-query";
    await expect(client.request({ method: "GET", url, headers })).rejects.toThrow("--allow wiki.internal:81");
    await vi.waitFor(() => expect(running.err()).toContain("wiki.internal:81"), WAIT);
    expect(running.events()).toContainEqual(expect.objectContaining({ event: "warning", host: "wiki.internal:81" }));
    expect(running.out() + running.err()).not.toContain("hunter2");
  });

  it("[exec-3] stops when told to: what is under way ends with an error, and it exits with 0", async () => {
    const running = start(`--listen ws://127.0.0.1:0 --allow 127.0.0.1:${originPort} --json --drain 0.1`);
    const client = await connected({ url: await listening(running), token: TOKEN });
    const url = `http://127.0.0.1:${originPort}/endless`;
    const { body } = await client.requestStream({ method: "GET", url, headers: [] });
    const read = (async () => {
      let text = "";
      for await (const chunk of body) {
        text += chunk;
        if (text === "first ") void running.stop();
      }
      return text;
    })();
    // Told by the executor, not concluded from its silence.
    await expect(read).rejects.toMatchObject({ code: "disconnected", message: expect.stringContaining("stops") });
    expect(await running.ended).toBe(0);
    const told = running.events();
    expect(told.map(({ event }) => event)).toEqual(["listening", "connected", "disconnected", "stopped"]);
    expect(told[0]).toMatchObject({ pid: process.pid, allow: [`127.0.0.1:${originPort}`], auth: true });
    await vi.waitFor(async () => {
      expect(await new Promise((done) => origin.getConnections((_error, count) => done(count)))).toBe(0);
    }, WAIT);
  });

  it("goes without a token on a loopback address, and warns", async () => {
    const running = start(`--listen 127.0.0.1:0 --allow 127.0.0.1:${originPort} --no-auth`, {});
    const client = await connected({ url: await listening(running) });
    expect(running.out()).toContain("warning: no token is asked for");
    expect(await textOf(client, `http://127.0.0.1:${originPort}/`)).toBe("GET /");
  });

  it("says what to do where something else listens", async () => {
    const running = start(`--listen ws://127.0.0.1:${originPort} --allow a.b`);
    expect(await running.ended).toBe(1);
    expect(running.err()).toMatch(/Cannot listen on 127\.0\.0\.1:\d+\.\n.*another port/);
    expect(running.out()).toBe("");
  });
});

interface Gateway {
  readonly client: SocketClient;
  readonly port: number;
  /** The upgrades that came. */
  readonly seen: IncomingMessage[];
}

/** Takes executors in, as a gateway does at /executors/<name>. */
async function gateway(port = 0): Promise<Gateway> {
  const client = new SocketClient();
  const seen: IncomingMessage[] = [];
  const door = new WebSocketServer({ port, host: "127.0.0.1" });
  door.on("connection", (ws, request) => {
    seen.push(request);
    client.adopt(new Socket(ws, request.socket, "none"));
  });
  await new Promise((done) => door.once("listening", done));
  closers.push(
    () => new Promise((done) => door.close(done)),
    () => client.close(),
  );
  return { client, port: (door.address() as AddressInfo).port, seen };
}

it("a port that a gateway of the same user has is refused by that gateway's name [told-why]", async () => {
  const endpoint = `http://127.0.0.1:${originPort}/mcp`;
  const demo = { pid: 4711, config: undefined, stateDir: "/state/default", endpoint, startedAt: "2026-01-01" };
  fakeGateway({}, { list: async () => [demo] }, false);
  closers.push(() => replaceGatewayPort(undefined));
  const running = start(`--listen ws://127.0.0.1:${originPort} --allow a.b`);
  expect(await running.ended).toBe(1);
  expect(running.err()).toContain(
    `Port ${originPort} is taken: the built-in demo listens at ${endpoint}, process 4711.`,
  );
});

describe("--connect", () => {
  it("[exec-8] dials every gateway with the token, and does the requests of each", async () => {
    const [one, two] = [await gateway(), await gateway()];
    const running = start(
      `--connect ws://127.0.0.1:${one.port}/executors/office --connect http://127.0.0.1:${two.port}/executors/lab` +
        ` --allow 127.0.0.1:${originPort} --json`,
    );
    await Promise.all([one.client.ready(), two.client.ready()]);
    expect(await textOf(one.client, `http://127.0.0.1:${originPort}/one`)).toBe("GET /one");
    expect(await textOf(two.client, `http://127.0.0.1:${originPort}/two`)).toBe("GET /two");
    expect(one.seen[0]).toMatchObject({ url: "/executors/office", headers: { authorization: `Bearer ${TOKEN}` } });
    expect(two.seen[0]?.url).toBe("/executors/lab");
    expect(await running.stop()).toBe(0);
    const told = running.events().filter(({ event }) => event === "connected");
    expect(told).toHaveLength(2);
    expect(told).toContainEqual(expect.objectContaining({ gateway: `ws://127.0.0.1:${one.port}/executors/office` }));
    expect(told).toContainEqual(expect.objectContaining({ gateway: `ws://127.0.0.1:${two.port}/executors/lab` }));
    expect(running.out() + running.err()).not.toContain(TOKEN);
  });

  it("[exec-8] waits for a gateway that is not there yet, and says so", async () => {
    const port = await freePort();
    const running = start(`--connect ws://127.0.0.1:${port}/executors/office --allow 127.0.0.1:${originPort} --json`);
    await vi.waitFor(() => expect(running.err()).toContain("ECONNREFUSED"), WAIT);
    expect(running.events()).toContainEqual(
      expect.objectContaining({ event: "disconnected", nextTryInMs: expect.any(Number) }),
    );
    const { client } = await gateway(port);
    await client.ready(AbortSignal.timeout(WAIT.timeout));
    expect(await textOf(client, `http://127.0.0.1:${originPort}/late`)).toBe("GET /late");
  });

  it("stops at once while it waits for a gateway", async () => {
    const running = start("--connect ws://127.0.0.1:9/executors/office --allow a.b");
    await vi.waitFor(() => expect(running.err()).toContain("no connection to the gateway"), WAIT);
    expect(running.out()).toContain("ws://127.0.0.1:9/executors/office");
    expect(await running.stop("SIGINT")).toBe(0);
  });
});
