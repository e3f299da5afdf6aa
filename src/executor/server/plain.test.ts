// The executor with a client that knows nothing of ours: what the exec-server of Codex does, as it was measured.

import { afterEach, beforeEach, expect, test } from "vitest";
import { patternBytes } from "../../../test/fixtures/executor/origin.js";
import { RawClient } from "../../../test/fixtures/executor/raw-client.js";
import { get, type ServedExecutor, startServed, TOKEN } from "../../../test/fixtures/executor/served.js";

let served: ServedExecutor;
beforeEach(async () => {
  served = await startServed();
});
afterEach(() => served.stop());

const plain = (): Promise<RawClient> => RawClient.plain(served.url, { token: TOKEN });
const fresh = (): Promise<RawClient> => RawClient.dial(served.url, { token: TOKEN });

test("[exec-keep] requests before initialize and before initialized are refused with -32600", async () => {
  const client = await fresh();
  const early = await client.call("http/request", get(`${served.origin.url}/hello`, "r"));
  expect(early.error).toEqual({ code: -32600, message: "client must call initialize before using http methods" });
  expect((await client.call("environment/info", {})).error?.code).toBe(-32600);
  await client.call("initialize", { clientName: "test" });
  const stillEarly = await client.call("http/request", get(`${served.origin.url}/hello`, "r"));
  expect(stillEarly.error).toEqual({ code: -32600, message: "client must send initialized before using http methods" });
  client.notify("initialized", {});
  expect((await client.call("http/request", get(`${served.origin.url}/hello`, "r"))).result.status).toBe(200);
  expect(served.origin.requests).toBe(1);
});

test("[exec-keep] initialize is answered once, and what is wrong with it is said", async () => {
  const client = await fresh();
  expect((await client.call("initialize")).error?.code).toBe(-32602);
  expect((await client.call("initialize", {})).error).toEqual({ code: -32602, message: "missing field `clientName`" });
  const { result } = await client.call("initialize", { clientName: "x", resumeSessionId: null, more: 1 });
  expect(result.sessionId).toMatch(/^[0-9a-f-]{36}$/);
  expect(result.environmentInfo.shell).toEqual({ name: "sh", path: "/bin/sh" });
  expect(result).not.toHaveProperty("toolway");
  const again = { code: -32600, message: "initialize may only be sent once per connection" };
  expect((await client.call("initialize", { clientName: "x" })).error).toEqual(again);
  client.notify("initialized", {});
  expect((await client.call("initialize", { clientName: "x" })).error).toEqual(again);
});

test("[exec-keep] messages have no jsonrpc field, and ids of either kind are echoed", async () => {
  const client = await plain();
  for (const id of ["text", "", 7, 0, -3]) {
    const frame = await client.call("http/request", get(`${served.origin.url}/hello`, `r${id}`), id);
    expect(frame.id).toBe(id);
    await client.whole(`r${id}`);
  }
  expect(client.texts.join()).not.toContain("jsonrpc");
});

test("[exec-keep] unknown methods are answered with -32601 in any state; what Codex asks besides is answered", async () => {
  const client = await fresh();
  expect((await client.call("nope", {})).error?.code).toBe(-32601);
  await client.call("initialize", { clientName: "x" });
  client.notify("initialized", {});
  expect((await client.call("environmentConfig/read", {})).error?.code).toBe(-32601);
  expect((await client.call("fs/getMetadata", { path: "file:///x" })).error?.code).toBe(-32004);
  expect((await client.call("environment/info", null)).result.shell.name).toBe("sh");
  expect((await client.call("process/start", {})).error?.code).toBe(-32601);
});

test("[exec-keep] what is no message is told so under the id -1, and the socket stays", async () => {
  const client = await plain();
  for (const text of ["{", "[]", "7", "{}", "", '{"id":{},"method":"x"}', '{"id":1.5}']) {
    const before = client.frames.length;
    client.send(text);
    const frame = await client.until(() => client.frames[before]);
    expect([frame.id, frame.error?.code], text).toEqual([-1, -32600]);
  }
  client.send(
    Buffer.from(JSON.stringify({ id: 9, method: "http/request", params: get(`${served.origin.url}/hello`, "b") })),
  );
  expect((await client.answer(9)).result.status).toBe(200);
});

test("unknown notifications and answers to nothing are passed over, told of once", async () => {
  const client = await plain();
  for (let i = 0; i < 3; i++) client.notify("some/thing", {});
  client.send({ id: 1, result: {} });
  client.notify("http/request/cancel", { requestId: "x" });
  client.notify("initialized", {});
  expect((await client.call("http/request", get(`${served.origin.url}/hello`, "r"))).result.status).toBe(200);
  expect(served.log.lines.filter((line) => line.includes("means nothing"))).toHaveLength(1);
});

