// SIGTERM lets calls end.

import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { Agent, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { start } from "../fixtures/processes.js";
import { callJson, connectV1, waitForTools } from "./clients.js";
import { cli, isAlive, root, sleep, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { initialize, lastOf, openHttpWire } from "./wire.js";

const slow = [process.execPath, join(root, "test/fixtures/servers/slow.mjs")];

describe("SIGTERM", () => {
  it("under load lets calls in flight be answered and refuses new ones, and then the gateway is gone [drain]", async () => {
    const folder = await temporaryDirectory();
    const [ledger, go] = [join(folder, "ledger"), join(folder, "go")];
    await writeFile(ledger, "");
    const gateway = await startGateway({
      mcpServers: { ledger: stdioFixture("ledger", [], { env: { LEDGER: ledger } }) },
    });
    await waitForTools(await connectV1(gateway.url), "wait");
    const wires = await Promise.all(Array.from({ length: 20 }, () => openHttpWire(gateway.url)));
    const params = { name: "wait", arguments: { until: go } };
    const calls = wires.map((wire) =>
      wire.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params })),
    );
    const atWork = async () => (await readFile(ledger, "utf8")).split("\n").length - 1;
    await until("all of them to be at work", async () => (await atWork()) === calls.length);
    let answered = 0;
    for (const call of calls) void call.then(() => answered++);
    gateway.signal("SIGTERM");
    /** Its connection is new: one that is kept is served on. */
    const newcomer = async () => {
      const asked = request(gateway.url, { method: "POST", agent: false }).end("{}");
      const [answer] = (await once(asked, "response")) as [IncomingMessage];
      answer.resume();
      return answer.statusCode;
    };
    await until("a refusal", async () => (await newcomer()) === 503);
    // From then on each is refused, while those before it are still at work.
    for (let n = 0; n < 5; n++) expect(await newcomer()).toBe(503);
    expect(answered).toBe(0);
    await writeFile(go, "");
    const answers = await Promise.all(calls);
    for (const answer of answers) expect(lastOf(answer)).toContain("waited for the file");
    await gateway.exited;
    expect(isAlive(gateway.pid)).toBe(false);
  });

  it("is told at once by /readyz, and to new connections; kept ones are served on, and all is over in time [drain]", async () => {
    // It neither answers the call nor wants to go.
    const stubborn = { command: "/bin/sh", args: ["-c", `trap '' TERM; "$0" "$1"; sleep 600`, ...slow] };
    const gateway = await startGateway({ mcpServers: { stubborn } }, { args: ["--drain", "3"] });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "sleep");
    const wire = await openHttpWire(gateway.url);
    const [held, kept] = [1, 2].map(() => new Agent({ keepAlive: true, maxSockets: 1 })) as [Agent, Agent];
    const tool = (id: number, name: string, args: object) =>
      JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } });
    expect((await sendBy(kept, gateway, wire.sessionId, tool(1, "sleep", { ms: 1 }))).status).toBe(200);
    const hanging = sendBy(held, gateway, wire.sessionId, tool(2, "sleep", { ms: 600_000 }));
    await until("the call to be at work", async () => (await callJson<string[]>(client, "started")).length > 0);
    const asked = performance.now();
    gateway.signal("SIGTERM");
    await until("not ready", async () => (await fetch(`${gateway.origin}/readyz`)).status === 503);
    const late = await until("a refusal", async () => {
      const answer = await fetch(gateway.url, { method: "POST", headers: { connection: "close" }, body: "{}" });
      return answer.status === 503 && answer;
    });
    expect([late.headers.get("retry-after"), late.headers.get("connection")]).toEqual(["5", "close"]);
    const served = await sendBy(kept, gateway, wire.sessionId, tool(3, "sleep", { ms: 1 }));
    expect(served).toMatchObject({ status: 200, connection: "close", reused: true });
    expect(served.text).toContain("slept");
    expect((await hanging).text).toContain("The gateway is closing.");
    await gateway.exited;
    // 3 s for the calls, 8 for the rest, and some for a busy machine.
    expect(performance.now() - asked).toBeLessThan(20_000);
    held.destroy();
    kept.destroy();
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

/** One POST on a connection of `agent`'s. */
function sendBy(agent: Agent, { port }: { port: number }, session: string, body: string) {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-session-id": session,
  };
  type Answer = { status: number | undefined; connection: string | undefined; reused: boolean; text: string };
  return new Promise<Answer>((resolve, reject) => {
    const req = request({ host: "127.0.0.1", port, path: "/mcp", method: "POST", headers, agent }, (res) => {
      let text = "";
      res.on("data", (chunk: Buffer) => {
        text += chunk;
      });
      const { statusCode: status, headers } = res;
      res.on("end", () => resolve({ status, connection: headers.connection, reused: req.reusedSocket, text }));
    });
    req.on("error", reject);
    req.end(body);
  });
}
