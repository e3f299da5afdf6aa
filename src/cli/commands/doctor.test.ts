// `toolway doctor` in process, with a fake in the place of what starts servers.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, probe, run } from "../../../test/fixtures/fake-gateway.js";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { until } from "../../../test/fixtures/wait.js";
import { runCli } from "../program.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

describe("doctor", () => {
  beforeEach(() => {
    const servers = {
      good: { command: "good" },
      bad: { command: "uvx", args: ["secret-arg"] },
      off: { command: "x", disabled: true },
    };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify({ mcpServers: servers }));
  });

  it("shows each server and what to fix, and exits 1 when one failed", async () => {
    const message = 'Command not found: "uvx" is not on the PATH.';
    const error = { code: "unavailable", reason: "command-unknown", message, remedy: "Install it." } as const;
    fakeGateway(
      {},
      { probe: async ({ name }) => (name === "good" ? probe({}) : probe({ ok: false, error, stderr: ["bang"] })) },
    );
    const { code, out } = await run(["doctor"]);
    expect(code).toBe(1);
    expect(out).toMatch(/ok +good +stdio +legacy +2025-11-25 +2 +120 ms +srv 1\.2/);
    expect(out).toMatch(/FAILED +bad/);
    expect(out).toContain("stderr: bang");
    expect(out).toContain("fix: uvx is not installed here");
    expect(out).toContain("off is switched off");
    expect(out).toMatch(/2 servers in .*: 1 ok, 1 failed\.\n$/);
    expect(out).not.toContain("secret-arg");
    expect(JSON.parse((await run(["doctor", "--json"])).out)).toHaveLength(2);
    expect(await run(["doctor", "--server", "good"])).toMatchObject({ code: 0 });
    expect(await run(["doctor", "--server", "none"])).toMatchObject({ code: 2 });
  });

  it("shows how many of a server's tools its entry lets through [status-true]", async () => {
    const good = { command: "good", only: ["a*"], tools: { ab: { hide: true } } };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify({ mcpServers: { good, plain: { command: "x" } } }));
    fakeGateway({}, { probe: async () => probe({ tools: ["a", "ab", "abc", "b"] }) });
    const { out } = await run(["doctor"]);
    expect(out).toMatch(/ok +good +stdio +legacy +2025-11-25 +2 of 4 +120 ms/);
    expect(out).toMatch(/ok +plain +stdio +legacy +2025-11-25 +4 +120 ms/);
  });

  it("says how a server is named, where one stands in the place of the config; `tools` says it, too [told-why]", async () => {
    fakeGateway();
    const { code, err } = await run(["doctor", "demo"]);
    expect(code).toBe(2);
    expect(err).toContain("If demo is a server, name it by --server demo.");
    expect((await run(["doctor", "./gone.json"])).err).not.toContain("--server");
    expect((await run(["tools", "demo"])).err).toContain("(a server is named by --server NAME)");
    expect((await run(["status", "demo"])).err).not.toContain("--server");
  });

  it("fits its table to the terminal, with the columns in line [told-why]", async () => {
    fakeGateway({}, { probe: async () => probe({ serverInfo: { name: "s".repeat(60), version: "1" } }) });
    const { out } = await run(["doctor"], { isTTY: true, columns: 70, env: { NO_COLOR: "1" } });
    const rows = out.split("\n").slice(0, 3);
    for (const row of rows) expect([...row].length).toBeLessThanOrEqual(70);
    expect(rows[1]?.indexOf("stdio")).toBe(rows[0]?.indexOf("KIND"));
    expect(rows[2]?.indexOf("120 ms")).toBe(rows[0]?.indexOf("READY IN"));
  });

  it("cuts neither the verdict nor the server where the terminal is narrow [told-why]", async () => {
    const servers = { "a-rather-long-server-name": { command: `\${NOT_SET}` } };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify({ mcpServers: servers }));
    fakeGateway();
    const { out } = await run(["doctor"], { isTTY: true, columns: 60, env: { NO_COLOR: "1" } });
    expect(out).toMatch(/^MISCONFIGURED {2}a-rather-long-server-name {2}/m);
  });

  it("starts at most four at a time, and tells of each as it ends [told-why]", async () => {
    const names = ["a", "b", "c", "d", "e", "f"];
    const mcpServers = Object.fromEntries(names.map((name) => [name, { command: name }]));
    writeFileSync(join(folder, "toolway.json"), JSON.stringify({ mcpServers }));
    const held = new Map<string, () => void>();
    fakeGateway(
      {},
      {
        probe: async ({ name }) => {
          await new Promise<void>((resolve) => held.set(name, resolve));
          return probe({});
        },
      },
    );
    const io = heldIo({ cwd: folder, home: folder });
    const running = runCli(["doctor"], io.io);
    await until("four", () => held.size === 4);
    expect([...held.keys()]).toEqual(["a", "b", "c", "d"]);
    held.get("c")?.();
    await until("the next", () => held.has("e"));
    expect(io.out()).toMatch(/^ok +c /m);
    expect(io.out()).not.toMatch(/^ok +a /m);
    await until("all", () => {
      for (const end of held.values()) end();
      return held.size === 6;
    });
    expect(await running).toBe(0);
    expect(io.out()).toMatch(/6 servers in .*: 6 ok, 0 failed\.\n$/);
  });

  it("gives what may be downloading more time than a gateway does [told-why]", async () => {
    const mcpServers = { fetched: { command: "npx", args: ["x"] }, own: { command: "mine" } };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify({ mcpServers }));
    const times = new Map<string, number>();
    fakeGateway(
      {},
      {
        probe: async ({ name, connectTimeoutMs }) => {
          times.set(name, connectTimeoutMs);
          return probe({ readyMs: 40_000 });
        },
      },
    );
    const { out } = await run(["doctor"]);
    expect(times.get("own")).toBe(30_000);
    expect(times.get("fetched")).toBe(180_000);
    expect(out).toContain("A gateway waits 30.0 s for it.");
  });

  it("says every five seconds that a server is still starting, perhaps with a download, and what it wrote last [told-why]", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      writeFileSync(
        join(folder, "toolway.json"),
        JSON.stringify({ mcpServers: { fetched: { command: "npx", args: ["x"] } } }),
      );
      let end: (() => void) | undefined;
      fakeGateway(
        {},
        {
          probe: async (_, { watch }) => {
            watch?.(() => ["npm info run", "npm http fetch GET 200"]);
            await new Promise<void>((resolve) => {
              end = resolve;
            });
            return probe({});
          },
        },
      );
      const io = heldIo({ cwd: folder, home: folder });
      const running = runCli(["doctor"], io.io);
      await until("the server to be started", () => end !== undefined);
      const lines = () =>
        io.err().match(/fetched has been starting for .*, perhaps with a download: npm http fetch GET 200/g);
      await vi.advanceTimersByTimeAsync(4_900);
      expect(lines()).toBeNull();
      await vi.advanceTimersByTimeAsync(5_200);
      expect(lines()).toHaveLength(2);
      end?.();
      expect(await running).toBe(0);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(lines()).toHaveLength(2);
    } finally {
      vi.useRealTimers();
    }
  });

  it("asks on a terminal for inputs that nobody answered, and keeps the answers; piped it asks nobody", async () => {
    const servers = { wrong: { command: "x", env: { A: "$" + "{input:my-key}" } } };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify({ servers }));
    const state = join(folder, "answers");
    fakeGateway({}, { probe: async () => probe({}) });
    const piped = await run(["doctor", "--state", state]);
    expect(piped).toMatchObject({ code: 1, out: expect.stringContaining("INPUT_MY_KEY is not set") });
    // The command that asks for it is this one, and means the same answers.
    expect(piped.out).toContain("or run `toolway doctor --state ./answers` on a terminal");
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    stdin.write("s3cret\r");
    const asked = await run(["doctor", "--state", state], { stdin, isErrTTY: true });
    expect(asked).toMatchObject({ code: 0, out: expect.stringMatching(/ok +wrong/) });
    expect(asked.err).toContain("[my-key]: ");
    expect(asked.err + asked.out).not.toContain("s3cret");
    // Once is enough.
    expect(await run(["doctor", "--state", state])).toMatchObject({ code: 0 });
  });

  it("shows a server whose entry is wrong with its mistake, starts the others, and exits 1 [bad-entry-alone]", async () => {
    const servers = { good: { command: "good" }, wrong: { command: "x", env: { A: "$" + "{NOT_SET}" } } };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify({ mcpServers: servers }));
    fakeGateway({}, { probe: async () => probe({}) });
    const { code, out } = await run(["doctor"]);
    expect(code).toBe(1);
    expect(out).toMatch(/ok +good/);
    expect(out).toMatch(/MISCONFIGURED +wrong +-/);
    expect(out).toMatch(
      /toolway\.json:1:\d+: mcpServers\.wrong\.env\.A: NOT_SET is not set \(set this environment variable/,
    );
    expect(JSON.parse((await run(["doctor", "--json", "--server", "wrong"])).out)).toMatchObject([
      { name: "wrong", ok: false, error: { code: "misconfigured" } },
    ]);
    expect(await run(["config", "check"])).toMatchObject({ code: 2 });
  });

  it("stops nothing else when a probe throws", async () => {
    fakeGateway({}, { probe: async ({ name }) => (name === "good" ? probe({}) : Promise.reject(new Error("boom"))) });
    expect((await run(["doctor"])).out).toContain("boom");
  });
});

describe("doctor --engine", () => {
  it("[engine-told] says where an engine would stand in a config that has none", async () => {
    writeFileSync(join(folder, "toolway.json"), '{ "mcpServers": {} }');
    const { code, err } = await run(["doctor", "--engine"]);
    expect(code).toBe(2);
    expect(err).toContain('./toolway.json has no "engine"');
  });

  it("[engine-told] says all that has to be mended, and fails", async () => {
    const engine = { nats: ["tls://127.0.0.1:1"], auth: { token: { env: "GONE" } }, key: { env: "KEY" } };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify({ mcpServers: {}, engine }));
    const { code, out } = await run(["doctor", "--engine"]);
    expect(code).toBe(1);
    expect(out).toContain(
      "✗ The variable KEY is not set: it has to hold the engine's key, which `toolway engine key` makes.",
    );
    expect(out).toContain("✗ The variable GONE is not set: it has to hold the token of the engine.");
  });
});
