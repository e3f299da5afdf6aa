import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { until } from "../../../test/fixtures/wait.js";
import { openPoolRequester } from "./pool-requester.js";
import type { HttpExchange, PoolName, Requester } from "./requester.js";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const REQUEST_END = /content-length: (\d+)\r\n\r\n/;

/** A server on bare sockets. `answer` gets each request whole, and the socket that it came by. */
async function rawServer(answer: (socket: Socket, request: string, connection: number) => unknown) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    const connection = sockets.push(socket);
    let text = "";
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      const head = REQUEST_END.exec(text);
      if (head === null) return;
      const end = head.index + head[0].length + Number(head[1]);
      if (text.length < end) return;
      const request = text.slice(0, end);
      text = text.slice(end);
      void answer(socket, request, connection);
    });
  });
  const port = await listenOnLoopback(server);
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  const requester = await openPoolRequester(
    { kind: "http", url: url.href, headers: {}, via: undefined },
    url,
    new AbortController().signal,
  );
  closers.push(async () => {
    await requester.destroy();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { requester, sockets };
}

interface Told {
  status?: number;
  headers?: unknown;
  body: string;
  end: string;
}

function post(requester: Requester, body = '{"id":1}', pool: PoolName = "calls", headers: string[] = ["x-a", "b"]) {
  const told: Told = { body: "", end: "" };
  let settle: (told: Told) => void;
  const answered = new Promise<Told>((resolve) => {
    settle = resolve;
  });
  let isInside = true;
  const exchange: HttpExchange = requester.dispatch(
    { method: "POST", pool, path: "/mcp", headers, body },
    {
      onHead(status, head) {
        expect(isInside).toBe(false);
        Object.assign(told, { status, headers: { ...head } });
      },
      onData: (chunk) => {
        told.body += chunk.toString("latin1");
      },
      onEnd: () => settle({ ...told, end: "end" }),
      onError: (_error, written) => settle({ ...told, end: written ? "lost" : "not sent" }),
    },
  );
  isInside = false;
  return { exchange, answered, told };
}

const OK = "HTTP/1.1 200 OK\r\n";
const JSON_OK = `${OK}Content-Type: application/json\r\n`;

describe("an answer is the same whoever reads it: ours or undici", () => {
  it.each<[string, string[], "end" | undefined]>([
    ["with a length", [`${JSON_OK}Content-Length: 8\r\n\r\n{"id":1}`], undefined],
    ["with a length, in three reads", [`${JSON_OK}Content-Length: 8\r\n\r\n`, '{"i', 'd":1}'], undefined],
    ["of no length", ["HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"], undefined],
    ["in chunks", [`${JSON_OK}Transfer-Encoding: chunked\r\n\r\n8\r\n{"id":1}\r\n0\r\n\r\n`], undefined],
    [
      "in chunks and reads",
      [`${JSON_OK}Transfer-Encoding: chunked\r\n\r\n3\r\n{"`, 'i\r\n5\r\nd":1}\r\n0\r\n', "\r\n"],
      undefined,
    ],
    ["with trailers", [`${JSON_OK}Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nx: y\r\n\r\n`], undefined],
    ["in chunks that break off", [`${JSON_OK}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n5\r\n1`], "end"],
    ["in chunks that are none", [`${JSON_OK}Transfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n`], undefined],
    ["that breaks off", [`${JSON_OK}Content-Length: 8\r\n\r\n{"id"`], "end"],
    ["that never comes", [], "end"],
    ["that is cut in its head", [`${JSON_OK}Content-Le`], "end"],
    ["whose head comes in two reads", [`${JSON_OK}Content-Le`, 'ngth: 8\r\n\r\n{"id":1}'], undefined],
    ["until the end", [`${OK}Connection: close\r\n\r\n{"id":1}`], "end"],
    ["of HTTP/1.0", ['HTTP/1.0 200 OK\r\nContent-Length: 8\r\n\r\n{"id":1}'], undefined],
    ["with two lengths", [`${OK}Content-Length: 8\r\nContent-Length: 2\r\n\r\n{"id":1}`], undefined],
    [
      "with a length and chunks",
      [`${OK}Content-Length: 8\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
      undefined,
    ],
    [
      "that has more behind it",
      [`${OK}Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]`],
      undefined,
    ],
    [
      "after one that goes before it",
      [`HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${OK}Content-Length: 2\r\n\r\n{}`],
      undefined,
    ],
    ["without content", ["HTTP/1.1 204 No Content\r\n\r\n"], undefined],
    ["with a header twice", [`${OK}Set-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 2\r\n\r\n{}`], undefined],
    ["that is no HTTP", ["hello\r\n\r\n"], undefined],
    ["of 500", ["HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\n{}"], undefined],
  ])("%s [unknown-is-said]", async (_name, reads, then) => {
    const { requester, sockets } = await rawServer(async (socket) => {
      for (const read of reads) {
        await new Promise((resolve) => socket.write(read, resolve));
        // Long enough for a read of its own where the machine is idle; the answer is the same where it is not.
        await nextTurn();
      }
      if (then === "end") socket.end();
    });
    const ours = await post(requester).answered;
    const theirs = await post(requester, '{"id":1}', "asides").answered;
    expect(ours).toEqual(theirs);
    expect(sockets.length).toBe(2);
    // The next one is answered, too, and by nothing that was said before.
    expect(await post(requester).answered).toEqual(theirs);
  });
});

it("writes what undici writes, and bodies that are not ASCII with their length in bytes", async () => {
  const seen: string[] = [];
  const { requester } = await rawServer((socket, request) => {
    seen.push(request);
    socket.write(`${OK}Content-Length: 2\r\n\r\n{}`);
  });
  for (const body of ['{"id":1}', '{"id":"\u00e9\u4e2d"}', JSON.stringify("x".repeat(200_000))]) {
    await post(requester, body).answered;
    await post(requester, body, "asides").answered;
  }
  expect(seen.length).toBe(6);
  for (let i = 0; i < seen.length; i += 2) expect(seen[i]).toBe(seen[i + 1]);
});

it.each([
  ["bad name", "x"],
  ["x", "a\r\nb: c"],
  ["content-length", "1"],
  ["transfer-encoding", "chunked"],
])("a header %j: %j is refused as undici refuses it, and nothing is sent", async (name, value) => {
  const seen: string[] = [];
  const { requester } = await rawServer((socket, request) => {
    seen.push(request);
    socket.write(`${OK}Content-Length: 2\r\n\r\n{}`);
  });
  await post(requester).answered;
  const { end } = await post(requester, "{}", "calls", [name, value]).answered;
  expect(end).toBe((await post(requester, "{}", "asides", [name, value]).answered).end);
  expect(seen.slice(1).some((request) => request.includes("b: c"))).toBe(false);
});

it("uses a connection again, and no two at once", async () => {
  const { requester, sockets } = await rawServer((socket) => socket.write(`${OK}Content-Length: 2\r\n\r\n{}`));
  for (let i = 0; i < 5; i++) {
    expect((await post(requester).answered).end).toBe("end");
    await nextTurn();
  }
  expect(sockets.length).toBe(1);
  const all = await Promise.all(Array.from({ length: 300 }, () => post(requester).answered));
  expect(all.every(({ end }) => end === "end")).toBe(true);
  expect(sockets.length).toBeLessThanOrEqual(256);
});

it("does not write to a connection that the server has closed meanwhile", async () => {
  let requests = 0;
  const { requester, sockets } = await rawServer((socket) => {
    requests++;
    socket.write(`${OK}Content-Length: 2\r\n\r\n{}`);
  });
  await post(requester).answered;
  await nextTurn();
  const closed = sockets[0] as Socket;
  closed.end();
  await once(closed, "close");
  expect((await post(requester).answered).end).toBe("end");
  expect([requests, sockets.length]).toEqual([2, 2]);
});

it("sends what was not written over a new connection when a server has ended all idle ones at once", async () => {
  const { requester, sockets } = await rawServer((socket) => socket.write(`${OK}Content-Length: 2\r\n\r\n{}`));
  await Promise.all(Array.from({ length: 8 }, () => post(requester).answered));
  await nextTurn();
  expect(sockets.length).toBe(8);
  // The last first: each is lost just after it was chosen.
  for (const socket of [...sockets].reverse()) socket.destroy();
  expect((await post(requester).answered).end).toBe("end");
  expect(sockets.length).toBe(9);
});

it("what a reader throws ends its own exchange and connection", async () => {
  const { requester, sockets } = await rawServer((socket) => socket.write(`${OK}Content-Length: 2\r\n\r\n{}`));
  for (const where of ["onHead", "onData"] as const) {
    const told = await new Promise<[Error, boolean]>((resolve) => {
      requester.dispatch(
        { method: "POST", pool: "calls", path: "/mcp", headers: [], body: "{}" },
        {
          onHead: () => {},
          onData: () => {},
          onEnd: () => {},
          onError: (error, written) => resolve([error, written]),
          [where]: () => {
            throw new Error("oh");
          },
        },
      );
    });
    expect(told).toEqual([new Error("oh"), true]);
  }
  expect((await post(requester).answered).end).toBe("end");
  expect(sockets.length).toBe(3);
});

it("a pause ends with the request that it was for", async () => {
  const { requester, sockets } = await rawServer((socket) => socket.write(`${OK}Content-Length: 2\r\n\r\n{}`));
  await post(requester).answered;
  await nextTurn();
  const { exchange } = post(requester);
  exchange.pause();
  exchange.abort();
  await nextTurn();
  await nextTurn();
  expect((await post(requester).answered).end).toBe("end");
  expect(sockets.length).toBe(1);
});

it("takes what a server says unasked for nobody's answer", async () => {
  const { requester, sockets } = await rawServer((socket, _request, connection) => {
    socket.write(`${OK}Content-Length: 2\r\n\r\n${connection === 1 ? "{}" : "[]"}`);
  });
  await post(requester).answered;
  await nextTurn();
  const first = sockets[0] as Socket;
  first.write(`${OK}Content-Length: 2\r\n\r\n"!`);
  await once(first, "close");
  expect((await post(requester).answered).body).toBe("[]");
});

it("a request that is abandoned takes its connection with it, and one that was not written leaves it", async () => {
  const requests: string[] = [];
  const { requester, sockets } = await rawServer((socket, request) => {
    requests.push(request);
    if (!request.includes("hang")) socket.write(`${OK}Content-Length: 2\r\n\r\n{}`);
  });
  await post(requester).answered;
  await nextTurn();
  post(requester, '"never written"').exchange.abort();
  expect((await post(requester).answered).end).toBe("end");
  expect(requests.some((request) => request.includes("never"))).toBe(false);
  const hung = post(requester, '"hang"');
  await until(() => requests.some((request) => request.includes("hang")));
  hung.exchange.abort();
  await until(() => sockets.some((socket) => socket.destroyed));
  expect((await post(requester).answered).end).toBe("end");
  expect(hung.told).toEqual({ body: "", end: "" });
});

it("holds a server back while its reader is slow", async () => {
  const bytes = 32 * 1024 * 1024;
  const { requester, sockets } = await rawServer((socket) => {
    socket.write(`${OK}Content-Length: ${bytes}\r\n\r\n`);
    socket.write(Buffer.alloc(bytes, "x"));
  });
  const { exchange, answered, told } = post(requester);
  await until(() => told.body.length > 0);
  exchange.pause();
  const before = told.body.length;
  for (let i = 0; i < 20; i++) await nextTurn();
  // What was read when it was told is all that comes.
  expect(told.body.length - before).toBeLessThanOrEqual(64 * 1024);
  expect((sockets[0] as Socket).writableLength).toBeGreaterThan(0);
  exchange.resume();
  expect((await answered).body.length).toBe(bytes);
});

it("tells all that waits when it is destroyed", async () => {
  const requests: string[] = [];
  const { requester } = await rawServer((_socket, request) => requests.push(request));
  const hung = post(requester);
  await until(() => requests.length === 1);
  const opening = post(requester);
  await requester.destroy();
  expect((await hung.answered).end).toBe("lost");
  expect((await opening.answered).end).toBe("not sent");
  expect((await post(requester).answered).end).toBe("not sent");
});
