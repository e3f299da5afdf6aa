// The executor with a client that knows the extensions: credit, cancel, uploads, bounds.

import { afterEach, beforeEach, expect, test } from "vitest";
import { patternBytes } from "../../../test/fixtures/executor/origin.js";
import { RawClient, WINDOW } from "../../../test/fixtures/executor/raw-client.js";
import { get, type ServedExecutor, startServed, TOKEN } from "../../../test/fixtures/executor/served.js";
import { MAX_REQUESTS, MAX_WHOLE_BODY_BYTES, RETENTION_MS } from "../wire/limits.js";

let served: ServedExecutor;
beforeEach(async () => {
  served = await startServed();
});
afterEach(() => served.stop());

async function lasting(window = WINDOW): Promise<RawClient> {
  const { client } = await RawClient.lasting(served.url, { token: TOKEN, window });
  client.acknowledges = true;
  return client;
}

/** All of the body, with credit given for what has come. */
async function readAll(client: RawClient, requestId: string): Promise<Buffer> {
  let seen = 0;
  await client.until(() => {
    const deltas = client.deltas(requestId);
    const bytes = client.bytesOf(requestId).length;
    if (bytes > seen) client.notify("http/request/credit", { requestId, bytes: bytes - seen });
    seen = bytes;
    return deltas.at(-1)?.done === true ? true : undefined;
  });
  return client.bytesOf(requestId);
}

const chunk = (requestId: string, seq: number, data: Buffer, done = false): object => ({
  requestId,
  seq,
  deltaBase64: data.toString("base64"),
  done,
});

test("the two ends agree on version, window and retention, and on nothing where the version is another", async () => {
  const client = await RawClient.dial(served.url, { token: TOKEN });
  const params = { clientName: "x", toolway: { version: 1, window: WINDOW, received: 0 } };
  const { result } = await client.call("initialize", params);
  expect(result.toolway).toEqual({
    version: 1,
    window: WINDOW,
    retentionMs: RETENTION_MS,
    resumed: false,
    received: 0,
  });
  const other = await RawClient.dial(served.url, { token: TOKEN });
  const refused = await other.call("initialize", { ...params, toolway: { version: 1, window: -1, received: 0 } });
  expect(refused.error?.code).toBe(-32602);
  const plain = await other.call("initialize", { ...params, toolway: { version: 99, window: 1, received: 0 } });
  expect(plain.result).not.toHaveProperty("toolway");
});

test("[exec-1] what is sent ends where the credit does, to the byte, and goes on with more of it", async () => {
  const client = await lasting(1_000);
  await client.call("http/request", get(`${served.origin.url}/bytes?n=5000`, "s"));
  await client.until(() => (client.bytesOf("s").length >= 1_000 ? true : undefined));
  // Others are answered meanwhile, so nothing of it was merely late.
  for (let i = 0; i < 5; i++) {
    await client.call("http/request", get(`${served.origin.url}/hello`, `h${i}`));
    await client.whole(`h${i}`);
  }
  expect(client.bytesOf("s").length).toBe(1_000);
  client.notify("http/request/credit", { requestId: "s", bytes: 7 });
  await client.until(() => (client.bytesOf("s").length >= 1_007 ? true : undefined));
  await client.call("http/request", get(`${served.origin.url}/hello`, "again"));
  expect(client.bytesOf("s").length).toBe(1_007);
  client.notify("http/request/credit", { requestId: "s", bytes: 10_000 });
  await client.whole("s");
  expect(client.bytesOf("s").equals(patternBytes(5_000))).toBe(true);
});

test("[exec-1] a stream that nobody reads stops at its server, and holds up none of 50 others", async () => {
  const client = await lasting();
  const size = 32 * 1024 * 1024;
  await client.call("http/request", get(`${served.origin.url}/bytes?n=${size}`, "slow"));
  await client.until(() => (client.bytesOf("slow").length === WINDOW ? true : undefined));
  const quick = Array.from({ length: 50 }, async (_, i) => {
    await client.call("http/request", get(`${served.origin.url}/bytes?n=300000`, `q${i}`), `q${i}`);
    return readAll(client, `q${i}`);
  });
  const expected = patternBytes(300_000);
  for (const body of await Promise.all(quick)) expect(body.equals(expected)).toBe(true);
  expect(client.bytesOf("slow").length).toBe(WINDOW);
  // What the systems between take, and no more.
  expect(served.origin.written - 50 * 300_000).toBeLessThan(size / 2);
  client.notify("http/request/cancel", { requestId: "slow" });
  await expect.poll(() => served.executor.status().requests).toBe(0);
});

