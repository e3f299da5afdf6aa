import { Agent, type OutgoingHttpHeaders, request } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { BASE, begin, rpc, send, start, startRig, stopRigs, stream, until } from "../../test/fixtures/endpoint/http.js";
import { note, question, type TestService } from "../../test/fixtures/endpoint/service.js";

afterEach(stopRigs);

const SAMPLING = { capabilities: { sampling: {}, elicitation: {}, roots: {} } };

function cancelled(requestId: unknown): object {
  return { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, reason: "enough" } };
}

describe("calls", () => {
  it("of 200 clients with the same ids find their own way back [crossed-never]", async () => {
    const { url, endpoint } = await startRig();
    const clients = await Promise.all(Array.from({ length: 200 }, () => begin(url)));
    for (let round = 0; round < 3; round++) {
      await Promise.all(
        clients.map(async (headers, client) => {
          const ms = Math.floor(Math.random() * 30);
          const method = client % 2 === 0 ? "test/later" : "test/echo";
          const answer = await send(url, { body: rpc(round, method, { client, round, ms }), headers });
          expect(answer.json.id).toBe(round);
          expect(JSON.parse(answer.json.result.text)).toEqual({ client, round, ms });
        }),
      );
    }
    expect(endpoint.stats()).toMatchObject({ inFlight: 0, sessions: 200 });
  });

  it("are refused under an id that is in flight in their session", async () => {
    const { url, service } = await startRig();
    const headers = await begin(url);
    const other = await begin(url);
    const first = send(url, { body: rpc(1, "test/hold"), headers });
    await until(() => service.held.length === 1);
    const second = await send(url, { body: rpc(1, "test/echo"), headers });
    expect(second.status).toBe(400);
    expect(second.json).toMatchObject({
      id: 1,
      error: { code: -32600, message: expect.stringContaining("in flight") },
    });
    expect((await send(url, { body: rpc("1", "test/echo"), headers })).status).toBe(200);
    expect((await send(url, { body: rpc(1, "test/echo"), headers: other })).status).toBe(200);
    service.held[0]?.reply({ kind: "result", result: { first: true } });
    expect((await first).json.result).toEqual({ first: true });
    expect((await send(url, { body: rpc(1, "test/echo"), headers })).status).toBe(200);
  });

  it("are bounded in number for each session [bounded]", async () => {
    const { url, service } = await startRig({ limits: { callsPerSession: 3 } });
    const headers = await begin(url);
    const held = [1, 2, 3].map((id) => send(url, { body: rpc(id, "test/hold"), headers }));
    await until(() => service.held.length === 3);
    const over = await send(url, { body: rpc(4, "test/echo"), headers });
    expect(over.json.error.message).toContain("limit");
    for (const call of service.held) call.reply({ kind: "result", result: {} });
    await Promise.all(held);
  });

  it("end without a response when the agent cancels, whatever was sent before", async () => {
    const { url, service, endpoint } = await startRig();
    const headers = await begin(url);
    const silent = stream(url, { body: rpc(1, "test/hold"), headers });
    const speaking = stream(url, { body: rpc("two", "test/hold"), headers });
    await until(() => service.held.length === 2);
    service.held
      .find((call) => call.message.id === "two")
      ?.caller.notify(note("notifications/progress", { progress: 1 }));
    await speaking;
    for (const id of [1, "two"]) {
      expect((await send(url, { body: cancelled(id), headers })).status).toBe(202);
    }
    const ended = [await silent, await speaking];
    await until(() => ended.every((answer) => answer.ended));
    for (const answer of ended) {
      expect(answer.status).toBe(200);
      expect(answer.headers["content-type"]).toBe("text/event-stream");
      expect(answer.messages.filter((message) => message.id !== undefined)).toEqual([]);
    }
    expect(ended[0]?.events).toHaveLength(0);
    expect(service.cancelled).toEqual(["enough", "enough"]);
    expect(endpoint.stats().inFlight).toBe(0);
    const again = await send(url, { method: "GET", headers: { ...headers, "last-event-id": ended[1]?.lastId } });
    expect(again.status).toBe(204);
    for (const call of service.held) call.reply({ kind: "result", result: {} });
  });

  it("are not touched by cancellations of others, of finished ones or of nonsense [crossed-never]", async () => {
    const { url, service } = await startRig();
    const headers = await begin(url);
    const other = await begin(url);
    const held = send(url, { body: rpc(1, "test/hold"), headers });
    await until(() => service.held.length === 1);
    await send(url, { body: cancelled(1), headers: other });
    for (const id of ["1", 2, null, {}]) await send(url, { body: cancelled(id), headers });
    expect(service.cancelled).toEqual([]);
    service.held[0]?.reply({ kind: "result", result: { fine: true } });
    expect((await held).json.result).toEqual({ fine: true });
    expect((await send(url, { body: cancelled(1), headers })).status).toBe(202);
    expect(service.cancelled).toEqual([]);
  });
});

