// A server's lists, connections and status, with real processes behind it.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it, vi } from "vitest";
import { CALLER } from "../../test/fixtures/hosted.js";
import { isAlive } from "../../test/fixtures/processes.js";
import { SUPERVISED } from "../../test/fixtures/spec.js";
import type { Caller } from "../contracts/caller.js";
import { ownName } from "../contracts/names.js";
import type { ServerSpec } from "../contracts/server-spec.js";
import type { Listed, ListKind, UpstreamCall, UpstreamEvents } from "../contracts/upstream.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { type Reply, replyText } from "../protocol/reply.js";
import { Reaper } from "../runtime/processes/reaper.js";
import { hashStateDir } from "../runtime/processes/reaper-marker.js";
import { linkMaker } from "./links.js";
import type { UpstreamServer } from "./server.js";
import { ServerPool } from "./servers.js";

const fixture = (name: string) => fileURLToPath(new URL(`../../test/fixtures/servers/${name}.mjs`, import.meta.url));
const NO_COUNTS = { tools: 0, prompts: 0, resources: 0, resourceTemplates: 0 };

const cleanUp: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

function temporary(): string {
  const dir = mkdtempSync(join(tmpdir(), "toolway-server-"));
  cleanUp.push(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** The principal of a session is what stands before its dash. */
const caller = (sessionKey: string): Caller => {
  const principal = { ...CALLER.principal, id: sessionKey.split("-")[0] ?? "" };
  return { ...CALLER, principal, sessionKey };
};

/** Time that the servers believe to have passed. */
let skippedMs = 0;

function specOf(name: string, args: readonly string[], more: Partial<ServerSpec> = {}): ServerSpec {
  return {
    name,
    target: { kind: "stdio", command: process.execPath, args, env: {}, cwd: undefined },
    isolation: "shared",
    connectTimeoutMs: 60_000,
    callTimeoutMs: 60_000,
    ...SUPERVISED,
    ...more,
  };
}

interface Seen {
  readonly host: ServerPool;
  readonly server: UpstreamServer;
  readonly lists: { kind: ListKind; items: readonly Listed[] }[];
  readonly logged: string[];
  tools(): number;
}

function start(spec: ServerSpec, listRefusal?: UpstreamEvents["listRefusal"]): Seen {
  const reaper = new Reaper({ stateHash: hashStateDir(`server ${process.pid}`), env: process.env });
  const lists: Seen["lists"] = [];
  const logged: string[] = [];
  const host = new ServerPool({
    context: {
      now: () => performance.now() + skippedMs,
      random: Math.random,
      makeLink: linkMaker({ reaper, env: process.env }),
    },
    events: {
      onIntro: () => {},
      ...(listRefusal === undefined ? {} : { listRefusal }),
      onList: (_, kind, items) => void lists.push({ kind, items }),
      onNotification: () => {},
      onState: () => {},
    },
    clientInfo: { name: "test", version: "1" },
    log: (_, text) => void logged.push(text),
  });
  cleanUp.push(async () => {
    await host.close();
    await reaper.close();
  });
  host.apply([spec]);
  const tools = () => lists.filter(({ kind }) => kind === "tools").at(-1)?.items.length ?? 0;
  return { host, server: host.get(spec.name) as UpstreamServer, lists, logged, tools };
}

const status = (server: UpstreamServer) => server.status(NO_COUNTS);

function call(server: UpstreamServer, session: string, tool: string, args: JsonObject = {}): Promise<JsonObject> {
  return new Promise((resolve) => {
    const upstreamCall: UpstreamCall = {
      caller: caller(session),
      method: "tools/call",
      subject: ownName(tool),
      params: { name: tool, arguments: args },
      progressToken: undefined,
      render: (id) =>
        JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name: tool, arguments: args } }),
      reply: (reply: Reply) => void replyText(reply, "1").then((text) => resolve(JSON.parse(text) as JsonObject)),
    };
    server.upstream(caller(session)).send(upstreamCall);
  });
}

async function callJson<T>(...parameters: Parameters<typeof call>): Promise<T> {
  const answer = await call(...parameters);
  const content = (answer["result"] as JsonObject | undefined)?.["content"] as { text: string }[] | undefined;
  if (content === undefined) throw new Error(JSON.stringify(answer));
  return JSON.parse(content[0]?.text ?? "") as T;
}

