// The host as a library: what docs/library.md says of createHost, on real child processes.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it, vi } from "vitest";
import { isAlive } from "../../test/fixtures/processes.js";
import { ConfigError } from "../config/mistakes.js";
import { CallError } from "../gateway/program-call.js";
import type { PinChange } from "../gateway/state/stored-pins.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { StateDirError } from "../runtime/state-dir.js";
import { createHost, type HostOptions } from "./create.js";
import { HostCallError } from "./errors.js";
import type { HostSpec, ToolHost } from "./host.js";

/** Two busy cores start a process in a second or two. */
const SOON = { timeout: 15_000, interval: 50 };

const cleanUp: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

const spec = (name: string, fixture = name, args: string[] = []): HostSpec => ({
  name,
  command: process.execPath,
  args: [fileURLToPath(new URL(`../../test/fixtures/servers/${fixture}.mjs`, import.meta.url)), ...args],
});

async function create(options: HostOptions = {}): Promise<ToolHost> {
  const host = await createHost({ env: { PATH: process.env["PATH"] }, ...options });
  cleanUp.push(() => host.close({ drainMs: 0 }));
  return host;
}

const json = (result: JsonObject) =>
  JSON.parse((result["content"] as { text: string }[])[0]?.text ?? "null") as Record<string, unknown>;
const fails = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );
const pidOf = (host: ToolHost, name: string) => host.status().find((server) => server.name === name)?.pid as number;

describe("spawn", () => {
  it("resolves when the server is up; its tools are called by their own names", async () => {
    const host = await create();
    const { name } = await host.spawn(spec("one", "stateful"));
    expect(name).toBe("one");
    expect(host.status()).toMatchObject([{ name: "one", state: "ready", refs: 1 }]);
    expect(json(await host.call("one", "count"))).toMatchObject({ count: 1 });
    await host.spawn(spec("two", "stateful"));
    expect(json(await host.call("two", "count"))).toMatchObject({ count: 1 });
    // The second did not disturb the first.
    expect(json(await host.call("one", "count"))).toMatchObject({ count: 2 });
  });

  it("that fails leaves nothing behind, and the name is free [host-13]", async () => {
    const host = await create();
    await host.spawn(spec("good", "stateful"));
    const error = await fails(host.spawn(spec("bad", "crash", ["--at", "start"])));
    expect(error).toBeInstanceOf(HostCallError);
    expect(error).toMatchObject({ fault: "unavailable", server: "bad" });
    expect((error as Error).message).toContain("MISSING_KEY");
    expect(host.status().map(({ name }) => name)).toEqual(["good"]);
    expect(await fails(host.call("bad", "pid"))).toMatchObject({ fault: "not-found" });
    await host.spawn(spec("bad", "crash"));
    expect(json(await host.call("bad", "pid"))).toMatchObject({ pid: expect.any(Number) });
  });

  it("says what is wrong with a spec, before anything is started", async () => {
    const host = await create();
    expect(await fails(host.spawn({ name: "x" }))).toBeInstanceOf(ConfigError);
    expect(await fails(host.spawn({ name: "", command: "x" }))).toBeInstanceOf(ConfigError);
    expect(await fails(host.spawn(spec("one", "stateful"), { callTimeoutMs: -1 }))).toBeInstanceOf(ConfigError);
    expect(await fails(host.spawn(spec("one", "stateful"), { disabled: true }))).toMatchObject({ code: "invalid" });
    expect(host.status()).toEqual([]);
  });

  it("of the same spec shares one process until the last reference is released", async () => {
    const host = await create();
    const spawned = await Promise.all([1, 2, 3].map(() => host.spawn(spec("one", "stateful"))));
    const pid = pidOf(host, "one");
    expect(host.status()).toMatchObject([{ refs: 3 }]);
    await spawned[0]?.stop();
    await spawned[0]?.stop();
    expect(host.status()).toMatchObject([{ refs: 2, pid }]);
    await host.stop("one");
    expect(isAlive(pid)).toBe(true);
    await spawned[2]?.stop();
    expect(host.status()).toEqual([]);
    expect(isAlive(pid)).toBe(false);
  });

  it("of another spec under the same name is refused while it is held, and waits for its end after [host-13]", async () => {
    const host = await create();
    await host.spawn(spec("one", "stateful"));
    const pid = pidOf(host, "one");
    expect(await fails(host.spawn(spec("one", "slow")))).toMatchObject({ code: "invalid" });
    expect(pidOf(host, "one")).toBe(pid);
    const stopped = host.stop("one");
    await host.spawn(spec("one", "slow"));
    expect(isAlive(pid)).toBe(false);
    await stopped;
    expect((await host.tools("one")).map(({ name }) => name)).toContain("sleep");
  });

  it("keeps a server for its keepAliveMs after the last reference is released, and takes it up again", async () => {
    const host = await create();
    await host.spawn(spec("one", "stateful"), { keepAliveMs: 600_000 });
    const pid = pidOf(host, "one");
    await host.stop("one");
    expect(host.status()).toMatchObject([{ refs: 0, pid }]);
    await host.spawn(spec("one", "stateful"), { keepAliveMs: 600_000 });
    expect(host.status()).toMatchObject([{ refs: 1, pid }]);
    await host.stop("one", { force: true });
    expect(isAlive(pid)).toBe(false);
    await host.spawn(spec("one", "stateful"), { keepAliveMs: 50 });
    await host.stop("one");
    await vi.waitFor(() => expect(host.status()).toEqual([]), SOON);
  });

  it("that is stopped while it starts rejects", async () => {
    const host = await create();
    const spawning = fails(host.spawn(spec("hang")));
    await vi.waitFor(() => expect(host.status()).toMatchObject([{ name: "hang", state: "starting" }]), SOON);
    const pid = pidOf(host, "hang");
    await host.stop("hang", { force: true });
    expect(await spawning).toMatchObject({ server: "hang" });
    expect(host.status()).toEqual([]);
    expect(isAlive(pid)).toBe(false);
  });
});

