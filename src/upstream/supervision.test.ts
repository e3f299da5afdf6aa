// Supervision with real processes: what a crash, a hang, a stop and a reload do to a server and to its callers.

import { rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Hosted } from "../../test/fixtures/hosted.js";
import { closeHttp, listenOnLoopback } from "../../test/fixtures/loopback.js";
import { SUPERVISED } from "../../test/fixtures/spec.js";
import { ownToolName } from "../contracts/names.js";
import type { ServerSpec, Supervision } from "../contracts/server-spec.js";
import { readCard } from "./server-card.js";

/** Two busy cores start a process in a second or two; a hang takes its ping and the graces of a stop. */
const SOON = { timeout: 20_000, interval: 50 };
const FREE = { max: 1_000, windowMs: 1_000 };
const QUICK = { baseMs: 1, maxMs: 2 };

const opened: Hosted[] = [];
afterEach(async () => {
  for (const hosted of opened.splice(0)) await hosted.close();
});

function start(
  supervision: Partial<Supervision> = {},
  more: Partial<ServerSpec> = {},
  args: readonly string[] = [],
  isKnown = false,
): Hosted {
  const hosted = new Hosted(isKnown);
  opened.push(hosted);
  hosted.servers.apply([hosted.spec({ restarts: FREE, backoff: QUICK, ...supervision }, more, args)]);
  return hosted;
}

describe("a call that a crash cut off", () => {
  it("is made again, on the new connection, where the config says that it may [host-1] [host-4]", async () => {
    const hosted = start({}, { repeatable: new Set([ownToolName("look")]) });
    const first = await hosted.pid();
    const { result } = await hosted.call("look");
    expect(JSON.parse(result?.content[0]?.text ?? "")).not.toEqual({ pid: first });
    expect([hosted.count("call look"), hosted.count("start")]).toEqual([2, 2]);
    expect(hosted.lines.filter((line) => line.startsWith("start")).every((line) => line.endsWith("beside 0"))).toBe(
      true,
    );
  });

  it("is made again at most once", async () => {
    const hosted = start({}, { repeatable: new Set([ownToolName("die")]) });
    await hosted.pid();
    expect((await hosted.call("die")).error).toMatchObject({ code: -31003 });
    expect(hosted.count("call die")).toBe(2);
  });

  it("is not made again where nothing says that it may, and is said to be unknown [host-4] [unknown-is-said]", async () => {
    const hosted = start();
    await hosted.pid();
    expect((await hosted.call("write")).error).toMatchObject({ code: -31003 });
    await hosted.pid();
    expect(hosted.count("call write")).toBe(1);
  });

  it("is made again by what the server says of its tools only where it is trusted [host-4]", async () => {
    const pinned = start();
    await vi.waitFor(() => expect(pinned.lists).toContain("tools"), SOON);
    expect((await pinned.call("look")).error).toMatchObject({ code: -31003 });
    const trusted = start({}, { trust: "always" });
    await vi.waitFor(() => expect(trusted.lists).toContain("tools"), SOON);
    expect(await trusted.call("look")).toHaveProperty("result");
    expect((await trusted.call("write")).error).toMatchObject({ code: -31003 });
  });

  it("counts with all others of that crash as one restart and one fault [host-7]", async () => {
    const hosted = start();
    await hosted.pid();
    const calls = Array.from({ length: 20 }, () => hosted.call("wait"));
    await vi.waitFor(() => expect(hosted.count("call wait")).toBe(20), SOON);
    calls.push(hosted.call("die"));
    for (const { error } of await Promise.all(calls)) expect(error?.code).toBe(-31003);
    expect(hosted.status).toMatchObject({ circuit: "closed", failures: 1 });
    await Promise.all(Array.from({ length: 20 }, () => hosted.pid()));
    expect(hosted.status).toMatchObject({ restarts: 1, failures: 0 });
  });
});

