// SIGTERM lets calls end.

import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { start } from "../fixtures/processes.js";
import { callJson, connectV1, waitForTools } from "./clients.js";
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