it("what a spec's `only` leaves out is neither listed nor called [only-is-all]", async () => {
  const host = await create();
  await host.spawn(spec("one", "stateful"), { only: ["count"] });
  expect((await host.tools("one")).map(({ name }) => name)).toEqual(["count"]);
  expect(await fails(host.call("one", "whoami"))).toMatchObject({ fault: "not-found" });
  expect(await fails(host.spawn(spec("two", "stateful"), { only: "count" as never }))).toBeInstanceOf(ConfigError);
});

describe("call", () => {
  it("fails with an error that says which server it was, what happened and how the server is [unknown-is-said]", async () => {
    const host = await create();
    await host.spawn(spec("crash"));
    const died = await fails(host.call("crash", "crash"));
    expect(died).toBeInstanceOf(CallError);
    expect(died).toMatchObject({ fault: "outcome-unknown", server: "crash", code: -31003 });
    expect((died as HostCallError).state).toBeDefined();
    expect(json(await host.call("crash", "pid"))).toMatchObject({ pid: expect.any(Number) });
    expect(await fails(host.call("crash", "no_such_tool"))).toMatchObject({ fault: "not-found", server: "crash" });
    expect(await fails(host.call("nobody", "x"))).toMatchObject({ fault: "not-found", state: undefined });
  });

  it("is taken back by its signal", async () => {
    const host = await create();
    await host.spawn(spec("slow"));
    const abort = new AbortController();
    const call = fails(host.call("slow", "sleep", { ms: 60_000, label: "x" }, { signal: abort.signal }));
    await vi.waitFor(async () => expect(json(await host.call("slow", "started"))).toEqual(["x"]), SOON);
    abort.abort(new Error("enough"));
    expect(await call).toMatchObject({ message: "enough" });
    await vi.waitFor(async () => expect(json(await host.call("slow", "cancelled"))).toHaveLength(1), SOON);
    expect(await fails(host.call("slow", "started", {}, { signal: abort.signal }))).toMatchObject({
      message: "enough",
    });
  });

  it("goes to a process of the principal's own where the server keeps state", async () => {
    const host = await create();
    await host.spawn(spec("one", "stateful"), { isolation: "session" });
    const as = (id: string) => ({ principal: { id, role: "dev" } });
    expect(json(await host.call("one", "count", {}, as("ann")))).toMatchObject({ count: 1 });
    expect(json(await host.call("one", "count", {}, as("bob")))).toMatchObject({ count: 1 });
    expect(json(await host.call("one", "count", {}, as("ann")))).toMatchObject({ count: 2 });
  });
});

