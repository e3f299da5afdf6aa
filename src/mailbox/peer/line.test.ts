// The peer's line, over real sockets to a real broker.

import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WebSocketServer } from "ws";
import { BareClient } from "../../../test/fixtures/mailbox/bare-client.js";
import { TestBroker } from "../../../test/fixtures/mailbox/test-broker.js";
import type { MailboxPresence, ReceivedLive, ReceivedMessage } from "../wire/broker-frames.js";
import { BEAT_MS, MAX_LIVE_BYTES, MAX_UNDER_WAY } from "../wire/limits.js";
import { type BrokerLine, greet, type LineEvents, type LineOptions, openLine } from "./line.js";
import { LocalEnd } from "./local-line.js";

/** A line, and what was heard on it. */
class Heard implements LineEvents {
  readonly messages: ReceivedMessage[] = [];
  readonly lives: ReceivedLive[] = [];
  readonly cancels: [string, string | undefined][] = [];
  readonly presences: MailboxPresence[] = [];
  readonly closes: [string, boolean][] = [];
  line!: BrokerLine;

  onMessage(message: ReceivedMessage): void {
    this.messages.push(message);
  }
  onLive(frame: ReceivedLive): void {
    this.lives.push(frame);
  }
  onCancel(correlationId: string, from: string | undefined): void {
    this.cancels.push([correlationId, from]);
  }
  onPresence(presence: MailboxPresence): void {
    this.presences.push(presence);
  }
  onDrain(): void {}
  onClose(why: string, final: boolean): void {
    this.closes.push([why, final]);
  }
}

let test: TestBroker;
const lines: BrokerLine[] = [];
beforeEach(async () => {
  test = await TestBroker.open();
});
afterEach(async () => {
  for (const line of lines.splice(0)) line.close();
  await test.end();
});

const TOKENS: Record<string, string> = {
  studio: "studio-token",
  "worker-1": "worker-token",
  "worker-2": "other-token",
};

