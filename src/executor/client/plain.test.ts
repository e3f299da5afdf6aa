// The client with an executor that knows no extensions: the behaviours of the exec-server's own client.

import type { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { get, type Peer, type Scripted, startScripted } from "../../../test/executor/scripted-executor.js";
import { MIB } from "../../runtime/sizes.js";
import { MAX_QUEUED_DELTAS, MAX_WHOLE_BODY_BYTES } from "../wire/limits.js";
import { ExecutorError } from "../wire/types.js";
import type { SocketClient } from "./client.js";
import { connectExecutor } from "./connect.js";

let scripted: Scripted;
let client: SocketClient;
let peer: Peer;

beforeEach(async () => {
  scripted = await startScripted();
  const greeted = scripted.plain();
  client = (await connectExecutor({ url: scripted.url, clientName: "tests" })) as SocketClient;
  peer = await greeted;
});

afterEach(async () => {
  await client.close();
  await scripted.close();
});

/** The pieces, and how it ended: undefined for a clean end. */
async function drained(body: Readable): Promise<{ chunks: Buffer[]; error: ExecutorError | undefined }> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of body) chunks.push(chunk as Buffer);
    return { chunks, error: undefined };
  } catch (error) {
    expect(error).toBeInstanceOf(ExecutorError);
    return { chunks, error: error as ExecutorError };
  }
}

