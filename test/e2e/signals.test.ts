// What signals do to a gateway and to the other verbs: with a terminal, on a pseudo-terminal, and without one, as
// systemd and nohup start them.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { type Started, start } from "../fixtures/processes.js";
import { hasTerminals, startOnTerminal } from "../fixtures/terminal.js";
import { cli, freePort, isAlive, sleep, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { callTool, hasTool, made, statusOf } from "./operator.js";

const running = new Set<Started>();
afterAll(() => Promise.all([...running].map((one) => one.stop("SIGKILL"))));

function watched(one: Started): Started {
  running.add(one);
  void one.exited.then(() => running.delete(one));
  return one;
}

/** A server that says which process it is, and one whose environment comes from a file. */
async function twoServers(): Promise<{ config: { mcpServers: Record<string, object> }; envFile: string }> {
  const envFile = join(await temporaryDirectory(), "server.env");
  await writeFile(envFile, "MODE=first\n");
  const file = join(await temporaryDirectory(), "said");
  return {
    config: { mcpServers: { moody: stdioFixture("moody", [file]), other: stdioFixture("stateful", [], { envFile }) } },
    envFile,
  };
}

async function serveWords(config: object): Promise<{ words: string[]; origin: string }> {
  const port = await freePort();
  const path = join(await temporaryDirectory(), "toolway.json");
  await writeFile(path, JSON.stringify({ names: "plain", ...config }));
  const state = join(await temporaryDirectory(), "state");
  const words = [process.execPath, cli, "serve", path, "--listen", `127.0.0.1:${port}`, "--state", state, "--no-auth"];
  return { words, origin: `http://127.0.0.1:${port}` };
}

const pidOf = async (url: string) => made<{ pid: number }>(await callTool(url, "pid")).pid;
const pidOfGateway = async (one: Started) => {
  await until("its pid", () => /"pid":(\d+)/.test(one.log()));
  return Number(/"pid":(\d+)/.exec(one.log())?.[1]);
};

describe("without a terminal", () => {
  it("SIGHUP reads the config again, and ends nothing that did not change", async () => {
    const { config, envFile } = await twoServers();
    const gateway = await startGateway(config as never);
    await until("the tools", async () => (await hasTool(gateway.url, "pid")) && (await hasTool(gateway.url, "count")));
    const before = await pidOf(gateway.url);
    await writeFile(envFile, "MODE=second\n");
    gateway.signal("SIGHUP");
    await until("the reading", () => gateway.log().includes("config applied: changed other"));
    expect(gateway.log()).toContain("SIGHUP: the config is read again");
    expect(await pidOf(gateway.url)).toBe(before);
    await gateway.writeConfig("{ no config");
    await until("the complaint of the watcher", () => gateway.log().includes("the config was not applied"));
    gateway.signal("SIGHUP");
    await until("the second reading", () => gateway.log().split("SIGHUP: the config is read again").length === 3);
    expect(await pidOf(gateway.url)).toBe(before);
  });

  it("SIGHUP does so under nohup, too, which has it ignored", async () => {
    const { config } = await twoServers();
    const { words, origin } = await serveWords(config);
    const one = watched(start("nohup serve", "/bin/sh", ["-c", 'trap "" HUP; exec "$@"', "sh", ...words, "--json"]));
    const pid = await pidOfGateway(one);
    await until("the tools", () => hasTool(`${origin}/mcp`, "pid"));
    process.kill(pid, "SIGHUP");
    await until("the reading", () => one.log().includes("config applied: nothing changed"));
  });

  it("SIGUSR1 opens no inspector, SIGUSR2 does not kill, and children hear of neither", async () => {
    const { config } = await twoServers();
    const gateway = await startGateway(config as never);
    await until("the tools", () => hasTool(gateway.url, "pid"));
    const before = await pidOf(gateway.url);
    for (let i = 0; i < 3; i++) {
      gateway.signal("SIGUSR1");
      gateway.signal("SIGUSR2");
    }
    // Node's inspector says where it listens from a thread of its own.
    await sleep(1_000);
    expect(gateway.log()).not.toMatch(/debugger|inspector/i);
    expect(await pidOf(gateway.url)).toBe(before);
  });

  it.each(["SIGINT", "SIGTERM"] as const)("%s is a line in the log", async (signal) => {
    const gateway = await startGateway({ mcpServers: {} });
    gateway.signal(signal);
    await gateway.exited;
    expect(gateway.log()).toMatch(new RegExp(`info {2}${signal}: draining; calls in flight have \\d+ s to end\\n`));
    expect(gateway.log()).toContain("stopped\n[ended: 0]");
  });

  it.each(["SIGINT", "SIGTERM"] as const)(
    "%s ends a start that waits for an engine that says nothing",
    async (signal) => {
      const asked: Socket[] = [];
      const mute = createServer((socket) => void asked.push(socket.on("error", () => {}))).listen(0, "127.0.0.1");
      await once(mute, "listening");
      try {
        const engine = {
          nats: [`nats://127.0.0.1:${(mute.address() as AddressInfo).port}`],
          key: { env: "ENGINE_KEY" },
        };
        const { words } = await serveWords({ mcpServers: {}, engine });
        const [program = "", ...args] = words;
        const env = { ...process.env, ENGINE_KEY: makeEngineKey() };
        const gateway = watched(start("gateway", program, args, env));
        await until("its connection", () => asked.length > 0);
        const begunMs = performance.now();
        gateway.child.kill(signal);
        expect(await gateway.closed).toBe(0);
        // By itself it gives up after half a minute.
        expect(performance.now() - begunMs).toBeLessThan(15_000);
        expect(gateway.log()).toContain("Stopped before it was up.");
      } finally {
        for (const socket of asked) socket.destroy();
        mute.close();
      }
    },
  );

  it("a pipe in the place of a client's settings is not opened by import, which would hear no signal then", async () => {
    const home = await temporaryDirectory();
    await mkdir(join(home, ".claude"));
    execFileSync("mkfifo", [join(home, ".claude/settings.json")]);
    const one = watched(start("import", process.execPath, [cli, "import"], { ...process.env, HOME: home }));
    expect(await one.closed).toBe(0);
    expect(one.log()).toContain("settings.json");
  });

  it("SIGHUP ends every other verb as SIGTERM does", async () => {
    const { config } = await twoServers();
    const gateway = await startGateway(config as never);
    await until("the tools", () => hasTool(gateway.url, "wait"));
    const words = [cli, "call", "wait", "--config", gateway.configPath, "--state", gateway.stateDir];
    const one = watched(start("call", process.execPath, words));
    // The call never ends by itself.
    await until("its call", async () => (await statusOf(gateway, "moody")).inFlight === 1);
    one.child.kill("SIGHUP");
    expect(await one.closed).toBe(1);
  });

  it("requests without a token are one line, however many they are [bounded]", async () => {
    const gateway = await startGateway({ mcpServers: {} }, { auth: true });
    for (let i = 0; i < 30; i++) expect((await fetch(gateway.url, { method: "POST", body: "{}" })).status).toBe(401);
    await until("a line", () => gateway.log().includes("refused with 401"));
    expect(gateway.log().split("refused with 401")).toHaveLength(2);
    expect(gateway.log()).toContain("refused with 401: A token is needed.");
  });
});

describe.skipIf(!hasTerminals)("on a terminal", () => {
  it("SIGHUP drains [drain]", async () => {
    const { config } = await twoServers();
    const { words, origin } = await serveWords(config);
    const one = watched(startOnTerminal("serve", [...words, "--json"]));
    const pid = await pidOfGateway(one);
    await until("the tools", () => hasTool(`${origin}/mcp`, "pid"));
    process.kill(pid, "SIGHUP");
    await one.exited;
    expect(one.log()).toContain("SIGHUP: draining");
    expect(one.log()).not.toContain("read again");
  });

  it("its end lets the calls in flight end, and leaves nothing running [drain] [no-orphans]", async () => {
    const { words, origin } = await serveWords({ mcpServers: { slow: stdioFixture("slow") } });
    const one = watched(startOnTerminal("serve", [...words, "--json"]));
    const pid = await pidOfGateway(one);
    const url = `${origin}/mcp`;
    await until("the tools", () => hasTool(url, "sleep"));
    const call = callTool(url, "sleep", { ms: 3_000 });
    await until("its start", async () => made<unknown[]>(await callTool(url, "started")).length === 1);
    await one.stop("SIGKILL");
    expect((await call).error).toBeUndefined();
    await until("its end", () => !isAlive(pid));
  });
});
