import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer as createHttpsServer } from "node:https";
import type { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import {
  ask,
  cleanUp,
  httpFor,
  httpServer,
  listen,
  rawServer,
  start,
} from "../../../test/fixtures/executor/http-requests.js";

const LOCAL = ["127.0.0.1", "localhost"];
const MIB = 1024 * 1024;

afterEach(cleanUp);

function pem(name: string): string {
  return readFileSync(new URL(`../../../test/fixtures/executor/self-signed.${name}.pem`, import.meta.url), "utf8");
}

describe("what a server is sent", () => {
  it("has the executor's host, length and accept, and the client's headers in order [exec-keep]", async () => {
    const heads: string[] = [];
    const origin = await rawServer((socket, head) => {
      heads.push(head);
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    });
    const http = httpFor(LOCAL);
    await ask(http, `${origin}/a?b=c#d`, { method: "POST", body: "hello", headers: { "x-b": "1", "x-a": "2" } });
    await ask(http, origin, { headers: { accept: "text/plain" } });
    await ask(http, origin, { method: "POST" });
    const lines = heads.map((head) => head.toLowerCase().split("\r\n"));
    expect(lines[0]?.filter((line) => !line.startsWith("connection"))).toEqual([
      "post /a?b=c http/1.1",
      `host: ${new URL(origin).host}`,
      "x-b: 1",
      "x-a: 2",
      "accept: */*",
      "content-length: 5",
    ]);
    expect(lines[1]).toContain("accept: text/plain");
    expect(lines[1]?.filter((line) => /^(accept: \*|content-length|transfer-encoding)/.test(line))).toEqual([]);
    expect(lines[2]).toContain("content-length: 0");
  });

  it("is a body that streams, as it comes [exec-5]", async () => {
    const heard: string[] = [];
    const origin = await httpServer((request, response) => {
      request.on("data", (chunk: Buffer) => heard.push(chunk.toString()));
      request.on("end", () => response.end(`${request.headers["transfer-encoding"]} ${heard.join("")}`));
    });
    const body = new PassThrough();
    const { heard: answer } = start(httpFor(LOCAL), origin, { method: "POST", body });
    body.write("one ");
    await expect.poll(() => heard).toEqual(["one "]);
    body.end("two");
    await answer.ended;
    expect(answer.body).toBe("chunked one two");
  });

  it("waits while the server does not read, and nothing piles up", async () => {
    let socket: Socket | undefined;
    const origin = await httpServer((request) => {
      request.pause();
      socket = request.socket;
    });
    let given = 0;
    const piece = Buffer.alloc(64 * 1024);
    const body = new PassThrough({ highWaterMark: piece.length });
    const write = () => {
      do given += piece.length;
      while (given < 64 * MIB && body.write(piece));
    };
    body.on("drain", write);
    const { handle } = start(httpFor(LOCAL), origin, { method: "PUT", body });
    write();
    await expect.poll(() => socket !== undefined).toBe(true);
    await standsStill(() => given);
    expect(given).toBeLessThan(32 * MIB);
    handle.abort();
    expect(body.destroyed).toBe(true);
  });

  it("ends with an upload that breaks off", async () => {
    const seen = { begun: false, cut: false };
    const origin = await httpServer((request) => {
      request.on("data", () => {
        seen.begun = true;
      });
      request.on("error", () => {
        seen.cut = true;
      });
    });
    const body = new PassThrough();
    const { heard } = start(httpFor(LOCAL), origin, { method: "POST", body });
    body.write("some");
    await expect.poll(() => seen.begun).toBe(true);
    body.destroy(new Error("the client went away"));
    await heard.ended;
    expect(heard.failure?.data.code).toBe("cancelled");
    expect(heard.failure?.message).toContain("the upload broke off: the client went away");
    await expect.poll(() => seen.cut).toBe(true);
  });

  it("is dropped when the answer is complete before it", async () => {
    const origin = await rawServer((socket) => socket.write("HTTP/1.1 413 No\r\ncontent-length: 2\r\n\r\nno"));
    const body = new PassThrough();
    const { heard } = start(httpFor(LOCAL), origin, { method: "POST", body });
    body.write("some");
    await heard.ended;
    expect([heard.status, heard.body]).toEqual([413, "no"]);
    expect(body.destroyed).toBe(true);
  });
});

describe("an answer", () => {
  it("has its status, its header names in lower case, and repeats in order [exec-keep]", async () => {
    const origin = await rawServer((socket) =>
      socket.write(
        "HTTP/1.1 404 Gone\r\nSet-Cookie: a=1\r\nX-Y: z\r\nset-cookie: b=2\r\nDate: now\r\ndate: then\r\nContent-Length: 4\r\n\r\nnope",
      ),
    );
    const heard = await ask(httpFor(LOCAL), origin);
    expect(heard.events).toEqual(["head", "data", "end"]);
    expect([heard.status, heard.body]).toEqual([404, "nope"]);
    expect(heard.headers.map(({ name, value }) => `${name}=${value}`)).toEqual([
      "set-cookie=a=1",
      "x-y=z",
      "set-cookie=b=2",
      "date=now",
      "date=then",
      "content-length=4",
    ]);
  });

  it("is not decoded, and cookies are not kept [exec-keep]", async () => {
    const packed = gzipSync("plain text");
    const cookies: (string | undefined)[] = [];
    const origin = await httpServer((request, response) => {
      cookies.push(request.headers.cookie);
      response.writeHead(200, { "content-encoding": "gzip", "set-cookie": "a=1" }).end(packed);
    });
    const http = httpFor(LOCAL);
    const heard = await ask(http, origin);
    await ask(http, origin);
    expect(Buffer.concat(heard.chunks).equals(packed)).toBe(true);
    expect(heard.valuesOf("content-encoding")).toEqual(["gzip"]);
    expect(cookies).toEqual([undefined, undefined]);
  });

  it("to HEAD, and of 204 and 304, has no body, and the connection is used again", async () => {
    const sockets = new Set<Socket>();
    const origin = await rawServer((socket, head) => {
      sockets.add(socket);
      const status = head.startsWith("HEAD") ? "200 OK" : head.includes("/304") ? "304 Same" : "204 Nothing";
      const length = head.startsWith("HEAD") || head.includes("/304") ? "content-length: 10\r\n" : "";
      socket.write(`HTTP/1.1 ${status}\r\n${length}\r\n`);
    });
    const http = httpFor(LOCAL);
    for (const [method, path, status] of [
      ["HEAD", "/", 200],
      ["GET", "/204", 204],
      ["GET", "/304", 304],
    ] as const) {
      const heard = await ask(http, origin + path, { method });
      expect([heard.status, heard.events]).toEqual([status, ["head", "end"]]);
    }
    expect(sockets.size).toBe(1);
  });

  it("comes after informational ones, which are not told", async () => {
    const origin = await rawServer((socket) => {
      socket.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: <a>\r\n\r\n");
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
    const heard = await ask(httpFor(LOCAL), origin);
    expect([heard.status, heard.body, heard.events]).toEqual([200, "ok", ["head", "data", "end"]]);
  });

  it("that nobody asked for, an upgrade, is a failure", async () => {
    const origin = await rawServer((socket) =>
      socket.write("HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"),
    );
    const heard = await ask(httpFor(LOCAL), origin);
    expect(heard.events).toEqual(["failure"]);
  });

  it("without a length ends where the connection does", async () => {
    const origin = await rawServer((socket) => socket.end("HTTP/1.0 200 OK\r\n\r\nall of it"));
    const heard = await ask(httpFor(LOCAL), origin);
    expect([heard.body, heard.events]).toEqual(["all of it", ["head", "data", "end"]]);
  });

  it("with headers beyond the bounds is a failure [bounded]", async () => {
    const origin = await rawServer((socket, head) => {
      const headers = head.includes("/many") ? "a: b\r\n".repeat(300) : `a: ${"b".repeat(70_000)}\r\n`;
      socket.write(`HTTP/1.1 200 OK\r\n${headers}content-length: 0\r\n\r\n`);
    });
    const http = httpFor(LOCAL);
    for (const path of ["/many", "/large"]) {
      const heard = await ask(http, origin + path);
      expect([path, heard.events, heard.failure?.data]).toEqual([path, ["failure"], { code: "limit", written: true }]);
    }
  });
});

describe("https", () => {
  async function tlsServer(): Promise<number> {
    const server = createHttpsServer({ key: pem("key"), cert: pem("cert") }, (_request, response) =>
      response.end("ok"),
    );
    server.on("tlsClientError", () => {});
    return listen(server);
  }

  it("fails clearly with a certificate that nobody vouches for", async () => {
    const heard = await ask(httpFor(LOCAL), `https://localhost:${await tlsServer()}/`);
    expect(heard.events).toEqual(["failure"]);
    expect(heard.failure?.data).toEqual({ code: "DEPTH_ZERO_SELF_SIGNED_CERT", written: false });
    expect(heard.failure?.message).toMatch(/certificate of localhost:\d+ is not trusted.*NODE_EXTRA_CA_CERTS/);
  });

  it("works with one that is, by name and by address, and not for another name", async () => {
    const port = await tlsServer();
    const http = httpFor(["*", ...LOCAL, "other.test"], {
      ca: pem("cert"),
      resolve: async () => [{ address: "127.0.0.1" }],
    });
    expect((await ask(http, `https://localhost:${port}/`)).body).toBe("ok");
    expect((await ask(http, `https://127.0.0.1:${port}/`)).body).toBe("ok");
    const other = httpFor(["other.test", "127.0.0.1"], {
      ca: pem("cert"),
      resolve: async () => [{ address: "127.0.0.1" }],
    });
    const heard = await ask(other, `https://other.test:${port}/`);
    expect(heard.failure?.data).toEqual({ code: "ERR_TLS_CERT_ALTNAME_INVALID", written: false });
  });

  it("to a server that speaks plain HTTP says so", async () => {
    const origin = await httpServer((_request, response) => response.end());
    const heard = await ask(httpFor(LOCAL), origin.replace("http:", "https:"));
    expect(heard.failure?.message).toContain("is it https?");
    expect(heard.failure?.data.written).toBe(false);
  });
});

describe("a reader", () => {
  it("that pauses stops the server, and then gets everything in order [exec-1]", async () => {
    const total = 48 * MIB;
    const piece = Buffer.alloc(64 * 1024);
    let written = 0;
    const origin = await httpServer((_request, response) => {
      const write = () => {
        while (written < total) {
          piece.fill((written / piece.length) % 251);
          written += piece.length;
          if (!response.write(Buffer.from(piece))) {
            response.once("drain", write);
            return;
          }
        }
        response.end();
      };
      write();
    });
    const { heard, handle } = start(httpFor(LOCAL), origin);
    heard.during = (event) => {
      if (event === "data") handle.pause();
    };
    await expect.poll(() => heard.bytes).toBeGreaterThan(0);
    await standsStill(() => written);
    expect(heard.chunks.length).toBe(1);
    expect(written).toBeLessThan(32 * MIB);
    heard.during = () => {};
    handle.resume();
    await heard.ended;
    expect(heard.events.at(-1)).toBe("end");
    const all = Buffer.concat(heard.chunks);
    expect(all.length).toBe(total);
    for (let at = 0; at < total; at += piece.length) {
      if (all[at] !== (at / piece.length) % 251) throw new Error(`out of order at ${at}`);
    }
  });

  it("may pause before the head and at every piece", async () => {
    const origin = await httpServer((_request, response) => {
      for (let i = 0; i < 20; i++) response.write(`${i},`);
      response.end();
    });
    const { heard, handle } = start(httpFor(LOCAL), origin);
    handle.pause();
    await expect.poll(() => heard.status).toBe(200);
    expect(heard.chunks).toEqual([]);
    heard.during = (event) => {
      if (event !== "data") return;
      handle.pause();
      setImmediate(() => handle.resume());
    };
    handle.resume();
    await heard.ended;
    expect(heard.body).toBe("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,");
  });

  it.each([
    ["with a length, kept alive", "content-length: 10\r\n", "0123456789"],
    ["with a length, closed", "connection: close\r\ncontent-length: 10\r\n", "0123456789"],
    ["in chunks", "transfer-encoding: chunked\r\n", "a\r\n0123456789\r\n0\r\n\r\n"],
    ["without a length", "connection: close\r\n", "0123456789"],
  ])("that is paused while the server closes loses nothing: a body %s", async (_kind, headers, body) => {
    let closed = false;
    const origin = await rawServer((socket) => {
      socket.on("close", () => (closed = true));
      socket.write(`HTTP/1.1 200 OK\r\n${headers}\r\n`);
      setTimeout(() => socket.end(body), 20);
    });
    const { heard, handle } = start(httpFor(LOCAL), origin);
    heard.during = (event) => {
      if (event === "head" || event === "data") handle.pause();
    };
    await expect.poll(() => heard.status).toBe(200);
    await expect.poll(() => closed || headers.includes("connection: close")).toBe(true);
    await sleep(100);
    heard.during = () => {};
    handle.resume();
    await heard.ended;
    expect([heard.body, heard.events]).toEqual(["0123456789", ["head", "data", "end"]]);
  });

  it.each(["head", "data"])(
    "that aborts at the %s hears nothing more, and the server's socket closes [exec-2]",
    async (at) => {
      let closed = false;
      const origin = await httpServer((_request, response) => {
        response.socket?.on("close", () => {
          closed = true;
        });
        const timer = setInterval(() => response.write("x".repeat(1000)), 5);
        response.on("close", () => clearInterval(timer));
      });
      const http = httpFor(LOCAL);
      const { heard, handle } = start(http, origin);
      heard.during = (event) => {
        if (event === at) handle.abort();
      };
      await expect.poll(() => closed).toBe(true);
      expect(heard.events).toEqual(at === "head" ? ["head"] : ["head", "data"]);
      expect(heard.chunks.length).toBe(at === "head" ? 0 : 1);
      expect(http.open).toBe(0);
      handle.pause();
      handle.resume();
      handle.abort();
    },
  );

  it("that aborts before the head frees the server's socket [exec-2]", async () => {
    const sockets: Socket[] = [];
    const origin = await rawServer((socket) => sockets.push(socket));
    const { heard, handle } = start(httpFor(LOCAL), origin);
    await expect.poll(() => sockets.length).toBe(1);
    const closed = once(sockets[0] as Socket, "close");
    handle.abort();
    await closed;
    expect(heard.events).toEqual([]);
  });

  it("that aborts at once leaves nothing", async () => {
    const http = httpFor(LOCAL);
    const origin = await httpServer((_request, response) => response.end("late"));
    const { heard, handle } = start(http, origin);
    handle.abort();
    expect(http.open).toBe(0);
    expect((await ask(http, origin)).body).toBe("late");
    expect(heard.events).toEqual([]);
  });
});

/** Resolves once it has stopped to grow. */
async function standsStill(count: () => number): Promise<void> {
  for (let before = -1; count() !== before; ) {
    before = count();
    await sleep(300);
  }
}
