import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { CHARACTER } from "../../../test/fixtures/characters.js";
import { MAX_HEADER_BYTES, MAX_HEADERS, MAX_URL_CHARS, MAX_WHOLE_BODY_BYTES } from "../wire/limits.js";
import { checkRequest } from "./request-check.js";

const PLAIN = { method: "GET", url: "http://wiki.internal/mcp", requestId: "http-1" };

function passed(params: object) {
  const check = checkRequest({ ...PLAIN, ...params });
  if (!check.ok) throw new Error(check.error.message);
  return check;
}

function refused(params: unknown): string {
  const check = checkRequest(params);
  if (check.ok) throw new Error("It was let through.");
  expect(check.error.code).toBe(-32602);
  expect(check.error.data).toEqual({ code: "invalid", written: false });
  return check.error.message;
}

describe("a request", () => {
  it("needs three fields, and has defaults for the others [exec-keep]", () => {
    const check = passed({});
    expect(check).toMatchObject({ requestId: "http-1", streamResponse: false, streamRequest: false });
    expect(check.request).toEqual({
      method: "GET",
      url: new URL(PLAIN.url),
      headers: [],
      body: undefined,
      timeoutMs: undefined,
      redirect: "follow",
    });
  });

  it("may have all of them, nulls, and fields that nobody knows [exec-keep]", () => {
    const full = passed({
      method: "propfind",
      url: "https://WIKI.internal:443/a%20b?q=1#part",
      headers: [{ name: "X-A", value: "1", valueEnvVar: null }],
      bodyBase64: "aGVsbG8=",
      timeoutMs: 5,
      redirectPolicy: "stop",
      requestId: "",
      streamResponse: true,
      later: {},
    });
    expect(full.request.url.href).toBe("https://wiki.internal/a%20b?q=1");
    expect(full.request).toMatchObject({ method: "PROPFIND", timeoutMs: 5, redirect: "stop" });
    expect(String(full.request.body)).toBe("hello");
    const nulls = passed({ bodyBase64: null, timeoutMs: null, redirectPolicy: null });
    expect(nulls.request).toMatchObject({ body: undefined, timeoutMs: undefined, redirect: "follow" });
  });

  it("may announce a body that streams", () => {
    expect(passed({ method: "POST", streamRequest: true })).toMatchObject({ streamRequest: true });
    expect(refused({ ...PLAIN, streamRequest: true, bodyBase64: "" })).toContain("send one of them");
  });

  it.each([
    ["no params", undefined, "params are missing"],
    ["a list", [], "params are missing"],
    ["no requestId", { method: "GET", url: PLAIN.url }, "missing field `requestId`"],
    ["no method", { url: PLAIN.url, requestId: "1" }, "missing field `method`"],
    ["no url", { method: "GET", requestId: "1" }, "missing field `url`"],
    ["a requestId that is no text", { ...PLAIN, requestId: null }, "requestId must be text"],
    ["an endless requestId", { ...PLAIN, requestId: "x".repeat(257) }, "requestId is longer"],
    ["an empty method", { ...PLAIN, method: "" }, "method is invalid"],
    ["a method with a space", { ...PLAIN, method: "GET /" }, "method is invalid"],
    ["a method with a line break", { ...PLAIN, method: "GET\r\nx:" }, "method is invalid"],
    ["CONNECT", { ...PLAIN, method: "CONNECT" }, "method CONNECT"],
    ["connect", { ...PLAIN, method: "connect" }, "method connect"],
    ["TRACE", { ...PLAIN, method: "Trace" }, "method Trace"],
    ["a relative url", { ...PLAIN, url: "/mcp" }, "url is invalid"],
    ["a url without host", { ...PLAIN, url: "http://" }, "url is invalid"],
    ["ftp", { ...PLAIN, url: "ftp://a/" }, "only supports http and https URLs, got ftp"],
    ["file", { ...PLAIN, url: "file:///etc/passwd" }, "got file"],
    ["a password in the url", { ...PLAIN, url: "http://u:p@a/" }, "url holds a user or password"],
    ["a user in the url", { ...PLAIN, url: "http://u@a/" }, "url holds a user or password"],
    ["an endless url", { ...PLAIN, url: `http://a/${"x".repeat(MAX_URL_CHARS)}` }, "url is longer"],
    ["half a millisecond", { ...PLAIN, timeoutMs: 1.5 }, "timeoutMs must be a whole number"],
    ["a negative time", { ...PLAIN, timeoutMs: -1 }, "timeoutMs"],
    ["a time as text", { ...PLAIN, timeoutMs: "5" }, "timeoutMs"],
    ["a policy that is none", { ...PLAIN, redirectPolicy: "x" }, "redirectPolicy must be follow or stop"],
    ["a flag as text", { ...PLAIN, streamResponse: "yes" }, "streamResponse must be true or false"],
    ["base64 that is none", { ...PLAIN, bodyBase64: "!!!!" }, "bodyBase64 is invalid"],
    ["base64url", { ...PLAIN, bodyBase64: "__-_" }, "bodyBase64 is invalid"],
    ["base64 without its padding", { ...PLAIN, bodyBase64: "aGVsbG8" }, "bodyBase64 is invalid"],
    ["base64 with a space", { ...PLAIN, bodyBase64: "aGVs bG8" }, "bodyBase64 is invalid"],
    ["a body as an object", { ...PLAIN, bodyBase64: {} }, "bodyBase64 must be text"],
  ])("with %s is refused with the field and what to do [exec-keep]", (_what, params, message) => {
    expect(refused(params)).toContain(message);
  });

  it("with a body that is too large is told to stream it [exec-5]", () => {
    const bodyBase64 = "AAAA".repeat(Math.ceil((MAX_WHOLE_BODY_BYTES + 3) / 3));
    expect(refused({ ...PLAIN, bodyBase64 })).toContain("streamRequest");
  });

  it("waits no longer than a timer can", () => {
    expect(passed({ timeoutMs: Number.MAX_SAFE_INTEGER }).request.timeoutMs).toBe(2 ** 31 - 1);
    expect(passed({ timeoutMs: 0 }).request.timeoutMs).toBe(0);
  });
});

