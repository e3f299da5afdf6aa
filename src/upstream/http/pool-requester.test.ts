import { createServer, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { openPoolRequester } from "./pool-requester.js";
import type { HttpExchange, Requester } from "./requester.js";

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Answers with `head` and ten bytes, and ends as `end` does when it is told to. */
async function rawServer(head: string, end: (socket: Socket) => void): Promise<{ url: URL; finish: () => void }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.once("data", () => socket.write(`${head}\r\n\r\n0123456789`));
  });
  const port = await listenOnLoopback(server);
  closers.push(() => server.close());
  const url = new URL(`http://127.0.0.1:${port}/`);
  return { url, finish: () => sockets.forEach(end) };
}

interface Seen {
  readonly data: () => string;
  readonly exchange: HttpExchange;
  /** The first piece is here, and the exchange paused. */
  readonly paused: Promise<void>;
  readonly ended: Promise<"end" | Error>;
}

async function pausedAtFirstPiece(url: URL): Promise<Seen> {
  const target = { kind: "http", url: url.href, headers: {} } as const;
  const requester: Requester = await openPoolRequester(
    { ...target, via: undefined },
    url,
    new AbortController().signal,
  );
  closers.push(() => requester.destroy());
  const chunks: Buffer[] = [];
  let onPaused: () => void;
  let onEnded: (how: "end" | Error) => void;
  const paused = new Promise<void>((resolve) => {
    onPaused = resolve;
  });
  const ended = new Promise<"end" | Error>((resolve) => {
    onEnded = resolve;
  });
  const exchange = requester.dispatch(
    { method: "GET", pool: "calls", path: "/", headers: [] },
    {
      onHead() {},
      onData(chunk) {
        chunks.push(chunk);
        exchange.pause();
        onPaused();
      },
      onEnd: () => onEnded("end"),
      onError: (error) => onEnded(error),
    },
  );
  return { data: () => Buffer.concat(chunks).toString(), exchange, paused, ended };
}

const OK = "HTTP/1.1 200 OK";

// undici 7 ended the whole process in the first two cases.
it.each([
  ["a body without a length", `${OK}\r\nconnection: close`],
  ["a body with a length on a connection that closes", `${OK}\r\nconnection: close\r\ncontent-length: 10`],
  ["a body with a length on a connection that would stay", `${OK}\r\ncontent-length: 10`],
])("%s: a server that closes under a paused reader ends its reply, and nothing else", async (_name, head) => {
  const { url, finish } = await rawServer(head, (socket) => socket.end());
  const { data, exchange, paused, ended } = await pausedAtFirstPiece(url);
  await paused;
  finish();
  expect(await Promise.race([ended, later(() => exchange.resume())])).toBe("end");
  expect(data()).toBe("0123456789");
});

it.each([
  ["without a length", `${OK}\r\nconnection: close`],
  ["with more to come", `${OK}\r\nconnection: close\r\ncontent-length: 20`],
  ["in chunks", `${OK}\r\ntransfer-encoding: chunked\r\n\r\na`],
])("a body %s that is reset under a paused reader is no whole one", async (_name, head) => {
  const { url, finish } = await rawServer(head.replace("\r\n\r\na", "\r\n\r\n14"), (socket) =>
    socket.resetAndDestroy(),
  );
  const { exchange, paused, ended } = await pausedAtFirstPiece(url);
  await paused;
  finish();
  const how = await Promise.race([ended, later(() => exchange.resume())]);
  expect(how).toBeInstanceOf(Error);
  expect((how as NodeJS.ErrnoException).code).toBe("ECONNRESET");
});

it("a body that is cut under a paused reader is no whole one", async () => {
  const head = `${OK}\r\nconnection: close\r\ncontent-length: 20`;
  const { url, finish } = await rawServer(head, (socket) => socket.end());
  const { exchange, paused, ended } = await pausedAtFirstPiece(url);
  await paused;
  finish();
  expect(await Promise.race([ended, later(() => exchange.resume())])).toBeInstanceOf(Error);
});

/** The reader comes back in the end, and nobody waits for that: it never settles. */
function later(act: () => void): Promise<never> {
  const timer = setTimeout(act, 200);
  closers.push(() => clearTimeout(timer));
  return new Promise(() => {});
}
