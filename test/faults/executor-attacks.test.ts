// A hostile client at an executor: whatever it sends, the executor lives, its memory stays bounded, and others are served.

import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAX_MESSAGE_BYTES } from "../../src/sockets/limits.js";
import { type ExecutorProcess, startExecutor } from "../e2e/executor-process.js";
import { freePort, isAlive, temporaryDirectory, until } from "../e2e/harness.js";
import { RawClient } from "../fixtures/executor/raw-client.js";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";
import { figure } from "./length.js";
import { linux, MB, megabytes, peakRss, report, resetPeak, rss } from "./measure.js";
import { expectShortOwnTurn, type Turns, watchedTurns } from "./turns.js";

const TOKEN = "a-token-of-the-tests-0123456789";
const KIB = 1024;
const MIB = 1024 * KIB;
/** A message of the largest size is held as bytes, as text and as what it says; what is left after it is the heap's. */
const MAX_GROWTH = 400 * MB;

let executor: ExecutorProcess;
let port: number;
let bystander: RawClient;
let origin: Server;
let base: string;
let turns: Turns;

beforeAll(async () => {
  origin = createServer((req, res) => {
    if (req.url === "/never") return;
    if (req.url === "/bytes") {
      // Byte by byte, as HTTP has it: six bytes on the wire for each.
      const piece = "1\r\na\r\n".repeat(10_000);
      const socket = res.socket;
      socket?.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
      let left = BYTE_PIECES;
      const more = (): void => {
        while (left-- > 0) if (socket?.write(piece) === false) return void socket.once("drain", more);
        socket?.end("0\r\n\r\n");
      };
      more();
      return;
    }
    if (req.url === "/endless") {
      const more = (): void => {
        while (!res.destroyed && res.write(Buffer.alloc(64 * KIB)));
      };
      res.on("drain", more);
      more();
      return;
    }
    req.resume();
    res.end("fine");
  });
  base = `http://127.0.0.1:${await listenOnLoopback(origin)}`;
  port = await freePort();
  turns = watchedTurns(await temporaryDirectory());
  executor = startExecutor(["--listen", `ws://127.0.0.1:${port}`], TOKEN, "127.0.0.1", turns.env);
  bystander = await until("the executor", () => lasting().catch(() => undefined));
});

afterAll(() => {
  void closeHttp(origin);
});

async function lasting(): Promise<RawClient> {
  const { client } = await RawClient.lasting(`ws://127.0.0.1:${port}`, { token: TOKEN });
  client.acknowledges = true;
  return client;
}

const request = (requestId: string, path = "/", more: object = {}) => ({
  method: "GET",
  url: base + path,
  headers: [],
  requestId,
  streamResponse: false,
  ...more,
});

let asked = 0;
async function unharmed(): Promise<void> {
  expect(isAlive(executor.pid)).toBe(true);
  const { result } = await bystander.call("http/request", request(`bystander-${asked++}`));
  expect(Buffer.from(result.bodyBase64, "base64").toString()).toBe("fine");
}

/**
 * What its libraries do in one piece, so that it is said and not judged how long it takes: the one for WebSockets joins and
 * unmasks a frame of 43 MiB in one go, and Node's parser hands out each chunk of 64 KiB that it has read.
 */
const LIBRARIES = { judgesTurn: false };

/** Does its worst, while another is served; how much more memory the executor had at its worst, and its longest turn. */
async function attacked(
  what: string,
  attack: () => Promise<void>,
  { judgesTurn } = { judgesTurn: true },
): Promise<void> {
  const before = rss(executor.pid);
  resetPeak(executor.pid);
  turns.begin();
  let isOver = false;
  const attacking = attack().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await unharmed();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await attacking;
  await unharmed();
  const growth = peakRss(executor.pid) - before;
  const turn = await turns.worst();
  report("executor attacked", `${what}: RSS +${megabytes(growth)} at most, longest turn ${turns.text(turn)} [bounded]`);
  expect(growth).toBeLessThan(MAX_GROWTH);
  if (judgesTurn) expectShortOwnTurn(turn);
}