describe("questions of servers", () => {
  it("go out on the call's stream, and the answer is taken from that session alone [crossed-never]", async () => {
    const { url } = await startRig();
    const headers = await begin(url, SAMPLING);
    const stranger = await begin(url, SAMPLING);
    const call = await stream(url, { body: rpc(1, "test/sampling"), headers });
    await until(() => call.messages.length === 1);
    const asked = call.messages[0];
    expect(asked).toMatchObject({ method: "sampling/createMessage", params: { maxTokens: 10 } });
    expect(typeof asked.id).toBe("string");
    const wrong = { jsonrpc: "2.0", id: asked.id, result: { model: "stranger" } };
    expect((await send(url, { body: wrong, headers: stranger })).status).toBe(202);
    const right = { jsonrpc: "2.0", id: asked.id, result: { model: "right" } };
    expect((await send(url, { body: right, headers })).status).toBe(202);
    await until(() => call.ended);
    expect(call.messages[1]).toMatchObject({ id: 1, result: { text: '{"model":"right"}' } });
    expect((await send(url, { body: right, headers })).status).toBe(202);
  });

  it("are only put to agents that declared they can answer", async () => {
    const { url } = await startRig();
    const headers = await begin(url);
    for (const [method, capability] of [
      ["sampling/createMessage", "sampling"],
      ["elicitation/create", "elicitation"],
      ["roots/list", "roots"],
    ]) {
      const answer = await send(url, { body: rpc(1, "test/sampling", { method }), headers });
      expect(answer.json.error).toMatchObject({ code: -31010, data: { fault: "no-caller" } });
      expect(answer.json.error.message).toContain(`"${capability}"`);
    }
  });

  it.each([
    ["nothing", {}, false],
    ["what the protocol has, and nothing else", { sampling: {}, elicitation: {}, roots: {} }, false],
    ["something experimental", { experimental: { "example.com/paint": {} } }, true],
    ["an extension", { extensions: { "example.com/paint": {} } }, true],
    ["what a version to come may have", { tasks: {} }, true],
  ])("of a vendor's method, to an agent that declared %s [told-truly]", async (_what, capabilities, isAsked) => {
    const { url } = await startRig();
    const headers = await begin(url, { capabilities });
    const body = rpc(1, "test/sampling", { method: "example.com/paint" });
    if (isAsked) {
      const call = await stream(url, { body, headers });
      await until(() => call.messages.length === 1);
      expect(call.messages[0]).toMatchObject({ method: "example.com/paint" });
      call.cut();
    } else {
      const { error } = (await send(url, { body, headers })).json;
      expect(error).toMatchObject({ code: -31010, data: { fault: "no-caller" } });
      expect(error.message).toContain("did not declare any capability that it could be of");
    }
  });

  it("take the session's stream where the call's own is gone", async () => {
    const { url, service } = await startRig();
    const headers = await begin(url, SAMPLING);
    const listening = await stream(url, { method: "GET", headers });
    const opening = stream(url, { body: rpc(1, "test/hold"), headers });
    await until(() => service.held.length === 1);
    const { caller } = service.held[0] ?? {};
    caller?.notify(note("notifications/progress", { progress: 1 }));
    const cut = await opening;
    cut.cut();
    const json = { ...headers, accept: "application/json" };
    const asking = send(url, { body: rpc(2, "test/sampling"), headers: json });
    await until(() => listening.messages.length === 1);
    const body = { jsonrpc: "2.0", id: listening.messages[0].id, result: {} };
    await send(url, { body, headers });
    expect((await asking).json).toMatchObject({ id: 2, result: { text: "{}" } });
    const answered = caller?.ask(question("roots/list"), new AbortController().signal);
    await until(() => listening.messages.length === 2);
    await send(url, { body: { ...body, id: listening.messages[1].id }, headers });
    expect((await answered)?.result).toEqual({});
  });

  it("are taken back with their call's signal, at their deadline, and with the session", async () => {
    const { url, service } = await startRig({ limits: { asksPerSession: 2 } });
    const headers = await begin(url, SAMPLING);
    const call = await stream(url, { body: rpc(1, "test/sampling"), headers });
    await until(() => call.messages.length === 1);
    service.aborts[0]?.abort();
    await until(() => call.ended);
    expect(call.messages[1]).toMatchObject({
      method: "notifications/cancelled",
      params: { requestId: call.messages[0].id },
    });
    expect(call.messages[2].error.data.fault).toBe("cancelled");
    const hasty = await startRig({ limits: { askMs: 300 } });
    const late = await stream(hasty.url, {
      body: rpc(2, "test/sampling"),
      headers: await begin(hasty.url, SAMPLING),
    });
    await until(() => late.ended);
    expect(late.messages.at(-1).error.data.fault).toBe("timeout");
    const asking = [3, 4].map((id) => stream(url, { body: rpc(id, "test/sampling"), headers }));
    const asked = await Promise.all(asking);
    const over = await send(url, { body: rpc(5, "test/sampling"), headers });
    expect(over.json.error.data.fault).toBe("limit");
    await send(url, { method: "DELETE", headers });
    await until(() => asked.every((answer) => answer.ended));
    for (const answer of asked) expect(answer.messages.at(-1).error.data.fault).toBe("closing");
  });
});

