// A session that outlives its sockets: what goes on, for how long, and how it ends.

import { afterEach, expect, test } from "vitest";
import { patternBytes } from "../../../test/fixtures/executor/origin.js";
import { RawClient } from "../../../test/fixtures/executor/raw-client.js";
import { get, type ServedExecutor, startServed, TOKEN } from "../../../test/fixtures/executor/served.js";
import { MAX_RETAINED_SESSIONS } from "../wire/limits.js";
import type { ExecutorOptions } from "./executor.js";

/** No credit needs to be given in these. */
const ENDLESS = 2 ** 40;

let served: ServedExecutor;
afterEach(() => served.stop());

async function start(options: Partial<ExecutorOptions> = {}): Promise<void> {
  served = await startServed(options);
}

async function connect(from?: { sessionId: string; received: number }) {
  const options = { token: TOKEN, window: ENDLESS };
  return RawClient.lasting(served.url, from === undefined ? options : { ...options, from });
}

/** As a broken network does it. What had arrived by then is known when this returns. */
async function cut(client: RawClient): Promise<void> {
  client.ws.terminate();
  await client.end();
}

function bytesOver(clients: readonly RawClient[], requestId: string): Buffer {
  return Buffer.concat(clients.map((client) => client.bytesOf(requestId)));
}

test("[exec-4] a stream that is cut again and again brings every byte once, in order, without a gap in seq", async () => {
  await start();
  const size = 24_000_000;
  const first = await connect();
  const { sessionId } = first;
  const clients = [first.client];
  first.client.send({ id: 1, method: "http/request", params: get(`${served.origin.url}/bytes?n=${size}`, "s") });
  for (let i = 1; ; i++) {
    const client = clients.at(-1) as RawClient;
    client.acknowledges = i % 2 === 0;
    const enough = 1_500_000 + 77_777 * i;
    const isDone = await client.until(() => {
      if (client.deltas("s").at(-1)?.done === true) return true;
      return client.bytesOf("s").length > enough ? false : undefined;
    });
    if (isDone) break;
    await cut(client);
    const next = await connect({ sessionId, received: client.received });
    expect(next).toMatchObject({ sessionId, resumed: true, executorReceived: 1 });
    clients.push(next.client);
  }
  expect(clients.length).toBeGreaterThan(4);
  const seqs = clients.flatMap((client) => client.deltas("s").map(({ seq }) => seq));
  expect(seqs).toEqual(seqs.map((_, i) => i + 1));
  expect(bytesOver(clients, "s").equals(patternBytes(size))).toBe(true);
  expect(served.origin.requests).toBe(1);
  expect(served.executor.status()).toMatchObject({ sessions: 1, retained: 0, requests: 0 });
});

test("[exec-4] the server's answer goes on while the client is away, requests and answers alike", async () => {
  await start();
  const { client, sessionId } = await connect();
  client.send({ id: "head", method: "http/request", params: get(`${served.origin.url}/hold`, "a") });
  await expect.poll(() => served.origin.held.length).toBe(1);
  await cut(client);
  await expect.poll(() => served.executor.status()).toMatchObject({ retained: 1, sockets: 0, requests: 1 });
  served.origin.held[0]?.response.writeHead(201).end("while you were away");
  await expect.poll(() => served.executor.status().requests).toBe(0);
  const again = await connect({ sessionId, received: 0 });
  expect(again).toMatchObject({ resumed: true, executorReceived: 1 });
  expect((await again.client.answer("head")).result.status).toBe(201);
  await again.client.whole("a");
  expect(again.client.bytesOf("a").toString()).toBe("while you were away");
});

test("[exec-4] a stream whose client is away waits within the bound on what is not acknowledged", async () => {
  await start();
  const { client, sessionId } = await connect();
  const size = 48 * 1024 * 1024;
  client.send({ id: 1, method: "http/request", params: get(`${served.origin.url}/bytes?n=${size}`, "s") });
  await client.answer(1);
  await cut(client);
  let before = -1;
  const isStill = (): boolean => {
    const still = served.origin.written === before;
    before = served.origin.written;
    return still;
  };
  await expect.poll(isStill, { interval: 500 }).toBe(true);
  expect(served.origin.written).toBeLessThan(size / 2);
  const again = await connect({ sessionId, received: client.received });
  again.client.acknowledges = true;
  await again.client.whole("s");
  expect(bytesOver([client, again.client], "s").equals(patternBytes(size))).toBe(true);
});

test("[exec-4] a new socket takes the place of one that seems alive", async () => {
  await start();
  const { client: old, sessionId } = await connect();
  old.send({ id: 1, method: "http/request", params: get(`${served.origin.url}/hold`, "s") });
  await expect.poll(() => served.origin.held.length).toBe(1);
  const held = served.origin.held[0];
  held?.response.write("one");
  await old.until(() => (old.bytesOf("s").length === 3 ? true : undefined));
  const { client, resumed } = await connect({ sessionId, received: old.received });
  expect(resumed).toBe(true);
  expect((await old.end()).code).toBe(4000);
  held?.response.end("two");
  await client.whole("s");
  expect(bytesOver([old, client], "s").toString()).toBe("onetwo");
});