test("[exec-keep] a streamed answer is the result with an empty body, then pieces from 1 on, then an empty last one", async () => {
  const client = await plain();
  await client.call("http/request", get(`${served.origin.url}/bytes?n=3000000`, "s"), "st");
  const deltas = await client.whole("s");
  const first = client.frames.findIndex((frame) => frame.method === "http/request/bodyDelta");
  expect(client.frames.findIndex((frame) => frame.id === "st")).toBeLessThan(first);
  const result = client.frames.find((frame) => frame.id === "st")?.result;
  expect(Object.keys(result)).toEqual(["status", "headers", "bodyBase64"]);
  expect(result.bodyBase64).toBe("");
  expect(deltas.map(({ seq }) => seq)).toEqual(deltas.map((_, i) => i + 1));
  expect(deltas.at(-1)).toMatchObject({ deltaBase64: "", done: true });
  expect(deltas.slice(0, -1).every(({ done, deltaBase64 }) => !done && deltaBase64 !== "")).toBe(true);
  expect(client.bytesOf("s").equals(patternBytes(3_000_000))).toBe(true);
  await client.call("http/request", get(`${served.origin.url}/status?code=204`, "none"));
  expect(await client.whole("none")).toMatchObject([{ seq: 1, deltaBase64: "", done: true }]);
});

test("[exec-keep] a buffered answer is one message; 4xx and 5xx are results", async () => {
  const client = await plain();
  const { result } = await client.call(
    "http/request",
    get(`${served.origin.url}/hello`, "b", { streamResponse: false }),
  );
  expect(result.bodyBase64).toBe(Buffer.from("hello").toString("base64"));
  expect(client.deltas("b")).toEqual([]);
  for (const code of [404, 500]) {
    const answer = await client.call("http/request", get(`${served.origin.url}/status?code=${code}`, `s${code}`));
    expect(answer.result.status).toBe(code);
  }
});

test("[exec-keep] header names come in lower case, repeats are kept, gzip is not decoded, redirects are followed or not", async () => {
  const client = await plain();
  const { result } = await client.call("http/request", get(`${served.origin.url}/hello`, "h"));
  expect(result.headers).toContainEqual({ name: "x-mixed-case", value: "Yes" });
  expect(result.headers.filter((header: { name: string }) => header.name === "set-cookie")).toHaveLength(2);
  const gzip = await client.call("http/request", get(`${served.origin.url}/gzip`, "z", { streamResponse: false }));
  expect(gzip.result.bodyBase64).toBe(Buffer.from([0x1f, 0x8b, 1, 2, 3]).toString("base64"));
  const followed = get(`${served.origin.url}/redirect`, "f", { streamResponse: false });
  expect((await client.call("http/request", followed)).result.status).toBe(200);
  const stopped = get(`${served.origin.url}/redirect`, "g", { streamResponse: false, redirectPolicy: "stop" });
  expect((await client.call("http/request", stopped)).result.status).toBe(302);
});

test("[exec-keep] bad params are refused with -32602, and a connection that is refused fails with -32603", async () => {
  const client = await plain();
  const bad: object[] = [
    get("ftp://127.0.0.1/x", "a"),
    get("nonsense", "a"),
    get(served.origin.url, "a", { method: "A B" }),
    get(served.origin.url, "a", { headers: [{ name: "a", value: "b\r\nc: d" }] }),
    get(served.origin.url, "a", { bodyBase64: "!!!!" }),
    { method: "GET", url: served.origin.url },
  ];
  for (const params of bad) expect((await client.call("http/request", params)).error?.code).toBe(-32602);
  expect((await client.call("http/request", get("http://127.0.0.1:1/", "a"))).error?.code).toBe(-32603);
  expect(served.origin.requests).toBe(0);
  expect(served.executor.status().requests).toBe(0);
});

test("[exec-keep] a body that breaks off ends with an error in the last delta, or with -32603 where it is buffered", async () => {
  const client = await plain();
  await client.call("http/request", get(`${served.origin.url}/cut`, "c"));
  const last = (await client.whole("c")).at(-1);
  expect(last?.done).toBe(true);
  expect(last?.error).toMatch(/broke off/);
  const buffered = await client.call("http/request", get(`${served.origin.url}/cut`, "d", { streamResponse: false }));
  expect(buffered.error?.code).toBe(-32603);
});