describe("who may use what", () => {
  const dev = { principal: { id: "ann", role: "dev" } };

  it("is what the roles say: tools, discover and call agree [host-9]", async () => {
    const host = await create({ roles: { dev: { allow: ["crash/pid"] }, none: { allow: [] } } });
    await host.spawn(spec("crash"));
    await host.spawn(spec("slow"));
    expect((await host.tools("crash", dev)).map(({ name }) => name)).toEqual(["pid"]);
    expect(await fails(host.call("crash", "crash", {}, dev))).toMatchObject({ fault: "denied", server: "crash" });
    expect(await fails(host.tools("slow", dev))).toMatchObject({ fault: "denied" });
    expect((await host.discover(dev)).map(({ server, tools }) => [server, tools.length])).toEqual([["crash", 1]]);
    expect(await host.discover({ principal: { id: "eve", role: "none" } })).toEqual([]);
    expect(await host.tools("crash")).toHaveLength(3);
  });

  it("is what the guard says too, for spawns, lists and calls, of a renamed tool as well [host-9] [host-11]", async () => {
    const host = await create();
    await host.spawn(spec("crash"), { tools: { crash_after: { name: "soft" } } });
    host.setGuard((_principal, server, tool) =>
      server === "secret" || tool?.startsWith("crash") === true
        ? { kind: "deny", reason: "not today" }
        : { kind: "allow" },
    );
    const denied = await fails(host.spawn(spec("secret", "slow")));
    expect(denied).toMatchObject({ fault: "denied", server: "secret" });
    expect((denied as Error).message).toContain("not today");
    expect(host.status()).toHaveLength(1);
    expect((await host.tools("crash")).map(({ name }) => name)).toEqual(["pid"]);
    expect((await host.discover()).map(({ tools }) => tools.map(({ name }) => name))).toEqual([["pid"]]);
    for (const tool of ["crash", "soft"]) {
      expect(await fails(host.call("crash", tool))).toMatchObject({ fault: "denied" });
    }
    await host.call("crash", "pid");
    host.setGuard(() => {
      throw new Error("broken");
    });
    expect(await fails(host.call("crash", "pid"))).toMatchObject({ fault: "denied" });
    expect(await host.discover()).toEqual([]);
    host.setGuard(undefined);
    await host.call("crash", "pid");
  });
});

