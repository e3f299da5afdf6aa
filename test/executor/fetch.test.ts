// fetch through a real executor, beside the global one where the two must agree; and the SDK's OAuth code with it.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import {
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  exchangeAuthorization,
  registerClient,
} from "@modelcontextprotocol/sdk/client/auth.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Destinations } from "../../src/executor/allow/destinations.js";
import type { ExecutorClient } from "../../src/executor/client/connect.js";
import { connectExecutor } from "../../src/executor/client/connect.js";
import { createExecutor, type Executor } from "../../src/executor/server/executor.js";
import { type Listener, listenForClients } from "../../src/executor/server/listener.js";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";

const TEXT = "a text that is packed. ".repeat(500);
const PACKED: Record<string, Buffer> = {
  gzip: gzipSync(TEXT),
  deflate: deflateSync(TEXT),
  br: brotliCompressSync(TEXT),
  "gzip, br": brotliCompressSync(gzipSync(TEXT)),
};

let executor: Executor;
let listener: Listener;
let client: ExecutorClient;
let url: string;
let dropped = 0;
let loops = 0;
const held: ServerResponse[] = [];

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", url);
  response.on("close", () => {
    if (!response.writableFinished) dropped++;
  });
  if (pathname === "/echo") {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    response.setHeader("content-type", "application/json");
    const { method, headers } = request;
    response.end(JSON.stringify({ method, headers, body: Buffer.concat(chunks).toString() }));
  } else if (pathname === "/packed") {
    const encoding = searchParams.get("as") as string;
    const body = encoding === "raw" ? deflateRawSync(TEXT) : (PACKED[encoding] as Buffer);
    response.setHeader("content-encoding", encoding === "raw" ? "deflate" : encoding);
    response.end(body);
  } else if (pathname === "/redirect") {
    const code = Number(searchParams.get("code") ?? 302);
    response.writeHead(code, { location: searchParams.get("to") ?? "/echo" }).end();
  } else if (pathname === "/status") response.writeHead(Number(searchParams.get("code")), { "x-a": "1" }).end();
  else if (pathname === "/loop") {
    loops++;
    response.writeHead(302, { location: "/loop" }).end();
  } else if (pathname === "/cookies") response.writeHead(200, { "set-cookie": ["a=1", "b=2"] }).end();
  else if (pathname === "/cut") {
    response.writeHead(200, { "content-length": "100" });
    response.write("part", () => setTimeout(() => response.destroy(), 20));
  } else if (pathname === "/hold") {
    response.write("held");
    held.push(response);
  } else if (pathname !== "/never") oauth(pathname, request, response);
});

function oauth(pathname: string, request: IncomingMessage, response: ServerResponse): void {
  const json = (value: unknown, status = 200): void => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  };
  if (pathname === "/.well-known/oauth-protected-resource/mcp") {
    json({ resource: `${url}/mcp`, authorization_servers: [url] });
  } else if (pathname === "/.well-known/oauth-authorization-server") {
    json({
      issuer: url,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      registration_endpoint: `${url}/register`,
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"],
    });
  } else if (pathname === "/register") {
    json({ client_id: "the-client", redirect_uris: ["http://localhost/callback"] }, 201);
  } else if (pathname === "/token") {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const form = new URLSearchParams(body);
      if (form.get("code") !== "the-code") json({ error: "invalid_grant" }, 400);
      else json({ access_token: `for ${form.get("client_id")}`, token_type: "Bearer" });
    });
  } else response.writeHead(404).end();
}

beforeAll(async () => {
  url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  executor = createExecutor({ destinations: Destinations.parse(["127.0.0.1"]) });
  listener = await listenForClients(executor, { host: "127.0.0.1", port: 0, token: undefined });
  client = await connectExecutor({ url: listener.url });
});

afterAll(async () => {
  await client.close();
  await executor.close();
  await listener.close();
  await closeHttp(server);
});