test("[exec-2] a cancel closes the server's socket; only a request that is not answered yet gets an error", async () => {
  const client = await lasting();
  client.send({ id: "a", method: "http/request", params: get(`${served.origin.url}/hold`, "a") });
  await expect.poll(() => served.origin.held.length).toBe(1);
  served.origin.held[0]?.response.write("one");
  await client.answer("a");
  client.notify("http/request/cancel", { requestId: "a" });
  await expect.poll(() => served.origin.held[0]?.isClosed()).toBe(true);
  client.send({ id: "b", method: "http/request", params: get(`${served.origin.url}/never`, "b") });
  await expect.poll(() => served.origin.held.length).toBe(2);
  client.notify("http/request/cancel", { requestId: "b" });
  expect((await client.answer("b")).error).toMatchObject({ code: -32603, data: { code: "cancelled" } });
  await expect.poll(() => served.origin.held[1]?.isClosed()).toBe(true);
  // The id is free, late words about it mean nothing, and of the first no more was said.
  client.notify("http/request/cancel", { requestId: "b" });
  client.notify("http/request/credit", { requestId: "b", bytes: 5 });
  expect((await client.call("http/request", get(`${served.origin.url}/hello`, "a2"))).result.status).toBe(200);
  expect(client.deltas("a").map(({ done }) => done)).toEqual([false]);
  expect(served.executor.status().requests).toBeLessThanOrEqual(1);
});

test("an id is taken while its request is under way, buffered or not", async () => {
  const client = await lasting();
  client.send({
    id: "b",
    method: "http/request",
    params: get(`${served.origin.url}/never`, "x", { streamResponse: false }),
  });
  const second = await client.call("http/request", get(`${served.origin.url}/hello`, "x", { streamResponse: false }));
  expect(second.error?.code).toBe(-32602);
  client.notify("http/request/cancel", { requestId: "x" });
  expect((await client.answer("b")).error?.data.code).toBe("cancelled");
});

test("[exec-5] a request's body is streamed with credit and comes out whole", async () => {
  const client = await lasting();
  const size = 5_000_000;
  const body = patternBytes(size);
  let credit = WINDOW;
  let granted = 0;
  const params = get(`${served.origin.url}/echo`, "up", { method: "POST", streamRequest: true });
  client.send({ id: "up", method: "http/request", params });
  const reading = client.answer("up").then(() => readAll(client, "up"));
  let seq = 0;
  for (let at = 0; at < size; ) {
    const grants = client.frames.filter((frame) => frame.method === "http/request/credit");
    for (; granted < grants.length; granted++) credit += grants[granted]?.params.bytes;
    if (credit === 0) {
      const known = grants.length;
      await client.until(() =>
        client.frames.filter((frame) => frame.method === "http/request/credit").length > known ? true : undefined,
      );
      continue;
    }
    const piece = body.subarray(at, at + Math.min(credit, 40_000));
    at += piece.length;
    credit -= piece.length;
    client.notify("http/request/upload", chunk("up", ++seq, piece));
  }
  client.notify("http/request/upload", chunk("up", ++seq, Buffer.alloc(0), true));
  expect((await reading).equals(body)).toBe(true);
  expect(granted).toBeGreaterThan(2);
  expect((await client.answer("up")).result.status).toBe(200);
});

test("[exec-5] an upload that breaks the rules or off ends its request, and no other", async () => {
  const client = await lasting();
  const cases: [string, object[], string][] = [
    ["gap", [chunk("gap", 1, Buffer.from("a")), chunk("gap", 3, Buffer.from("b"))], "gap"],
    ["fast", [chunk("fast", 1, Buffer.alloc(WINDOW)), chunk("fast", 2, Buffer.alloc(2 * 1024 * 1024))], "granted"],
    ["off", [{ ...chunk("off", 1, Buffer.alloc(0), true), error: "the file is gone" }], "the file is gone"],
  ];
  for (const [requestId, pieces, why] of cases) {
    const params = get(`${served.origin.url}/never`, requestId, { method: "POST", streamRequest: true });
    client.send({ id: requestId, method: "http/request", params });
    for (const piece of pieces) client.notify("http/request/upload", piece);
    const { error } = await client.answer(requestId);
    expect(error?.code).toBe(-32603);
    expect(error?.message).toContain(why);
  }
  await expect.poll(() => served.executor.status().requests).toBe(0);
  await expect.poll(() => served.origin.held.every(({ isClosed }) => isClosed())).toBe(true);
  expect((await client.call("http/request", get(`${served.origin.url}/hello`, "h"))).result.status).toBe(200);
});

