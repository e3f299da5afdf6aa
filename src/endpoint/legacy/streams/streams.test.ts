import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { begin, rpc, send, startRig, stopRigs, stream, until } from "../../../../test/fixtures/endpoint/http.js";
import { note } from "../../../../test/fixtures/endpoint/service.js";
import { createSealer } from "../../../runtime/seal.js";

afterEach(stopRigs);

const CHANGED = note("notifications/tools/list_changed");

describe("answers", () => {
  it("are JSON unless something else has to go out first", async () => {
    const { url } = await startRig();
    const headers = await begin(url);
    const plain = await send(url, { body: rpc("a", "test/echo", { x: "ü" }), headers });
    expect(plain.headers["content-type"]).toBe("application/json");
    expect(plain.json).toEqual({ jsonrpc: "2.0", id: "a", result: { text: '{"x":"ü"}' } });
    const events = await stream(url, { body: rpc(2, "test/progress", { _meta: { progressToken: "p" } }), headers });
    await until(() => events.ended);
    expect(events.headers["content-type"]).toBe("text/event-stream");
    expect(events.messages.map((message) => message.params?.progress ?? message.result.text)).toEqual([
      1,
      2,
      3,
      "done",
    ]);
    expect(events.events[0]).toMatchObject({ data: "" });
    expect(events.retry).toBeGreaterThan(0);
    expect(new Set(events.events.map((event) => event.id)).size).toBe(5);
  });

  it("open with no priming event for older versions", async () => {
    const { url } = await startRig();
    const headers = await begin(url, { version: "2025-06-18" });
    const events = await stream(url, { body: rpc(2, "test/progress"), headers });
    await until(() => events.ended);
    expect(events.events).toHaveLength(4);
    expect(events.events.every((event) => event.data !== "" && event.id)).toBe(true);
  });

  it("honour a client that reads one kind only", async () => {
    const { url } = await startRig();
    const headers = await begin(url);
    const json = await send(url, {
      body: rpc(1, "test/progress"),
      headers: { ...headers, accept: "application/json" },
    });
    expect(json.json.result.text).toBe("done");
    const listening = await stream(url, { method: "GET", headers });
    await until(() => listening.messages.length === 3);
    const events = await stream(url, {
      body: rpc(1, "test/echo"),
      headers: { ...headers, accept: "text/event-stream" },
    });
    await until(() => events.ended);
    expect(events.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { text: "{}" } }]);
    const ping = await stream(url, { body: rpc(1, "ping"), headers: { ...headers, accept: "text/event-stream" } });
    await until(() => ping.ended);
    expect(ping.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: {} }]);
  });

  it("carry large, pretty-printed and streamed replies whole, as JSON and as events", async () => {
    const { url } = await startRig();
    const headers = await begin(url);
    for (const accept of ["application/json", "text/event-stream"]) {
      for (const [method, size] of [
        ["test/large", 10],
        ["test/large", 70_000],
        ["test/large", 8 * 1024 * 1024],
        ["test/stream", 0],
        ["test/stream", 8 * 1024 * 1024],
      ] as const) {
        const answer = await send(url, { body: rpc("é", method, { size }), headers: { ...headers, accept } });
        const json =
          accept === "application/json" ? answer.json : JSON.parse(answer.text.split("\ndata: ").at(-1) ?? "");
        expect([method, size, json.id, json.result.text.length]).toEqual([method, size, "é", size]);
        if (accept === "application/json" && method === "test/large") {
          expect(answer.headers["content-length"]).toBe(String(Buffer.byteLength(answer.text)));
        }
      }
      const pretty = await send(url, { body: rpc(1, "test/pretty"), headers: { ...headers, accept } });
      const text = accept === "application/json" ? pretty.text : (pretty.text.split("\ndata: ").at(-1) ?? "");
      expect(JSON.parse(text).result.text).toBe("two\nlines");
    }
    const precise = '{"jsonrpc":"2.0","id":12345678901234567890,"method":"test/echo"}';
    expect((await send(url, { body: precise, headers })).text).toContain('"id":12345678901234567890,');
  });

  it("are read from their server no faster than the agent reads them [bounded]", async () => {
    const { url, service } = await startRig();
    const headers = await begin(url);
    const size = 256 * 1024 * 1024;
    for (const accept of ["application/json", "text/event-stream"]) {
      service.streamed = 0;
      const slow = await stream(url, { body: rpc(1, "test/stream", { size }), headers: { ...headers, accept } });
      slow.pause();
      await new Promise((resolve) => setTimeout(resolve, 300));
      // What the kernel's buffers and ours take.
      expect(service.streamed).toBeLessThan(32 * 1024 * 1024);
      slow.cut();
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(service.streamed).toBeLessThan(32 * 1024 * 1024);
    }
  });

  it("never let a reply that broke off look whole", async () => {
    const { url } = await startRig();
    const headers = await begin(url);
    await expect(send(url, { body: rpc(1, "test/torn"), headers })).rejects.toThrow();
    const events = { ...headers, accept: "text/event-stream" };
    await expect(send(url, { body: rpc(1, "test/torn"), headers: events })).rejects.toThrow();
  });

  it("say that somebody is at work when nothing comes for long", async () => {
    const { url, service } = await startRig({ limits: { quietMs: 90 } });
    for (const version of ["2025-11-25", "2025-03-26"]) {
      const headers = await begin(url, { version });
      const events = await stream(url, { body: rpc(1, "test/hold"), headers });
      expect(events.headers["content-type"]).toBe("text/event-stream");
      await until(() => events.comments.length >= 2);
      service.held.pop()?.reply({ kind: "result", result: {} });
      await until(() => events.ended);
      expect(events.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: {} }]);
    }
  });

  it("to a batch come as one array, or as events; only in 2025-03-26", async () => {
    const { url, service } = await startRig();
    const headers = await begin(url, { version: "2025-03-26" });
    const batch = [
      rpc(1, "test/later", { ms: 20 }),
      { jsonrpc: "2.0", method: "notifications/other" },
      rpc("2", "ping"),
      rpc(1, "ping"),
      rpc(3, "test/stream", { size: 100 }),
    ];
    const answer = await send(url, { body: batch, headers });
    expect(answer.headers["content-type"]).toBe("application/json");
    const ids = answer.json.map((message: { id: unknown }) => JSON.stringify(message.id)) as string[];
    expect(ids.sort((a, b) => a.localeCompare(b))).toEqual(['"2"', "1", "1", "3"]);
    expect(answer.json.filter((message: { error?: unknown }) => message.error)).toHaveLength(1);
    expect(service.notifications).toHaveLength(1);
    const events = await stream(url, { body: [rpc(1, "test/progress"), rpc(2, "test/later")], headers });
    await until(() => events.ended);
    expect(events.messages.filter((message) => message.id !== undefined).map((message) => message.id)).toEqual([1, 2]);
    expect(events.messages).toHaveLength(5);
    const notes = [{ jsonrpc: "2.0", method: "notifications/other" }];
    expect((await send(url, { body: notes, headers })).status).toBe(202);
    const modern = await begin(url);
    expect((await send(url, { body: batch, headers: modern })).status).toBe(400);
  });
});