interface Echo {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

describe("fetch through an executor", () => {
  it("lets the SDK's OAuth code find, register and get a token", async () => {
    const fetchFn = client.fetch;
    const resource = await discoverOAuthProtectedResourceMetadata(`${url}/mcp`, {}, fetchFn);
    expect(resource.authorization_servers).toEqual([url]);
    const metadata = await discoverAuthorizationServerMetadata(url, { fetchFn });
    expect(metadata?.token_endpoint).toBe(`${url}/token`);
    const redirectUri = "http://localhost/callback";
    const found = { ...(metadata && { metadata }), fetchFn };
    const clientInformation = await registerClient(url, {
      ...found,
      clientMetadata: { redirect_uris: [redirectUri] },
    });
    const asked = { ...found, clientInformation, codeVerifier: "verifier", redirectUri };
    const tokens = await exchangeAuthorization(url, { ...asked, authorizationCode: "the-code" });
    expect(tokens.access_token).toBe("for the-client");
    await expect(exchangeAuthorization(url, { ...asked, authorizationCode: "another" })).rejects.toThrow();
  });

  it.each<[string, () => NonNullable<RequestInit["body"]> | null]>([
    ["text", () => "plain"],
    ["bytes", () => new TextEncoder().encode("plain")],
    ["a buffer", () => new TextEncoder().encode("plain").buffer],
    ["a blob", () => new Blob(["plain"], { type: "text/x-blob" })],
    ["a form", () => new URLSearchParams({ a: "1 2" })],
    ["nothing", () => null],
    ["an empty text", () => ""],
  ])("sends %s as the global one does", async (_what, body) => {
    const answers: Echo[] = [];
    for (const one of [fetch, client.fetch]) {
      const response = await one(`${url}/echo`, { method: "post", body: body(), headers: { "x-a": "b" } });
      answers.push((await response.json()) as Echo);
    }
    const [global, ours] = answers as [Echo, Echo];
    expect([ours.method, ours.body]).toEqual([global.method, global.body]);
    for (const name of ["content-type", "x-a", "accept", "content-length"]) {
      expect([name, ours.headers[name]]).toEqual([name, global.headers[name]]);
    }
  });

  it("sends multipart forms, streams and Requests", async () => {
    const form = new FormData();
    form.set("field", "value");
    const multipart = (await (await client.fetch(`${url}/echo`, { method: "POST", body: form })).json()) as Echo;
    expect(multipart.headers["content-type"]).toMatch(/^multipart\/form-data; boundary=/);
    expect(multipart.body).toContain('name="field"\r\n\r\nvalue');
    const stream = new Blob(["stre", "amed"]).stream();
    const init = { method: "PUT", body: stream, duplex: "half" } as RequestInit;
    expect(await (await client.fetch(`${url}/echo`, init)).json()).toMatchObject({ method: "PUT", body: "streamed" });
    const request = new Request(`${url}/echo`, { method: "PATCH", body: "of a request", headers: { "x-b": "c" } });
    const echoed = (await (await client.fetch(request)).json()) as Echo;
    expect(echoed).toMatchObject({ method: "PATCH", body: "of a request" });
    expect(echoed.headers["x-b"]).toBe("c");
  });

  it.each([...Object.keys(PACKED), "raw"])("unpacks %s", async (encoding) => {
    const response = await client.fetch(`${url}/packed?as=${encodeURIComponent(encoding)}`);
    expect(await response.text()).toBe(TEXT);
  });

  it("answers with real Responses: status, url, cookies, and no body where there is none", async () => {
    const response = await client.fetch(`${url}/status?code=404#part`);
    expect(response).toBeInstanceOf(Response);
    expect([response.status, response.ok, response.url]).toEqual([404, false, `${url}/status?code=404`]);
    expect(response.headers.get("x-a")).toBe("1");
    for (const code of [204, 304]) {
      const empty = await client.fetch(`${url}/status?code=${code}`);
      expect([empty.status, empty.body, await empty.text()]).toEqual([code, null, ""]);
    }
    const head = await client.fetch(`${url}/echo`, { method: "HEAD" });
    expect([head.status, head.body]).toEqual([200, null]);
    expect((await client.fetch(`${url}/cookies`)).headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    await expect.poll(() => client.inFlight).toBe(0);
  });

  it("follows redirects, hands them out, or refuses them", async () => {
    expect((await client.fetch(`${url}/redirect`)).status).toBe(200);
    const manual = await client.fetch(`${url}/redirect`, { redirect: "manual" });
    expect([manual.status, manual.headers.get("location")]).toEqual([302, "/echo"]);
    const refused = client.fetch(`${url}/redirect`, { redirect: "error" });
    await expect(refused).rejects.toThrow(new TypeError("fetch failed"));
  });

  it("says where redirects led, which no credentials follow to another origin [exec-6]", async () => {
    const other = createServer((request, response) => server.emit("request", request, response));
    const otherPort = await listenOnLoopback(other);
    try {
      const there = `http://127.0.0.1:${otherPort}/echo`;
      const credentials = { authorization: "Bearer x", cookie: "a=1", "x-api-key": "k", "mcp-session-id": "s" };
      const at = (to: string, code: number) => `${url}/redirect?code=${code}&to=${encodeURIComponent(to)}`;
      const init = { method: "POST", body: "the body", headers: { ...credentials, "x-own": "kept" } };
      for (const [code, method, body] of [
        [302, "GET", ""],
        [307, "POST", "the body"],
      ] as const) {
        const led = await client.fetch(at(there, code), init);
        expect([led.url, led.redirected]).toEqual([there, true]);
        const echo = (await led.json()) as Echo;
        expect([echo.method, echo.body, echo.headers["x-own"]]).toEqual([method, body, "kept"]);
        expect(Object.keys(credentials).filter((name) => name in echo.headers)).toEqual([]);
        const same = (await (await client.fetch(at("/echo", code), init)).json()) as Echo;
        expect(same.headers).toMatchObject(credentials);
      }
      const direct = await client.fetch(`${url}/echo#part`);
      expect([direct.url, direct.redirected]).toEqual([`${url}/echo`, false]);
      for (const to of [
        "http://169.254.169.254/",
        "http://127.0.0.2:1/",
        "http://internal.test/",
        "file:///etc/passwd",
      ]) {
        await expect(client.fetch(at(to, 307), init)).rejects.toThrow(new TypeError("fetch failed"));
      }
      await expect(client.fetch(at("/loop", 302))).rejects.toThrow(new TypeError("fetch failed"));
      expect(loops).toBe(10);
    } finally {
      void closeHttp(other);
    }
  });

  it.each([
    ["a relative URL", "/relative", {}],
    ["a body with GET", "http://127.0.0.1:1/", { method: "GET", body: "x" }],
    ["a user in the URL", "http://a:b@127.0.0.1:1/", {}],
    ["another scheme", "ftp://127.0.0.1/", {}],
    ["a header that is none", "http://127.0.0.1:1/", { headers: { "x y": "z" } }],
    ["a server that is not there", "http://127.0.0.1:1/", {}],
  ])("%s is a TypeError, as with the global one", async (_what, input, init) => {
    await expect(fetch(input, init)).rejects.toThrow(TypeError);
    await expect(client.fetch(input, init)).rejects.toThrow(TypeError);
  });

  it("a body that breaks off is an error after what came", async () => {
    const response = await client.fetch(`${url}/cut`);
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value as Uint8Array).toString()).toBe("part");
    await expect(reader?.read()).rejects.toThrow(new TypeError("terminated"));
  });

  it("[exec-2] an abort ends it, before the head and after it, with the signal's reason", async () => {
    const early = new AbortController();
    const never = client.fetch(`${url}/never`, { signal: early.signal });
    const refused = expect(never).rejects.toMatchObject({ name: "AbortError" });
    early.abort();
    await refused;
    await expect(client.fetch(`${url}/echo`, { signal: early.signal })).rejects.toMatchObject({ name: "AbortError" });

    const late = new AbortController();
    const response = await client.fetch(`${url}/hold`, { signal: late.signal });
    const before = dropped;
    const text = expect(response.text()).rejects.toThrow("enough");
    late.abort(new Error("enough"));
    await text;
    await expect.poll(() => dropped).toBeGreaterThan(before);
    expect(client.inFlight).toBe(0);

    const unread = new AbortController();
    const untouched = await client.fetch(`${url}/hold`, { signal: unread.signal });
    unread.abort(new Error("never read"));
    await expect.poll(() => client.inFlight).toBe(0);
    await expect(untouched.text()).rejects.toThrow("never read");
  });

  it("[exec-2] a body that is cancelled ends at the server", async () => {
    const response = await client.fetch(`${url}/hold`);
    const before = dropped;
    await response.body?.cancel();
    await expect.poll(() => dropped).toBeGreaterThan(before);
    expect(client.inFlight).toBe(0);
  });

  it("an event stream comes as it is sent", async () => {
    const response = await client.fetch(`${url}/hold`);
    const reader = response.body?.getReader();
    const next = async () => Buffer.from((await reader?.read())?.value as Uint8Array).toString();
    expect(await next()).toBe("held");
    held.at(-1)?.write("more");
    expect(await next()).toBe("more");
    held.at(-1)?.end();
    expect((await reader?.read())?.done).toBe(true);
  });
});