/** Two busy cores start a process in a second or two. */
const SOON = { timeout: 60_000, interval: 50 };

interface SeenByFixture {
  readonly lists: number;
  readonly atOnce: number;
  readonly pid: number;
}

describe("lists", () => {
  it("are read once when the server is up, those it does not have as empty", async () => {
    const { server, lists } = start(specOf("lists", [fixture("lists")]));
    await server.firstTry;
    expect(lists.map(({ kind, items }) => [kind, items.length])).toEqual(
      expect.arrayContaining([
        ["tools", 2],
        ["prompts", 0],
        ["resources", 0],
        ["resourceTemplates", 0],
      ]),
    );
    expect(lists).toHaveLength(4);
    expect(server.listed).toBe(true);
    expect(status(server)).toMatchObject({ state: "ready", listsFromBefore: false, lastError: undefined });
  });

  it("are read one at a time, and once more for all changes that were announced meanwhile", async () => {
    const { server } = start(specOf("lists", [fixture("lists"), "--slow", "150"]));
    await server.firstTry;
    await call(server, "a", "announce", { times: 50 });
    await vi.waitFor(async () => {
      expect((await callJson<SeenByFixture>(server, "a", "seen")).lists).toBeGreaterThan(1);
    }, SOON);
    await new Promise((resolve) => setTimeout(resolve, 800));
    const seen = await callJson<SeenByFixture>(server, "a", "seen");
    expect(seen.atOnce).toBe(1);
    // The first one, one for the first announcement and one for the rest, if those came too late for that.
    expect(seen.lists).toBeLessThanOrEqual(3);
  });

  it("are not read more often by a server that announces changes without end", async () => {
    const { server } = start(specOf("lists", [fixture("lists")]));
    await server.firstTry;
    const until = performance.now() + 1_000;
    while (performance.now() < until) await call(server, "a", "announce", { times: 10 });
    const seen = await callJson<SeenByFixture>(server, "a", "seen");
    expect(seen.lists).toBeLessThanOrEqual(10);
  });

  it("that could not be read are tried again until they can: no server stays up without its tools", async () => {
    const file = join(temporary(), "good");
    const { server, tools, logged } = start(specOf("lists", [fixture("lists"), "--until", file]));
    await server.firstTry;
    // The other lists were fine, and that does not hide it.
    expect(server.listed).toBe(false);
    expect(status(server)).toMatchObject({
      state: "ready",
      lastError: expect.stringContaining("not yet"),
      nextTryInMs: expect.any(Number),
    });
    writeFileSync(file, "");
    await vi.waitFor(() => expect(tools()).toBe(2), SOON);
    await vi.waitFor(() => expect(server.listed).toBe(true), SOON);
    expect(status(server)).toMatchObject({ state: "ready", lastError: undefined, nextTryInMs: undefined, restarts: 0 });
    expect(logged.filter((line) => line.includes("not yet"))).toHaveLength(1);
  });

  it("for which there is no room are a fault that says so, and what was known stays [bounded] [told-why]", async () => {
    let isFull = false;
    const why = "There is no room for it.";
    const { server, tools } = start(specOf("lists", [fixture("lists")]), (_server, kind) =>
      isFull && kind === "tools" ? why : undefined,
    );
    await server.firstTry;
    const known = tools();
    expect(known).toBeGreaterThan(0);
    isFull = true;
    await call(server, "a", "announce", { times: 1 });
    await vi.waitFor(() => expect(status(server).lastError).toBe(`Its tools could not be read: ${why}`), SOON);
    expect([status(server).state, tools()]).toEqual(["ready", known]);
    isFull = false;
    await vi.waitFor(() => expect(status(server).lastError).toBeUndefined(), SOON);
  });

  it("that never end cost that server its tools, and no other server", async () => {
    const { server } = start(specOf("hang", [fixture("hang"), "--at", "list"], { connectTimeoutMs: 6_000 }));
    await server.firstTry;
    expect(status(server)).toMatchObject({ state: "ready", lastError: expect.stringContaining("tools/list") });
  });
});