describe("a server that fails again and again", () => {
  it("is ejected after its restarts, as status, log and answers say, until a reload [host-14]", async () => {
    const restarts = { max: 2, windowMs: 60_000 };
    const hosted = start({ restarts, breaker: { failures: 100, openMs: 1 }, ejectedProbeMs: undefined });
    for (let i = 0; i < 3; i++) expect((await hosted.call("die")).error?.code).toBe(-31003);
    const { error } = await hosted.call("pid");
    expect(error).toMatchObject({ code: -31001, data: { server: "moody", state: "ejected" } });
    expect(error?.message).toContain("toolway reload moody");
    expect(hosted.status).toMatchObject({ state: "ejected", ejected: true, restarts: 2, nextTryInMs: undefined });
    expect(hosted.logged.some((line) => line.includes("ejected"))).toBe(true);
    expect(hosted.count("start")).toBe(3);
    await hosted.servers.reload("moody");
    expect(await hosted.pid()).toBeGreaterThan(0);
    expect(hosted.status).toMatchObject({ state: "ready", ejected: false, restarts: 0 });
  });

  it("is tried again by itself in five minutes, as the answer says [host-14]", async () => {
    const hosted = start({ restarts: { max: 0, windowMs: 60_000 } });
    await hosted.pid();
    await hosted.call("die");
    const { error } = await hosted.call("pid");
    expect(error?.message).toMatch(/It is tried again in (300|299|298) s, or by `toolway reload moody`/);
    expect(hosted.status.nextTryInMs).toBeGreaterThan(200_000);
  });

  it("is tried again by itself where the entry says so, and forgiven when that succeeds [host-14]", async () => {
    const hosted = new Hosted();
    opened.push(hosted);
    const mark = join(hosted.dir, "broken");
    writeFileSync(mark, "");
    const rules = { restarts: { max: 1, windowMs: 60_000 }, backoff: QUICK, ejectedProbeMs: 300 };
    hosted.servers.apply([hosted.spec(rules, {}, ["--broken", mark])]);
    await vi.waitFor(() => expect(hosted.status).toMatchObject({ state: "ejected" }), SOON);
    // Nobody calls: the probes come all the same.
    const before = hosted.count("broken");
    await vi.waitFor(() => expect(hosted.count("broken")).toBeGreaterThan(before), SOON);
    rmSync(mark);
    await vi.waitFor(() => expect(hosted.status).toMatchObject({ state: "ready", ejected: false }), SOON);
    expect(await hosted.pid()).toBeGreaterThan(0);
  });
});

describe("the breaker", () => {
  const breaker = { failures: 2, openMs: 1_500 };

  it("holds calls back after faults in a row, then lets exactly one through [host-5]", async () => {
    const hosted = start({ breaker });
    await hosted.pid();
    await hosted.call("die");
    expect(hosted.status.circuit).toBe("closed");
    await hosted.call("die");
    const held = (await hosted.call("pid")).error;
    expect(held).toMatchObject({ code: -31001, data: { state: "open", nextTryInMs: expect.any(Number) } });
    expect(hosted.status).toMatchObject({ circuit: "open", failures: 2 });
    await vi.waitFor(() => expect(hosted.status.nextTryInMs).toBe(0), SOON);
    const before = hosted.count("call pid");
    const answers = await Promise.all(Array.from({ length: 10 }, () => hosted.call("pid")));
    expect(answers.filter(({ result }) => result !== undefined).length).toBe(1);
    expect(answers.filter(({ error }) => error?.data["state"] === "half-open").length).toBe(9);
    expect(hosted.count("call pid")).toBe(before + 1);
    expect(hosted.status).toMatchObject({ circuit: "closed", failures: 0 });
  });

  it("opens again after a probe that fails; one that is cancelled gives its place to the next", async () => {
    const hosted = start({ breaker: { failures: 1, openMs: 500 } });
    await hosted.pid();
    await hosted.call("die");
    await vi.waitFor(() => expect(hosted.status.nextTryInMs).toBe(0), SOON);
    expect((await hosted.call("die")).error?.code).toBe(-31003);
    expect(hosted.status.circuit).toBe("open");
    await vi.waitFor(() => expect(hosted.status.nextTryInMs).toBe(0), SOON);
    const probe = hosted.begin("wait");
    await vi.waitFor(() => expect(hosted.count("call wait")).toBe(1), SOON);
    expect(hosted.status.circuit).toBe("half-open");
    probe.cancel();
    expect((await probe.answer).error?.code).toBe(-31008);
    expect(await hosted.pid()).toBeGreaterThan(0);
    expect(hosted.status.circuit).toBe("closed");
  });

  it("does not count what the server answers, whatever words are in it [host-3] [host-6]", async () => {
    const hosted = start({ breaker });
    for (let i = 0; i < 10; i++) {
      expect((await hosted.call("is_error")).result?.isError).toBe(true);
      expect((await hosted.call("refuse")).error?.code).toBe(-32000);
    }
    expect(hosted.status).toMatchObject({ circuit: "closed", failures: 0, restarts: 0 });
  });
});

