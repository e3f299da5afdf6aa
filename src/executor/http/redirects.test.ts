// Where redirects may lead, and where names may: with real servers.

import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { ask, cleanUp, httpFor, httpServer, rawServer, start } from "../../../test/fixtures/executor/http-requests.js";

const LOCAL = ["127.0.0.1", "localhost"];

afterEach(cleanUp);

interface Seen {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingMessage["headers"];
  body: string;
}

/** Answers `/STATUS?to=URL` with that redirect, anything else with 200. */
async function redirecting(): Promise<{ origin: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const origin = await httpServer((request, response) => {
    const one: Seen = { method: request.method, path: request.url, headers: request.headers, body: "" };
    seen.push(one);
    request.setEncoding("utf8").on("data", (text: string) => {
      one.body += text;
    });
    request.on("end", () => {
      const url = new URL(request.url ?? "/", "http://any");
      const to = url.searchParams.get("to");
      if (to === null) response.end(`here: ${url.pathname}`);
      else response.writeHead(Number(url.pathname.slice(1)), { location: to }).end("moved");
    });
  });
  return { origin, seen };
}

describe("a redirect", () => {
  it("is followed, relative and absolute, unless it is to stop [exec-keep]", async () => {
    const { origin } = await redirecting();
    const http = httpFor(LOCAL);
    expect((await ask(http, `${origin}/302?to=/there%23part`)).body).toBe("here: /there");
    expect((await ask(http, `${origin}/308?to=${encodeURIComponent(`${origin}/far`)}`)).body).toBe("here: /far");
    const stopped = await ask(http, `${origin}/302?to=/there`, { redirect: "stop" });
    expect([stopped.status, stopped.valuesOf("location"), stopped.body]).toEqual([302, ["/there"], "moved"]);
  });

  it("without a location, or one that is no URL, is the answer", async () => {
    const origin = await rawServer((socket, head) => {
      const location = head.includes("/none") ? "" : "location: http://[\r\n";
      socket.write(`HTTP/1.1 302 Found\r\n${location}content-length: 4\r\n\r\nhere`);
    });
    for (const path of ["/none", "/odd"]) {
      const heard = await ask(httpFor(LOCAL), origin + path);
      expect([heard.status, heard.body]).toEqual([302, "here"]);
    }
  });

  it.each([
    [301, "GET", ""],
    [302, "GET", ""],
    [303, "GET", ""],
    [307, "POST", "the body"],
    [308, "POST", "the body"],
  ])("%i of a POST becomes a %s [exec-keep]", async (status, method, body) => {
    const { origin, seen } = await redirecting();
    const headers = { "content-type": "text/plain", "x-own": "kept" };
    await ask(httpFor(LOCAL), `${origin}/${status}?to=/there`, { method: "POST", body: "the body", headers });
    expect(seen[0]?.body).toBe("the body");
    expect([seen[1]?.method, seen[1]?.body, seen[1]?.headers["x-own"]]).toEqual([method, body, "kept"]);
    expect(seen[1]?.headers["content-type"]).toBe(method === "POST" ? "text/plain" : undefined);
  });

  it("to another origin loses what was for the first [exec-keep]", async () => {
    const [first, second] = [await redirecting(), await redirecting()];
    const headers = { authorization: "Bearer secret", cookie: "a=1", "proxy-authorization": "x", "x-own": "kept" };
    const http = httpFor(LOCAL);
    await ask(http, `${first.origin}/302?to=/same`, { headers });
    expect(first.seen[1]?.headers).toMatchObject(headers);
    await ask(http, `${first.origin}/302?to=${encodeURIComponent(`${second.origin}/other`)}`, { headers });
    const sent = second.seen[0]?.headers;
    expect([sent?.authorization, sent?.cookie, sent?.["proxy-authorization"]]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect([sent?.["x-own"], sent?.host]).toEqual(["kept", new URL(second.origin).host]);
  });

  it("is followed ten times and no more [bounded]", async () => {
    let count = 0;
    const origin = await httpServer((request, response) => {
      count++;
      const left = Number(request.url?.slice(1));
      if (left === 0) response.end("arrived");
      else response.writeHead(302, { location: `/${left - 1}` }).end();
    });
    const http = httpFor(LOCAL);
    expect((await ask(http, `${origin}/10`)).body).toBe("arrived");
    count = 0;
    const heard = await ask(http, `${origin}/1000`);
    expect([heard.events, count]).toEqual([["failure"], 11]);
    expect(heard.failure?.data).toEqual({ code: "limit", written: true });
    expect(heard.failure?.message).toContain("too many redirects");
  });

  it("of a streamed body says that it cannot be sent twice", async () => {
    const { origin, seen } = await redirecting();
    const http = httpFor(LOCAL);
    const [body, other] = [new PassThrough(), new PassThrough()];
    const { heard } = start(http, `${origin}/307?to=/there`, { method: "POST", body });
    body.end("streamed");
    await heard.ended;
    expect(heard.failure?.data).toEqual({ code: "redirect", written: true });
    expect(heard.failure?.message).toMatch(/HTTP 307 to .*\/there asks for the body again, which was streamed/);
    const { heard: got } = start(http, `${origin}/303?to=/there`, { method: "POST", body: other });
    other.end("streamed");
    await got.ended;
    expect([got.body, seen.at(-1)?.method, seen.at(-1)?.body]).toEqual(["here: /there", "GET", ""]);
  });

  it("with a body that never ends is left behind", async () => {
    let closed = false;
    const origin = await rawServer((socket, head) => {
      if (head.includes("/there")) {
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nthere");
        return;
      }
      socket.on("close", () => {
        closed = true;
      });
      socket.write("HTTP/1.1 302 Found\r\nlocation: /there\r\ncontent-length: 1000\r\n\r\nsome");
    });
    expect((await ask(httpFor(LOCAL), origin)).body).toBe("there");
    await expect.poll(() => closed).toBe(true);
  });
});

describe("what may not be reached is not reached [exec-6]", () => {
  it.each([
    ["http://169.254.169.254/latest/meta-data/", "169.254.169.254"],
    ["http://[::ffff:a9fe:a9fe]/", "a9fe"],
    ["http://metadata.google.internal/", "metadata"],
    ["http://0x7f.1:1/", "127.0.0.1"],
    ["http://internal.test/", "internal.test"],
    ["file:///etc/passwd", "file"],
    ["ftp://files.test/", "ftp"],
    ["http://user:pass@public.test/", "password"],
  ])("by a redirect to %s", async (target, named) => {
    const origin = await rawServer((socket) =>
      socket.write(`HTTP/1.1 302 Found\r\nlocation: ${target}\r\ncontent-length: 0\r\n\r\n`),
    );
    const port = new URL(origin).port;
    const asked: string[] = [];
    const resolve = async (host: string) => {
      asked.push(host);
      return [{ address: "127.0.0.1" }];
    };
    // Only this one port of loopback is allowed, and the name of one public place.
    const http = httpFor([`127.0.0.1:${port}`, "public.test"], { resolve });
    const heard = await ask(http, origin);
    expect(heard.events).toEqual(["failure"]);
    expect(heard.failure?.data).toEqual({ code: "forbidden", written: true });
    expect(heard.failure?.message).toContain(named);
    expect(asked).toEqual([]);
  });

  it("by a redirect to a name that leads to a forbidden address", async () => {
    const origin = await rawServer((socket) =>
      socket.write("HTTP/1.1 307 Moved\r\nlocation: http://rebound.test/\r\ncontent-length: 0\r\n\r\n"),
    );
    const http = httpFor([`127.0.0.1:${new URL(origin).port}`, "rebound.test"], {
      resolve: async () => [{ address: "169.254.169.254" }],
    });
    const heard = await ask(http, origin, { method: "POST", body: "x" });
    expect(heard.failure?.data).toEqual({ code: "forbidden", written: true });
    expect(heard.failure?.message).toContain("169.254.169.254");
  });

  it("by its first URL, by name or address, and nothing is written", async () => {
    const http = httpFor(["good.test"], { resolve: async () => [{ address: "127.0.0.1" }] });
    for (const url of ["http://169.254.169.254/", "http://127.0.0.1/", "http://bad.test/", "http://good.test/"]) {
      const heard = await ask(http, url);
      expect([url, heard.failure?.data]).toEqual([url, { code: "forbidden", written: false }]);
    }
  });

  it("by DNS that answers otherwise the next time: the address that was judged is connected to", async () => {
    const origin = await httpServer((_request, response) => response.writeHead(200, { connection: "close" }).end("ok"));
    const port = new URL(origin).port;
    const answers = ["127.0.0.1", "169.254.169.254", "127.0.0.1"];
    let asked = 0;
    const resolve = async () => [{ address: answers[asked++] ?? "169.254.169.254" }];
    const http = httpFor(["flips.test", "127.0.0.1"], { resolve });
    const url = `http://flips.test:${port}/`;
    // One lookup a connection: a second one would have met the forbidden address.
    expect((await ask(http, url)).body).toBe("ok");
    expect(asked).toBe(1);
    expect((await ask(http, url)).failure?.data).toEqual({ code: "forbidden", written: false });
    expect((await ask(http, url)).body).toBe("ok");
    expect(asked).toBe(3);
  });

  it("by a name of which one address is forbidden: only the other is tried", async () => {
    const origin = await httpServer((_request, response) => response.end("ok"));
    const resolve = async () => [{ address: "169.254.169.254" }, { address: "127.0.0.1" }];
    const http = httpFor(["both.test", "127.0.0.1"], { resolve });
    expect((await ask(http, `http://both.test:${new URL(origin).port}/`)).body).toBe("ok");
  });
});