test("an answer that is complete before the upload is ends the request; the rest of it is passed over", async () => {
  const client = await lasting();
  const params = get(`${served.origin.url}/hold`, "early", { method: "POST", streamRequest: true });
  client.send({ id: 1, method: "http/request", params });
  client.notify("http/request/upload", chunk("early", 1, Buffer.from("some")));
  await expect.poll(() => served.origin.held.length).toBe(1);
  served.origin.held[0]?.response.writeHead(413).end("enough");
  await client.whole("early");
  expect(client.bytesOf("early").toString()).toBe("enough");
  client.notify("http/request/upload", chunk("early", 2, Buffer.from("more"), true));
  expect((await client.call("http/request", get(`${served.origin.url}/hello`, "h"))).result.status).toBe(200);
});

test("[exec-5] a buffered body beyond the bound is an error that says to stream", async () => {
  const client = await lasting();
  const url = `${served.origin.url}/bytes?n=${MAX_WHOLE_BODY_BYTES + 1}`;
  const { error } = await client.call("http/request", get(url, "big", { streamResponse: false }));
  expect(error).toMatchObject({ code: -32603, data: { code: "limit" } });
  expect(error?.message).toContain("streamResponse");
});

test("[exec-5] bodies that are collected at once are bounded together", async () => {
  const client = await lasting();
  const ids = ["a", "b", "c"];
  for (const id of ids) {
    client.send({
      id,
      method: "http/request",
      params: get(`${served.origin.url}/hold`, id, { streamResponse: false }),
    });
  }
  await expect.poll(() => served.origin.held.length).toBe(3);
  for (const { response } of served.origin.held) response.writeHead(200).write(patternBytes(24 * 1024 * 1024));
  const failed = await client.until(() => client.frames.find((frame) => frame.error !== undefined));
  expect(failed.error).toMatchObject({ code: -32603, data: { code: "limit" } });
  for (const { response } of served.origin.held) response.end();
  await client.until(() =>
    client.frames.filter((frame) => frame.result?.status === 200).length === 2 ? true : undefined,
  );
});

test("[exec-7] a call that waits holds up no other, and there are only so many at once", async () => {
  const client = await lasting();
  for (let i = 0; i < MAX_REQUESTS; i++) {
    client.send({ id: `n${i}`, method: "http/request", params: get(`${served.origin.url}/never`, `n${i}`) });
  }
  const refused = await client.call("http/request", get(`${served.origin.url}/hello`, "h"));
  expect(refused.error).toMatchObject({ code: -32603, data: { code: "busy", written: false } });
  client.notify("http/request/cancel", { requestId: "n7" });
  await client.answer("n7");
  expect((await client.call("http/request", get(`${served.origin.url}/hello`, "h2"))).result.status).toBe(200);
});

test("what may not be reached is refused and logged by its host, without the query", async () => {
  const client = await lasting();
  const url = "http://169.254.169.254/latest?secret=1";
  const { error } = await client.call("http/request", get(url, "m"));
  expect(error).toMatchObject({ code: -32603, data: { code: "forbidden", written: false } });
  const line = served.log.lines.find((text) => text.includes("refused"));
  expect(line).toContain("169.254.169.254");
  expect(line).not.toContain("secret");
});

test("an executor that stops waits for what is under way no longer than it was told, and ends it then", async () => {
  const client = await lasting();
  client.send({ id: "n", method: "http/request", params: get(`${served.origin.url}/never`, "n") });
  await expect.poll(() => served.origin.held.length).toBe(1);
  const began = performance.now();
  await served.executor.finish(200);
  const tookMs = performance.now() - began;
  expect(tookMs).toBeGreaterThanOrEqual(200);
  // As long as it waits where nobody says otherwise is 22 s.
  expect(tookMs).toBeLessThan(15_000);
  expect(served.origin.held[0]?.isClosed()).toBe(false);
  const refused = await client.call("http/request", get(`${served.origin.url}/hello`, "h"));
  expect(refused.error?.data).toMatchObject({ written: false });
  await served.executor.close();
  await expect.poll(() => served.origin.held[0]?.isClosed()).toBe(true);
});