describe("a server that hangs", () => {
  it("is noticed by a deadline, and stopped to be started anew [host-2]", async () => {
    const hosted = start({}, { callTimeoutMs: 700 });
    const pid = await hosted.pid();
    expect((await hosted.call("freeze")).error?.code).toBe(-31004);
    await vi.waitFor(() => expect(hosted.status.lastError).toContain("It hung"), SOON);
    await vi.waitFor(async () => expect(await hosted.pid()).not.toBe(pid), SOON);
    expect(hosted.count("start")).toBe(2);
    // The new one looked for the old one, and found it gone.
    expect(hosted.lines.filter((line) => line.startsWith("start")).at(-1)).toMatch(/beside 0$/);
  }, 40_000);

  it("lives on where it answers a ping: a slow call is that call's alone", async () => {
    const hosted = start({}, { callTimeoutMs: 400 });
    const pid = await hosted.pid();
    expect((await hosted.call("wait")).error?.code).toBe(-31004);
    await vi.waitFor(() => expect(hosted.count("ping")).toBe(1), SOON);
    expect(await hosted.pid()).toBe(pid);
  });

  it("keeps its breaker closed where it answers a ping, however often one tool is slow [host-6]", async () => {
    const hosted = start({ breaker: { failures: 2, openMs: 60_000 } }, { callTimeoutMs: 300 });
    const pid = await hosted.pid();
    for (let i = 1; i <= 3; i++) {
      expect((await hosted.call("wait")).error?.code).toBe(-31004);
      await vi.waitFor(() => expect(hosted.count("ping")).toBe(i), SOON);
    }
    expect(hosted.status).toMatchObject({ circuit: "closed", failures: 0 });
    // Two tools in a row are another matter.
    expect((await hosted.call("stall")).error?.code).toBe(-31004);
    await vi.waitFor(() => expect(hosted.status.circuit).toBe("open"), SOON);
    expect((await hosted.call("pid")).error).toMatchObject({ code: -31001, data: { state: "open" } });
    expect(() => process.kill(pid, 0)).not.toThrow();
  });

  it("decides nothing by a probe that is slow, where it answers a ping [host-5]", async () => {
    const hosted = start({ breaker: { failures: 1, openMs: 1_000 } }, { callTimeoutMs: 300 });
    await hosted.pid();
    await hosted.call("die");
    expect(hosted.status.circuit).toBe("open");
    await vi.waitFor(() => expect(hosted.status.nextTryInMs).toBe(0), SOON);
    expect((await hosted.call("wait")).error?.code).toBe(-31004);
    // It is neither closed nor open for its whole time: the next call is the probe.
    await vi.waitFor(() => expect(hosted.status).toMatchObject({ circuit: "open", failures: 1, nextTryInMs: 0 }), SOON);
    expect(await hosted.pid()).toBeGreaterThan(0);
    expect(hosted.status.circuit).toBe("closed");
  });

  it("is noticed while idle, once it has shown that it answers pings", async () => {
    const hosted = start({ pingMs: 100 });
    const pid = await hosted.pid();
    await vi.waitFor(() => expect(hosted.count("ping")).toBeGreaterThan(1), SOON);
    process.kill(pid, "SIGSTOP");
    await vi.waitFor(() => expect(hosted.status.lastError).toContain("It hung"), SOON);
    await vi.waitFor(async () => expect(await hosted.pid()).not.toBe(pid), SOON);
  }, 40_000);
});

