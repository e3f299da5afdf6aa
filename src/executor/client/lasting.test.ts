// The client with an executor that agreed to the extensions, message by message: credit, cancel, uploads, resume.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  get,
  type Message,
  type Peer,
  type Scripted,
  startScripted,
} from "../../../test/executor/scripted-executor.js";
import { MIB } from "../../runtime/sizes.js";
import { FIRST_WINDOW_BYTES, LARGEST_WINDOW_BYTES } from "../../sockets/limits.js";
import { MAX_DELTA_BYTES, MAX_REQUESTS } from "../wire/limits.js";
import type { ExecutorError, RequestHandle } from "../wire/types.js";
import type { SocketClient } from "./client.js";
import { connectExecutor } from "./connect.js";

let scripted: Scripted;
let client: SocketClient;
let peer: Peer;

const AGREED = { version: 1, window: FIRST_WINDOW_BYTES, retentionMs: 60_000 };

beforeEach(async () => {
  scripted = await startScripted();
  const greeted = scripted.extended();
  client = (await connectExecutor({ url: scripted.url })) as SocketClient;
  peer = await greeted;
});

afterEach(async () => {
  await client.close();
  await scripted.close();
});

/** The next message but acknowledgements, which come when they like. */
async function next(from: Peer): Promise<Message> {
  for (;;) {
    const message = await from.next();
    if (message.method !== "session/ack") return message;
  }
}

async function resumed(received: number): Promise<Peer> {
  const again = await scripted.accept();
  await again.greet({ ...AGREED, resumed: true, received });
  return again;
}

function started(url: string): { exchange: RequestHandle; told: { bytes: number; error: ExecutorError | undefined } } {
  const told: { bytes: number; error: ExecutorError | undefined } = { bytes: 0, error: undefined };
  const exchange = client.start(get(url), {
    onHead() {},
    onData(chunk) {
      told.bytes += chunk.length;
    },
    onEnd() {},
    onError(error) {
      told.error = error;
    },
  });
  return { exchange, told };
}