describe("a guard", () => {
  it("is asked once about a call, and about a tool that is not listed too", async () => {
    const host = await create();
    await host.spawn(spec("one", "stateful"));
    const asked: string[] = [];
    host.setGuard((_principal, server, tool) => {
      asked.push(`${server} ${tool ?? "-"}`);
      return tool === "no_such_tool" ? { kind: "deny", reason: "not today" } : { kind: "allow" };
    });
    asked.length = 0;
    await host.call("one", "count");
    expect(asked.splice(0)).toEqual(["one -", "one count"]);
    expect(await fails(host.call("one", "no_such_tool"))).toMatchObject({ fault: "denied", server: "one" });
    expect(asked).toEqual(["one -", "one no_such_tool"]);
  });

  it("that changes its mind is heard at once by lists and calls [host-9]", async () => {
    const host = await create();
    await host.spawn(spec("crash"));
    let open = true;
    host.setGuard(() => (open ? { kind: "allow" } : { kind: "deny", reason: "closed" }));
    expect(await host.tools("crash")).toHaveLength(3);
    open = false;
    expect(await fails(host.tools("crash"))).toMatchObject({ fault: "denied" });
    expect(await host.discover()).toEqual([]);
    open = true;
    expect(await host.tools("crash")).toHaveLength(3);
    host.setGuard((_principal, _server, tool) =>
      open || tool !== "pid" ? { kind: "allow" } : { kind: "deny", reason: "closed" },
    );
    expect(await host.tools("crash")).toHaveLength(3);
    open = false;
    expect(await host.tools("crash")).toHaveLength(2);
  });

  it("keeps a lazy server asleep whose tool it denies, renamed or not [host-11]", async () => {
    const host = await create();
    await host.spawn(spec("later", "stateful"), { lazy: true, tools: { count: { name: "soft" } } });
    host.setGuard((_principal, _server, tool) =>
      tool === "count" ? { kind: "deny", reason: "not today" } : { kind: "allow" },
    );
    expect(await fails(host.call("later", "soft"))).toMatchObject({ fault: "denied", server: "later" });
    expect(host.status()).toMatchObject([{ state: "idle", pid: undefined, refs: 1 }]);
    await host.call("later", "whoami");
    expect(host.status()).toMatchObject([{ state: "ready", restarts: 0 }]);
  });
});

describe("tools", () => {
  it("are all there, whatever the pages, and never claim another server [host-9] [host-10]", async () => {
    const host = await create();
    await host.spawn(spec("paged"));
    const tools = await host.tools("paged");
    expect(tools).toHaveLength(250);
    expect(new Set(tools.map(({ _mcp_server }) => _mcp_server))).toEqual(new Set(["paged"]));
  });

  it("of a server that claims to be another carry its real name [host-10]", async () => {
    const host = await create();
    await host.spawn(spec("liar", "../host/liar"));
    const tools = await host.tools("liar");
    const [found] = await host.discover();
    for (const tool of [...tools, ...(found?.tools ?? [])])
      expect(tool).toMatchObject({ _mcp_server: "liar", more: 1 });
    expect(tools).toHaveLength(1);
  });

  it("of a server that has died are those read last [menu-survives]", async () => {
    const host = await create();
    await host.spawn(spec("crash"), { restarts: { max: 0 } });
    await fails(host.call("crash", "crash"));
    expect(await host.tools("crash")).toHaveLength(3);
  });
});

describe("a server in trouble", () => {
  it("whose breaker is open still has its tools; calls say when to come back [host-9]", async () => {
    const host = await create();
    await host.spawn(spec("crash"), { breaker: { failures: 1, openMs: 600_000 } });
    await fails(host.call("crash", "crash"));
    const refused = (await fails(host.call("crash", "pid"))) as HostCallError;
    expect(refused).toMatchObject({ fault: "unavailable", server: "crash" });
    expect(refused.retryInMs).toBeGreaterThan(500_000);
    expect(await host.tools("crash")).toHaveLength(3);
    expect(host.status()).toMatchObject([{ circuit: "open" }]);
    await host.reload("crash");
    await host.call("crash", "pid");
  });

  it("that was restarted too often is seen to be ejected, until it is reloaded [host-14]", async () => {
    const host = await create();
    await host.spawn(spec("crash"), { restarts: { max: 0, windowMs: 600_000 } });
    await fails(host.call("crash", "crash"));
    const refused = (await fails(host.call("crash", "pid"))) as HostCallError;
    expect(refused).toMatchObject({ fault: "unavailable", state: "ejected", retryInMs: expect.any(Number) });
    expect(host.status()).toMatchObject([{ state: "ejected", ejected: true }]);
    const [found] = await host.discover();
    expect(found).toMatchObject({ state: "ejected", error: { fault: "unavailable" } });
    expect(found?.tools).toHaveLength(3);
    await host.reload("crash");
    expect(json(await host.call("crash", "pid"))).toMatchObject({ pid: pidOf(host, "crash") });
  });
});