describe("a server that cannot be started", () => {
  it("says once which server it is, where its time to start is over [told-why]", async () => {
    const deaf = specOf("deaf", [fixture("hang"), "--at", "initialize"], { connectTimeoutMs: 400 });
    const { server, logged } = start(deaf);
    await server.firstTry;
    expect(status(server).lastError).toMatch(/^It was not ready within 400 ms\. Is it slow to start/);
    expect(logged.join("\n").match(/"deaf"/g)).toHaveLength(1);
  });

  it("says so in its status, with when it is tried again, until it starts", async () => {
    const { server, logged } = start(specOf("broken", [fixture("crash"), "--at", "start"]));
    await server.firstTry;
    const looks: string[] = [];
    for (let i = 0; i < 30; i++) {
      const { state, lastError, nextTryInMs } = status(server);
      looks.push(state);
      if (state === "backoff") {
        expect(lastError).toContain("MISSING_KEY is not set");
        expect(nextTryInMs).toEqual(expect.any(Number));
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(looks).toContain("backoff");
    expect(looks).not.toContain("idle");
    expect(status(server).pid === undefined || status(server).state === "starting").toBe(true);
    expect(logged.filter((line) => line.includes("MISSING_KEY"))).toHaveLength(1);
  });

  it("is tried again in the background, and is there when it can be", async () => {
    const file = join(temporary(), "server.mjs");
    const { server, tools } = start(specOf("later", [file]));
    await server.firstTry;
    expect(status(server).state).toBe("backoff");
    writeFileSync(file, `await import(${JSON.stringify(fixture("lists"))});`);
    await vi.waitFor(() => expect(tools()).toBe(2), SOON);
    expect(status(server)).toMatchObject({ state: "ready", lastError: undefined });
    expect(status(server).restarts).toBeGreaterThan(0);
  });

  it("whose entry cannot be used at all is an error of its calls, and of nothing else", async () => {
    const target = { kind: "http", url: "http://127.0.0.1:9/mcp", headers: { "x-bad": "line\nbreak" } } as const;
    const { server } = start(specOf("odd", [], { target }));
    await server.firstTry;
    expect(await call(server, "a", "x")).toMatchObject({
      error: { code: -31001, message: expect.stringContaining("x-bad") },
    });
    expect(status(server)).toMatchObject({ state: "backoff", lastError: expect.stringContaining("x-bad") });
  });
});

describe('isolation "session"', () => {
  it("has a connection for each session, and one that reads the lists and then rests", async () => {
    const { server } = start(specOf("lists", [fixture("lists")], { isolation: "session" }));
    await server.firstTry;
    await vi.waitFor(() => expect(status(server)).toMatchObject({ state: "idle", connections: 0 }), SOON);
    expect(status(server)).toMatchObject({ pid: undefined, lastError: undefined, restarts: 0 });
    const [a, again, b] = [
      await callJson<SeenByFixture>(server, "a", "seen"),
      await callJson<SeenByFixture>(server, "a", "seen"),
      await callJson<SeenByFixture>(server, "b", "seen"),
    ];
    expect(again.pid).toBe(a.pid);
    expect(b.pid).not.toBe(a.pid);
    // The lists are known: a session's connection does not read them again.
    expect([a.lists, b.lists]).toEqual([0, 0]);
    expect(status(server)).toMatchObject({ state: "ready", connections: 2 });
    server.sessionClosed("a");
    await vi.waitFor(() => expect(isAlive(a.pid)).toBe(false), SOON);
    expect(status(server).connections).toBe(1);
    expect(isAlive(b.pid)).toBe(true);
  });

  it("gives a principal three quarters of its connections, and the places of those that nobody uses [bounded]", async () => {
    const supervision = { ...SUPERVISED.supervision, sessionConnections: 4 };
    const { server } = start(specOf("lists", [fixture("lists")], { isolation: "session", supervision }));
    const pidOf = async (session: string) => {
      const { pid } = await callJson<SeenByFixture>(server, session, "seen");
      server.tick(performance.now() + skippedMs);
      return pid;
    };
    const pids = [await pidOf("ada-1"), await pidOf("ada-2"), await pidOf("ada-3")];
    expect(() => server.upstream(caller("ada-4"))).toThrow(/no connection left for this session.*"sessionConnections"/);
    const bobs = await pidOf("bob-1");
    // What is asked of a server while the clock jumps would be late.
    const quiet = () => vi.waitFor(() => expect(status(server).inFlight).toBe(0), SOON);
    await quiet();
    skippedMs += 5 * 60_000;
    expect(await pidOf("ada-1")).toBe(pids[0]);
    await quiet();
    skippedMs += 5 * 60_000;
    // The second is now the one that was unused the longest. The others are not touched.
    const fourth = await pidOf("ada-4");
    await vi.waitFor(() => expect(pids.map(isAlive)).toEqual([true, false, true]), SOON);
    expect([isAlive(bobs), isAlive(fourth)]).toEqual([true, true]);
    // It comes back as any other session would.
    expect(pids).not.toContain(await pidOf("ada-2"));
  });

  it("leaves no place to sessions whose processes were closed for want of use [bounded]", async () => {
    const supervision = { ...SUPERVISED.supervision, sessionConnections: 4, keepAliveMs: 1_000 };
    const { server } = start(specOf("lists", [fixture("lists")], { isolation: "session", supervision }));
    for (let round = 0; round < 3; round++) {
      await Promise.all([1, 2, 3].map((at) => callJson(server, `ada-${round}-${at}`, "seen")));
      skippedMs += 1_000;
      await vi.waitFor(() => expect(status(server).connections).toBe(0), SOON);
    }
    // One whose process is gone needs a place like a new one.
    await Promise.all([1, 2, 3].map((at) => callJson(server, `ada-again-${at}`, "seen")));
    expect(() => server.upstream(caller("ada-2-1"))).toThrow(/no connection left/);
  });

  it("answers what is in flight when its session ends", async () => {
    const { server } = start(specOf("hang", [fixture("hang")], { isolation: "session" }));
    await server.firstTry;
    const hanging = call(server, "a", "hang");
    await vi.waitFor(() => expect(status(server)).toMatchObject({ state: "ready", inFlight: 1 }), SOON);
    server.sessionClosed("a");
    expect(await hanging).toMatchObject({ error: { code: -31003 } });
    expect(status(server).inFlight).toBe(0);
  });

  it("waits at its end for processes of sessions that have just ended [no-orphans]", async () => {
    const { server, host } = start(specOf("lists", [fixture("lists")], { isolation: "session" }));
    const { pid } = await callJson<SeenByFixture>(server, "a", "seen");
    server.sessionClosed("a");
    await host.close();
    expect(isAlive(pid)).toBe(false);
  });

  it("whose lists could not be read is tried again, each time with a process that does not stay", async () => {
    const file = join(temporary(), "good");
    const spec = specOf("lists", [fixture("lists"), "--until", file], { isolation: "session" });
    const { server, tools } = start(spec);
    await server.firstTry;
    await vi.waitFor(() => expect(status(server).connections).toBe(0), SOON);
    expect(status(server).lastError).toContain("not yet");
    writeFileSync(file, "");
    await vi.waitFor(() => expect(tools()).toBe(2), SOON);
    await vi.waitFor(() => expect(status(server)).toMatchObject({ state: "idle", lastError: undefined }), SOON);
  });
});

describe("a changed config", () => {
  it("answers what is in flight on a server that is gone, or waits for it", async () => {
    const { host, server } = start(specOf("hang", [fixture("hang")]));
    await server.firstTry;
    const inFlight = call(server, "a", "hang");
    await vi.waitFor(() => expect(status(server).inFlight).toBe(1), SOON);
    host.apply([]);
    expect(await inFlight).toMatchObject({ error: { code: -31003 } });

    const deaf = specOf("deaf", [fixture("hang"), "--at", "initialize"]);
    host.apply([deaf]);
    const waiting = call(host.get("deaf") as UpstreamServer, "a", "hang");
    host.apply([]);
    expect(await waiting).toMatchObject({ error: { code: -31009 } });
    expect(await call(server, "a", "hang")).toMatchObject({ error: { code: -31001 } });
  });

  it("restarts a server whose process is another, and leaves one alone that is not", async () => {
    const spec = specOf("lists", [fixture("lists")]);
    const { host, server } = start(spec);
    const { pid } = await callJson<SeenByFixture>(server, "a", "seen");
    expect(host.apply([{ ...spec }])).toEqual({ added: [], changed: [], removed: [] });
    expect(host.get("lists")).toBe(server);
    expect(host.apply([{ ...spec, callTimeoutMs: 1_234 }]).changed).toEqual(["lists"]);
    expect((await callJson<SeenByFixture>(host.get("lists") as UpstreamServer, "a", "seen")).pid).not.toBe(pid);
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), SOON);
  });
});