test("[exec-keep] a timeout is -32603 before the head, and the error of the last delta within the body", async () => {
  const client = await plain();
  const before = await client.call("http/request", get(`${served.origin.url}/never`, "t", { timeoutMs: 500 }));
  expect(before.error).toMatchObject({ code: -32603, data: { code: "timeout" } });
  const head = client.call("http/request", get(`${served.origin.url}/hold`, "u", { timeoutMs: 4_000 }));
  await expect.poll(() => served.origin.held.length).toBe(2);
  served.origin.held[1]?.response.writeHead(200).write("one");
  expect((await head).result?.status).toBe(200);
  const deltas = await client.whole("u");
  expect(client.bytesOf("u").toString()).toBe("one");
  expect(deltas.at(-1)?.error).toBeTypeOf("string");
});

test("[exec-keep] the id of a stream can be used again when it is over, not before; by a buffered request always", async () => {
  const client = await plain();
  void client.call("http/request", get(`${served.origin.url}/hold`, "dup"), "first").catch(() => {});
  await expect.poll(() => served.origin.held.length).toBe(1);
  const second = await client.call("http/request", get(`${served.origin.url}/hello`, "dup"));
  const message = "http/request streamResponse requestId `dup` is already active";
  expect(second.error).toEqual({ code: -32602, message });
  const buffered = get(`${served.origin.url}/hello`, "dup", { streamResponse: false });
  expect((await client.call("http/request", buffered)).result.status).toBe(200);
  served.origin.held[0]?.response.end("one");
  await client.whole("dup");
  expect((await client.call("http/request", get(`${served.origin.url}/hello`, "dup"))).result.status).toBe(200);
});

test("[exec-keep] closing the socket aborts open requests at once, streams and those that wait for a head", async () => {
  for (const leave of ["close", "terminate"] as const) {
    const client = await plain();
    served.origin.held.length = 0;
    client.send({ id: 1, method: "http/request", params: get(`${served.origin.url}/hold`, "a") });
    client.send({ id: 2, method: "http/request", params: get(`${served.origin.url}/never`, "b") });
    await expect.poll(() => served.origin.held.length).toBe(2);
    const streaming = served.origin.held.find(({ request }) => request.url === "/hold");
    streaming?.response.write("one");
    await client.answer(1);
    client.ws[leave]();
    await expect.poll(() => served.origin.held.every(({ isClosed }) => isClosed())).toBe(true);
    await expect.poll(() => served.executor.status().requests).toBe(0);
  }
});

test("[exec-keep] a session's name can be taken up again, not twice at once; an unknown one is -32600", async () => {
  const first = await fresh();
  const { sessionId } = (await first.call("initialize", { clientName: "x" })).result;
  first.notify("initialized", {});
  const second = await fresh();
  const attached = await second.call("initialize", { clientName: "x", resumeSessionId: sessionId });
  expect(attached.error?.code).toBe(-32010);
  first.ws.terminate();
  await expect.poll(() => served.executor.status().retained).toBe(1);
  const unknown = await second.call("initialize", { clientName: "x", resumeSessionId: "nope" });
  expect(unknown.error).toEqual({ code: -32600, message: "unknown session id nope" });
  const again = await second.call("initialize", { clientName: "x", resumeSessionId: sessionId });
  expect(again.result.sessionId).toBe(sessionId);
  second.notify("initialized", {});
  expect((await second.call("http/request", get(`${served.origin.url}/hello`, "r"))).result.status).toBe(200);
});

test("initialized before initialize closes the socket", async () => {
  const client = await fresh();
  client.notify("initialized", {});
  expect((await client.end()).code).toBe(1008);
});

test("streamRequest without the agreement is refused, not sent with an empty body", async () => {
  const client = await plain();
  const params = get(`${served.origin.url}/echo`, "u", { method: "POST", streamRequest: true });
  expect((await client.call("http/request", params)).error?.code).toBe(-32602);
  expect(served.origin.requests).toBe(0);
});

test("[exec-1] a client that does not read stops its streams at the server, and gets every byte when it does", async () => {
  const client = await plain();
  const size = 64 * 1024 * 1024;
  client.ws.pause();
  client.send({ id: 1, method: "http/request", params: get(`${served.origin.url}/bytes?n=${size}`, "big") });
  let before = -1;
  // It stands still: the same number twice, some time apart, and far from all of it.
  await expect
    .poll(
      () => {
        const now = served.origin.written;
        const still = now > 0 && now === before;
        before = now;
        return still;
      },
      { interval: 500 },
    )
    .toBe(true);
  expect(served.origin.written).toBeLessThan(size / 2);
  client.ws.resume();
  await client.whole("big");
  expect(client.bytesOf("big").equals(patternBytes(size))).toBe(true);
});
