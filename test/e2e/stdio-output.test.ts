// What `toolway stdio` writes to its stdout is messages and nothing else, however much there is to say besides.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { start } from "../fixtures/processes.js";
import { connectV1, waitForTools } from "./clients.js";
import { cli, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { INITIALIZED, initialize } from "./wire.js";

/** One that dies at once, one that writes what is no message, one that dies in a call. */
const NOISY = {
  mcpServers: {
    broken: stdioFixture("crash", ["--at", "start"]),
    noisy: stdioFixture("crash", ["--noise"]),
    slow: stdioFixture("slow"),
  },
};

describe.each(["joined to a gateway", "being one"])("toolway stdio, %s,", (how) => {
  async function target(): Promise<{ configPath: string; stateDir: string }> {
    if (how === "joined to a gateway") {
      const gateway = await startGateway({ names: "prefixed", ...NOISY });
      await waitForTools(await connectV1(gateway.url), "noisy__pid", "slow__sleep");
      return gateway;
    }
    const dir = await temporaryDirectory();
    const configPath = join(dir, "toolway.json");
    await writeFile(configPath, JSON.stringify({ names: "prefixed", ...NOISY }));
    return { configPath, stateDir: join(dir, "state") };
  }

  it("writes only messages to stdout, a line each, while servers die and make noise", async () => {
    const { configPath, stateDir } = await target();
    const one = start("toolway stdio", process.execPath, [cli, "stdio", configPath, "--state", stateDir]);
    onTestFinished(() => one.stop("SIGKILL"));
    let out = "";
    let err = "";
    one.child.stdout.on("data", (chunk: string) => {
      out += chunk;
    });
    one.child.stderr.on("data", (chunk: string) => {
      err += chunk;
    });
    const say = (message: string) => one.child.stdin.write(`${message}\n`);
    const call = (id: string, name: string, args: object = {}) =>
      say(JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } }));
    const answered = (id: string) => until(`the answer to ${id}`, () => out.includes(`"id":${JSON.stringify(id)}`));
    say(initialize('"init"'));
    await answered("init");
    say(INITIALIZED);
    await until("the tools", async () => {
      const id = `list${Math.random()}`;
      say(JSON.stringify({ jsonrpc: "2.0", id, method: "tools/list" }));
      await answered(id);
      return out.includes("noisy__crash") && out.includes("slow__sleep");
    });
    for (const round of [1, 2]) {
      call(`slept ${round}`, "slow__sleep", { ms: 200 });
      call(`crashed ${round}`, "noisy__crash");
      call(`none ${round}`, "broken__pid");
      for (const id of ["slept", "crashed", "none"]) await answered(`${id} ${round}`);
    }
    say("this is no message");
    say('{"jsonrpc":"2.0","id":"ping","method":"ping"}');
    await answered("ping");
    one.child.stdin.end();
    await one.closed;
    // A gateway that it is joined to logs for itself; being one, it had much to say.
    if (how === "being one") expect(err).toMatch(/broken.*MISSING_KEY/s);
    expect(out.endsWith("\n")).toBe(true);
    const lines = out.slice(0, -1).split("\n");
    expect(lines.length).toBeGreaterThan(9);
    for (const line of lines) {
      const message = JSON.parse(line) as { jsonrpc: string };
      expect(message.jsonrpc).toBe("2.0");
    }
  });
});
