import { randomBytes } from "node:crypto";
import { createServer } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import {
  type Answer,
  events,
  json,
  Peer,
  plain,
  Recorder,
  reply,
  rpcError,
} from "../../../test/fixtures/links/recorder.js";
import { listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { LARGE_REPLY_BYTES, PIECED_REPLY_BYTES } from "../link/large-body.js";
import { StreamableLink } from "./streamable.js";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(answer: Answer, headers: Record<string, string> = {}, suffix = "") {
  const peer = new Peer(answer);
  await peer.listen();
  cleanups.push(() => peer.close());
  const recorder = await connect(peer.url + suffix, headers);
  return { peer, recorder };
}

async function connect(url: string, headers: Record<string, string> = {}): Promise<Recorder> {
  const recorder = new Recorder();
  const link = new StreamableLink({ kind: "http", url, headers }, recorder);
  cleanups.push(() => link.close());
  await recorder.attach(link);
  return recorder;
}

const JSON_TYPE = { "content-type": "application/json" };

describe("a streamable server", () => {
  it("gets the protocol's headers, and the config's where they are not the protocol's", async () => {
    const { peer, recorder } = await start(
      plain(({ message }, response) => json(response, { jsonrpc: "2.0", id: message.id, result: {} })),
      { Authorization: "Bearer secret-token", Accept: "text/html", "Mcp-Session-Id": "mine", "X-Team": "a" },
      "?key=1",
    );
    await recorder.handshake();
    await recorder.reply(recorder.request("tools/list"));
    await recorder.link.close();
    const [first, ...later] = peer.seen.filter(({ method }) => method === "POST");
    expect(first?.headers).toMatchObject({
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: "Bearer secret-token",
      "x-team": "a",
    });
    expect(first?.headers).not.toHaveProperty("mcp-session-id");
    expect(first?.headers).not.toHaveProperty("mcp-protocol-version");
    expect(first?.headers).not.toHaveProperty("accept-encoding");
    expect(later.map(({ headers }) => headers["mcp-session-id"])).toEqual(["s-1", "s-1"]);
    expect(later.map(({ headers }) => headers["mcp-protocol-version"])).toEqual(["2025-11-25", "2025-11-25"]);
    expect(new Set(peer.seen.map(({ path }) => path))).toEqual(new Set(["/mcp?key=1"]));
    expect(recorder.link.describe()).toEqual({ kind: "http", url: peer.url });
    const ended = peer.seen.find(({ method }) => method === "DELETE");
    expect(ended?.headers["mcp-session-id"]).toBe("s-1");
  });

  it("may answer in JSON as it likes to print it, or in events", async () => {
    const { recorder } = await start(
      plain(({ message }, response) => {
        const value = { jsonrpc: "2.0", id: message.id, result: { text: "a\nb" } };
        if (message.method === "pretty") {
          response.writeHead(200, { "content-type": "application/json; charset=utf-8" });
          response.end(`\n${JSON.stringify(value, null, 2)}\n`);
          return;
        }
        events(response).write(': hello\n\nevent: ping\ndata: x\n\ndata: {"jsonrpc":"2.0","method":"progress"}\n\n');
        const lines = JSON.stringify(value, null, 1).split("\n");
        response.end(`event: message\n${lines.map((line) => `data: ${line}\r\n`).join("")}\r\n`);
      }),
    );
    const pretty = recorder.request("pretty");
    const streamed = recorder.request("streamed");
    expect((await recorder.reply(pretty)).value.result).toEqual({ text: "a\nb" });
    expect((await recorder.reply(streamed)).value.result).toEqual({ text: "a\nb" });
    expect(recorder.messages.filter(({ ticket }) => ticket === streamed)).toHaveLength(2);
    expect(recorder.failures).toEqual([]);
  });

  it.each([0, 2 * PIECED_REPLY_BYTES, 2 * LARGE_REPLY_BYTES])(
    "may begin its JSON with a byte order mark, which is not passed on, before %d bytes too",
    async (chars) => {
      const { recorder } = await start(
        plain(({ message }, response) => {
          response.writeHead(message.method === "refused" ? 400 : 200, JSON_TYPE);
          const error = rpcError(message.id, -32000, "Odd thing");
          const value = message.method === "refused" ? JSON.stringify(error) : reply(message.id, "x".repeat(chars));
          response.end(`\uFEFF${value}`);
        }),
      );
      const asked = recorder.request("tools/call");
      if (chars <= LARGE_REPLY_BYTES) {
        const { bytes, value } = await recorder.reply(asked);
        expect([bytes[0], value.result]).toEqual([123, "x".repeat(chars)]);
      } else {
        await recorder.until(() => recorder.large.length > 0);
        const large = recorder.large[0] as Recorder["large"][number];
        const chunks: Buffer[] = [large.head];
        for await (const chunk of large.rest) chunks.push(chunk as Buffer);
        const whole = Buffer.concat(chunks);
        expect(whole.toString()).toBe(reply(asked, "x".repeat(chars)));
      }
      expect((await recorder.reply(recorder.request("refused"))).value.error).toMatchObject({ message: "Odd thing" });
      expect(recorder.failures).toEqual([]);
    },
  );

  it("keeps its sockets from call to call, in JSON and in events", async () => {
    const { peer, recorder } = await start(
      plain(({ message }, response) => {
        if (message.id !== undefined && message.id % 2 === 0)
          json(response, { jsonrpc: "2.0", id: message.id, result: 1 });
        else events(response).end(`data: ${reply(message.id)}\n\n`);
      }),
    );
    let sockets = 0;
    peer.server.on("connection", () => sockets++);
    for (let i = 0; i < 40; i++) await recorder.reply(recorder.request("tools/call"));
    expect(sockets).toBeLessThanOrEqual(2);
  });

  it("carries 300 calls at once, and cancels and answers beside them [bounded]", async () => {
    const held: (() => void)[] = [];
    const { peer, recorder } = await start(
      plain(({ message }, response) => {
        held.push(() => json(response, { jsonrpc: "2.0", id: message.id, result: {} }));
      }),
    );
    const ids = Array.from({ length: 300 }, () => recorder.request("tools/call"));
    await recorder.until(() => held.length === 256);
    recorder.notify("notifications/cancelled", { requestId: 1 });
    await recorder.until(() => peer.seen.some(({ message }) => message.method === "notifications/cancelled"));
    const release = setInterval(() => held.splice(0).map((answer) => answer()), 5);
    for (const id of ids) await recorder.reply(id);
    clearInterval(release);
  });
});

const packed = ({ message }: Parameters<Answer>[0], r: Parameters<Answer>[1], by: string, type = "application/json") =>
  r.writeHead(200, { "content-type": type, "content-encoding": by }).end(gzipSync(reply(message.id)));

describe("an answer that is no reply", () => {
  const html = "<html>\n<body>Something is wrong</body></html>";
  it.each<[string, Answer, string, boolean, RegExp]>([
    ["400", (_, r) => r.writeHead(400).end(html), "protocol", false, /HTTP 400.*Something is wrong/],
    [
      "401",
      (_, r) => r.writeHead(401, { "www-authenticate": 'Bearer realm="x"' }).end(),
      "unauthorized",
      false,
      /realm="x"/,
    ],
    ["403", (_, r) => r.writeHead(403).end("no"), "unauthorized", false, /HTTP 403/],
    ["405", (_, r) => r.writeHead(405).end(), "protocol", false, /HTTP 405/],
    ["406", (_, r) => r.writeHead(406).end(), "protocol", false, /HTTP 406/],
    ["409", (_, r) => r.writeHead(409).end(), "protocol", true, /HTTP 409/],
    ["415", (_, r) => r.writeHead(415).end(), "protocol", false, /HTTP 415/],
    ["429", (_, r) => r.writeHead(429, { "retry-after": "7" }).end(), "unavailable", false, /for 7 s/],
    [
      "429 with no time",
      (_, r) => r.writeHead(429, { "retry-after": "-5" }).end(),
      "unavailable",
      false,
      /^(?!.*left alone)/,
    ],
    [
      "503 with a day",
      (_, r) => r.writeHead(503, { "retry-after": "Sun, 06 Nov 2044 08:49:37 GMT" }).end(),
      "unavailable",
      false,
      /until 2044-11-06T08:49:37/,
    ],
    [
      "503 with no time",
      (_, r) => r.writeHead(503, { "retry-after": "soon, in 5" }).end(),
      "outcome-unknown",
      true,
      /HTTP 503/,
    ],
    ["503 with a time", (_, r) => r.writeHead(503, { "retry-after": "30" }).end(), "unavailable", false, /for 30 s/],
    ["503", (_, r) => r.writeHead(503).end(), "outcome-unknown", true, /HTTP 503/],
    ["500", (_, r) => r.writeHead(500).end(html), "outcome-unknown", true, /HTTP 500.*Something is wrong/],
    ["502 and endless", (_, r) => endless(r.writeHead(502)), "outcome-unknown", true, /HTTP 502/],
    [
      "200 in HTML",
      (_, r) => r.writeHead(200, { "content-type": "text/html" }).end(html),
      "protocol",
      true,
      /Something/,
    ],
    ["202 to a request", (_, r) => r.writeHead(202).end(), "protocol", true, /HTTP 202/],
    [
      "an error for nobody",
      (_, r) => json(r, rpcError(null, -32000, "Odd thing"), 400),
      "protocol",
      false,
      /Odd thing/,
    ],
    [
      "a redirect elsewhere",
      (_, r) => r.writeHead(307, { location: "http://other.example/x?k=1" }).end(),
      "protocol",
      false,
      /to http:\/\/other\.example\/x, which/,
    ],
    ["a redirect to GET", (_, r) => r.writeHead(302, { location: "/login" }).end(), "protocol", false, /\/login/],
    ["a redirect to itself", (_, r) => r.writeHead(308, { location: "/mcp" }).end(), "protocol", false, /308/],
    [
      "a reply of another id",
      (_, r) => json(r, { jsonrpc: "2.0", id: 77, result: {} }),
      "protocol",
      true,
      /its id is another/,
    ],
    ["a long reply of another id", (_, r) => json(r, long(77)), "protocol", true, /its id is another/],
    ["a request", (_, r) => json(r, { jsonrpc: "2.0", id: 1, method: "ping" }), "protocol", true, /or it has none/],
    ["garbage", (_, r) => r.socket?.end("SSH-2.0-OpenSSH\r\n"), "protocol", true, /not HTTP/],
    ["a cut", (_, r) => r.socket?.destroy(), "outcome-unknown", true, /unknown/],
    ["a reset", (_, r) => r.socket?.resetAndDestroy(), "outcome-unknown", true, /ECONNRESET/],
    ["a body cut short", (_, r) => cutBody(r), "outcome-unknown", true, /unknown/],
    [
      "a compressed reply",
      (s, r) => packed(s, r, "gzip"),
      "outcome-unknown",
      true,
      /compressed by "gzip".*nobody asked/,
    ],
    [
      "a long compressed reply",
      (_, r) => r.writeHead(200, { ...JSON_TYPE, "content-encoding": "br" }).end(randomBytes(3 * 1024 * 1024)),
      "outcome-unknown",
      true,
      /compressed by "br".*effect is unknown/,
    ],
    [
      "a compressed stream",
      (s, r) => packed(s, r, "x-gzip", "text/event-stream"),
      "outcome-unknown",
      true,
      /compressed by "x-gzip"/,
    ],
    [
      "a stream cut short",
      (_, r) => void events(r).write("data: {", () => r.socket?.destroy()),
      "outcome-unknown",
      true,
      /stream/,
    ],
    ["a stream without the reply", (_, r) => void events(r).end(": sorry\n\n"), "outcome-unknown", true, /stream/],
  ])("%s [unknown-is-said]", async (_name, answer, code, sent, message) => {
    const { recorder } = await start(
      plain((seen, response) => {
        if (seen.message.method === "bad") answer(seen, response);
        else json(response, { jsonrpc: "2.0", id: seen.message.id, result: {} });
      }),
    );
    await recorder.handshake();
    const failure = await recorder.failure(recorder.request("bad"));
    expect({ code: failure.fault.code, sent: failure.sent }).toEqual({ code, sent });
    expect(failure.fault.message).toMatch(message);
    // It failed alone.
    await recorder.reply(recorder.request("good"));
    expect(recorder.closed).toEqual([]);
  });

  it("is none where its encoding is named, and changes nothing", async () => {
    const { recorder } = await start(
      plain(({ message }, response) => {
        response.writeHead(200, { ...JSON_TYPE, "content-encoding": "Identity" }).end(reply(message.id));
      }),
    );
    await recorder.reply(recorder.request("tools/call"));
  });

  it.each([400, 404, 422, 500])("with %d and an error for this id is the reply", async (status) => {
    const { recorder } = await start(
      plain(({ message }, response) => json(response, rpcError(message.id, -32601, "No such method"), status)),
    );
    await recorder.handshake();
    const { value } = await recorder.reply(recorder.request("tools/x"));
    expect(value.error).toEqual({ code: -32601, message: "No such method" });
  });

  it("never shows our credentials, though the server does [secrets-unseen]", async () => {
    const { recorder } = await start(
      plain(({ headers, path }, response) => response.writeHead(400).end(`${headers.authorization} ${path}`)),
      { authorization: "Bearer canary-1234567" },
      "?token=canary-7654321",
    );
    const { fault } = await recorder.failure(recorder.request("tools/list"));
    expect(fault.forOperator).toContain("It said: [redacted] /mcp?token=[redacted]");
    expect(fault.message).toContain("It said: [left out: it names a secret");
    expect(fault.message).not.toContain("canary");
  });

  it("to a notification counts as noise, and does not end the link", async () => {
    const { recorder } = await start((_seen, response) => response.writeHead(500).end("oops"));
    recorder.notify("notifications/initialized");
    await recorder.until(() => recorder.noise.length > 0);
    expect(recorder.noise[0]).toMatch(/HTTP 500.*oops/);
    expect(recorder.closed).toEqual([]);
  });

  it("follows a redirect of the same origin once, and remembers a lasting one", async () => {
    for (const status of [307, 308]) {
      const { peer, recorder } = await start(({ path, message }, response) => {
        if (path === "/mcp") response.writeHead(status, { location: "/mcp/" }).end();
        else json(response, { jsonrpc: "2.0", id: message.id, result: {} });
      });
      await recorder.reply(recorder.request("a"));
      await recorder.reply(recorder.request("b"));
      expect(peer.seen).toHaveLength(status === 307 ? 4 : 3);
      expect(peer.seen.every(({ method, body }) => method === "POST" && body !== "")).toBe(true);
    }
  });
});

describe("a server that cannot be reached", () => {
  it("says so, and that nothing was sent", async () => {
    const peer = new Peer(() => {});
    const url = await peer.listen();
    await peer.close();
    const recorder = await connect(url);
    const refused = await recorder.failure(recorder.request("initialize"));
    expect(refused).toMatchObject({ sent: false, fault: { code: "unavailable" } });
    expect(refused.fault.message).toMatch(/nothing listens there/);

    const nameless = await connect("http://no-such-host.invalid/mcp");
    const unresolved = await nameless.failure(nameless.request("initialize"));
    expect(unresolved).toMatchObject({ sent: false, fault: { code: "unavailable" } });
    expect(unresolved.fault.message).toMatch(/does not resolve/);
  });

  it("says so where it speaks no TLS", async () => {
    const server = createServer((socket) => socket.resume().end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const port = await listenOnLoopback(server);
    cleanups.push(() => new Promise((resolve) => server.close(resolve)));
    const recorder = await connect(`https://127.0.0.1:${port}/mcp`);
    const { fault, sent } = await recorder.failure(recorder.request("initialize"));
    expect({ code: fault.code, sent }).toEqual({ code: "unavailable", sent: false });
    expect(fault.message).toMatch(/TLS failed/);
  });

  it("is reached again when it is back, on the same link", async () => {
    const peer = new Peer(
      plain(({ message }, response) => json(response, { jsonrpc: "2.0", id: message.id, result: {} })),
    );
    const url = await peer.listen();
    const { port } = peer;
    const recorder = await connect(url);
    await recorder.reply(recorder.request("a"));
    await peer.close();
    expect((await recorder.failure(recorder.request("b"))).fault.code).toMatch(/unavailable|outcome-unknown/);
    const again = new Peer(peer.answer);
    await again.listen(port);
    cleanups.push(() => again.close());
    await recorder.reply(recorder.request("c"));
  });
});

describe("close()", () => {
  it("ends what is in flight without telling, and does not wait for a server that hangs", async () => {
    const { peer, recorder } = await start(({ message, method }, response) => {
      if (message.method === "initialize") plain(() => {})({ ...peer.seen[0], message, method } as never, response);
    });
    const id = recorder.request("initialize");
    await recorder.reply(id);
    recorder.link.established("2025-11-25");
    await Promise.resolve();
    recorder.request("hangs");
    recorder.notify("hangs too");
    await recorder.until(() => peer.seen.length === 4);
    const before = recorder.order.length;
    await recorder.link.close();
    await recorder.link.close();
    recorder.request("late");
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(recorder.order).toHaveLength(before);
    expect(peer.seen.map(({ method }) => method).filter((method) => method === "DELETE")).toHaveLength(1);
    await expect.poll(() => connections(peer)).toBe(0);
  });

  it("may come before open(), or while it runs", async () => {
    const recorder = new Recorder();
    const link = new StreamableLink({ kind: "http", url: "http://127.0.0.1:9/mcp", headers: {} }, recorder);
    const opening = link.open(new AbortController().signal);
    await link.close();
    await expect(opening).rejects.toMatchObject({ code: "closing" });
    await new StreamableLink({ kind: "http", url: "http://127.0.0.1:9/", headers: {} }, recorder).close();
  });

  it("forget() frees the connection of a call that hangs", async () => {
    const { peer, recorder } = await start(() => {});
    let closed = 0;
    peer.server.on("connection", (socket) => socket.on("close", () => closed++));
    const id = recorder.request("hangs");
    await recorder.until(() => peer.seen.length === 1);
    recorder.forget(id);
    await expect.poll(() => closed).toBe(1);
    expect(recorder.order).toEqual([]);
  });
});

it.each([
  ["not a URL", {}, /cannot be read/],
  ["file:///etc/passwd", {}, /not file:/],
  ["http://x/", { "bad name": "x" }, /"bad name"/],
  ["http://x/", { good: "a\r\nb: canary" }, /^((?!canary).)*$/],
])("the target %s with headers %j is refused before anything is sent", (url, headers, message) => {
  const make = () =>
    new StreamableLink({ kind: "http", url, headers: headers as Record<string, string> }, new Recorder());
  expect(make).toThrow(message);
});

it("userinfo of the URL becomes Basic credentials and is never shown", async () => {
  const peer = new Peer((_, response) => response.writeHead(401).end());
  const url = await peer.listen();
  cleanups.push(() => peer.close());
  const recorder = await connect(url.replace("//", "//user:p%40ss-canary@"));
  const { fault } = await recorder.failure(recorder.request("initialize"));
  const sent = peer.seen[0]?.headers.authorization ?? "";
  expect(Buffer.from(sent.slice(6), "base64").toString()).toBe("user:p@ss-canary");
  expect(JSON.stringify([fault.message, recorder.link.describe()])).not.toMatch(/canary|user/);
});

function endless(response: Parameters<Answer>[1]): void {
  const chunk = Buffer.alloc(16 * 1024, "x");
  const write = () => {
    while (!response.destroyed && response.write(chunk));
    if (!response.destroyed) response.once("drain", write);
  };
  write();
}

function cutBody(response: Parameters<Answer>[1]): void {
  response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
  response.write('{"jsonrpc"', () => response.socket?.destroy());
}

function connections(peer: Peer): Promise<number> {
  return new Promise((resolve, reject) => {
    peer.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });
}

/** A reply of more than is held in one piece. */
function long(id: number): object {
  return { jsonrpc: "2.0", id, result: { content: [{ type: "text", text: "x".repeat(2 * PIECED_REPLY_BYTES) }] } };
}