describe("a plain executor", () => {
  it("[exec-keep] is told our name at initialize, and nothing of our extensions follows", async () => {
    expect(peer.initialize).toMatchObject({ clientName: "tests" });
    expect(client.state).toBe("ready");
    expect(client.extended).toBe(false);
    expect(client.sessionId).toBe("session-1");
  });

  it("[exec-keep] is asked for a whole answer by request(), and its body is the answer's", async () => {
    const answer = client.request(get("https://example.test/buffered"));
    const { id, params } = await peer.request();
    expect(params).toEqual({
      method: "GET",
      url: "https://example.test/buffered",
      headers: [],
      requestId: "http-1",
      streamResponse: false,
    });
    peer.head(id, 200, [{ name: "x-a", value: "1" }], Buffer.from("buffered").toString("base64"));
    expect(await answer).toEqual({
      status: 200,
      headers: [{ name: "x-a", value: "1" }],
      body: Buffer.from("buffered"),
    });
    expect(client.inFlight).toBe(0);
  });

  it("[exec-keep] streams under ids that we make, in order; the next request has the next id", async () => {
    const headers = [{ name: "accept", value: "text/event-stream" }];
    const answer = client.requestStream(
      get("https://example.test/mcp", { headers, timeoutMs: 5_000, redirect: "stop" }),
    );
    const { id, params } = await peer.request();
    expect(params).toEqual({
      method: "GET",
      url: "https://example.test/mcp",
      headers,
      timeoutMs: 5_000,
      redirectPolicy: "stop",
      requestId: "http-1",
      streamResponse: true,
    });
    peer.head(id, 200, [{ name: "content-type", value: "text/event-stream" }]);
    peer.delta("http-1", 1, "hello ");
    peer.delta("http-1", 2, "world");
    peer.delta("http-1", 3, "!", true);
    const { status, headers: answered, body } = await answer;
    expect([status, answered]).toEqual([200, [{ name: "content-type", value: "text/event-stream" }]]);
    const { chunks, error } = await drained(body);
    expect([Buffer.concat(chunks).toString(), error]).toEqual(["hello world!", undefined]);

    const second = client.requestStream(get("https://example.test/mcp/reuse"));
    const reused = await peer.request();
    expect(reused.params.requestId).toBe("http-2");
    peer.head(reused.id, 204);
    expect((await second).status).toBe(204);
  });

  it("[exec-keep] may send all of a body before the head: the caller gets the head first", async () => {
    const order: string[] = [];
    const ended = new Promise<void>((resolve, reject) => {
      client.start(get("https://example.test/early"), {
        onHead: (status) => order.push(`head ${status}`),
        onData: (chunk) => order.push(chunk.toString()),
        onEnd() {
          order.push("end");
          resolve();
        },
        onError: reject,
      });
    });
    const { id } = await peer.request();
    peer.delta("http-1", 1, "one");
    peer.delta("http-1", 2, "two", true);
    peer.head(id);
    await ended;
    expect(order).toEqual(["head 200", "one", "two", "end"]);
  });

  it("[exec-keep] an unread end that is dropped leaves nothing for the next stream", async () => {
    const answer = client.requestStream(get("https://example.test/queued-terminal"));
    const { id } = await peer.request();
    peer.delta("http-1", 1, "", true);
    peer.head(id);
    (await answer).body.destroy();
    const next = client.requestStream(get("https://example.test/next"));
    const second = await peer.request();
    expect(second.params.requestId).toBe("http-2");
    peer.head(second.id, 204);
    expect((await next).status).toBe(204);
    expect(client.inFlight).toBe(1);
  });

  it("[exec-keep] late deltas of a request that was taken back before its head reach nobody", async () => {
    const control = new AbortController();
    const first = client.requestStream(get("https://example.test/cancel"), { signal: control.signal });
    const asked = await peer.request();
    control.abort(new Error("no more"));
    await expect(first).rejects.toThrow("no more");
    expect(client.inFlight).toBe(0);
    const next = client.requestStream(get("https://example.test/retry"));
    const second = await peer.request();
    peer.delta("http-1", 1, "stale");
    peer.head(asked.id);
    peer.head(second.id);
    peer.delta("http-2", 1, "fresh", true);
    const { chunks } = await drained((await next).body);
    expect(Buffer.concat(chunks).toString()).toBe("fresh");
  });

  it("[exec-keep] late deltas of a body that was dropped reach nobody", async () => {
    const first = client.requestStream(get("https://example.test/drop"));
    const asked = await peer.request();
    peer.head(asked.id);
    (await first).body.destroy();
    peer.delta("http-1", 1, "stale");
    const next = client.requestStream(get("https://example.test/retry"));
    const second = await peer.request();
    expect(second.params.requestId).toBe("http-2");
    peer.head(second.id);
    peer.delta("http-2", 1, "fresh", true);
    const { chunks } = await drained((await next).body);
    expect(Buffer.concat(chunks).toString()).toBe("fresh");
  });

  it("[exec-keep] is told nothing of a request that is taken back: it does not know the word", async () => {
    const first = client.requestStream(get("https://example.test/drop"));
    const asked = await peer.request();
    peer.head(asked.id);
    (await first).body.destroy();
    const next = client.request(get("https://example.test/next"));
    const second = await peer.request();
    peer.head(second.id);
    await next;
    expect(peer.unread).toBe(0);
  });

  it("[exec-keep] a lost connection fails an open body", async () => {
    const answer = client.requestStream(get("https://example.test/disconnect"));
    const { id } = await peer.request();
    peer.head(id);
    const { body } = await answer;
    peer.ws.terminate();
    const { chunks, error } = await drained(body);
    expect(chunks).toEqual([]);
    expect(error).toMatchObject({ code: "disconnected", sent: true });
    expect(error?.message).toMatch(/^the executor disconnected: /);
  });

  it("[exec-keep] a lost connection is told after a full queue, and is no clean end", async () => {
    const answer = client.requestStream(get("https://example.test/disconnect-full-queue"));
    const { id } = await peer.request();
    for (let seq = 1; seq <= MAX_QUEUED_DELTAS; seq++) peer.delta("http-1", seq, "x");
    peer.head(id);
    const { body } = await answer;
    peer.ws.close(1000);
    await expect.poll(() => client.state).not.toBe("ready");
    const { chunks, error } = await drained(body);
    expect(chunks.length).toBe(MAX_QUEUED_DELTAS);
    expect(error?.code).toBe("disconnected");
  });

  it("[exec-keep] one delta too many is an error after those that were kept", async () => {
    const answer = client.requestStream(get("https://example.test/backpressure"));
    const { id } = await peer.request();
    for (let seq = 1; seq <= 4 * MAX_QUEUED_DELTAS; seq++) peer.delta("http-1", seq, "x");
    peer.head(id);
    const { chunks, error } = await drained((await answer).body);
    expect(chunks.length).toBe(MAX_QUEUED_DELTAS);
    expect(error).toMatchObject({
      code: "overflow",
      message: "response stream http-1 failed: body delta channel filled before delivery",
    });
    expect(client.state).toBe("ready");
  });

  it("[exec-keep] a body that nobody reads overflows, and the others go on", async () => {
    const slow = client.requestStream(get("https://example.test/slow"));
    const asked = await peer.request();
    peer.head(asked.id);
    const { body } = await slow;
    // Of a size that what is kept ahead of the reader cannot hide.
    for (let seq = 1; seq <= 4 * MAX_QUEUED_DELTAS; seq++) peer.delta("http-1", seq, "x".repeat(1024));
    const quick = client.request(get("https://example.test/quick"));
    const second = await peer.request();
    peer.head(second.id, 200, [], Buffer.from("quick").toString("base64"));
    expect((await quick).body.toString()).toBe("quick");
    const { chunks, error } = await drained(body);
    expect(chunks.length).toBeLessThan(4 * MAX_QUEUED_DELTAS);
    expect(error?.code).toBe("overflow");
  });

  it("a body that breaks off at the far end fails after what came", async () => {
    const answer = client.requestStream(get("https://example.test/cut"));
    const { id } = await peer.request();
    peer.head(id);
    peer.delta("http-1", 1, "some");
    peer.delta("http-1", 2, "", true, "connection reset");
    const { chunks, error } = await drained((await answer).body);
    expect(Buffer.concat(chunks).toString()).toBe("some");
    expect(error).toMatchObject({ code: "failed", message: "response stream http-1 failed: connection reset" });
  });

  it("a gap is the executor's fault, and named as one", async () => {
    const answer = client.requestStream(get("https://example.test/gap"));
    const { id } = await peer.request();
    peer.head(id);
    peer.delta("http-1", 1, "one");
    peer.delta("http-1", 3, "three", true);
    const { chunks, error } = await drained((await answer).body);
    expect(Buffer.concat(chunks).toString()).toBe("one");
    expect(error?.code).toBe("protocol");
  });

  it("[exec-3] a connection that is lost between deltas is a disconnect, and no gap", async () => {
    const answer = client.requestStream(get("https://example.test/disconnect"));
    const { id } = await peer.request();
    peer.head(id);
    peer.delta("http-1", 1, "one");
    peer.delta("http-1", 2, "two");
    const { body } = await answer;
    const rest = drained(body);
    await peer.flushed();
    peer.ws.terminate();
    const { chunks, error } = await rest;
    expect(Buffer.concat(chunks).toString()).toBe("onetwo");
    expect(error?.code).toBe("disconnected");
  });

  it.each([
    [-32602, "refused", false],
    [-32603, "failed", true],
    [-32601, "refused", false],
  ] as const)("error %i is %s", async (code, expected, sent) => {
    const answer = client.request(get("ftp://example.test/"));
    const { id } = await peer.request();
    peer.write({ id, error: { code, message: "no such thing" } });
    await expect(answer).rejects.toMatchObject({ code: expected, message: "no such thing", sent });
  });

  it("[exec-5] a body that comes in pieces is collected for it, within a bound", async () => {
    async function* pieces() {
      yield Buffer.from("one ");
      yield Buffer.from("two");
    }
    const answer = client.request({ ...get("https://example.test/"), method: "POST", body: pieces() });
    const { id, params } = await peer.request();
    expect(Buffer.from(params.bodyBase64, "base64").toString()).toBe("one two");
    expect(params.streamRequest).toBeUndefined();
    peer.head(id);
    expect((await answer).status).toBe(200);

    async function* endless() {
      for (;;) yield Buffer.alloc(MIB);
    }
    const refused = client.request({ ...get("https://example.test/"), method: "POST", body: endless() });
    await expect(refused).rejects.toMatchObject({ code: "limit", sent: false });
    const large = Buffer.alloc(MAX_WHOLE_BODY_BYTES + 1);
    const other = client.request({ ...get("https://example.test/"), method: "POST", body: large });
    await expect(other).rejects.toMatchObject({ code: "limit", sent: false });
    expect(client.inFlight).toBe(0);
  });

  it("a body that fails to come is the caller's error, and nothing is sent", async () => {
    // biome-ignore lint/correctness/useYield: it fails before its first piece.
    async function* broken(): AsyncGenerator<Uint8Array> {
      throw new Error("disk full");
    }
    const answer = client.request({ ...get("https://example.test/"), method: "POST", body: broken() });
    await expect(answer).rejects.toMatchObject({ code: "cancelled", sent: false });
    expect(peer.unread).toBe(0);
  });

  it("is told that its own requests are not known here", async () => {
    peer.write({ id: 7, method: "fs/readFile", params: {} });
    expect(await peer.next()).toMatchObject({ id: 7, error: { code: -32601 } });
  });

  it("what is no message ends the conversation, and another is begun", async () => {
    const answer = client.request(get("https://example.test/"));
    await peer.request();
    const again = scripted.plain();
    peer.ws.send("not JSON");
    await expect(answer).rejects.toMatchObject({ code: "protocol", sent: true });
    await again;
    await client.ready();
  });

  it("is dialled again when it is gone; requests meanwhile are refused as not sent", async () => {
    const again = scripted.accept();
    peer.ws.terminate();
    await expect.poll(() => client.state).toBe("connecting");
    await expect(client.request(get("https://example.test/"))).rejects.toMatchObject({
      code: "unavailable",
      sent: false,
    });
    const second = await again;
    await second.greet();
    expect(second.initialize?.resumeSessionId).toBeUndefined();
    await client.ready();
    const answer = client.request(get("https://example.test/"));
    const { id, params } = await second.request();
    expect(params.requestId).toBe("http-2");
    second.head(id);
    expect((await answer).status).toBe(200);
  });

  it("bounds of ours are checked before anything is sent", async () => {
    const long = `https://example.test/${"x".repeat(20_000)}`;
    await expect(client.request(get(long))).rejects.toMatchObject({ code: "limit", sent: false });
    const headers = [{ name: "x-large", value: "x".repeat(70_000) }];
    await expect(client.request(get("https://example.test/", { headers }))).rejects.toMatchObject({ code: "limit" });
    expect(peer.unread).toBe(0);
  });

  it("close() says goodbye, and ends what is open", async () => {
    const whole = client.request(get("https://example.test/one"));
    const stream = client.requestStream(get("https://example.test/two"));
    await peer.request();
    const { id } = await peer.request();
    peer.head(id);
    const { body } = await stream;
    const rest = drained(body);
    const refused = expect(whole).rejects.toMatchObject({ code: "closed", sent: true });
    await client.close();
    await refused;
    expect((await rest).error?.code).toBe("closed");
    expect(await peer.closed).toBe(1000);
    expect(client.state).toBe("closed");
    await expect(client.request(get("https://example.test/"))).rejects.toMatchObject({ code: "closed", sent: false });
    await expect(client.ready()).rejects.toMatchObject({ code: "closed" });
  });
});