describe("stop, start and reload", () => {
  it("leave a stopped server stopped until a start brings it back", async () => {
    const hosted = start();
    const pid = await hosted.pid();
    await hosted.servers.stopServer("moody");
    expect(() => process.kill(pid, 0)).toThrow();
    expect(hosted.status.state).toBe("stopped");
    expect((await hosted.call("pid")).error).toMatchObject({ code: -31001, data: { state: "stopped" } });
    hosted.servers.apply([hosted.spec({ restarts: FREE, backoff: QUICK })]);
    expect(hosted.status.state).toBe("stopped");
    await hosted.servers.startServer("moody");
    expect(await hosted.pid()).not.toBe(pid);
  });

  it("wait for the end of the old process, however stubborn it is [host-2] [host-13]", async () => {
    const hosted = start({}, {}, ["--stubborn"]);
    const pid = await hosted.pid();
    await Promise.all([hosted.servers.reload("moody"), hosted.servers.reload("moody")]);
    expect(await hosted.pid()).not.toBe(pid);
    const starts = hosted.lines.filter((line) => line.startsWith("start"));
    expect(starts.length).toBeGreaterThan(1);
    expect(starts.every((line) => line.endsWith("beside 0"))).toBe(true);
  }, 40_000);

  it("leave a server supervised whose start fails [host-13]", async () => {
    const hosted = start();
    await hosted.pid();
    const spec = hosted.spec({ restarts: FREE, backoff: QUICK });
    const mark = join(hosted.dir, "broken");
    writeFileSync(mark, "");
    hosted.servers.apply([hosted.spec({ restarts: FREE, backoff: QUICK }, {}, ["--broken", mark])]);
    expect((await hosted.call("pid")).error).toMatchObject({ code: -31001, data: { server: "moody" } });
    rmSync(mark);
    await vi.waitFor(async () => expect(await hosted.pid()).toBeGreaterThan(0), SOON);
    expect(hosted.servers.apply([spec]).changed).toEqual(["moody"]);
    expect(await hosted.pid()).toBeGreaterThan(0);
    expect(hosted.lines.filter((line) => /beside [^0]/.test(line))).toEqual([]);
  });

  it("find the servers of a gateway that is closing still known, and start none of them", async () => {
    const hosted = start();
    await hosted.pid();
    await hosted.servers.close();
    expect(hosted.status).toMatchObject({ name: "moody", state: "stopped" });
    await expect(hosted.servers.startServer("moody")).rejects.toMatchObject({ code: "closing" });
    await expect(hosted.servers.reload("moody")).rejects.toMatchObject({ code: "closing" });
    expect(hosted.lines.filter((line) => line.startsWith("start"))).toHaveLength(1);
  });

  it("say that an unknown name is unknown", async () => {
    const hosted = start();
    await expect(hosted.servers.reload("other")).rejects.toMatchObject({ code: "not-found" });
    await expect(hosted.servers.stopServer("other")).rejects.toMatchObject({ code: "not-found" });
  });
});