describe("streams", () => {
  it("carry what is unasked, each message on one stream only, and what came before they opened", async () => {
    const { url, service } = await startRig();
    const headers = await begin(url);
    await send(url, { body: rpc(1, "test/echo"), headers });
    const session = service.opened[0];
    for (let i = 0; i < 5; i++) session?.notify(CHANGED);
    session?.notify(note("notifications/message", { data: 1 }));
    session?.notify(note("notifications/message", { data: 1 }));
    const first = await stream(url, { method: "GET", headers });
    await until(() => first.messages.length === 3);
    expect(first.messages[0].method).toBe("notifications/tools/list_changed");
    const second = await stream(url, { method: "GET", headers });
    for (let data = 0; data < 10; data++) session?.notify(note("notifications/message", { data }));
    await until(() => first.messages.length + second.messages.length === 13);
    second.cut();
    await until(() => {
      session?.notify(CHANGED);
      return first.messages.length > 3;
    });
  });

  it("keep a bounded number of messages for a session that listens to nothing [bounded]", async () => {
    const { url, service, endpoint } = await startRig({ limits: { pendingMessages: 10, listenersPerSession: 2 } });
    const headers = await begin(url);
    await send(url, { body: rpc(1, "test/echo"), headers });
    for (let data = 0; data < 1000; data++) service.opened[0]?.notify(note("notifications/message", { data }));
    const listening = await stream(url, { method: "GET", headers });
    await until(() => listening.messages.length === 10);
    expect(listening.messages.map((message) => message.params.data)).toEqual([
      990, 991, 992, 993, 994, 995, 996, 997, 998, 999,
    ]);
    expect((await stream(url, { method: "GET", headers })).status).toBe(200);
    expect((await stream(url, { method: "GET", headers })).status).toBe(429);
    await send(url, { method: "DELETE", headers });
    expect(endpoint.stats().retainedBytes).toBe(0);
  });

  it("are resumed where they were cut, until the reply is delivered", async () => {
    const { url, service } = await startRig();
    const headers = await begin(url);
    const opening = stream(url, { body: rpc(1, "test/hold"), headers });
    await until(() => service.held.length === 1);
    const call = service.held[0];
    call?.caller.notify(note("notifications/progress", { progress: 1 }));
    const cut = await opening;
    await until(() => cut.messages.length === 1);
    cut.cut();
    call?.caller.notify(note("notifications/progress", { progress: 2 }));
    const resumed = await stream(url, { method: "GET", headers: { ...headers, "last-event-id": cut.lastId } });
    call?.caller.notify(note("notifications/progress", { progress: 3 }));
    await until(() => resumed.messages.length === 2);
    resumed.cut();
    await new Promise((resolve) => setTimeout(resolve, 50));
    call?.reply({ kind: "result", result: { done: true } });
    const last = await stream(url, { method: "GET", headers: { ...headers, "last-event-id": resumed.lastId } });
    await until(() => last.ended);
    expect(resumed.messages.map((message) => message.params.progress)).toEqual([2, 3]);
    expect(last.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { done: true } }]);
    // Once more from the start, and then there is nothing left.
    const again = await stream(url, { method: "GET", headers: { ...headers, "last-event-id": cut.lastId } });
    await until(() => again.ended);
    expect(again.messages).toHaveLength(3);
    const over = await send(url, { method: "GET", headers: { ...headers, "last-event-id": last.lastId } });
    expect(over.status).toBe(204);
  });

  it("are resumed by their own session only [crossed-never]", async () => {
    const { url } = await startRig();
    const alice = await begin(url);
    const other = await begin(url);
    const bob = await begin(url, { headers: { authorization: "Bearer token-b" } });
    const events = await stream(url, { body: rpc(1, "test/progress"), headers: alice });
    await until(() => events.ended);
    const first = events.events[0]?.id ?? "";
    for (const headers of [other, bob]) {
      const answer = await send(url, { method: "GET", headers: { ...headers, "last-event-id": first } });
      expect(answer.status).toBe(400);
      expect(answer.text).not.toContain("done");
    }
    for (const id of ["x", "l.aaaa-1", first.replace(/-\d+$/, "-999"), `${first}0`]) {
      const answer = await send(url, { method: "GET", headers: { ...alice, "last-event-id": id } });
      expect(answer.text).not.toContain('"result"');
    }
    const own = await send(url, { method: "GET", headers: { ...alice, "last-event-id": first } });
    expect(own.text).toContain("done");
  });

  it("that a restart made away with end their request with an error, and the session's own begins anew [restart-unseen]", async () => {
    const sealer = createSealer(randomBytes(32));
    const before = await startRig({ sealer });
    const headers = await begin(before.url);
    const listening = await stream(before.url, { method: "GET", headers });
    const opening = stream(before.url, { body: rpc("call-7", "test/hold"), headers });
    await until(() => before.service.held.length === 1);
    before.service.held[0]?.caller.notify(note("notifications/progress", { progress: 1 }));
    const cut = await opening;
    await until(() => cut.messages.length === 1 && listening.events.length === 1);
    cut.cut();
    await before.endpoint.close({ drainMs: 0 });
    const after = await startRig({ sealer });
    const lost = await stream(after.url, { method: "GET", headers: { ...headers, "last-event-id": cut.lastId } });
    await until(() => lost.ended);
    expect(lost.messages[0]).toMatchObject({ id: "call-7", error: { data: { fault: "outcome-unknown" } } });
    const more = await send(after.url, { method: "GET", headers: { ...headers, "last-event-id": lost.lastId } });
    expect(more.status).toBe(204);
    const anew = await stream(after.url, { method: "GET", headers: { ...headers, "last-event-id": listening.lastId } });
    after.service.opened[0]?.notify(CHANGED);
    await until(() => anew.messages.length === 1);
  });

  it.each(["call", "listen"])("carry a burst of messages of 3 MiB to who reads them: %s", async (kind) => {
    const { url, service } = await startRig();
    const headers = await begin(url);
    const opening = stream(url, kind === "call" ? { body: rpc(1, "test/hold"), headers } : { method: "GET", headers });
    await until(() => (kind === "call" ? service.held.length : service.opened.length) === 1);
    const told = kind === "call" ? service.held[0]?.caller : service.opened[0];
    const data = "z".repeat(3 * 1024 * 1024);
    // All in one turn, in which nobody can read.
    for (let i = 0; i < 5; i++) told?.notify(note("notifications/message", { i, data }));
    if (kind === "call") service.held[0]?.reply({ kind: "result", result: {} });
    const burst = await opening;
    await until(() => burst.messages.length >= 5);
    expect(burst.messages.slice(0, 5).map(({ params }) => [params.i, params.data.length])).toEqual(
      [0, 1, 2, 3, 4].map((i) => [i, data.length]),
    );
    if (kind === "listen") return;
    await until(() => burst.ended);
    expect(burst.messages.slice(5)).toEqual([{ jsonrpc: "2.0", id: 1, result: {} }]);
  });

  it("that are not read have notifications left out, say so, and have their reply [bounded] [one-bad-server]", async () => {
    const { url, service } = await startRig({ limits: { slowReaderBytes: 256 * 1024 } });
    // A client of this version has no event id to come back with: to cut it would be silence.
    const headers = await begin(url, { version: "2025-06-18" });
    const opening = stream(url, { body: rpc(1, "test/hold"), headers });
    await until(() => service.held.length === 1);
    const call = service.held[0];
    const data = "z".repeat(64 * 1024);
    for (let i = 0; i < 50; i++) call?.caller.notify(note("notifications/message", { data }));
    call?.reply({ kind: "result", result: {} });
    const read = await opening;
    await until(() => read.ended);
    const [said, reply] = read.messages.slice(-2);
    const whole = read.messages.length - 2;
    expect(whole).toBeGreaterThanOrEqual(2);
    expect(whole).toBeLessThanOrEqual(4);
    expect(said).toMatchObject({
      method: "notifications/message",
      params: {
        level: "error",
        data: expect.stringMatching(new RegExp(`^${50 - whole} messages were left out, because`)),
      },
    });
    expect(reply).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
  });

  it("say what a client missed that came back too late for all of it", async () => {
    const { url, service, endpoint } = await startRig({ limits: { replayEvents: 2 } });
    const headers = await begin(url);
    const opening = stream(url, { body: rpc(1, "test/hold"), headers });
    await until(() => service.held.length === 1);
    const caller = service.held[0]?.caller;
    caller?.notify(note("notifications/message", { data: 1 }));
    const cut = await opening;
    await until(() => cut.messages.length === 1);
    cut.cut();
    await until(() => endpoint.stats().streams === 0);
    for (const data of [2, 3, 4, 5]) caller?.notify(note("notifications/message", { data }));
    const resumed = await stream(url, { method: "GET", headers: { ...headers, "last-event-id": cut.lastId } });
    await until(() => resumed.messages.length === 3);
    expect(resumed.messages.map(({ params }) => params.data)).toEqual([
      expect.stringMatching(/^2 messages were left out, because/),
      4,
      5,
    ]);
  });

  it("say that a reply is lost that is too large to be kept for who is away [unknown-is-said]", async () => {
    const { url, service, endpoint } = await startRig({ limits: { replayBytes: 64 * 1024 } });
    const headers = await begin(url);
    const opening = stream(url, { body: rpc(1, "test/hold"), headers });
    await until(() => service.held.length === 1);
    service.held[0]?.caller.notify(note("notifications/progress", { progress: 1 }));
    const cut = await opening;
    await until(() => cut.messages.length === 1);
    cut.cut();
    await until(() => endpoint.stats().streams === 0);
    service.held[0]?.reply({ kind: "stream", open: () => Readable.from([Buffer.alloc(100_000, " ")]) });
    const resumed = await stream(url, { method: "GET", headers: { ...headers, "last-event-id": cut.lastId } });
    await until(() => resumed.ended);
    expect(resumed.messages).toEqual([
      {
        jsonrpc: "2.0",
        id: 1,
        error: expect.objectContaining({ code: -31003, message: expect.stringContaining("is lost") }),
      },
    ]);
  });

  it("go on without the agent: its disconnect cancels nothing", async () => {
    const { url, service, endpoint } = await startRig();
    const headers = await begin(url);
    const opening = stream(url, { body: rpc(1, "test/hold"), headers });
    await until(() => service.held.length === 1);
    service.held[0]?.caller.notify(note("notifications/progress", { progress: 1 }));
    (await opening).cut();
    await until(() => endpoint.stats().streams === 0);
    expect(service.cancelled).toHaveLength(0);
    expect(endpoint.stats().inFlight).toBe(1);
    service.held[0]?.reply({ kind: "result", result: {} });
    expect(endpoint.stats().inFlight).toBe(0);
  });
});
