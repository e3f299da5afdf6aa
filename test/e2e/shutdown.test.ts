// SIGTERM lets calls end; a full disk leaves the gateway serving.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { start } from "../fixtures/processes.js";
import { callJson, connectV1, toolNames, waitForTools } from "./clients.js";
import { cli, isAlive, sleep, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { initialize, lastOf, openHttpWire } from "./wire.js";

describe("SIGTERM", () => {
  it("under load lets calls in flight be answered and refuses new ones, and then the gateway is gone [drain]", async () => {
    const gateway = await startGateway({ mcpServers: { slow: stdioFixture("slow") } });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "sleep");
    const wires = await Promise.all(Array.from({ length: 20 }, () => openHttpWire(gateway.url)));
    const calls = wires.map((wire, n) =>
      wire.send(
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":${1500 + n * 20}}}}`,
      ),
    );
    await until("all of them to be at work", async () => (await callJson<string[]>(client, "started")).length === 20);
    gateway.signal("SIGTERM");
    const answers = await Promise.all(calls);
    for (const answer of answers) expect(lastOf(answer)).toContain("slept");
    await gateway.exited;
    expect(isAlive(gateway.pid)).toBe(false);
  });

  it("ends open streams and leaves no process", async () => {
    const gateway = await startGateway({ mcpServers: { crash: stdioFixture("crash") } });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "pid");
    const { pid } = await callJson<{ pid: number }>(client, "pid");
    const wire = await openHttpWire(gateway.url);
    const stream = await fetch(gateway.url, {
      headers: { accept: "text/event-stream", "mcp-session-id": wire.sessionId, "mcp-protocol-version": "2025-11-25" },
    });
    expect(stream.status).toBe(200);
    const ended = stream.text().then(
      () => "ended",
      () => "broken",
    );
    gateway.signal("SIGTERM");
    expect(await ended).toBe("ended");
    await gateway.exited;
    await until("the server's end", () => !isAlive(pid));
  });
});

describe("toolway stdio", () => {
  it.each(["the end of its input", "SIGTERM"])("ends by %s, joined to a gateway or being one", async (how) => {
    const gateway = await startGateway({ mcpServers: { crash: stdioFixture("crash") } });
    await waitForTools(await connectV1(gateway.url), "pid");
    const alone = { configPath: gateway.configPath, stateDir: join(await temporaryDirectory(), "state") };
    for (const { configPath, stateDir } of [gateway, alone]) {
      const args = [cli, "stdio", configPath, "--state", stateDir];
      const { child, exited, stop } = start("toolway stdio", process.execPath, args);
      onTestFinished(() => stop("SIGKILL"));
      child.stdin.write(`${initialize("1")}\n`);
      await once(child.stdout, "data");
      if (how === "SIGTERM") child.kill("SIGTERM");
      else child.stdin.end();
      const ended = await Promise.race([exited.then(() => true), sleep(30_000)]);
      expect(ended, stateDir === gateway.stateDir ? "joined" : "alone").toBe(true);
    }
    // The gateway that it was joined to goes on.
    expect(isAlive(gateway.pid)).toBe(true);
  });
});

describe("a full disk", () => {
  it("leaves the gateway serving, and it goes on when there is room again", async (context) => {
    const mount = join(await temporaryDirectory(), "small");
    await mkdir(mount);
    if (!mountTmpfs(mount)) return context.skip("needs the right to mount a tmpfs");
    onTestFinished(() => void execFileSync("umount", ["-l", mount]));
    const servers = { stateful: stdioFixture("stateful"), changing: stdioFixture("changing") };
    const gateway = await startGateway({ mcpServers: servers }, { stateDir: join(mount, "state") });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "count", "set_tool");
    const filler = join(mount, "filler");
    await writeFile(filler, Buffer.alloc(64 * 1024 * 1024)).catch(() => {});
    expect(readdirSync(mount)).toContain("filler");
    // What would be written now: changed lists, new sessions.
    await callJson(client, "count");
    for (let n = 0; n < 20; n++) {
      await client.callTool({ name: "set_tool", arguments: { name: `t${n}`, description: "x".repeat(5_000) } });
    }
    await waitForTools(client, "t19");
    const other = await connectV1(gateway.url);
    expect(await toolNames(other)).toContain("t19");
    expect(await callJson(other, "count")).toMatchObject({ count: 2 });
    expect(isAlive(gateway.pid)).toBe(true);
    await writeFile(filler, "");
    await client.callTool({ name: "set_tool", arguments: { name: "after", description: "room again" } });
    await waitForTools(client, "after");
    await gateway.stop();
    const next = await gateway.again();
    await waitForTools(await connectV1(next.url), "count");
  });
});

function mountTmpfs(path: string): boolean {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", path], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