/** Written at the pace of the socket; ends early where the executor ends it. */
async function flood(client: RawClient, count: number, message: (n: number) => string | Buffer): Promise<void> {
  for (let n = 0; n < count && client.closed === undefined; n++) {
    client.ws.send(message(n));
    if (client.ws.bufferedAmount > 4 * MIB) {
      await until("room", () => client.ws.bufferedAmount < MIB || client.closed !== undefined);
    }
  }
}

async function drained(client: RawClient): Promise<void> {
  await until("all to be sent", () => client.ws.bufferedAmount === 0 || client.closed !== undefined);
}

const credit = (bytes: unknown) => JSON.stringify({ method: "http/request/credit", params: { requestId: "e", bytes } });
const BYTE_PIECES = figure(400, 1_600);
/** Of one byte, of each upload. */
const PIECES = figure(2_000, 20_000);
const MANY = figure(50_000, 500_000);

describe.skipIf(!linux)("a hostile client", () => {
  const big = (text: string) => Buffer.alloc(MAX_MESSAGE_BYTES - MIB, text);
  const messages: [what: string, message: () => string | Buffer][] = [
    ["a message as large as may be, of brackets", () => big("[")],
    ["a message as large as may be, of empty objects", () => `[${"{},".repeat((MAX_MESSAGE_BYTES - MIB) / 3)}{}]`],
    [
      "a message as large as may be, of members",
      () => `{"id":1,"method":"x","params":{${'"a":1,'.repeat((MAX_MESSAGE_BYTES - MIB) / 6)}"a":1}}`,
    ],
    ["a message as large as may be, of quotes", () => big('"')],
    ["a message as large as may be, of zero bytes", () => big("\u0000")],
    ["an id of 32 MiB", () => JSON.stringify({ id: "i".repeat(32 * MIB), method: "http/request" })],
    ["a method of 32 MiB", () => JSON.stringify({ id: 1, method: "m".repeat(32 * MIB) })],
    ["a piece of 32 MiB that nobody asked for", () => upload("nobody", 1, Buffer.alloc(32 * MIB))],
  ];

  it.each(messages)("others do not notice %s [bounded]", async (what, message) => {
    await attacked(
      what,
      async () => {
        const client = await lasting();
        const text = message();
        for (let n = 0; n < 3; n++) client.ws.send(text);
        await drained(client);
        client.ws.terminate();
      },
      LIBRARIES,
    );
  });

  const floods: [what: string, path: string | undefined, message: (n: number) => string][] = [
    ["cancels", "/never", () => '{"method":"http/request/cancel","params":{"requestId":"e"}}'],
    ["credit", "/endless", () => credit(Number.MAX_SAFE_INTEGER)],
    ["credit that is none", "/endless", (n) => credit([-1, 0, 1e300, "1", null, 0.5][n % 6])],
    ["acknowledgements that lie", "/endless", (n) => ack(["1e999", "-5", '"x"', "null", "9007199254740993"][n % 5])],
    ["unknown methods", undefined, (n) => JSON.stringify({ id: n, method: "no/such" })],
    ["no JSON", undefined, () => "{"],
    [
      "one id again and again",
      "/never",
      () => JSON.stringify({ id: "e", method: "http/request", params: request("e") }),
    ],
    ["answers to nothing", undefined, (n) => JSON.stringify({ id: n, result: {} })],
    ["forbidden places", undefined, (n) => asking(n, { ...request(`f${n}`), url: "http://169.254.169.254/" })],
  ];

  it.each(floods)(
    "others do not notice a flood of %s from one who reads nothing [bounded]",
    async (what, path, message) => {
      await attacked(what, async () => {
        const client = await lasting();
        client.acknowledges = false;
        if (path !== undefined)
          client.send({ id: "e", method: "http/request", params: { ...request("e", path), streamResponse: true } });
        client.ws.pause();
        await flood(client, MANY, message);
        client.ws.terminate();
      });
    },
  );

  it("pings without end from one who does not read take no memory [bounded]", async () => {
    await attacked("pings", async () => {
      const client = await lasting();
      client.ws.pause();
      const data = Buffer.alloc(125);
      // An executor that reads no more of it defends itself well: then the attack is over.
      for (let n = 0, waits = 0; n < 4 * MANY && waits < 100; n++) {
        client.ws.ping(data);
        for (waits = 0; client.ws.bufferedAmount > MIB && waits < 100; waits++) {
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      }
      client.ws.terminate();
    });
  });

  it("a socket with messages without end before the handshake is closed [bounded]", async () => {
    await attacked("half a handshake", async () => {
      const client = await RawClient.dial(`ws://127.0.0.1:${port}`, { token: TOKEN });
      await flood(client, 1_000, (n) => JSON.stringify({ id: n, method: "environment/info" }));
      expect(await client.end()).toEqual({ code: 1008, reason: "too many messages before initialized" });
    });
  });

  it("an answer in one message that comes byte by byte takes little memory [bounded]", async () => {
    await attacked(
      `${BYTE_PIECES * 10_000} pieces of one byte`,
      async () => {
        const client = await lasting();
        const { result } = await client.call("http/request", request("bytes", "/bytes"));
        expect(Buffer.from(result.bodyBase64, "base64").equals(Buffer.alloc(BYTE_PIECES * 10_000, "a"))).toBe(true);
        client.ws.terminate();
      },
      LIBRARIES,
    );
  });

  it("an upload byte by byte to a server that does not read takes little memory, and one beyond its credit is ended [bounded]", async () => {
    await attacked("uploads", async () => {
      const client = await lasting();
      const ids = Array.from({ length: 16 }, (_, n) => `up-${n}`);
      for (const id of ids) {
        const params = { ...request(id, "/never"), method: "POST", streamRequest: true, streamResponse: true };
        client.send({ id, method: "http/request", params });
      }
      const one = Buffer.from("a");
      await flood(client, ids.length * PIECES, (n) => upload(ids[n % 16] as string, Math.floor(n / 16) + 1, one));
      client.send(upload(ids[0] as string, PIECES + 1, Buffer.alloc(2 * MIB)));
      expect((await client.answer(ids[0] as string)).error?.message).toMatch(/faster than it was granted/);
      client.ws.terminate();
    });
  });

  it("binary frames are read as text, and sessions of others are not to be had", async () => {
    const client = await RawClient.dial(`ws://127.0.0.1:${port}`, { token: TOKEN });
    const toolway = { version: 1, window: 1, received: Number.MAX_SAFE_INTEGER };
    const params = { clientName: "x", resumeSessionId: "00000000-0000-4000-8000-000000000000", toolway };
    client.send(Buffer.from(JSON.stringify({ id: 1, method: "initialize", params })));
    const { result } = await client.answer(1);
    expect(result.toolway.resumed).toBe(false);
    client.ws.terminate();
    await unharmed();
  });

  it("refused upgrades that keep their side open take no room", async () => {
    const head =
      `GET / HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
      "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nauthorization: Bearer wrong\r\n\r\n";
    const sockets = Array.from({ length: 400 }, () => {
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
      socket.on("error", () => {});
      socket.on("data", () => {});
      socket.write(head);
      return socket;
    });
    // More than the door takes at a time; those that found no room at first count for nothing.
    await until("400 that were refused", () =>
      sockets.every((socket) => socket.bytesRead > 0 || socket.readableEnded || socket.destroyed),
    );
    const late = await lasting();
    expect((await late.call("http/request", request("late"))).result.status).toBe(200);
    late.ws.terminate();
    for (const socket of sockets) socket.destroy();
    await unharmed();
  });

  it("nothing of it all tells the token", () => {
    expect(executor.log()).not.toContain(TOKEN);
    expect(executor.log()).not.toContain("Bearer");
  });
});

function upload(requestId: string, seq: number, data: Buffer): string {
  const params = { requestId, seq, deltaBase64: data.toString("base64"), done: false };
  return JSON.stringify({ method: "http/request/upload", params });
}

function ack(received: string | undefined): string {
  return `{"method":"session/ack","params":{"received":${received}}}`;
}

function asking(id: number, params: object): string {
  return JSON.stringify({ id, method: "http/request", params });
}