describe("a call whose agent has lost its connection", () => {
  const limits = { goneMs: 400, quietMs: 90 };
  const cut = async (url: string, service: TestService, body: object, headers: OutgoingHttpHeaders) => {
    const before = service.held.length;
    const req = start(url, { body, headers });
    req.on("error", () => {});
    await until(() => service.held.length > before);
    req.destroy();
  };

  it("is cancelled after a while, alone or in a batch, where its reply could reach nobody [bounded]", async () => {
    // The stream that a long silence begins has no event id in the older versions.
    const { url, service, endpoint } = await startRig({ limits });
    const headers = await begin(url, { version: "2025-03-26" });
    await cut(url, service, rpc(1, "test/hold"), headers);
    await cut(url, service, [rpc(2, "test/hold"), rpc(3, "test/hold")], headers);
    await until(() => service.held.length === 3);
    expect(service.cancelled).toEqual([]);
    await until(() => service.cancelled.length === 3);
    expect(service.cancelled[0]).toContain("has gone");
    await until(() => endpoint.stats().inFlight === 0);
  });

  it("goes on where an event id was sent, and where a GET stream is open", async () => {
    const { url, service } = await startRig({ limits });
    const headers = await begin(url);
    const resumable = await stream(url, { body: rpc(1, "test/hold"), headers });
    resumable.cut();
    const other = await begin(url);
    const listening = await stream(url, { method: "GET", headers: other });
    await cut(url, service, rpc(2, "test/hold"), other);
    await new Promise((resolve) => setTimeout(resolve, 3 * limits.goneMs));
    expect(service.cancelled).toEqual([]);
    listening.cut();
    await until(() => service.cancelled.length === 1);
  });
});

describe("an agent that goes away while it is asked", () => {
  const limits = { goneMs: 400, quietMs: 90 };

  it("has not answered, though its session stays [bounded]", async () => {
    const { url, service } = await startRig({ limits });
    const headers = await begin(url, SAMPLING);
    const call = await stream(url, { body: rpc(1, "test/sampling"), headers });
    await until(() => call.messages.length === 1);
    call.cut();
    await until(() => service.unanswered.length === 1);
    expect(service.unanswered[0]).toMatchObject({ code: "closing", message: expect.stringContaining("has gone") });
    expect((await send(url, { body: rpc(2, "test/echo"), headers })).status).toBe(200);
  });

  it("is waited for as long as another stream leads to it", async () => {
    const { url, service } = await startRig({ limits });
    const headers = await begin(url, SAMPLING);
    const listening = await stream(url, { method: "GET", headers });
    const call = await stream(url, { body: rpc(1, "test/sampling"), headers });
    await until(() => call.messages.length === 1);
    call.cut();
    await new Promise((resolve) => setTimeout(resolve, 3 * limits.goneMs));
    expect(service.unanswered).toEqual([]);
    listening.cut();
    await until(() => service.unanswered.length === 1);
  });
});