describe("an executor of ours", () => {
  it("is offered the extensions, with the window that it may use", () => {
    expect(peer.initialize).toEqual({
      clientName: "toolway",
      toolway: { version: 1, window: FIRST_WINDOW_BYTES, received: 0 },
    });
    expect(client.extended).toBe(true);
  });

  it("an agreement that means something else is no connection", async () => {
    const other = await startScripted();
    const connected = connectExecutor({ url: other.url });
    const refused = expect(connected).rejects.toMatchObject({ code: "unavailable" });
    const greeted = await other.accept();
    const { id } = await greeted.request("initialize");
    const toolway = { ...AGREED, version: 2, resumed: false, received: 0 };
    greeted.write({ id, result: { sessionId: "session-1", toolway } });
    await refused;
    await other.close();
  });

  it("[exec-1] gets credit as its reader reads, and none while the reader waits", async () => {
    const { exchange, told } = started("https://example.test/large");
    exchange.pause();
    const { id } = await peer.request();
    peer.head(id);
    const half = Buffer.alloc(FIRST_WINDOW_BYTES / 2, 1);
    peer.delta("http-1", 1, half);
    peer.delta("http-1", 2, half);
    await peer.flushed();
    expect([told.bytes, peer.unread]).toEqual([0, 0]);
    exchange.resume();
    const { method, params } = await next(peer);
    expect(told.bytes).toBe(FIRST_WINDOW_BYTES);
    expect([method, params.requestId]).toEqual(["http/request/credit", "http-1"]);
    expect(params.bytes).toBeGreaterThan(0);
    expect(params.bytes).toBeLessThanOrEqual(LARGEST_WINDOW_BYTES);
    exchange.abort();
  });

  it("[exec-1] an answer that fits into the first window costs no message of credit, and no reader", async () => {
    const answer = client.requestStream(get("https://example.test/small"));
    const { id } = await peer.request();
    peer.head(id);
    peer.delta("http-1", 1, Buffer.alloc(FIRST_WINDOW_BYTES / 4));
    peer.delta("http-1", 2, "", true);
    await answer;
    // Nobody reads it, and yet it is over.
    await expect.poll(() => client.inFlight).toBe(0);
    await peer.flushed();
    expect(peer.unread).toBe(0);
  });

  it("[exec-1] has no bound on the number of pieces: 1,024 of them wait for a reader", async () => {
    const answer = client.requestStream(get("https://example.test/many"));
    const { id } = await peer.request();
    for (let seq = 1; seq <= 1_024; seq++) peer.delta("http-1", seq, "x");
    peer.head(id);
    peer.delta("http-1", 1_025, "", true);
    let text = "";
    for await (const chunk of (await answer).body) text += String(chunk);
    expect(text).toBe("x".repeat(1_024));
  });

  it("more than was granted is the executor's fault, and its work is stopped", async () => {
    const { exchange, told } = started("https://example.test/flood");
    exchange.pause();
    const { id } = await peer.request();
    peer.head(id);
    peer.delta("http-1", 1, Buffer.alloc(FIRST_WINDOW_BYTES));
    peer.delta("http-1", 2, "x");
    expect((await next(peer)).method).toBe("http/request/cancel");
    exchange.resume();
    expect(told).toMatchObject({ bytes: FIRST_WINDOW_BYTES, error: { code: "protocol" } });
  });

  it("is not told to stop for a second answer that means nothing: the first one's body has its end", async () => {
    const answer = client.requestStream(get("https://example.test/twice"));
    const { id } = await peer.request();
    peer.head(id);
    peer.write({ id, result: "no head" });
    peer.delta("http-1", 1, "all of it", true);
    expect(Buffer.concat(await (await answer).body.toArray()).toString()).toBe("all of it");
    peer.write({ id: "probe", method: "no/such" });
    expect(await peer.next()).toMatchObject({ id: "probe" });
  });

  it("[exec-2] is told of a body that is dropped, and of a request that is taken back", async () => {
    const first = client.requestStream(get("https://example.test/drop"));
    const { id } = await peer.request();
    peer.head(id);
    (await first).body.destroy();
    expect(await next(peer)).toEqual({ method: "http/request/cancel", params: { requestId: "http-1" } });

    const control = new AbortController();
    const second = client.request(get("https://example.test/cancel"), { signal: control.signal });
    const asked = await peer.request();
    control.abort(new Error("enough"));
    await expect(second).rejects.toThrow("enough");
    expect(await next(peer)).toEqual({ method: "http/request/cancel", params: { requestId: "http-2" } });
    peer.write({ id: asked.id, error: { code: -32603, message: "cancelled", data: { code: "cancelled" } } });
    await peer.flushed();
    expect(client.inFlight).toBe(0);
  });

  it("[exec-2] is told nothing of a body that came to its end", async () => {
    const answer = client.requestStream(get("https://example.test/done"));
    const { id } = await peer.request();
    peer.head(id);
    peer.delta("http-1", 1, "all", true);
    const { body } = await answer;
    await peer.flushed();
    body.destroy();
    await peer.flushed();
    expect(client.inFlight).toBe(0);
    expect(peer.unread).toBe(0);
  });

  it("[exec-5] gets a body as it comes, as far as its credit goes", async () => {
    let made = 0;
    let returned = false;
    async function* pieces() {
      try {
        for (; made < 64; made++) yield Buffer.alloc(FIRST_WINDOW_BYTES / 2, made);
      } finally {
        returned = true;
      }
    }
    const answer = client.request({ ...get("https://example.test/"), method: "POST", body: pieces() });
    const { id, params } = await peer.request();
    expect([params.streamRequest, params.bodyBase64]).toEqual([true, undefined]);
    for (let seq = 1; seq <= 2; seq++) expect((await next(peer)).params.seq).toBe(seq);
    await peer.flushed();
    // Two pieces fit, and one waits.
    expect([made, peer.unread]).toEqual([2, 0]);
    peer.write({ method: "http/request/credit", params: { requestId: "http-1", bytes: 10 } });
    const { params: third } = await next(peer);
    expect([third.seq, Buffer.from(third.deltaBase64, "base64")]).toEqual([3, Buffer.alloc(10, 2)]);
    // The answer is there before the body is: nobody wants the rest.
    peer.head(id, 413);
    expect((await answer).status).toBe(413);
    await expect.poll(() => returned).toBe(true);
    await peer.flushed();
    expect(peer.unread).toBe(0);
  });

  it("[exec-5] gets a large body in pieces even where it was there at once, and a small one whole", async () => {
    const large = Buffer.alloc(MAX_DELTA_BYTES + 1, 7);
    const answer = client.request({ ...get("https://example.test/"), method: "POST", body: large });
    const { id, params } = await peer.request();
    expect(params.streamRequest).toBe(true);
    peer.write({ method: "http/request/credit", params: { requestId: "http-1", bytes: 8 * MIB } });
    const pieces: Buffer[] = [];
    for (let seq = 1; ; seq++) {
      const { params: delta } = await next(peer);
      expect(delta.seq).toBe(seq);
      pieces.push(Buffer.from(delta.deltaBase64, "base64"));
      if (delta.done) break;
    }
    expect(Buffer.concat(pieces).equals(large)).toBe(true);
    peer.head(id);
    await answer;

    const small = client.request({ ...get("https://example.test/"), method: "POST", body: "small" });
    const asked = await peer.request();
    expect(asked.params.bodyBase64).toBe(Buffer.from("small").toString("base64"));
    peer.head(asked.id);
    await small;
  });

  it("[exec-5] hears of a body that broke off", async () => {
    async function* broken() {
      yield Buffer.from("some");
      throw new Error("disk gone");
    }
    const answer = client.request({ ...get("https://example.test/"), method: "POST", body: broken() });
    const message = "the request's body failed: disk gone";
    const refused = expect(answer).rejects.toMatchObject({ code: "cancelled", message });
    await peer.request();
    expect((await next(peer)).params.seq).toBe(1);
    expect((await next(peer)).params).toMatchObject({ seq: 2, done: true, error: "disk gone" });
    await refused;
  });

  it("tells why a request failed, and whether the server saw it", async () => {
    const answer = client.request(get("https://example.test/"));
    const { id } = await peer.request();
    const data = { code: "ECONNREFUSED", written: false };
    peer.write({ id, error: { code: -32603, message: "connection refused", data } });
    await expect(answer).rejects.toMatchObject({ code: "failed", sent: false, networkCode: "ECONNREFUSED" });
  });

  /** A body of which a piece has come when the socket is cut. */
  async function cutInBody(): Promise<AsyncIterable<unknown>> {
    const answer = client.requestStream(get("https://example.test/long"));
    const { id } = await peer.request();
    peer.head(id);
    peer.delta("http-1", 1, "one ");
    const { body } = await answer;
    await peer.flushed();
    peer.ws.terminate();
    await expect.poll(() => client.state).not.toBe("ready");
    return body;
  }

  it("[exec-4] a cut is not seen: requests, pieces and new requests go on over the next socket", async () => {
    const body = await cutInBody();
    // Made while nobody is there: kept, and sent when somebody is.
    const meanwhile = client.request(get("https://example.test/meanwhile"));
    const again = await scripted.accept();
    const initialize = await again.request("initialize");
    // head, delta, probe
    expect(initialize.params).toMatchObject({ resumeSessionId: "session-1", toolway: { received: 3 } });
    // http-1 arrived here, the answer to the probe did not.
    const toolway = { ...AGREED, resumed: true, received: 1 };
    again.write({ id: initialize.id, result: { sessionId: "session-1", toolway } });
    expect((await again.next()).method).toBe("initialized");
    expect(await next(again)).toMatchObject({ id: "probe" });
    const second = await again.request();
    expect(second.params.requestId).toBe("http-2");
    expect(client.state).toBe("ready");
    again.delta("http-1", 2, "two", true);
    again.head(second.id, 200, [], Buffer.from("kept").toString("base64"));
    let text = "";
    for await (const chunk of body) text += String(chunk);
    expect(text).toBe("one two");
    expect((await meanwhile).body.toString()).toBe("kept");
  });

  it("[exec-3] an executor that knows nothing of the session any more is a disconnect, after what came", async () => {
    const body = await cutInBody();
    const never = client.request(get("https://example.test/meanwhile"));
    const refused = expect(never).rejects.toMatchObject({ code: "disconnected", sent: false });
    const again = await scripted.accept();
    again.sessionId = "session-2";
    await again.greet({ ...AGREED, resumed: false, received: 0 });
    await refused;
    const chunks: string[] = [];
    const read = async () => {
      for await (const chunk of body) chunks.push(String(chunk));
    };
    await expect(read()).rejects.toMatchObject({ code: "disconnected", sent: true });
    expect(chunks.join("")).toBe("one ");
    expect(client.sessionId).toBe("session-2");
    const fresh = client.request(get("https://example.test/fresh"));
    const asked = await again.request();
    again.head(asked.id);
    expect((await fresh).status).toBe(200);
  });

  it("[exec-3] an executor that says goodbye does not come back: nobody waits for it", async () => {
    const answer = client.request(get("https://example.test/long"));
    await peer.request();
    peer.ws.close(1000);
    await expect(answer).rejects.toMatchObject({ code: "disconnected", sent: true });
    const again = await scripted.accept();
    await again.greet();
    expect(again.initialize?.resumeSessionId).toBeUndefined();
  });

  it("[exec-3] an executor that stays away for longer than sessions are kept is lost", async () => {
    await client.close();
    await scripted.close();
    scripted = await startScripted();
    const greeted = scripted.extended({ retentionMs: 50 });
    client = (await connectExecutor({ url: scripted.url })) as SocketClient;
    peer = await greeted;
    const sent = client.request(get("https://example.test/sent"));
    const outcome = expect(sent).rejects.toMatchObject({ code: "disconnected", sent: true });
    await peer.request();
    await scripted.close();
    await outcome;
    expect(client.state).toBe("connecting");
    await expect(client.request(get("https://example.test/"))).rejects.toMatchObject({ code: "unavailable" });
  });

  it("[exec-4] goes on after several cuts, the handshake cut as well", async () => {
    const answer = client.requestStream(get("https://example.test/long"));
    const { id } = await peer.request();
    peer.head(id);
    const { body } = await answer;
    let current = peer;
    for (let seq = 1; seq <= 5; seq++) {
      current.delta("http-1", seq, `${seq} `);
      await current.flushed();
      current.ws.terminate();
      const half = await scripted.accept();
      await half.request("initialize");
      half.ws.terminate();
      current = await resumed(1 + seq);
    }
    current.delta("http-1", 6, "end", true);
    let text = "";
    for await (const chunk of body) text += String(chunk);
    expect(text).toBe("1 2 3 4 5 end");
  });

  it("[exec-4] requests that wait for an executor have a bound", async () => {
    peer.ws.terminate();
    await expect.poll(() => client.state).toBe("lost");
    const body = Buffer.alloc(MIB, 1);
    const outcomes = Array.from({ length: 10 }, () =>
      client.request({ ...get("https://example.test/"), method: "POST", body }).then(
        () => "answered",
        (error) => `${error.code} ${error.sent}`,
      ),
    );
    // 1 MiB is 1.33 of text: the sixth goes past 8.
    await expect(outcomes[9]).resolves.toBe("limit false");
    await client.close();
    expect(await Promise.all(outcomes)).toEqual([
      ...Array.from({ length: 6 }, () => "closed false"),
      ...Array.from({ length: 4 }, () => "limit false"),
    ]);
  });

  it("[exec-7] requests run side by side, within a bound", async () => {
    const all = Array.from({ length: MAX_REQUESTS }, (_, i) => client.request(get(`https://example.test/${i}`)));
    await expect(client.request(get("https://example.test/more"))).rejects.toMatchObject({
      code: "limit",
      sent: false,
    });
    const asked: Message[] = [];
    while (asked.length < MAX_REQUESTS) asked.push(await next(peer));
    // The last one first.
    for (const { id, params } of asked.reverse()) {
      peer.head(id as string, 200, [], Buffer.from(params.url).toString("base64"));
    }
    const bodies = (await Promise.all(all)).map(({ body }) => body.toString());
    expect(bodies).toEqual(all.map((_, i) => `https://example.test/${i}`));
    expect(client.inFlight).toBe(0);
  });
});