async function open(address: string, options: Partial<LineOptions> = {}): Promise<Heard> {
  const heard = new Heard();
  const token = TOKENS[address.replace(/#.*/, "")];
  heard.line = await openLine({ url: test.url, token, address, ...options }, heard);
  lines.push(heard.line);
  return heard;
}

/** Waits for the first of a list to come, and takes it. */
async function next<T>(list: T[]): Promise<T> {
  await expect.poll(() => list.length).toBeGreaterThan(0);
  return list.shift() as T;
}

const sharer = async (journal?: string): Promise<Heard> => {
  const heard = await open("studio", { journal, kinds: ["mcp_request"] });
  heard.line.credit(100);
  return heard;
};

const call = (id: string, body = "{}") => ({ to: "studio", id, kind: "mcp_request", body });

describe("a line to a broker", () => {
  it("carries a call, its reply and what becomes of them, with bodies as they were written", async () => {
    const worker = await open("worker-1#mcp-x", { kinds: ["mcp_reply"] });
    worker.line.credit(1);
    expect([worker.line.address, worker.line.role]).toEqual(["worker-1#mcp-x", "researcher"]);
    const studio = await sharer("J1");
    const body =
      '{ "n": 1e3, "long": 12345678901234567890, "twice": 1, "twice": 2, "half": "\\ud800", "b\\u006fdy": [] }';
    await worker.line.deliver({ ...call("m-1", body), correlationId: "c-9", leftMs: 60_000 });
    const asked = await next(studio.messages);
    expect(asked).toMatchObject({ id: "m-1", from: "worker-1#mcp-x", role: "researcher", body, correlationId: "c-9" });
    expect(asked).toMatchObject({ kind: "mcp_request", repeated: false, leftMs: expect.any(Number) });
    expect(await studio.line.extend([asked, { id: "never", from: "worker-1" }])).toEqual([
      { id: "m-1", from: "worker-1#mcp-x" },
    ]);
    const reply = '{"message":{"id":1.0,"result":{"x":1E400}}}';
    await studio.line.deliver({
      to: asked.from,
      id: "r-1",
      kind: "mcp_reply",
      body: reply,
      correlationId: "m-1",
      acknowledges: asked,
    });
    const answer = await next(worker.messages);
    expect(answer).toMatchObject({ id: "r-1", from: "studio", role: "sharer", body: reply, correlationId: "m-1" });
    worker.line.ack(answer);
    await expect.poll(() => [...test.store.log("mail").entries()]).toEqual([]);
  });

  it("says at the end of a turn what is finished and how much may come, and the broker what is on disk, in one frame each", async () => {
    const [ours, theirs] = LocalEnd.pair();
    const frames: Record<string, unknown>[] = [];
    theirs.attach({
      onMessage: (bytes) => void frames.push(JSON.parse(bytes.toString()) as Record<string, unknown>),
      onDrain() {},
      onClose() {},
    });
    const greeting = greet(ours, { address: "worker-1" }, new Heard());
    theirs.send('{"kind":"welcome","agent":{"session_id":"worker-1","role":"researcher"}}');
    const line = await greeting;
    await expect.poll(() => frames.map(({ kind }) => kind)).toEqual(["hello", "subscribe"]);
    const delivered = Promise.all(["m-1", "m-2"].map((id) => line.deliver(call(id))));
    for (const id of ["r-1", "r-2", "r-3"]) {
      line.ack({ id, from: "studio" });
      line.credit(1);
    }
    theirs.send('{"kind":"delivered","ids":["m-1","m-2"]}');
    await delivered;
    line.ack({ id: "r-4", from: "studio" });
    // Also what was not said yet when it closes.
    line.close();
    await expect
      .poll(() => frames.slice(4))
      .toEqual([
        { kind: "ack", ids: ["r-1", "r-2", "r-3"].map((id) => ({ id, from: "studio" })) },
        { kind: "credit", messages: 3 },
        { kind: "ack", id: "r-4", from: "studio" },
      ]);
  });

  it("has so many deliveries under way at most, and takes the next when one of them is over [bounded]", async () => {
    const [ours, theirs] = LocalEnd.pair();
    const greeting = greet(ours, { address: "worker-1" }, new Heard());
    theirs.send('{"kind":"welcome","agent":{"session_id":"worker-1","role":"researcher"}}');
    const line = await greeting;
    const all = Array.from({ length: MAX_UNDER_WAY }, (_, n) => line.deliver(call(`m-${n}`)));
    await expect(line.deliver(call("one-more"))).rejects.toThrow(`${MAX_UNDER_WAY} deliveries to the broker`);
    theirs.send('{"kind":"delivered","id":"m-0"}');
    await all[0];
    const next = line.deliver(call("one-more"));
    const ids = [...all.keys()].slice(1).map((n) => `m-${n}`);
    theirs.send(JSON.stringify({ kind: "delivered", ids: [...ids, "one-more"] }));
    await Promise.all([...all, next]);
  });

  it("is given up within two beats where the broker gives no sign of life [bounded]", async () => {
    // It takes the connection and the hello, and is mute from then on, as a machine whose network went.
    const mute = new WebSocketServer({ port: 0, host: "127.0.0.1", autoPong: false });
    mute.on("connection", (ws) => {
      ws.once("message", () => ws.send('{"kind":"welcome","agent":{"session_id":"worker-1","role":"dev"}}'));
    });
    await once(mute, "listening");
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      const worker = await open("worker-1", { url: `ws://127.0.0.1:${(mute.address() as AddressInfo).port}` });
      vi.advanceTimersByTime(BEAT_MS);
      expect(worker.closes).toEqual([]);
      // The welcome was a sign of life in the first of them.
      vi.advanceTimersByTime(BEAT_MS);
      expect(await next(worker.closes)).toEqual([
        expect.stringContaining(`nothing was heard for ${BEAT_MS / 1000} s`),
        false,
      ]);
    } finally {
      vi.useRealTimers();
      for (const ws of mute.clients) ws.terminate();
      mute.close();
    }
  });

  it("has all of many calls that come at once, with their replies, in one frame and one commit where that can be", async () => {
    const worker = await open("worker-1#mcp-x", { kinds: ["mcp_reply"] });
    worker.line.credit(100);
    const studio = await sharer("J1");
    await Promise.all(Array.from({ length: 50 }, (_, n) => worker.line.deliver(call(`m-${n}`))));
    await expect.poll(() => studio.messages.length).toBe(50);
    const answers = studio.messages.map((asked, n) => {
      const { id, from } = asked;
      const reply = { to: from, id: `r-${n}`, kind: "mcp_reply", body: "{}", correlationId: id, acknowledges: asked };
      return studio.line.deliver(reply);
    });
    await Promise.all(answers);
    await expect.poll(() => worker.messages.length).toBe(50);
    const batches = vi.spyOn(test.store, "batch");
    for (const answer of worker.messages) worker.line.ack(answer);
    await expect.poll(() => [...test.store.log("mail").entries()]).toEqual([]);
    expect(batches).toHaveBeenCalledTimes(1);
  });

  it("says what the broker refused, and what a lost line leaves open", async () => {
    const worker = await open("worker-1");
    await expect(worker.line.deliver({ ...call("m-1"), to: "attic" })).rejects.toMatchObject({
      name: "BrokerRefusal",
      final: false,
      reason: expect.stringContaining("may not send"),
    });
    await expect(worker.line.deliver(call("m-2", JSON.stringify("x".repeat(1_100_000))))).rejects.toThrow("at most");
    // Twice at once is one delivery.
    await Promise.all([worker.line.deliver(call("m-3")), worker.line.deliver(call("m-3"))]);
    const lost = expect(worker.line.deliver(call("m-4", "not JSON"))).rejects.toMatchObject({ name: "BrokerLost" });
    await lost;
    expect(worker.closes).toHaveLength(1);
    await expect(worker.line.deliver(call("m-5"))).rejects.toMatchObject({ name: "BrokerLost" });
  });

  it("tells a refusal for good from an end that may pass", async () => {
    await expect(open("studio", { token: "wrong" })).rejects.toMatchObject({ name: "BrokerRefusal", final: true });
    await expect(open("studio", { token: "worker-token" })).rejects.toMatchObject({
      name: "BrokerRefusal",
      final: true,
      reason: expect.stringContaining("worker-1"),
    });
    await expect(open("studio", { url: "ws://127.0.0.1:9" })).rejects.toMatchObject({ name: "BrokerLost" });
    const control = new AbortController();
    control.abort();
    await expect(open("studio", { signal: control.signal })).rejects.toMatchObject({ name: "BrokerLost" });
    const one = await open("studio");
    for (const connection of test.connections) connection.end("the gateway stops");
    expect(await next(one.closes)).toEqual(["the gateway stops", false]);
    const two = await open("studio");
    for (const connection of test.connections) connection.expel("the token has ended");
    expect(await next(two.closes)).toEqual(["the token has ended", true]);
  });

  it("leaves what may run twice to another consumer when it ends, at once, and all else to its own journal [no-double-effect]", async () => {
    const worker = await open("worker-1");
    const first = await sharer("J1");
    for (const id of ["write", "read"]) await worker.line.deliver(call(id));
    await next(first.messages);
    const read = await next(first.messages);
    first.line.repeatable(read);
    await first.line.caughtUp();
    const second = await sharer("J2");
    first.line.close();
    expect(await next(second.messages)).toMatchObject({ id: "read", repeated: true });
    const again = await sharer("J1");
    expect(await next(again.messages)).toMatchObject({ id: "write", repeated: true });
    expect(second.messages).toEqual([]);
  });

  it("takes a call back, or tells whoever has it who does not want it any more", async () => {
    const worker = await open("worker-1#mcp-x");
    await worker.line.deliver(call("m-1"));
    expect(await worker.line.cancel("studio", "m-1")).toBe(true);
    expect(await worker.line.cancel("studio", "m-1")).toBe(false);
    const studio = await sharer();
    await worker.line.deliver(call("m-2"));
    await next(studio.messages);
    expect(await worker.line.cancel("studio", "m-2")).toBe(false);
    expect(await next(studio.cancels)).toEqual(["m-2", "worker-1#mcp-x"]);
    studio.line.release({ id: "m-2", from: "worker-1#mcp-x" });
    expect(await next(studio.messages)).toMatchObject({ id: "m-2", repeated: true });
  });
});

describe("live frames", () => {
  it("pass between a sharer and those who may send to it, as they were written, and to nobody else", async () => {
    const worker = await open("worker-1#mcp-x");
    const other = await open("worker-2");
    const studio = await sharer();
    const bare = await BareClient.connect(test.url, "worker-1#mcp-x", "worker-token");
    bare.send({ kind: "subscribe" });
    const body = '{"op":"listen", "n":1e3, "n":20000000000000000000001}';
    expect(worker.line.live("studio", undefined, body)).toBe(true);
    const here = { from: "worker-1#mcp-x", role: "researcher", correlationId: undefined, body };
    expect(await next(studio.lives)).toEqual(here);
    studio.line.live("worker-1#mcp-x", "m-1", body);
    expect(await next(worker.lives)).toEqual({ from: "studio", role: "sharer", correlationId: "m-1", body });
    // Neither to one to whom the token may not send, nor to nobody: without an error.
    worker.line.live("worker-2", undefined, "{}");
    worker.line.live("nobody", undefined, "{}");
    // What was said later has come, so the others were dropped.
    studio.line.live("worker-2", undefined, '"last"');
    expect(await next(other.lives)).toMatchObject({ from: "studio", body: '"last"' });
    expect(other.lives).toEqual([]);
    expect(bare.left).toEqual([]);
    expect(worker.line.live("studio", undefined, JSON.stringify("x".repeat(MAX_LIVE_BYTES)))).toBe(false);
    // Bytes are meant, and not characters.
    for (const body of ["x".repeat(MAX_LIVE_BYTES), "\u20ac".repeat(MAX_LIVE_BYTES / 3)]) {
      bare.send({ kind: "live", to: "studio", body });
      expect(await bare.next("error")).toMatchObject({ reason: expect.stringContaining("live frame") });
    }
    expect([...test.store.log("mail").entries()]).toEqual([]);
  });

  it("about a message go to the consumer that has it, or had it, also when it comes back with its journal", async () => {
    const worker = await open("worker-1");
    const first = await sharer("J1");
    await worker.line.deliver(call("m-1"));
    const asked = await next(first.messages);
    const second = await sharer("J2");
    worker.line.live("studio", "m-1", '"held"');
    worker.line.live("studio", undefined, '"all"');
    expect((await next(first.lives)).body).toBe('"held"');
    expect((await next(second.lives)).body).toBe('"all"');
    await next(first.lives);
    first.line.ack(asked);
    first.line.close();
    await expect.poll(() => test.connections.size).toBe(2);
    const again = await sharer("J1");
    worker.line.live("studio", "m-1", '"back"');
    worker.line.live("studio", undefined, '"all"');
    expect((await next(again.lives)).body).toBe('"back"');
    expect((await next(second.lives)).body).toBe('"all"');
  });

  it("are dropped where much waits for a receiver that does not read, and what is durable still comes [bounded]", async () => {
    const worker = await open("worker-1");
    const studio = await BareClient.connect(test.url, "studio", "studio-token", { version: 1 });
    studio.send({ kind: "subscribe" });
    studio.send({ kind: "credit", messages: 10 });
    studio.socket.pause();
    const sent = 600;
    const body = JSON.stringify("x".repeat(90_000));
    for (let n = 0; n < sent; n++) {
      await expect.poll(() => worker.line.live("studio", `n-${n}`, body), { interval: 1 }).toBe(true);
    }
    await worker.line.deliver(call("m-1"));
    studio.socket.resume();
    expect((await studio.message()).id).toBe("m-1");
    const came = studio.left.filter(({ kind }) => kind === "live").length;
    expect(came).toBeGreaterThan(0);
    expect(came).toBeLessThan(sent);
  });
});

describe("presence", () => {
  it("is told at once and at each change, to those who may send there", async () => {
    const worker = await open("worker-1");
    worker.line.watch("studio");
    expect(await next(worker.presences)).toEqual({
      mailbox: "studio",
      connected: false,
      since: undefined,
      version: undefined,
    });
    // Somebody who takes other things than requests is not there for those who ask.
    const notes = await open("studio", { kinds: ["note"] });
    const bare = await BareClient.connect(test.url, "studio", "studio-token");
    bare.send({ kind: "subscribe" });
    expect(await next(worker.presences)).toMatchObject({ connected: true, version: undefined });
    const before = Date.now();
    const studio = await sharer();
    const come = await next(worker.presences);
    expect(come).toMatchObject({ mailbox: "studio", connected: true, version: 1 });
    // It is there for as long as anybody is.
    expect(Date.parse(String(come.since))).toBeLessThanOrEqual(before);
    bare.socket.terminate();
    await expect.poll(() => test.connections.size).toBe(3);
    studio.line.close();
    const gone = await next(worker.presences);
    expect(gone).toMatchObject({ connected: false, version: undefined });
    expect(Date.parse(String(gone.since))).toBeGreaterThanOrEqual(Date.parse(String(come.since)));
    notes.line.close();
    const late = await open("worker-1#mcp-y");
    late.line.watch("studio");
    expect(await next(late.presences)).toEqual({ ...gone, mailbox: "studio" });
  });

  it("is not told to those who may not send there", async () => {
    const worker = await BareClient.connect(test.url, "worker-1", "worker-token");
    worker.send({ kind: "presence", mailbox: "worker-2" });
    expect(await worker.next("error", "presence")).toMatchObject({ reason: expect.stringContaining("may not send") });
  });
});