describe("headers", () => {
  const headersOf = (...headers: unknown[]) => passed({ headers }).request.headers;

  it("keep their order and repeats, with names in lower case [exec-keep]", () => {
    expect(headersOf({ name: "B", value: "1" }, { name: "a", value: "" }, { name: "b", value: "\t2 " })).toEqual([
      { name: "b", value: "1" },
      { name: "a", value: "" },
      { name: "b", value: "\t2 " },
    ]);
  });

  it("beyond ASCII are bytes of UTF-8 [exec-keep]", () => {
    const [header] = headersOf({ name: "a", value: "é€" });
    expect(Buffer.from(header?.value ?? "", "latin1").toString()).toBe("é€");
  });

  it("of the connection are not passed on", () => {
    const names = "Connection Keep-Alive TE Trailer Transfer-Encoding Upgrade Proxy-Connection Content-Length Expect";
    const headers = names.split(" ").map((name) => ({ name, value: "x" }));
    expect(headersOf(...headers, { name: "x", value: "y" })).toEqual([{ name: "x", value: "y" }]);
  });

  it("may name the host of the url, and no other [exec-6]", () => {
    expect(headersOf({ name: "Host", value: "Wiki.Internal" })).toEqual([]);
    expect(headersOf({ name: "Host", value: "wiki.internal:80" })).toEqual([]);
    for (const value of ["other.internal", "wiki.internal:8080", "wiki.internal:443", "", "wiki.internal, other"]) {
      expect(refused({ ...PLAIN, headers: [{ name: "host", value }] })).toContain("host is not the host of the url");
    }
  });

  it("never ask the executor for its environment", () => {
    const headers = [{ name: "authorization", value: "Bearer ", valueEnvVar: "HOME" }];
    expect(refused({ ...PLAIN, headers })).toContain("environment variable");
  });

  it.each([
    ["no list", { a: "b" }, "must be a list"],
    ["no value", [{ name: "a" }], "headers[0] must have name and value"],
    ["an empty name", [{ name: "", value: "" }], "headers[0].name"],
    ["a name with a colon", [{ name: "a:b", value: "" }], "headers[0].name"],
    ["an endless name", [{ name: "a".repeat(300), value: "" }], "headers[0].name"],
    ["too many", Array(MAX_HEADERS + 1).fill({ name: "a", value: "b" }), `more than ${MAX_HEADERS}`],
    ["too much", [{ name: "a", value: "b".repeat(MAX_HEADER_BYTES) }], `larger than ${MAX_HEADER_BYTES}`],
  ])("with %s are refused", (_what, headers, message) => {
    expect(refused({ ...PLAIN, headers })).toContain(message);
  });

  it("cannot be used to write further lines, and a value is never told [exec-6]", () => {
    const bad = ["a\r\nx-injected: 1", "a\nb", "a\rb", "a\0b", "\x7f", "a\x0bb", "\r\n\r\nGET / HTTP/1.1"];
    for (const value of bad) {
      const message = refused({ ...PLAIN, headers: [{ name: "a", value: `secret${value}` }] });
      expect(message).toContain("header value is invalid for a");
      expect(message).not.toContain("secret");
      expect(refused({ ...PLAIN, headers: [{ name: `a${value}`, value: "" }] })).toContain("headers[0].name");
    }
  });

  it("that pass have no byte that ends a line, whatever was sent [exec-6]", () => {
    const text = fc.string({ unit: CHARACTER, maxLength: 12 });
    fc.assert(
      fc.property(text, text, text, (method, name, value) => {
        const check = checkRequest({ ...PLAIN, method, headers: [{ name, value }] });
        if (!check.ok) return;
        const lines = [check.request.method, ...check.request.headers.flatMap((one) => [one.name, one.value])];
        for (const line of lines) expect(line).toMatch(/^[\t\x20-\x7e\x80-\xff]*$/);
      }),
      { numRuns: histories(5_000) },
    );
  });

  it("are checked without an exception, whatever the params are", () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), fc.anything(), (headers, url, bodyBase64) => {
        const check = checkRequest({ ...PLAIN, headers, url, bodyBase64 });
        expect(typeof check.ok).toBe("boolean");
      }),
      { numRuns: histories(5_000) },
    );
  });
});
