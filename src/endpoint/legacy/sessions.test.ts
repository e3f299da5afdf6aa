import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { begin, hello, rpc, send, startRig, stopRigs, stream, until } from "../../../test/fixtures/endpoint/http.js";
import { note } from "../../../test/fixtures/endpoint/service.js";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import type { SessionRecord } from "../../contracts/session-record.js";
import { createSealer } from "../../runtime/seal.js";
import { MemoryMap } from "../../store/memory-map.js";
import type { HttpSession } from "./http-session.js";

afterEach(stopRigs);

const BOB = { authorization: "Bearer token-b" };

describe("sessions", () => {
  it("negotiate the version", async () => {
    const { url } = await startRig();
    const table = [
      ["2025-11-25", "2025-11-25"],
      ["2025-06-18", "2025-06-18"],
      ["2025-03-26", "2025-03-26"],
      ["2024-11-05", "2024-11-05"],
      ["2026-07-28", "2025-11-25"],
      ["1999-01-01", "2025-11-25"],
    ];
    for (const [asked, got] of table) {
      const answer = await send(url, { body: hello(asked) });
      expect(answer.json.result).toEqual({
        protocolVersion: got,
        capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {} },
        serverInfo: { name: "test", version: "1" },
        instructions: "Be kind.",
      });
      expect(String(answer.headers["mcp-session-id"])).toMatch(/^[\x21-\x7e]+$/);
    }
  });

  it("are needed, and say so; the version header may be absent or another supported one", async () => {
    const { url } = await startRig();
    const session = await begin(url);
    const body = rpc(1, "test/echo", { a: 1 });
    const missing = await send(url, { body });
    expect(missing.status).toBe(400);
    expect(missing.json).toMatchObject({ id: 1, error: { message: expect.stringContaining("initialize") } });
    expect((await send(url, { body, headers: { "mcp-session-id": "made-up" } })).status).toBe(404);
    for (const version of [undefined, "2025-11-25", "2025-06-18"]) {
      const answer = await send(url, { body, headers: { ...session, "mcp-protocol-version": version } });
      expect(answer.json.result).toEqual({ text: '{"a":1}' });
    }
    const bad = await send(url, { body, headers: { ...session, "mcp-protocol-version": "2026-07-28" } });
    expect(bad.status).toBe(400);
    expect(bad.json.error.message).toContain("2025-11-25");
  });

  it("cost nothing until they are used, 1,000 initializes included [bounded]", async () => {
    const { url, endpoint, service } = await startRig();
    for (let round = 0; round < 20; round++) {
      await Promise.all(Array.from({ length: 50 }, () => begin(url)));
    }
    expect(endpoint.stats().sessions).toBe(0);
    expect(service.opened).toHaveLength(0);
  });

  it("belong to their principal and to their path [crossed-never]", async () => {
    const { url, service } = await startRig();
    const session = await begin(url);
    const scoped = await begin(`${url}/two%20words`);
    const body = rpc(1, "test/who");
    expect((await send(url, { body, headers: session })).json.result.text).toBe("alice undefined 2025-11-25");
    const inScope = await send(`${url}/two%20words`, { body, headers: scoped });
    expect(inScope.json.result.text).toBe("alice two words 2025-11-25");
    for (const [at, headers] of [
      [url, { ...session, ...BOB }],
      [url, scoped],
      [`${url}/one`, session],
      [`${url}/one`, scoped],
    ] as const) {
      for (const method of ["POST", "GET", "DELETE"]) {
        const answer = await send(at, { method, headers, ...(method === "POST" ? { body } : {}) });
        expect([method, answer.status]).toEqual([method, 404]);
        expect(answer.json.error.message).toContain("initialize");
      }
    }
    expect(service.opened).toHaveLength(2);
    expect(service.closed).toHaveLength(0);
  });

  it("outlive the gateway [restart-unseen]", async () => {
    const sealer = createSealer(randomBytes(32));
    const first = await startRig({ sealer });
    const headers = await begin(first.url, { version: "2025-06-18", capabilities: { sampling: {} } });
    const body = rpc(1, "test/who");
    expect((await send(first.url, { body, headers })).status).toBe(200);
    await first.endpoint.close({ drainMs: 0 });
    expect(first.service.closed).toHaveLength(1);
    const second = await startRig({ sealer });
    const answer = await send(second.url, { body, headers });
    expect(answer.json.result.text).toBe("alice undefined 2025-06-18");
    expect(second.service.opened[0]?.capabilities).toEqual({ sampling: {} });
    expect(second.service.opened[0]?.clientInfo).toEqual({ name: "raw", version: "1" });
    expect(second.service.opened[0]?.sessionKey).toBe(first.service.opened[0]?.sessionKey);
    const stranger = await startRig({ sealer: createSealer(randomBytes(32)) });
    expect((await send(stranger.url, { body, headers })).status).toBe(404);
  });

  it("keep only what matters of capabilities that are too large for a header", async () => {
    const { url, service } = await startRig();
    const capabilities = {
      sampling: { tools: {}, junk: "x".repeat(4000) },
      elicitation: { form: {}, url: {} },
      roots: { listChanged: true },
      experimental: { a: "x".repeat(4000) },
    };
    const headers = await begin(url, { capabilities });
    expect(String(headers["mcp-session-id"]).length).toBeLessThan(1000);
    await send(url, { body: rpc(1, "test/echo"), headers });
    expect(service.opened[0]?.capabilities).toEqual({
      sampling: { tools: {} },
      elicitation: { form: {}, url: {} },
      roots: { listChanged: true },
    });
  });

  it("end by DELETE, for good", async () => {
    const { url, service, endpoint } = await startRig();
    const headers = await begin(url);
    const listening = await stream(url, { method: "GET", headers });
    expect(endpoint.stats()).toMatchObject({ sessions: 1, streams: 1 });
    expect((await send(url, { method: "DELETE", headers })).status).toBe(200);
    await until(() => listening.ended);
    expect(endpoint.stats()).toMatchObject({ sessions: 0, streams: 0 });
    expect(service.closed).toHaveLength(1);
    expect((await send(url, { body: rpc(1, "ping"), headers })).status).toBe(404);
    const unused = await begin(url);
    expect((await send(url, { method: "DELETE", headers: unused })).status).toBe(200);
    expect((await send(url, { body: rpc(1, "ping"), headers: unused })).status).toBe(404);
  });

  it("stay ended after a restart, by DELETE and by idleness, and DELETE is answered when that is on disk [ack-is-durable]", async () => {
    const clock = new TestClock();
    const commits: (() => void)[] = [];
    class SlowMap extends MemoryMap<SessionRecord> {
      override async put(key: string, value: SessionRecord): Promise<void> {
        await new Promise<void>((commit) => commits.push(commit));
        await super.put(key, value);
      }
    }
    const records = new SlowMap("sessions");
    const options = {
      clock,
      sealer: createSealer(randomBytes(32)),
      records,
      sessions: { idleMs: 3600_000 },
      limits: { quietMs: 60 },
    };
    const first = await startRig(options);
    const [deleted, idle, unused] = [await begin(first.url), await begin(first.url), await begin(first.url)];
    const ping = async (url: string, headers: typeof idle) =>
      (await send(url, { body: rpc(1, "ping"), headers })).status;
    expect([await ping(first.url, deleted), await ping(first.url, idle)]).toEqual([200, 200]);
    let answered = false;
    const ending = send(first.url, { method: "DELETE", headers: deleted }).then(({ status }) => {
      answered = true;
      return status;
    });
    await until(() => commits.length === 1);
    expect([answered, await ping(first.url, deleted)]).toEqual([false, 404]);
    commits[0]?.();
    expect(await ending).toBe(200);
    clock.advance(3_700_000);
    await until(() => commits.length === 2);
    commits[1]?.();
    const fresh = await begin(first.url);
    await first.endpoint.close({ drainMs: 0 });
    const { url } = await startRig(options);
    const after = async () => [await ping(url, deleted), await ping(url, idle), await ping(url, fresh)];
    expect(await after()).toEqual([404, 404, 200]);
    // One that is not in memory, and of which nothing was written down.
    expect(await ping(url, unused)).toBe(200);
    const next = await startRig(options);
    clock.advance(3_700_000);
    expect(await ping(next.url, unused)).toBe(404);
    // The clock is set back: what was ended is not given back by that.
    clock.jumpWall(-7_400_000);
    expect([await ping(next.url, deleted), await ping(next.url, idle)]).toEqual([404, 404]);
  });

  it("have their log level and their subscriptions after a restart [restart-unseen]", async () => {
    const options = { sealer: createSealer(randomBytes(32)), records: new MemoryMap<SessionRecord>("sessions") };
    const first = await startRig(options);
    const [headers, other] = [await begin(first.url), await begin(first.url)];
    for (const session of [headers, other]) await send(first.url, { body: rpc(1, "ping"), headers: session });
    first.service.opened[0]?.setLogLevel("error");
    first.service.opened[0]?.setSubscribed?.(new Map([["mail", new Set(["mail://inbox"])]]));
    await first.endpoint.close({ drainMs: 0 });
    const { url, service } = await startRig(options);
    for (const session of [headers, other]) await send(url, { body: rpc(1, "ping"), headers: session });
    expect(service.opened.map(({ logLevel, subscribed }) => [logLevel, subscribed])).toEqual([
      ["error", new Map([["mail", new Set(["mail://inbox"])]])],
      [undefined, new Map()],
    ]);
  });

  it("that were open before a restart are told once that they may have missed something, when they listen [restart-unseen]", async () => {
    const clock = new TestClock();
    const options = { clock, sealer: createSealer(randomBytes(32)), records: new MemoryMap<SessionRecord>("sessions") };
    const first = await startRig(options);
    const headers = await begin(first.url);
    await stream(first.url, { method: "GET", headers });
    await first.endpoint.close({ drainMs: 0 });
    clock.advance(1_000);
    const { url, service } = await startRig(options);
    const fresh = await begin(url);
    // One that began since has missed nothing; one that does not listen is told nothing.
    await stream(url, { method: "GET", headers: fresh });
    await send(url, { body: rpc(1, "ping"), headers });
    expect(service.caughtUp).toEqual([]);
    const listening = await stream(url, { method: "GET", headers });
    await until(() => service.caughtUp.length === 1);
    expect(service.caughtUp[0]).toBe(service.opened[1]);
    listening.cut();
    await stream(url, { method: "GET", headers });
    // Nobody waits to be told any more.
    expect(service.opened.map((session) => (session as HttpSession).mayHaveMissed)).toEqual([false, false]);
    expect(service.caughtUp).toHaveLength(1);
  });

  it("that gave way to others are told once that they may have missed something, when they listen [told-truly]", async () => {
    const clock = new TestClock();
    const { url, service } = await startRig({ clock, limits: { sessions: 1 } });
    const [first, second] = [await begin(url), await begin(url)];
    const ping = (headers: typeof first) => send(url, { body: rpc(1, "ping"), headers });
    await ping(first);
    await ping(second);
    expect(service.closed).toHaveLength(1);
    clock.advance(1_000);
    await stream(url, { method: "GET", headers: first });
    await until(() => service.caughtUp.length === 1);
    expect(service.caughtUp[0]).toBe(service.opened[2]);
  });

  it("are ended where the end could not be written, and DELETE says so", async () => {
    class FullMap extends MemoryMap<SessionRecord> {
      override put(): Promise<void> {
        return Promise.reject(new Error("no space left"));
      }
    }
    const events: unknown[] = [];
    const { url } = await startRig({ records: new FullMap("sessions"), log: (event) => events.push(event) });
    const headers = await begin(url);
    const answer = await send(url, { method: "DELETE", headers });
    expect([answer.status, answer.json.error.message]).toEqual([500, expect.stringContaining("written to disk")]);
    expect(events).toMatchObject([{ kind: "failed" }]);
    expect((await send(url, { body: rpc(1, "ping"), headers })).status).toBe(404);
  });

  it("expire when idle, and not while something is under way [bounded]", async () => {
    const clock = new TestClock();
    const { url, endpoint, service } = await startRig({
      clock,
      limits: { quietMs: 60 },
      sessions: { idleMs: 3600_000 },
    });
    const idle = await begin(url);
    const busy = await begin(url);
    await send(url, { body: rpc(1, "ping"), headers: idle });
    const listening = await stream(url, { method: "GET", headers: busy });
    clock.advance(3_700_000);
    await until(() => endpoint.stats().sessions === 1);
    expect(service.closed).toHaveLength(1);
    expect((await send(url, { body: rpc(1, "ping"), headers: idle })).status).toBe(404);
    expect((await send(url, { body: rpc(1, "ping"), headers: busy })).status).toBe(200);
    listening.cut();
  });

  it("are dropped from memory beyond the cap, least recently used first, and come back when used [bounded]", async () => {
    const { url, endpoint, service } = await startRig({ sessions: { max: 3 } });
    const all = [];
    for (let i = 0; i < 6; i++) {
      const headers = await begin(url);
      all.push(headers);
      await send(url, { body: rpc(1, "test/echo"), headers });
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(endpoint.stats().sessions).toBe(3);
    expect(service.closed.map((session) => session.sessionKey)).toEqual(
      service.opened.slice(0, 3).map((session) => session.sessionKey),
    );
    expect((await send(url, { body: rpc(1, "test/echo"), headers: all[0] ?? {} })).status).toBe(200);
    for (const headers of all.slice(0, 3)) await stream(url, { method: "GET", headers });
    const full = await send(url, { body: rpc(1, "test/echo"), headers: all[5] ?? {} });
    expect(full.status).toBe(503);
  });

  it("lose their streams and calls at once when the token is revoked", async () => {
    const { url, endpoint, service } = await startRig();
    const alice = await begin(url);
    const bob = await begin(url, { headers: BOB });
    const aliceListens = await stream(url, { method: "GET", headers: alice });
    const bobListens = await stream(url, { method: "GET", headers: bob });
    const held = send(url, { body: rpc(1, "test/hold"), headers: alice });
    await until(() => service.held.length === 1);
    endpoint.closePrincipals(({ id }) => id === "alice");
    expect((await held).json.error.message).toContain("revoked");
    expect(service.cancelled).toHaveLength(1);
    await until(() => aliceListens.ended);
    service.opened.find((session) => session.principal.id === "bob")?.notify(note("notifications/tools/list_changed"));
    await until(() => bobListens.messages.length === 1);
    expect(bobListens.ended).toBe(false);
  });
});
