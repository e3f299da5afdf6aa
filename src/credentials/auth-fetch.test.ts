import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { ShortRequest } from "../runtime/network/short-request.js";
import { authFetch } from "./auth-fetch.js";

const ADDRESSES: Record<string, string[]> = {
  "mcp.example.com": ["203.0.113.5"],
  "login.example.com": ["203.0.113.6"],
  "inside.example.com": ["10.0.0.8"],
  "rebind.example.com": ["203.0.113.7", "127.0.0.1"],
  "only-here.example.com": ["127.0.0.1"],
  "meta.example.com": ["169.254.169.254"],
};

const resolve = async (host: string) => (ADDRESSES[host] ?? []).map((address) => ({ address }));

/** Asks as the transport would: a name is looked up, and what comes of it is connected to. */
function make(serverUrl: string, isElsewhere = false, onAsked: (request: ShortRequest) => void = () => {}) {
  const connected: string[] = [];
  const send = async (request: ShortRequest) => {
    const { url, lookup } = request;
    onAsked(request);
    const addresses = await new Promise<string[]>((done, failed) => {
      if (/^[\d.]+$|^\[/.test(url.hostname) || url.hostname === "localhost") return done([url.hostname]);
      lookup(url.hostname, { all: true }, (error, found) =>
        error === null ? done((found as { address: string }[]).map(({ address }) => address)) : failed(error),
      );
    });
    connected.push(...addresses);
    return { status: 200, headers: { "content-type": "application/json" }, body: Buffer.from("{}") };
  };
  const fetch = authFetch({ serverUrl, isElsewhere, send, signal: new AbortController().signal, resolve });
  return { fetch, connected };
}

describe("what a login asks", () => {
  it.each([
    ["https://login.example.com/x", ["203.0.113.6"]],
    ["https://rebind.example.com/x", ["203.0.113.7"]],
  ])(
    "%s of a server on the internet is asked, at the addresses that may be reached [login-guarded]",
    async (url, addresses) => {
      const { fetch, connected } = make("https://mcp.example.com/mcp");
      expect((await fetch(url)).status).toBe(200);
      expect(connected).toEqual(addresses);
    },
  );

  it.each([
    ["http://login.example.com/x", /is not https/],
    ["https://169.254.169.254/latest", /169\.254\.169\.254 is/],
    ["https://metadata.google.internal/x", /metadata address/],
    ["https://meta.example.com/x", /169\.254\.169\.254/],
    ["https://10.0.0.8/x", /a private network/],
    ["https://inside.example.com/x", /a private network/],
    ["https://only-here.example.com/x", /this machine itself/],
    ["http://127.0.0.1:8500/x", /this machine itself/],
    ["https://[::1]/x", /this machine itself/],
    ["https://localhost/x", /this machine itself/],
    ["https://2130706433/x", /this machine itself/],
    ["file:///etc/passwd", /not https/],
    ["javascript:alert(1)", /not https/],
    ["https://me:pass@login.example.com/x", /a user or a password/],
  ])("%s of a server on the internet is refused, and nothing is connected to [login-guarded]", async (url, why) => {
    const { fetch, connected } = make("https://mcp.example.com/mcp");
    await expect(fetch(url)).rejects.toThrow(why);
    expect(connected).toEqual([]);
  });

  it.each([
    ["http://127.0.0.1:3000/mcp", "http://127.0.0.1:4000/x"],
    ["http://127.0.0.1:3000/mcp", "http://localhost:4000/x"],
    ["https://10.1.1.1/mcp", "https://10.0.0.8/x"],
    // Its own address is the operator's choice.
    ["http://mcp.example.com/mcp", "http://mcp.example.com/.well-known/x"],
  ])("of a server at %s %s is asked: it is no nearer than the server", async (server, url) => {
    expect((await make(server).fetch(url)).status).toBe(200);
  });

  it.each([
    ["https://10.0.0.8/authorize", /a private network/],
    ["https://inside.example.com/authorize", /inside\.example\.com \(10\.0\.0\.8\) is a private network/],
    ["https://rebind.example.com/authorize", /this machine itself/],
    ["http://127.0.0.1:8500/authorize", /this machine itself/],
    ["https://localhost/authorize", /this machine itself/],
    ["https://meta.example.com/authorize", /169\.254\.169\.254/],
    ["https://metadata.google.internal/authorize", /metadata address/],
  ])(
    "%s as the login page of a server on the internet is refused, and nothing is connected to [login-guarded]",
    async (url, why) => {
      const { fetch, connected } = make("https://mcp.example.com/mcp");
      expect(await fetch.pageRefusal?.(new URL(url))).toMatch(why);
      expect(connected).toEqual([]);
    },
  );

  it.each([
    ["https://mcp.example.com/mcp", "https://login.example.com/authorize"],
    ["https://mcp.example.com/mcp", "https://nobody-knows.example.com/authorize"],
    ["https://10.1.1.1/mcp", "https://10.0.0.8/authorize"],
    ["https://10.1.1.1/mcp", "https://inside.example.com/authorize"],
    ["http://127.0.0.1:3000/mcp", "http://localhost:4000/authorize"],
    ["http://127.0.0.1:3000/mcp", "https://inside.example.com/authorize"],
  ])("of a server at %s %s is a login page that a person is sent to", async (server, url) => {
    const { fetch, connected } = make(server);
    expect(await fetch.pageRefusal?.(new URL(url))).toBeUndefined();
    expect(connected).toEqual([]);
  });

  it("of a private network is not on this machine [login-guarded]", async () => {
    await expect(make("https://10.1.1.1/mcp").fetch("http://127.0.0.1:4000/x")).rejects.toThrow("this machine itself");
  });

  it("what cannot be asked is an error as of any fetch, which nobody takes for an answer [login-guarded]", async () => {
    const fetch = authFetch({
      serverUrl: "https://mcp.example.com/mcp",
      isElsewhere: false,
      send: () => Promise.reject(new Error("its answer has more than 262144 bytes")),
      signal: new AbortController().signal,
      resolve,
    });
    await expect(fetch("https://login.example.com/x")).rejects.toThrow(TypeError);
    await expect(fetch("https://login.example.com/x")).rejects.toThrow(
      "https://login.example.com cannot be asked: its answer has more than 262144 bytes.",
    );
  });

  it("is a few kilobytes: an answer of more than 256 KiB is not taken [bounded] [login-guarded]", async () => {
    const asked: ShortRequest[] = [];
    const { fetch } = make("https://mcp.example.com/mcp", false, (request) => asked.push(request));
    await fetch("https://login.example.com/x");
    expect(asked.map(({ maxBytes }) => maxBytes)).toEqual([262_144]);
  });

  it("is given up after 10 s without an answer, and it is said which place is slow [bounded] [login-guarded]", async () => {
    const over = new AbortController();
    const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(over.signal);
    onTestFinished(() => timeout.mockRestore());
    let isAsked = false;
    const fetch = authFetch({
      serverUrl: "https://mcp.example.com/mcp",
      isElsewhere: false,
      send: ({ signal }) =>
        new Promise((_, reject) => {
          isAsked = true;
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        }),
      signal: new AbortController().signal,
      resolve,
    });
    const refused = expect(fetch("https://login.example.com/x")).rejects.toThrow(
      "https://login.example.com cannot be asked: it did not answer within 10 s.",
    );
    await expect.poll(() => isAsked).toBe(true);
    expect(timeout.mock.calls).toEqual([[10_000]]);
    over.abort(new DOMException("timed out", "TimeoutError"));
    await refused;
  });
});
