// Requests that are made to say more than one thing: through a running executor, what arrives at a server is one request,
// with the head that was meant, or nothing.

import { createServer, type Server } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startExecutor } from "../e2e/executor-process.js";
import { freePort, until } from "../e2e/harness.js";
import { RawClient, type RawFrame } from "../fixtures/executor/raw-client.js";
import { listenOnLoopback } from "../fixtures/loopback.js";

const SMUGGLED = "GET /evil HTTP/1.1\r\nhost: evil\r\n\r\n";
const INVALID = -32602;
const FAILED = -32603;

let server: Server;
let origin: string;
let client: RawClient;
/** What came on each connection. */
let heard: string[] = [];
let lastId = 0;

beforeAll(async () => {
  server = createServer((socket) => {
    const at = heard.push("") - 1;
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      heard[at] += chunk.toString("latin1");
      if (isComplete(heard[at] as string))
        socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
    });
  });
  origin = `127.0.0.1:${await listenOnLoopback(server)}`;
  const port = await freePort();
  startExecutor(["--listen", `ws://127.0.0.1:${port}`, "--allow", "*"]);
  client = await until("the executor", () =>
    RawClient.lasting(`ws://127.0.0.1:${port}`).then(
      (made) => made.client,
      () => undefined,
    ),
  );
});

afterAll(() => {
  client.ws.terminate();
  server.close();
});

function isComplete(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return false;
  if (/transfer-encoding: chunked/i.test(text.slice(0, end))) return text.endsWith("0\r\n\r\n");
  return text.length >= end + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
}

function ask(more: object): Promise<RawFrame> {
  heard = [];
  const requestId = `s${++lastId}`;
  const params = { method: "GET", url: `http://${origin}/`, headers: [], requestId, streamResponse: false, ...more };
  return client.call("http/request", params, requestId);
}

const header = (name: string, value: string) => ({ headers: [{ name, value }] });

describe("what cannot be one request is refused, and nothing is sent", () => {
  it.each<[string, object]>([
    ["a line break in a value", header("x", `a\r\n\r\n${SMUGGLED}`)],
    ["a line feed in a value", header("x", "a\nx: b")],
    ["a carriage return in a value", header("x", "a\rx: b")],
    ["a NUL in a value", header("x", "a\u0000b")],
    ["a line break in a name", header("x: a\r\ny", "b")],
    ["a colon in a name", header("x:", "b")],
    ["a blank in a name", header("content-length ", "0")],
    ["an empty name", header("", "b")],
    ["a line break in the method", { method: "GET / HTTP/1.1\r\nx: " }],
    ["a blank in the method", { method: "GET /evil" }],
    ["CONNECT", { method: "CONNECT" }],
    ["trace", { method: "trace" }],
    ["another host", header("Host", "evil.example")],
    ["another port of the host", header("host", "127.0.0.1:1")],
    ["a user in the URL", { url: "http://wiki.internal@127.0.0.1/" }],
    ["a scheme that is none of ours", { url: "file:///etc/passwd" }],
    ["gopher", { url: "gopher://127.0.0.1:6379/_FLUSHALL" }],
  ])("%s", async (_what, more) => {
    expect((await ask(more)).error).toMatchObject({ code: INVALID, data: { code: "invalid", written: false } });
    expect(heard).toEqual([]);
  });
});

describe("what may be one is one", () => {
  it.each<[string, () => object]>([
    [
      "lengths and encodings of its own",
      () => ({
        method: "POST",
        headers: [
          "content-length",
          "Transfer-Encoding",
          "TE",
          "connection",
          "Upgrade",
          "expect",
          "trailer",
          "Keep-Alive",
        ].map((name) => ({ name, value: name === "content-length" ? "3" : "chunked" })),
        bodyBase64: Buffer.from(`0\r\n\r\n${SMUGGLED}`).toString("base64"),
      }),
    ],
    ["a body of a GET", () => ({ bodyBase64: Buffer.from(SMUGGLED).toString("base64") })],
    [
      "a path with line breaks, blanks and tabs",
      () => ({ url: `http://${origin}/a\r\nb\t c HTTP/1.1 \u2028\u010a?q=\r\n x` }),
    ],
    ["letters beyond ASCII that end in those of a line break", () => header("x", "a\u010d\u010ab")],
    ["another name for the method", () => ({ method: "pOsT" })],
  ])("%s", async (_what, more) => {
    const { result } = await ask(more());
    expect(result?.status).toBe(200);
    expect(heard).toHaveLength(1);
    const [head = "", ...bodies] = (heard[0] as string).split("\r\n\r\n");
    const lines = head.split("\r\n");
    expect(lines[0]).toMatch(/^[A-Z]+ \/\S* HTTP\/1\.1$/);
    // No line of its own begins anywhere, and nothing is there that was not meant.
    expect(head).not.toMatch(/[^\r]\n|\r[^\n]/);
    expect(lines.filter((line) => /^(host|content-length|transfer-encoding):/i.test(line)).length).toBeLessThanOrEqual(
      2,
    );
    expect(lines).toContain(`host: ${origin}`);
    expect(head).not.toMatch(/^(te|upgrade|expect|trailer|keep-alive): /im);
    const length = /content-length: (\d+)/i.exec(head)?.[1] ?? "0";
    expect(bodies.join("\r\n\r\n")).toHaveLength(Number(length));
  });
});

describe("places that no rule opens", () => {
  it.each([
    "http://169.254.169.254/",
    "http://169.254.169.254\t/",
    "http://169.254.\n169.254/latest",
    "http:\\\\169.254.169.254\\latest",
    "http:169.254.169.254",
    "http:///169.254.169.254/",
    "http://0xa9fea9fe/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]:80/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://metadata.google.internal/",
    "http://127.0.0.2/",
    "http://0/",
    "http://[::]/",
    "http://[fe80::1]/",
    "http://127.2/",
    "http://①②⑦.0.0.2/",
  ])("%j is forbidden", async (url) => {
    const { error } = await ask({ url });
    expect(error).toMatchObject({ code: FAILED, data: { code: "forbidden", written: false } });
  });
});