describe("an endpoint that closes", () => {
  it("waits for what is in flight, serves what still arrives, and ends the rest [drain]", async () => {
    const { url, service, endpoint, port } = await startRig();
    const headers = await begin(url);
    const listening = await stream(url, { method: "GET", headers });
    const soon = send(url, { body: rpc(1, "test/later", { ms: 300 }), headers });
    const held = send(url, { body: rpc(2, "test/hold"), headers });
    const events = stream(url, { body: rpc(3, "test/hold"), headers });
    await until(() => service.held.length === 2);
    service.held[1]?.caller.notify(note("notifications/progress", { progress: 1 }));
    const speaking = await events;
    const closing = endpoint.close({ drainMs: 2_000 });
    expect(endpoint.stats().draining).toBe(true);
    const knock = (path: string, method: string) => send(`http://127.0.0.1:${port}${path}`, { method });
    expect((await knock("/readyz", "GET")).status).toBe(503);
    // Whoever comes in the moment of closing is let in; from then on, new connections are told to come back.
    const late = await until(async () => {
      const answer = await send(url, { body: rpc(4, "test/echo"), headers });
      return answer.status === 503 && answer;
    });
    expect(late.headers).toMatchObject({ "retry-after": "5", connection: "close" });
    expect(late.json.error.message).toContain("stopping");
    expect((await knock("/healthz", "GET")).status).toBe(200);
    expect((await soon).json.result).toBeDefined();
    await closing;
    await expect(knock("/readyz", "GET")).rejects.toThrow(/ECONNREFUSED/);
    expect((await held).json.error.data.fault).toBe("closing");
    await until(() => listening.ended && speaking.ended);
    expect(speaking.messages.at(-1)).toMatchObject({ id: 3, error: { data: { fault: "closing" } } });
    expect(service.closed).toHaveLength(1);
    expect(endpoint.stats()).toMatchObject({ connections: 0, inFlight: 0, sessions: 0, streams: 0 });
  });

  it("serves those who are connected and were not taken in yet [drain]", async () => {
    const { url, endpoint } = await startRig();
    const headers = await begin(url);
    const calls = Array.from({ length: 50 }, (_, id) => send(url, { body: rpc(id, "test/echo"), headers }));
    // The kernel has their connections by now; our loop has had no turn to take them in.
    await new Promise((resolve) => process.nextTick(resolve));
    const closing = endpoint.close({ drainMs: 20_000 });
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(calls.map(() => 200));
    await closing;
  });

  it("fails no call of clients that keep their connections, even on a machine that stalls [drain]", async () => {
    const { url, endpoint } = await startRig();
    const headers = await begin(url);
    const agent = new Agent({ keepAlive: true });
    let stopped = false;
    let answered = 0;
    const failures: unknown[] = [];
    const clients = Array.from({ length: 20 }, async (_, client) => {
      for (let id = 0; !stopped; id++) {
        try {
          const { status, reused } = await sendKept(
            agent,
            url,
            headers,
            rpc(`${client}-${id}`, "test/later", { ms: 5 }),
          );
          // A new connection is told to come back later.
          if (status === 503 && !reused) return;
          if (status !== 200) failures.push(status);
          answered++;
        } catch (error) {
          // A connection that was never taken in carried no call of ours.
          if ((error as { reused?: boolean }).reused) failures.push(error);
          return;
        }
      }
    });
    await until(() => answered > 100);
    const closing = endpoint.close({ drainMs: 60_000 });
    await new Promise((resolve) => setTimeout(resolve, 1));
    const stalled = performance.now();
    while (performance.now() - stalled < 400);
    await closing;
    stopped = true;
    await Promise.all(clients);
    agent.destroy();
    expect(failures).toEqual([]);
  });
});

/** On a connection that is used again; an error says whether it was. */
function sendKept(agent: Agent, url: string, headers: OutgoingHttpHeaders, body: object) {
  return new Promise<{ status: number; reused: boolean }>((resolve, reject) => {
    const req = request(url, { method: "POST", agent, headers: { ...BASE, ...headers } }, (res) => {
      res.resume();
      res.on("end", () => resolve({ status: res.statusCode ?? 0, reused: req.reusedSocket }));
      res.on("error", reject);
    });
    req.on("error", (error) => reject(Object.assign(error, { reused: req.reusedSocket })));
    req.end(JSON.stringify(body));
  });
}
