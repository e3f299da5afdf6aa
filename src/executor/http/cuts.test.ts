// Connections that break and servers that are late: never a clean end.

import type { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { ask, cleanUp, httpFor, httpServer, rawServer, start } from "../../../test/fixtures/executor/http-requests.js";

const LOCAL = ["127.0.0.1"];

afterEach(cleanUp);

describe("a body that is cut is a failure, not an end [exec-keep]", () => {
  it.each([
    ["with a length, kept alive", "content-length: 10\r\n", "01234"],
    ["with a length, closing", "connection: close\r\ncontent-length: 10\r\n", "01234"],
    ["in chunks, inside one", "transfer-encoding: chunked\r\n", "a\r\n01234"],
    ["in chunks, between two", "transfer-encoding: chunked\r\n", "5\r\n01234\r\n"],
    ["in chunks, closing, inside one", "connection: close\r\ntransfer-encoding: chunked\r\n", "a\r\n01234"],
    ["in chunks, before the last line", "connection: close\r\ntransfer-encoding: chunked\r\n", "5\r\n01234\r\n0\r\n"],
  ])("%s", async (_kind, headers, body) => {
    const origin = await rawServer((socket) => socket.end(`HTTP/1.1 200 OK\r\n${headers}\r\n${body}`));
    const heard = await ask(httpFor(LOCAL), origin);
    expect([heard.body, heard.events.at(-1)]).toEqual(["01234", "failure"]);
    expect(heard.failure?.message).toMatch(
      /^http\/request failed: the body of http:\/\/127\.0\.0\.1:\d+\/ broke off: /,
    );
    expect(heard.failure?.data.written).toBe(true);
  });

  it.each([
    ["with a length", "content-length: 10\r\n", "01234"],
    ["in chunks", "transfer-encoding: chunked\r\n", "5\r\n01234\r\n"],
    ["without a length", "connection: close\r\n", "01234"],
  ])("where the connection is reset: %s", async (_kind, headers, body) => {
    let peer: Socket | undefined;
    const origin = await rawServer((socket) => {
      peer = socket;
      socket.write(`HTTP/1.1 200 OK\r\n${headers}\r\n${body}`);
    });
    const { heard } = start(httpFor(LOCAL), origin);
    await expect.poll(() => heard.body).toBe("01234");
    peer?.resetAndDestroy();
    await heard.ended;
    expect(heard.events).toEqual(["head", "data", "failure"]);
    expect(heard.failure?.data).toEqual({ code: "ECONNRESET", written: true });
  });

  it("where its chunks are none", async () => {
    const origin = await rawServer((socket) => {
      socket.end("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n01234\r\nno length\r\n");
    });
    const heard = await ask(httpFor(LOCAL), origin);
    expect([heard.status, heard.events.at(-1)]).toEqual([200, "failure"]);
    expect(heard.failure?.data).toEqual({ code: "HPE_INVALID_CHUNK_SIZE", written: true });
  });

  it("and one that is whole when the connection is reset is not cut", async () => {
    let peer: Socket | undefined;
    const origin = await rawServer((socket) => {
      peer = socket;
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n01234");
    });
    const { heard, handle } = start(httpFor(LOCAL), origin);
    heard.during = (event) => {
      if (event === "head") handle.pause();
    };
    await expect.poll(() => heard.status).toBe(200);
    peer?.resetAndDestroy();
    await sleep(50);
    handle.resume();
    await heard.ended;
    expect([heard.body, heard.events]).toEqual(["01234", ["head", "data", "end"]]);
  });
});

describe("a request fails before its answer", () => {
  it("where nobody listens, and nothing was written [exec-keep]", async () => {
    const heard = await ask(httpFor(LOCAL), "http://127.0.0.1:1/path?secret=1");
    expect(heard.events).toEqual(["failure"]);
    expect(heard.failure?.rpcCode).toBe(-32603);
    expect(heard.failure?.data).toEqual({ code: "ECONNREFUSED", written: false });
    expect(heard.failure?.message).toContain("ECONNREFUSED 127.0.0.1:1 (http://127.0.0.1:1/path)");
    expect(heard.failure?.message).not.toContain("secret");
  });

  it("where the name has no address", async () => {
    const resolve = async (host: string) => {
      throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: "ENOTFOUND" });
    };
    const heard = await ask(httpFor(["nowhere.test"], { resolve }), "http://nowhere.test/");
    expect(heard.failure?.data).toEqual({ code: "ENOTFOUND", written: false });
  });

  it("where the server hangs up or talks no HTTP", async () => {
    const origin = await rawServer((socket, head) => {
      if (head.includes("/reset")) socket.resetAndDestroy();
      else socket.end(head.includes("/noise") ? "SSH-2.0-OpenSSH\r\n" : "");
    });
    const http = httpFor(LOCAL);
    for (const path of ["/reset", "/noise", "/nothing"]) {
      const heard = await ask(http, origin + path);
      expect([path, heard.events, heard.failure?.data.written]).toEqual([path, ["failure"], true]);
    }
  });

  it("where a kept connection was closed meanwhile, unless it may be made again", async () => {
    let served = 0;
    const origin = await rawServer((socket) => {
      // The second request on a connection is never answered.
      if (socket.bytesWritten > 0) socket.destroy();
      else socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n${++served}`);
    });
    const http = httpFor(LOCAL);
    expect((await ask(http, origin)).body).toBe("1");
    expect((await ask(http, origin)).body).toBe("2");
    const posted = await ask(http, origin, { method: "POST", body: "once" });
    expect(posted.failure?.data).toEqual({ code: "ECONNRESET", written: true });
    expect(served).toBe(2);
  });
});

describe("the time of a request", () => {
  it("is up before the head [exec-keep]", async () => {
    let closed = false;
    const origin = await rawServer((socket) => {
      socket.on("close", () => {
        closed = true;
      });
    });
    const http = httpFor(LOCAL);
    const heard = await ask(http, origin, { timeoutMs: 500 });
    expect(heard.events).toEqual(["failure"]);
    expect(heard.failure?.data.code).toBe("timeout");
    expect(heard.failure?.message).toContain("gave no answer within 500 ms");
    expect(http.open).toBe(0);
    await expect.poll(() => closed).toBe(true);
  });

  it("is up in the body, though it still comes [exec-keep]", async () => {
    const origin = await httpServer((_request, response) => {
      const timer = setInterval(() => response.write("x"), 5);
      response.on("close", () => clearInterval(timer));
    });
    const heard = await ask(httpFor(LOCAL), origin, { timeoutMs: 1_000 });
    expect(heard.events).toEqual(["head", "data", "failure"]);
    expect(heard.failure?.message).toContain("did not end its answer within 1000 ms");
  });

  it("is up across redirects", async () => {
    const origin = await httpServer((_request, response) => {
      setTimeout(() => response.writeHead(302, { location: "/again" }).end(), 250);
    });
    const heard = await ask(httpFor(LOCAL), origin, { timeoutMs: 1_000 });
    expect(heard.failure?.data).toEqual({ code: "timeout", written: true });
  });

  it("of nothing is up at once, and nobody hears of the request [exec-keep]", async () => {
    let connected = false;
    const origin = await httpServer((_request, response) => {
      connected = true;
      response.end();
    });
    const http = httpFor(LOCAL);
    const heard = await ask(http, `${origin}/now`, { timeoutMs: 0 });
    expect(heard.failure?.data).toEqual({ code: "timeout", written: false });
    expect(connected).toBe(false);
  });

  it("without a word is bounded, and a word renews it [bounded]", async () => {
    const seen = { quiet: false };
    const origin = await httpServer((_request, response) => {
      response.write("x");
      const timer = setInterval(() => {
        if (!seen.quiet) response.write("x");
      }, 40);
      response.on("close", () => clearInterval(timer));
    });
    const { heard } = start(httpFor(LOCAL, { idleMs: 1_500 }), origin);
    // For longer than the bound.
    await expect.poll(() => heard.bytes).toBeGreaterThan(45);
    expect(heard.failure).toBe(undefined);
    seen.quiet = true;
    await heard.ended;
    expect(heard.failure?.data.code).toBe("timeout");
    expect(heard.failure?.message).toContain("was silent for");
  });

  it("without a reader is bounded as well, and not laid at the server's door [bounded]", async () => {
    const origin = await httpServer((_request, response) => response.end(Buffer.alloc(4 * 1024 * 1024)));
    const { heard, handle } = start(httpFor(LOCAL, { idleMs: 200 }), origin);
    heard.during = (event) => {
      if (event === "head") handle.pause();
    };
    await heard.ended;
    expect(heard.failure?.data).toEqual({ code: "timeout", written: true });
    expect(heard.failure?.message).toContain("nobody read the answer of");
  });

  it("to connect is bounded", async () => {
    // Of a lookup that never answers, as of an address that drops what is sent to it.
    const http = httpFor(["slow.test"], { connectMs: 100, resolve: () => new Promise(() => {}) });
    const heard = await ask(http, "http://slow.test/");
    expect(heard.failure?.data).toEqual({ code: "timeout", written: false });
    expect(heard.failure?.message).toContain("slow.test accepted no connection within 100 ms");
  });
});

describe("the end of an executor", () => {
  it("fails what is open, and starts nothing more [exec-keep]", async () => {
    const origin = await httpServer((_request, response) => response.write("x"));
    const http = httpFor(LOCAL);
    const { heard } = start(http, origin);
    await expect.poll(() => heard.body).toBe("x");
    const body = new PassThrough();
    const { heard: upload } = start(http, origin, { method: "POST", body });
    await expect.poll(() => upload.body).toBe("x");
    expect(http.open).toBe(2);
    await http.close();
    expect([heard.events.at(-1), upload.events.at(-1), http.open]).toEqual(["failure", "failure", 0]);
    expect(heard.failure?.data.code).toBe("cancelled");
    expect(body.destroyed).toBe(true);
    expect((await ask(http, origin)).failure?.data).toEqual({ code: "cancelled", written: false });
  });

  it("a thousand requests at once are each answered with their own [exec-7]", async () => {
    const origin = await httpServer((request, response) => {
      setTimeout(() => response.end(request.url), 50);
    });
    const http = httpFor(LOCAL);
    const all = await Promise.all(Array.from({ length: 1000 }, (_, i) => ask(http, `${origin}/${i}`)));
    expect(all.filter((heard, i) => heard.body !== `/${i}`)).toEqual([]);
    expect(http.open).toBe(0);
  });
});
