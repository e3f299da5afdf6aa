// Part of the wire suite: `http/request` whose answer comes in one piece.

import { expect, it } from "vitest";
import { patterned } from "./origin.js";
import type { Stage } from "./wire-suite.js";

/** Of an answer: its members and no others. */
const ANSWER = { status: expect.any(Number), headers: expect.any(Array), bodyBase64: expect.any(String) };

export function wireRequests(stage: Stage): void {
  const to = (path: string, more: object = {}) => ({
    method: "GET",
    url: `${stage.origin.url}${path}`,
    headers: [],
    requestId: "one",
    streamResponse: false,
    ...more,
  });

  it("are answered with status, headers and body [exec-keep]", async () => {
    const peer = await stage.peer();
    const { result } = await peer.call("http/request", to("/bytes?n=5000"));
    expect(result).toEqual(ANSWER);
    expect(result.status).toBe(200);
    expect(Buffer.from(result.bodyBase64, "base64").equals(patterned(5000))).toBe(true);
  });

  it("need a method, an address and an id; the rest has defaults [exec-keep]", async () => {
    const peer = await stage.peer();
    const { method, url, requestId } = to("/fine");
    expect((await peer.call("http/request", { method, url, requestId })).result.status).toBe(200);
    expect((await peer.call("http/request", { url, requestId })).error?.code).toBe(-32602);
    expect((await peer.call("http/request", { method, requestId })).error?.code).toBe(-32602);
    expect((await peer.call("http/request", { method, url })).error?.code).toBe(-32602);
    expect((await peer.call("http/request", null)).error?.code).toBe(-32602);
    // As Codex writes them.
    const nulls = { method, url, headers: [], bodyBase64: null, timeoutMs: null, requestId };
    expect((await peer.call("http/request", { ...nulls, somebodys: "own" })).result.status).toBe(200);
  });

  const BAD: readonly (readonly [string, object])[] = [
    ["ftp", { url: "ftp://127.0.0.1/" }],
    ["file", { url: "file:///etc/passwd" }],
    ["ws", { url: "ws://127.0.0.1/" }],
    ["no address", { url: "not an address" }],
    ["an empty address", { url: "" }],
    ["no host", { url: "http://" }],
    ["a method of two words", { method: "GE T" }],
    ["an empty method", { method: "" }],
    ["a method with a line end", { method: "GET\r\nx: y" }],
    ["a header's name of two words", { headers: [{ name: "a b", value: "x" }] }],
    ["an empty header's name", { headers: [{ name: "", value: "x" }] }],
    ["a line end in a header", { headers: [{ name: "a", value: "x\r\ny: z" }] }],
    ["a header without a value", { headers: [{ name: "a" }] }],
    ["headers as an object", { headers: { a: "b" } }],
    ["no base64", { method: "POST", bodyBase64: "!!!" }],
    ["base64 without its padding", { method: "POST", bodyBase64: "YQ" }],
    ["base64 for addresses", { method: "POST", bodyBase64: "_-8=" }],
    ["a negative time", { timeoutMs: -1 }],
    ["half a millisecond", { timeoutMs: 1.5 }],
    ["a time in text", { timeoutMs: "5" }],
    ["an unknown redirect policy", { redirectPolicy: "sometimes" }],
    ["an id that is no text", { requestId: 7 }],
  ];
  it.each(BAD)("are refused with -32602 where they are wrong: %s [exec-keep]", async (_what, bad) => {
    const peer = await stage.peer();
    expect((await peer.call("http/request", to("/fine", bad))).error?.code).toBe(-32602);
    expect((await peer.call("http/request", to("/fine"))).result.status).toBe(200);
  });

  const FAILING: readonly (readonly [string, string, object])[] = [
    ["nothing listens", "", { url: "http://127.0.0.1:1/" }],
    ["cut before the head", "/reset", {}],
    ["too late before the head", "/never", { timeoutMs: 200 }],
    ["too late in the body", "/open", { timeoutMs: 400 }],
    ["cut in a chunked body", "/cut", {}],
    ["cut in a body of known length", "/short", {}],
    ["redirects without end", "/circle", {}],
    ["a redirect away from HTTP", "/redirect?to=file:///etc/passwd", {}],
  ];
  it.each(FAILING)("get -32603 where they fail: %s [exec-keep]", async (_what, path, more) => {
    const peer = await stage.peer();
    expect((await peer.call("http/request", to(path, more))).error?.code).toBe(-32603);
  });

  it.each([400, 401, 404, 429, 500, 503])("are answered, not failed, by a status of %d [exec-keep]", async (code) => {
    const peer = await stage.peer();
    const { result } = await peer.call("http/request", to(`/status?code=${code}`));
    expect([result.status, Buffer.from(result.bodyBase64, "base64").toString()]).toEqual([code, "as asked"]);
  });

  it("bring header names in lower case, repeats and all, and the body as it was packed [exec-keep]", async () => {
    const peer = await stage.peer();
    const { result } = await peer.call("http/request", to("/headers"));
    expect(result.headers).toContainEqual({ name: "x-upper", value: "Kept" });
    const cookies = result.headers.filter(({ name }: { name: string }) => name === "set-cookie");
    expect(cookies.map(({ value }: { value: string }) => value)).toEqual(["a=1", "b=2"]);
    const packed = (await peer.call("http/request", to("/gzip"))).result;
    expect(packed.headers).toContainEqual({ name: "content-encoding", value: "gzip" });
    expect([...Buffer.from(packed.bodyBase64, "base64").subarray(0, 2)]).toEqual([0x1f, 0x8b]);
    // Nobody keeps cookies.
    await peer.call("http/request", to("/fine"));
    expect(stage.origin.seen.at(-1)?.headers.map((header) => header.toLowerCase())).not.toContain("cookie");
  });

  it("have an answer without a body for HEAD and 204 [exec-keep]", async () => {
    const peer = await stage.peer();
    expect((await peer.call("http/request", to("/bytes?n=9", { method: "HEAD" }))).result.bodyBase64).toBe("");
    expect((await peer.call("http/request", to("/empty"))).result).toMatchObject({ status: 204, bodyBase64: "" });
  });

  it("reach the server as they were: method, headers with repeats, every byte of the body [exec-keep]", async () => {
    const peer = await stage.peer();
    const body = patterned(70_000);
    const headers = [
      { name: "X-One", value: "1" },
      { name: "x-two", value: "a" },
      { name: "x-two", value: "b" },
    ];
    await peer.call("http/request", to("/fine", { method: "PUT", headers, bodyBase64: body.toString("base64") }));
    const seen = stage.origin.seen.at(-1);
    expect(seen?.method).toBe("PUT");
    expect(seen?.body.equals(body)).toBe(true);
    const sent = pairs(seen?.headers ?? []);
    expect(sent).toContainEqual(["x-one", "1"]);
    expect(sent.filter(([name]) => name === "x-two").map(([, value]) => value)).toEqual(["a", "b"]);
    expect(sent).toContainEqual(["content-length", "70000"]);
  });

  it("follow redirects unless told to stop [exec-keep]", async () => {
    const peer = await stage.peer();
    const stopped = await peer.call("http/request", to("/redirect?to=/fine", { redirectPolicy: "stop" }));
    expect(stopped.result.status).toBe(302);
    expect(stopped.result.headers).toContainEqual({ name: "location", value: "/fine" });
    for (const redirectPolicy of ["follow", undefined]) {
      const followed = await peer.call("http/request", to("/redirect?to=/fine", { redirectPolicy }));
      expect(followed.result.status).toBe(200);
    }
    // 302 turns POST into GET, 307 keeps it.
    const post = { method: "POST", bodyBase64: "YWJj" };
    await peer.call("http/request", to("/redirect?to=/fine", post));
    expect(stage.origin.seen.at(-1)).toMatchObject({ method: "GET", path: "/fine", body: Buffer.alloc(0) });
    await peer.call("http/request", to("/redirect?to=/fine&code=307", post));
    expect(stage.origin.seen.at(-1)).toMatchObject({ method: "POST", path: "/fine", body: Buffer.from("abc") });
  });

  it("keep credentials at their origin: another one does not get them by a redirect [exec-keep]", async () => {
    const peer = await stage.peer();
    const headers = [{ name: "authorization", value: "Bearer of-the-origin" }];
    const names = () => pairs(stage.origin.seen.at(-1)?.headers ?? []).map(([name]) => name);
    await peer.call("http/request", to("/redirect?to=/fine", { headers }));
    expect(names()).toContain("authorization");
    // The same server under another name is another origin.
    const elsewhere = encodeURIComponent(`${stage.origin.url.replace("127.0.0.1", "localhost")}/fine`);
    expect((await peer.call("http/request", to(`/redirect?to=${elsewhere}`, { headers }))).result.status).toBe(200);
    expect(names()).not.toContain("authorization");
  });

  it("run side by side, and share an id when nothing is streamed: Codex gives all of them one [exec-7] [exec-keep]", async () => {
    const peer = await stage.peer();
    peer.send({ id: "slow", method: "http/request", params: to("/wait") });
    const quick = await peer.call("http/request", to("/fine"), "quick");
    expect(quick.result.status).toBe(200);
    expect(peer.frames.some(({ id }) => id === "slow")).toBe(false);
    await expect.poll(() => stage.origin.seen.some(({ path }) => path === "/wait")).toBe(true);
    stage.origin.release();
    expect((await peer.answer("slow")).result.status).toBe(200);
  });

  it("end with their connection [exec-keep]", async () => {
    const peer = await stage.peer();
    const before = stage.origin.dropped.length;
    peer.send({ id: "x", method: "http/request", params: to("/never") });
    await expect.poll(() => stage.origin.seen.at(-1)?.path).toBe("/never");
    await peer.close();
    await expect.poll(() => stage.origin.dropped.slice(before)).toContain("/never");
  });
}

function pairs(raw: readonly string[]): (readonly [string, string])[] {
  return raw.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), raw[i + 1] as string] as const] : []));
}