describe("discover", () => {
  it("asks all at once: one that hangs or fails costs the others nothing, and is told inline [host-10] [one-bad-server]", async () => {
    const host = await create();
    await host.spawn(spec("good", "stateful"));
    await host.spawn(spec("hangs", "hang", ["--at", "list"]), { lazy: true });
    const found = await host.discover({ startLazy: true, deadlineMs: 500 });
    expect(found.map(({ server, tools, error }) => [server, tools.length, error?.fault])).toEqual([
      ["good", 2, undefined],
      ["hangs", 0, "timeout"],
    ]);
    await host.stop("hangs");
    await host.spawn(spec("bad", "crash", ["--at", "start"]), { lazy: true });
    const [good, bad] = await host.discover({ startLazy: true, deadlineMs: 25_000 });
    expect(good).toMatchObject({ server: "good", error: undefined });
    expect(bad).toMatchObject({ server: "bad", tools: [], error: { fault: "unavailable" } });
    expect(bad?.error?.message).toContain("MISSING_KEY");
  });

  it("starts no lazy server unless it is asked to [host-10]", async () => {
    const host = await create();
    await host.spawn(spec("later", "stateful"), { lazy: true });
    const [asleep] = await host.discover();
    expect(asleep).toMatchObject({ server: "later", state: "idle", tools: [], error: undefined });
    expect(pidOf(host, "later")).toBeUndefined();
    const [awake] = await host.discover({ startLazy: true, deadlineMs: 20_000 });
    expect(awake?.tools).toHaveLength(2);
    // What is known once is shown from then on.
    expect((await host.discover())[0]?.tools).toHaveLength(2);
  });

  it("leaves a lazy server to the first call of it, or to whoever asks for its tools", async () => {
    const host = await create();
    await host.spawn(spec("later", "stateful"), { lazy: true });
    await host.spawn(spec("never", "crash", ["--at", "start"]), { lazy: true });
    expect(host.status()).toMatchObject([
      { name: "later", state: "idle", lazy: true, refs: 1, pid: undefined },
      { name: "never", state: "idle", lazy: true, refs: 1, pid: undefined },
    ]);
    expect(json(await host.call("later", "count"))).toMatchObject({ count: 1 });
    expect(host.status()).toMatchObject([{ state: "ready" }, { state: "idle" }]);
    expect(await fails(host.tools("never"))).toMatchObject({ fault: "unavailable", server: "never" });
    // It was asked for before it failed: it stays, supervised, until it is stopped.
    expect(host.status()).toMatchObject([{ name: "later" }, { name: "never", refs: 1 }]);
    await host.stop("never");
    expect(host.status()).toHaveLength(1);
  });
});

