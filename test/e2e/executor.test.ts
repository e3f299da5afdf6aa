// Servers in a network that the gateway cannot reach, through `toolway executor` in a process of its own.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { callJson, connectV1, waitForTools } from "./clients.js";
import { connected, executorOf, startExecutor } from "./executor-process.js";
import { freePort, startGateway, startHttpFixture, temporaryDirectory, until } from "./harness.js";
import { callTool, createToken, hasTool, made, refusal, runCli, statusOf, statusOfAll, toolway } from "./operator.js";

const TOKEN = "a-token-of-the-tests-0123456789";

/** A fixture behind the executor `office`. `more`: of its entry. */
async function wiki(name = "slow", more: object = {}) {
  const fixture = await startHttpFixture(name);
  return { fixture, entry: { ...fixture.entry, via: "office", ...more } };
}

const slept = (url: string, label: string, ms = 1, token?: string) =>
  callTool(url, "sleep", { ms, label }, token).then((reply) => made<{ label: string }>(reply).label);

describe.concurrent("an executor that is dialled", () => {
  it("makes the requests of the servers behind it, and is shown", async () => {
    const { entry } = await wiki();
    const port = await freePort();
    startExecutor(["--listen", `ws://127.0.0.1:${port}`], TOKEN);
    const gateway = await startGateway(
      {
        mcpServers: { wiki: entry },
        // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the config
        executors: { office: { url: `ws://127.0.0.1:${port}`, token: "${OFFICE_TOKEN}" } },
      },
      { env: { OFFICE_TOKEN: TOKEN } },
    );
    const client = await connectV1(gateway.url);
    await waitForTools(client, "sleep");
    const answers = Array.from({ length: 30 }, (_, i) => callJson(client, "sleep", { ms: i, label: `c${i}` }));
    for (const [i, answer] of (await Promise.all(answers)).entries()) expect(answer).toMatchObject({ label: `c${i}` });

    const status = await statusOfAll(gateway);
    expect(status.servers).toMatchObject([{ name: "wiki", via: "office", state: "ready" }]);
    expect(status.executors).toMatchObject([
      { name: "office", ready: true, members: [{ where: `ws://127.0.0.1:${port}`, state: "ready", extended: true }] },
    ]);
    const { out } = await toolway(gateway, "status");
    expect(out).toMatch(/^wiki +ready +http via office /m);
    expect(out).toMatch(new RegExp(`^office +ready +ws://127\\.0\\.0\\.1:${port} `, "m"));
    for (const text of [out, JSON.stringify(status), gateway.log()]) expect(text).not.toContain(TOKEN);
  });

  it("is killed and started again while calls run: none hangs or lies, the next works [unknown-is-said]", async () => {
    const { entry } = await wiki();
    const port = await freePort();
    const listen = ["--listen", `ws://127.0.0.1:${port}`];
    const first = startExecutor(listen, TOKEN);
    const executors = { office: { url: `ws://127.0.0.1:${port}`, token: TOKEN } };
    const gateway = await startGateway({ mcpServers: { wiki: entry }, executors });
    await until("the tools", () => hasTool(gateway.url, "sleep"));
    const labels = Array.from({ length: 5 }, (_, i) => `cut${i}`);
    const cut = labels.map((label) => callTool(gateway.url, "sleep", { ms: 6_000, label }));
    await until("the calls at the server", async () => {
      const begun = made<string[]>(await callTool(gateway.url, "started"));
      return labels.every((label) => begun.includes(label));
    });
    await first.kill();
    // What is sent before the loss is known may be lost with it.
    await until("the loss to be known", async () => (await statusOfAll(gateway)).executors[0]?.ready === false);
    // While there is none: it waits for the next.
    const meanwhile = slept(gateway.url, "meanwhile");
    startExecutor(listen, TOKEN);
    expect(await meanwhile).toBe("meanwhile");
    // A stream that can be resumed goes on through the new one; of any other call the outcome is unknown.
    for (const [i, reply] of (await Promise.all(cut)).entries()) {
      if (reply.error === undefined) expect(made<{ label: string }>(reply).label).toBe(labels[i]);
      else expect(reply.error).toMatchObject({ code: -31003, message: expect.stringMatching(/unknown/) });
    }
    expect((await connected(gateway, "office")).members).toHaveLength(1);
  });

  it("with the wrong token is not used, and the status says why", async () => {
    const { entry } = await wiki("slow", { connectTimeoutMs: 1_000 });
    const port = await freePort();
    const executor = startExecutor(["--listen", `ws://127.0.0.1:${port}`], TOKEN);
    await until("the executor", () => executor.log().includes(String(port)));
    const executors = { office: { url: `ws://127.0.0.1:${port}`, token: "another-token-of-the-tests" } };
    const gateway = await startGateway({ mcpServers: { wiki: entry }, executors });
    const { lastError } = await until("the server's trouble", async () => {
      const status = await statusOf(gateway, "wiki");
      // A first attempt may be over before the executor has answered.
      return status.lastError?.includes("401") ? status : undefined;
    });
    expect(lastError).toMatch(/No executor "office" is connected\..*401/s);
    expect((await executorOf(gateway, "office")).members[0]?.lastError).toMatch(/401/);
    expect(JSON.stringify(await statusOfAll(gateway))).not.toContain("another-token");
  });

  it("is what doctor goes through; one that dials in is the running gateway's, and is waited for", async () => {
    const { entry } = await wiki();
    const executor = startExecutor(["--listen", "ws://127.0.0.1:0"], TOKEN);
    const url = await until("the executor", () => /ws:\/\/127\.0\.0\.1:\d+/.exec(executor.log())?.[0]);
    const configPath = join(await temporaryDirectory(), "toolway.json");
    const mcpServers = { wiki: entry, far: { ...entry, via: "lab" } };
    await writeFile(configPath, JSON.stringify({ mcpServers, executors: { office: { url, token: TOKEN }, lab: {} } }));
    const { out, code } = await runCli("doctor", configPath, "--json");
    expect(JSON.parse(out)).toMatchObject([
      { name: "wiki", ok: true, tools: expect.arrayContaining(["sleep"]) },
      { name: "far", ok: false, untried: true, error: { message: expect.stringContaining("none runs") } },
    ]);
    // Nothing failed.
    expect(code).toBe(0);
    // Without a gateway nobody can dial in: that is said, and nobody waits for the server's own deadline.
    const began = performance.now();
    for (const verb of ["status", "tools"]) {
      const { err } = await runCli(verb, "--config", configPath, "--state", join(await temporaryDirectory(), "state"));
      expect([verb, err]).toEqual([verb, expect.stringContaining("No gateway runs")]);
      expect(err).toContain("far");
    }
    // Each of the two had waited for half a minute.
    expect(performance.now() - began).toBeLessThan(40_000);

    const gateway = await startGateway({
      mcpServers: { far: { ...entry, via: "lab" } },
      executors: { lab: { noAuth: true } },
    });
    const asking = toolway(gateway, "doctor", "--json");
    startExecutor(["--connect", `ws://127.0.0.1:${gateway.port}/executors/lab`]);
    const asked = await asking;
    expect(JSON.parse(asked.out)).toMatchObject([{ name: "far", ok: true, tools: expect.arrayContaining(["sleep"]) }]);
    expect(asked.code).toBe(0);
  });

  it("shares the calls with another of its name, and goes on when that is killed", async () => {
    const { entry } = await wiki();
    const ports = [await freePort(), await freePort()];
    const urls = ports.map((port) => `ws://127.0.0.1:${port}`);
    const [first] = urls.map((url) => startExecutor(["--listen", url], TOKEN));
    const executors = { office: { urls, token: TOKEN } };
    const gateway = await startGateway({ mcpServers: { wiki: entry }, executors });
    await connected(gateway, "office", 2);
    await until("the tools", () => hasTool(gateway.url, "sleep"));
    // One after another until it was seen: asking for the status may take as long as a call.
    let goesOn = true;
    const callers = Array.from({ length: 20 }, async (_, i) => {
      do await slept(gateway.url, `c${i}`, 2_000);
      while (goesOn);
    });
    await until("both at work", async () => {
      const { members } = await executorOf(gateway, "office");
      return members.every(({ inFlight }) => inFlight >= 8);
    });
    goesOn = false;
    await Promise.all(callers);
    await first?.kill();
    // What is sent before the loss is known may be lost with it; whether it comes back nobody knows yet.
    await until("the loss to be known", async () => {
      const { members } = await executorOf(gateway, "office");
      return members.some(({ where, state }) => where === urls[0] && state !== "ready");
    });
    for (let i = 0; i < 10; i++) expect(await slept(gateway.url, `after${i}`)).toBe(`after${i}`);
    const { ready, members } = await executorOf(gateway, "office");
    expect(ready).toBe(true);
    expect(members.filter(({ state }) => state === "ready").map(({ where }) => where)).toEqual([urls[1]]);
  });
});