test("[exec-4] a socket lost within the handshake leaves the session as it was", async () => {
  await start();
  const { client, sessionId } = await connect();
  client.send({ id: 1, method: "http/request", params: get(`${served.origin.url}/hold`, "s") });
  await expect.poll(() => served.origin.held.length).toBe(1);
  await cut(client);
  const toolway = { version: 1, window: ENDLESS, received: 0 };
  const half = await RawClient.dial(served.url, { token: TOKEN });
  await half.call("initialize", { clientName: "x", resumeSessionId: sessionId, toolway });
  await cut(half);
  await expect.poll(() => served.executor.status().retained).toBe(1);
  // Of two at once the later one has it.
  const early = await RawClient.dial(served.url, { token: TOKEN });
  await early.call("initialize", { clientName: "x", resumeSessionId: sessionId, toolway });
  const late = await connect({ sessionId, received: 0 });
  expect(late.resumed).toBe(true);
  expect((await early.end()).code).toBe(4000);
  served.origin.held[0]?.response.end("all of it");
  await late.client.whole("s");
  expect(late.client.bytesOf("s").toString()).toBe("all of it");
});

test("[exec-4] when the retention ends, the server's socket is closed and the session is not to be had any more", async () => {
  await start({ retentionMs: 100 });
  const { client, sessionId } = await connect();
  client.send({ id: 1, method: "http/request", params: get(`${served.origin.url}/hold`, "s") });
  await expect.poll(() => served.origin.held.length).toBe(1);
  await cut(client);
  await expect.poll(() => served.origin.held[0]?.isClosed()).toBe(true);
  expect(served.executor.status()).toMatchObject({ sessions: 0, retained: 0, requests: 0 });
  expect(served.executor.has(sessionId)).toBe(false);
  const again = await connect({ sessionId, received: 0 });
  expect(again.resumed).toBe(false);
  expect(again.sessionId).not.toBe(sessionId);
});

test("a goodbye ends the session and its requests at once", async () => {
  await start();
  const { client, sessionId } = await connect();
  client.send({ id: 1, method: "http/request", params: get(`${served.origin.url}/never`, "s") });
  await expect.poll(() => served.origin.held.length).toBe(1);
  client.ws.close(1000);
  await expect.poll(() => served.origin.held[0]?.isClosed()).toBe(true);
  expect(served.executor.status()).toMatchObject({ sessions: 0, retained: 0 });
  expect((await connect({ sessionId, received: 0 })).resumed).toBe(false);
});

test("[exec-4] a client that is owed what is gone begins anew, and the old requests end", async () => {
  await start();
  const { client, sessionId } = await connect();
  client.send({ id: 1, method: "http/request", params: get(`${served.origin.url}/never`, "s") });
  await expect.poll(() => served.origin.held.length).toBe(1);
  await cut(client);
  // More than was ever sent.
  const again = await connect({ sessionId, received: 12 });
  expect(again).toMatchObject({ resumed: false, executorReceived: 0 });
  await expect.poll(() => served.origin.held[0]?.isClosed()).toBe(true);
  expect(served.executor.has(sessionId)).toBe(false);
});

test("sessions are not mixed up: a plain client gets no lasting one, and the other way round", async () => {
  await start();
  const { client, sessionId } = await connect();
  await cut(client);
  const plain = await RawClient.dial(served.url, { token: TOKEN });
  const refused = await plain.call("initialize", { clientName: "x", resumeSessionId: sessionId });
  expect(refused.error?.code).toBe(-32600);
  const { result } = await plain.call("initialize", { clientName: "x" });
  plain.notify("initialized", {});
  await cut(plain);
  const lasting = await connect({ sessionId: result.sessionId, received: 0 });
  expect(lasting.resumed).toBe(false);
  expect(lasting.sessionId).not.toBe(result.sessionId);
});

test("only so many sessions wait for their clients: those of plain ones go first, then the oldest", async () => {
  await start();
  const ids: string[] = [];
  const lose = async (): Promise<void> => {
    const { client, sessionId } = await connect();
    ids.push(sessionId);
    await cut(client);
    await expect.poll(() => served.executor.status().sockets).toBe(0);
  };
  await lose();
  const plain = await RawClient.plain(served.url, { token: TOKEN });
  await cut(plain);
  for (let i = 1; i < MAX_RETAINED_SESSIONS; i++) await lose();
  expect(served.executor.status().retained).toBe(MAX_RETAINED_SESSIONS);
  expect(ids.filter((id) => served.executor.has(id))).toHaveLength(MAX_RETAINED_SESSIONS);
  await lose();
  expect(served.executor.status().retained).toBe(MAX_RETAINED_SESSIONS);
  expect(served.executor.has(ids[0] as string)).toBe(false);
  expect(served.executor.has(ids[1] as string)).toBe(true);
});

test("[bounded] a handshake that does not come ends the socket", async () => {
  await start({ handshakeMs: 1_000 });
  const silent = await RawClient.dial(served.url, { token: TOKEN });
  expect((await silent.end()).code).toBe(1008);
  const half = await RawClient.dial(served.url, { token: TOKEN });
  await half.call("initialize", { clientName: "x" });
  expect((await half.end()).code).toBe(1008);
  await expect.poll(() => served.executor.status()).toEqual({ sockets: 0, sessions: 0, retained: 0, requests: 0 });
});

test("an executor that is closed aborts its requests, says goodbye to its sockets and turns new ones away", async () => {
  await start();
  const { client } = await connect();
  client.send({ id: 1, method: "http/request", params: get(`${served.origin.url}/never`, "s") });
  await expect.poll(() => served.origin.held.length).toBe(1);
  const lost = await connect();
  await cut(lost.client);
  await served.executor.close();
  expect((await client.end()).code).toBe(1001);
  await expect.poll(() => served.origin.held[0]?.isClosed()).toBe(true);
  expect(served.executor.status()).toEqual({ sockets: 0, sessions: 0, retained: 0, requests: 0 });
  const late = await RawClient.dial(served.url, { token: TOKEN });
  expect((await late.end()).code).toBe(1001);
});