describe("a lazy server", () => {
  it("is started to be listed where nothing is known of it, and then rests until it is called", async () => {
    const hosted = start({ lazy: true });
    await vi.waitFor(() => expect(hosted.status).toMatchObject({ state: "idle", listsFromBefore: false }), SOON);
    expect(hosted.lists).toContain("tools");
    expect(hosted.count("start")).toBe(1);
    expect(await hosted.pid()).toBeGreaterThan(0);
    expect([hosted.count("start"), hosted.status.state, hosted.status.restarts]).toEqual([2, "ready", 0]);
  });

  it("is not started by whoever asks for its lists, or for a name that they do not have [menu-current]", async () => {
    const hosted = start({ lazy: true });
    await vi.waitFor(() => expect(hosted.status).toMatchObject({ state: "idle", listsFromBefore: false }), SOON);
    const server = hosted.servers.get("moody");
    expect([server?.renew?.("tools", "asked"), server?.renew?.("tools", "missed")]).toEqual([undefined, undefined]);
    expect([hosted.status.state, hosted.count("start")]).toEqual(["idle", 1]);
    // While it is up a call that has ended makes its lists old: then they are read.
    await hosted.pid();
    expect(server?.renew?.("tools", "asked")).toBeInstanceOf(Promise);
  });

  it("is not started at all where its lists are known, before somebody wants it [host-10]", async () => {
    const hosted = start({ lazy: true }, {}, [], true);
    await hosted.servers.get("moody")?.firstTry;
    expect([hosted.status.state, hosted.status.lazy, hosted.count("start")]).toEqual(["idle", true, 0]);
    expect(await hosted.pid()).toBeGreaterThan(0);
  });

  it("has a first try of its own when somebody wants it, which ends when its lists are read", async () => {
    const hosted = start({ lazy: true }, {}, [], true);
    await hosted.servers.get("moody")?.firstTry;
    expect(hosted.lists).toEqual([]);
    await hosted.servers.want("moody").firstTry;
    expect(hosted.status).toMatchObject({ state: "ready", listsFromBefore: false });
    expect(hosted.count("start")).toBe(1);
  });

  it("is closed when nobody has used it for its time, and started by the next call", async () => {
    const hosted = start({ lazy: true, keepAliveMs: 300 }, {}, [], true);
    const pid = await hosted.pid();
    await vi.waitFor(() => expect(hosted.status).toMatchObject({ state: "idle" }), SOON);
    expect(await hosted.pid()).not.toBe(pid);
    expect(hosted.status.restarts).toBe(0);
  });
});

describe("a server card", () => {
  const spec = (more: Partial<ServerSpec>): ServerSpec => ({
    name: "s",
    target: { kind: "stdio", command: "x", args: [], env: {}, cwd: undefined },
    isolation: "shared",
    connectTimeoutMs: 1_000,
    callTimeoutMs: 1_000,
    ...SUPERVISED,
    ...more,
  });

  it("is read from a file, an address, or beside the server's own; anything else counts as no card", async () => {
    const hosted = new Hosted();
    opened.push(hosted);
    const file = join(hosted.dir, "card.json");
    writeFileSync(file, '{"name":"of a file"}');
    expect(await readCard(spec({ card: file }))).toEqual({ name: "of a file" });
    for (const text of ["[]", "{", `{"a":"${"x".repeat(70_000)}"}`]) {
      writeFileSync(file, text);
      expect(await readCard(spec({ card: file }))).toBeUndefined();
    }
    expect(await readCard(spec({ card: hosted.dir }))).toBeUndefined();
    expect(await readCard(spec({}))).toBeUndefined();

    const asked: (string | undefined)[] = [];
    const http = createServer((req, res) => {
      asked.push(`${req.url} ${req.headers["x-key"]}`);
      if (req.url === "/elsewhere") res.writeHead(302, { location: "/mcp/server-card" }).end();
      else if (req.url === "/endless") res.write("x".repeat(100_000));
      else res.end('{"name":"of an address"}');
    });
    const port = await listenOnLoopback(http);
    const origin = `http://127.0.0.1:${port}`;
    try {
      const target = { kind: "http", url: `${origin}/mcp`, headers: { "x-key": "k" } } as const;
      expect(await readCard(spec({ target }))).toEqual({ name: "of an address" });
      expect(await readCard(spec({ target, card: `${origin}/card` }))).toEqual({ name: "of an address" });
      expect(await readCard(spec({ card: `${origin}/elsewhere` }))).toBeUndefined();
      expect(await readCard(spec({ card: `${origin}/endless` }))).toBeUndefined();
      // The server's own headers are for the server's own address.
      expect(asked).toEqual(["/mcp/server-card k", "/card undefined", "/elsewhere undefined", "/endless undefined"]);
    } finally {
      void closeHttp(http);
    }
  });

  it("is shown in status", async () => {
    const hosted = new Hosted();
    opened.push(hosted);
    const file = join(hosted.dir, "card.json");
    writeFileSync(file, '{"name":"moody"}');
    hosted.servers.apply([hosted.spec({ lazy: true }, { card: file })]);
    await vi.waitFor(() => expect(hosted.status.card).toEqual({ name: "moody" }), SOON);
  });
});