describe.concurrent("an executor that dials in [exec-8]", () => {
  it("does the same with a token of its role; a revoked one ends it, and an agent's is none", async () => {
    const { entry } = await wiki("slow", { connectTimeoutMs: 2_000 });
    const gateway = await startGateway({ mcpServers: { wiki: entry }, executors: { office: {} } }, { auth: true });
    const [agent, office] = [
      await createToken(gateway, "ann", "default"),
      await createToken(gateway, "office", "executor"),
    ];
    const connect = ["--connect", `ws://127.0.0.1:${gateway.port}/executors/office`];

    const stranger = startExecutor(connect, agent);
    await until("the refusal", () => /403/.test(stranger.log()));
    await stranger.kill();
    expect((await executorOf(gateway, "office")).members).toEqual([]);

    const executor = startExecutor(connect, office);
    const { members } = await connected(gateway, "office");
    expect(members[0]?.where).toMatch(/^127\.0\.0\.1:\d+( \(.+\))?$/);
    await until("the tools", () => hasTool(gateway.url, "sleep", agent));
    expect(await slept(gateway.url, "x", 1, agent)).toBe("x");
    const asAgent = await fetch(gateway.url, {
      method: "POST",
      headers: { authorization: `Bearer ${office}` },
      body: "{}",
    });
    expect(asAgent.status).toBe(403);

    await toolway(gateway, "token", "revoke", "office");
    expect((await executorOf(gateway, "office")).members).toEqual([]);
    const told = await refusal(gateway.url, "sleep", { ms: 1 }, agent);
    expect(told).toMatchObject({
      code: -31001,
      message: expect.stringContaining('No executor "office" is connected.'),
    });
    await until("the refusal", () => /401/.test(executor.log()));
    expect(gateway.log() + executor.log() + stranger.log()).not.toContain(office);
  });

  it("with a token for two names opens the doors of both, and of no other, not even that of its id", async () => {
    const { entry } = await wiki();
    const mcpServers = { wiki: { ...entry, via: "annex" } };
    const gateway = await startGateway({ mcpServers, executors: { office: {}, lab: {}, annex: {} } }, { auth: true });
    const role = ["--id", "office", "--role", "executor"];
    const created = await toolway(gateway, "token", "create", ...role, "--name", "lab,annex");
    expect(created).toMatchObject({ code: 0, err: "" });
    const token = created.out.trim();
    const dial = (name: string) =>
      startExecutor(["--connect", `ws://127.0.0.1:${gateway.port}/executors/${name}`], token);
    const stranger = dial("office");
    await until("the refusal", () => /403/.test(stranger.log()));
    for (const name of ["lab", "annex"]) dial(name);
    for (const name of ["lab", "annex"]) await connected(gateway, name);
    const agent = await createToken(gateway, "ann", "default");
    await until("the tools", () => hasTool(gateway.url, "sleep", agent));
    expect(await slept(gateway.url, "through the annex", 1, agent)).toBe("through the annex");
    expect((await executorOf(gateway, "office")).members).toEqual([]);
    expect((await toolway(gateway, "token", "list")).out).toMatch(/^office +executor lab, annex /m);
  });

  it("that is missing is what the server's status says; when it comes, the server is up [menu-survives]", async () => {
    const { entry } = await wiki("slow", { connectTimeoutMs: 3_000, restarts: { max: 0 }, ejectedProbeMs: 0 });
    const gateway = await startGateway({ mcpServers: { wiki: entry }, executors: { office: { noAuth: true } } });
    const advice = `toolway executor --connect ws://GATEWAY/executors/office`;
    const given = await until("a server that is given up", async () => {
      const status = await statusOf(gateway, "wiki");
      return status.state === "ejected" && status;
    });
    expect(given.lastError).toContain(advice);
    const connect = ["--connect", `ws://127.0.0.1:${gateway.port}/executors/office`];
    const executor = startExecutor(connect);
    await until("the tools", () => hasTool(gateway.url, "sleep"));
    await executor.kill();
    // Its tools stay listed, and work again with the next one.
    expect(await hasTool(gateway.url, "sleep")).toBe(true);
    startExecutor(connect);
    await until("a call that works", async () => (await slept(gateway.url, "again")) === "again");
  });

  it("finds a restarted gateway again [restart-unseen]", async () => {
    const { entry } = await wiki();
    const gateway = await startGateway({ mcpServers: { wiki: entry }, executors: { office: { noAuth: true } } });
    startExecutor(["--connect", `ws://127.0.0.1:${gateway.port}/executors/office`]);
    await until("the tools", () => hasTool(gateway.url, "sleep"));
    await gateway.stop("SIGKILL");
    const again = await gateway.again();
    expect(await slept(again.url, "after")).toBe("after");
  });

  it("stays until the calls of a gateway that stops are done", async () => {
    const { entry } = await wiki();
    const gateway = await startGateway({ mcpServers: { wiki: entry }, executors: { office: { noAuth: true } } });
    const executor = startExecutor(["--connect", `ws://127.0.0.1:${gateway.port}/executors/office`]);
    await until("the tools", () => hasTool(gateway.url, "sleep"));
    const last = slept(gateway.url, "last", 2_000);
    await until("the call", async () => made<string[]>(await callTool(gateway.url, "started")).includes("last"));
    gateway.signal("SIGTERM");
    expect(await last).toBe("last");
    await gateway.exited;
    await executor.kill();
  });

  it("that is told to stop lets its calls end, and the next takes over: a rolling restart loses nothing [drain]", async () => {
    const { entry } = await wiki();
    const gateway = await startGateway({ mcpServers: { wiki: entry }, executors: { office: { noAuth: true } } });
    const dial = () => startExecutor(["--connect", `ws://127.0.0.1:${gateway.port}/executors/office`]);
    let executor = dial();
    await until("the tools", () => hasTool(gateway.url, "sleep"));
    let over = false;
    let done = 0;
    const failures: unknown[] = [];
    const callers = Array.from({ length: 8 }, async (_, caller) => {
      for (let n = 0; !over; n++) {
        const label = `${caller}.${n}`;
        // Some take longer than the start of the next one.
        const ms = n % 5 === 0 ? 1_500 : 40;
        const got = await slept(gateway.url, label, ms).catch((error: unknown) => error);
        if (got !== label) failures.push(got);
        done++;
      }
    });
    for (const how of ["the next is there", "the next comes later"]) {
      const before = done;
      await until("some calls", () => done > before + 20);
      const old = executor;
      if (how === "the next is there") {
        executor = dial();
        await connected(gateway, "office", 2);
        await old.stop();
      } else {
        // It is gone before the next is begun: what is asked meanwhile waits.
        await old.stop();
        await until("a sign of it", async () => (await executorOf(gateway, "office")).members.length === 0);
        executor = dial();
      }
      await connected(gateway, "office");
    }
    over = true;
    await Promise.all(callers);
    expect(failures).toEqual([]);
    await executor.kill();
  });

  it("can be added, and moved, while the gateway runs", async () => {
    const { entry, fixture } = await wiki();
    const other = await startHttpFixture("crash");
    const gateway = await startGateway({ mcpServers: { crash: other.entry } });
    await until("the tools", () => hasTool(gateway.url, "pid"));
    await gateway.writeConfig({
      mcpServers: { crash: other.entry, wiki: entry },
      executors: { office: { noAuth: true } },
    });
    await until("the executor's place", async () => (await statusOfAll(gateway)).executors.length === 1);
    const executor = startExecutor(["--connect", `ws://127.0.0.1:${gateway.port}/executors/office`]);
    await until("the tools", () => hasTool(gateway.url, "sleep"));

    const port = await freePort();
    startExecutor(["--listen", `ws://127.0.0.1:${port}`]);
    const executors = { office: { url: `ws://127.0.0.1:${port}` } };
    await gateway.writeConfig({ mcpServers: { crash: other.entry, wiki: entry }, executors });
    await connected(gateway, "office", 2);
    await executor.kill();
    expect(await slept(gateway.url, "moved")).toBe("moved");

    await gateway.writeConfig({ mcpServers: { crash: other.entry, wiki: fixture.entry } });
    await until("no executor", async () => (await statusOfAll(gateway)).executors.length === 0);
    await until("a call that works", async () => (await slept(gateway.url, "direct")) === "direct");
    expect((await statusOf(gateway, "crash")).restarts).toBe(0);
  });
});