describe("reload and close", () => {
  it("reload ends the old process for certain, then there is a new one, and nobody else is disturbed", async () => {
    const host = await create();
    await host.spawn(spec("one", "stateful"));
    await host.spawn(spec("two", "stateful"));
    const [before, other] = [pidOf(host, "one"), pidOf(host, "two")];
    await host.reload("one");
    expect(isAlive(before)).toBe(false);
    expect(json(await host.call("one", "count"))).toMatchObject({ count: 1 });
    expect(pidOf(host, "one")).not.toBe(before);
    expect(pidOf(host, "two")).toBe(other);
    expect(host.status()).toMatchObject([{ refs: 1 }, { refs: 1 }]);
    expect(await fails(host.reload("nobody"))).toMatchObject({ fault: "not-found" });
  });

  it("close ends every process, and everything after it is refused [no-orphans]", async () => {
    const host = await create();
    await host.spawn(spec("one", "stateful"));
    await host.spawn(spec("two", "slow"));
    const pids = ["one", "two"].map((name) => pidOf(host, name));
    const call = host.call("two", "sleep", { ms: 100, label: "last" });
    await host.close();
    expect(json(await call)).toMatchObject({ label: "last" });
    for (const pid of pids) expect(isAlive(pid)).toBe(false);
    expect(await fails(host.call("one", "count"))).toMatchObject({ code: "closing" });
    expect(await fails(host.spawn(spec("three", "slow")))).toMatchObject({ code: "closing" });
    await host.close();
  });

  it("a state directory is held by one host at a time, and free when that is closed", async () => {
    const stateDir = mkdtempSync(join(tmpdir(), "toolway-host-"));
    cleanUp.push(() => rmSync(stateDir, { recursive: true, force: true }));
    const first = await create({ stateDir });
    await first.spawn(spec("one", "stateful"));
    expect(await fails(createHost({ stateDir }))).toBeInstanceOf(StateDirError);
    await first.close();
    const second = await create({ stateDir });
    await second.spawn(spec("one", "stateful"));
    expect(await second.tools("one")).toHaveLength(2);
  });

  it("a lazy server is started by the first call, also where a state directory knows it from before", async () => {
    const stateDir = mkdtempSync(join(tmpdir(), "toolway-host-"));
    cleanUp.push(() => rmSync(stateDir, { recursive: true, force: true }));
    for (const _ of ["never seen", "seen before"]) {
      const host = await create({ stateDir });
      await host.spawn(spec("later", "stateful"), { lazy: true });
      expect(host.status()).toMatchObject([{ state: "idle", pid: undefined }]);
      expect(json(await host.call("later", "count"))).toMatchObject({ count: 1 });
      await host.close();
    }
  });
});

describe("pins", () => {
  it("tell of a tool that changed, show what did, and take it when it is accepted [host-12]", async () => {
    const host = await create();
    await host.spawn(spec("changing"));
    const heard: PinChange[] = [];
    const end = host.pins.onChange((change) => void heard.push(change));
    const set = (description: string) => host.call("changing", "set_tool", { name: "extra", description });
    await set("as it was first seen");
    await vi.waitFor(() => expect(host.pins.list().map(({ tool }) => `${tool}`)).toContain("extra"), SOON);
    await set("another");
    await vi.waitFor(() => expect(heard).toHaveLength(1), SOON);
    expect(heard[0]).toMatchObject({ server: "changing", hidden: [{ tool: "extra" }] });
    expect((await host.tools("changing")).map(({ name }) => name)).not.toContain("extra");
    const refused = await fails(host.call("changing", "extra"));
    expect(refused).toMatchObject({ name: "HostCallError", code: -31007, fault: "denied" });

    const [diff] = host.pins.diff("changing", "extra");
    expect([diff?.old.definition, diff?.new.definition]).toEqual([
      expect.stringContaining("as it was first seen"),
      expect.stringContaining("another"),
    ]);
    await expect(host.pins.accept("changing", "extra", "not-that-hash")).rejects.toMatchObject({ code: "invalid" });
    await host.pins.accept("changing", "extra", diff?.new.hash);
    expect((await host.call("changing", "extra")).content).toMatchObject([{ text: "extra: another" }]);
    await vi.waitFor(() => expect(heard.at(-1)).toEqual({ server: "changing", hidden: [] }), SOON);
    end();
    await set("once more");
    await vi.waitFor(() => expect(host.pins.diff("changing", "extra")).toHaveLength(1), SOON);
    expect(heard).toHaveLength(2);
    expect(() => host.pins.diff("nobody")).toThrow('Nothing of server "nobody" is pinned');
    // What is in use is not forgotten; what is gone is.
    await expect(host.pins.forget("changing", "extra")).rejects.toMatchObject({ code: "denied" });
    await expect(host.pins.forget("nobody")).rejects.toMatchObject({ code: "not-found" });
    await host.call("changing", "remove_tool", { name: "extra" });
    await vi.waitFor(async () => expect(await host.pins.forget("changing", "extra")).toEqual(["extra"]), SOON);
    expect(host.pins.list().map(({ tool }) => `${tool}`)).not.toContain("extra");
  });
});
