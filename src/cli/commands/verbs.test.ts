// The verbs as processes, from dist/, with the real gateway and the demo server behind it.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";

const main = fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url));

let folder: string;

beforeAll(() => {
  if (!existsSync(main)) throw new Error("These tests run what is in dist/: run `npm run build` first.");
  folder = mkdtempSync(join(tmpdir(), "toolway-verbs-"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A home of its own for each name: no config, no state. */
function environment(home: string): Record<string, string> {
  return { PATH: process.env["PATH"] ?? "", HOME: join(folder, home), XDG_STATE_HOME: join(folder, home, "state") };
}

function cli(home: string, ...args: string[]): Promise<Ran> {
  return new Promise((done) => {
    const options = { cwd: folder, env: environment(home), timeout: 60_000 };
    execFile(process.execPath, [main, ...args], options, (error, out, err) => {
      done({ code: error === null ? 0 : Number(error.code ?? -1), out, err });
    });
  });
}

async function serve(
  home: string,
  ...args: string[]
): Promise<{ child: ChildProcess; url: string; exited: Promise<number | null> }> {
  const child = spawn(process.execPath, [main, "serve", ...args, "--listen", "127.0.0.1:0", "--json"], {
    cwd: folder,
    env: environment(home),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = new Promise<number | null>((done) => child.once("exit", done));
  const line = await new Promise<string>((done, fail) => {
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes("\n")) done(text);
    });
    void exited.then((code) => fail(new Error(`It ended with ${code}.`)));
  });
  return { child, url: (JSON.parse(line) as { endpoint: string }).endpoint, exited };
}

function textOf(result: unknown): string | undefined {
  return (result as { content: { text?: string }[] }).content[0]?.text;
}

/** A call that takes a while; the first word of progress says that it has reached its server. */
function wait(agent: Client, seconds: number): { call: Promise<unknown>; atWork: Promise<void> } {
  let arrived = () => {};
  const atWork = new Promise<void>((done) => {
    arrived = done;
  });
  const params = { name: "demo__wait", arguments: { seconds } };
  return { call: agent.callTool(params, undefined, { onprogress: arrived }), atWork };
}

describe("without a gateway that runs", () => {
  it("status tells of an entry that is wrong once, where it shows its servers; another verb by a line of its log [status-true]", async () => {
    const config = join(folder, "wrong.json");
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the config
    const wrong = { url: "http://127.0.0.1:1/mcp", headers: { Authorization: "Bearer ${TOOLWAY_TEST_UNSET}" } };
    writeFileSync(config, JSON.stringify({ mcpServers: { wrong } }));
    const status = await cli("wrong", "status", "--config", config);
    expect(status.out).toMatch(/^wrong: misconfigured: .*TOOLWAY_TEST_UNSET is not set/m);
    expect(status.err).not.toContain("TOOLWAY_TEST_UNSET");
    const json = await cli("wrong", "status", "--json", "--config", config);
    expect(JSON.parse(json.out)).toMatchObject({ running: false, servers: [{ state: "misconfigured" }] });
    expect(json.err).not.toContain("TOOLWAY_TEST_UNSET");
    expect((await cli("wrong", "tools", "--config", config)).err).toContain("TOOLWAY_TEST_UNSET is not set");
  });

  it("config check tells of a misspelt name under an entry's tools, with the nearest, once the list is known [status-true]", async () => {
    const config = join(folder, "misspelt.json");
    const demo = {
      command: process.execPath,
      args: [fileURLToPath(new URL("../../../dist/demo/server.js", import.meta.url))],
    };
    writeFileSync(config, JSON.stringify({ mcpServers: { demo: { ...demo, tools: { ecko: { hide: true } } } } }));
    const check = () => cli("misspelt", "config", "check", config);
    expect((await check()).out).toContain("is fine: 1 server.");
    await cli("misspelt", "tools", "--config", config);
    expect((await check()).err).toBe(
      'warning: server "demo", settings of a tool: "ecko" fits none of its tools, so they change nothing. Did you mean "echo"?\n',
    );
    // By the file that is checked, not by the one that the lists are known of.
    writeFileSync(config, JSON.stringify({ mcpServers: { demo: { ...demo, tools: { echo: { hide: true } } } } }));
    expect((await check()).out).toContain("is fine: 1 server.");
  });
});

describe("with a gateway that runs", () => {
  it("verbs talk to it, its token lets an agent in, and SIGTERM ends it with 0 [drain]", async () => {
    const { child, url, exited } = await serve("running");
    try {
      expect(await cli("running", "call", "demo__add", "--arg", "a=2", "--arg", "b=3")).toEqual({
        code: 0,
        out: "5\n",
        err: "",
      });
      const status = JSON.parse((await cli("running", "status", "--json")).out) as Record<string, unknown>;
      expect(status).toMatchObject({ running: true, pid: child.pid, endpoint: url });
      // Whoever presses Tab does not wait: on a busy machine one press may be answered with nothing.
      await vi.waitFor(
        async () => expect((await cli("running", "__complete", "tool")).out).toContain("demo__echo"),
        60_000,
      );

      const token = (await cli("running", "token", "show")).out.trim();
      const agent = new Client({ name: "agent", version: "1" });
      const headers = { Authorization: `Bearer ${token}` };
      await agent.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
      const { call, atWork } = wait(agent, 1.5);
      await atWork;
      child.kill("SIGTERM");
      expect(textOf(await call)).toBe("Waited 1.5 s.");
      expect(await exited).toBe(0);
      await agent.close().catch(() => undefined);
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("waits at the first Ctrl-C for what is in flight, and not at the second", async () => {
    const { child, url, exited } = await serve("ctrl-c");
    const agent = new Client({ name: "agent", version: "1" });
    const token = (await cli("ctrl-c", "token", "show")).out.trim();
    const headers = { Authorization: `Bearer ${token}` };
    await agent.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
    const { call, atWork } = wait(agent, 25);
    const cut = call.catch(() => "cut");
    await atWork;
    child.kill("SIGINT");
    const early = await Promise.race([exited, new Promise((done) => setTimeout(() => done("still there"), 1000))]);
    expect(early).toBe("still there");
    child.kill("SIGINT");
    expect(await exited).toBe(130);
    await agent.close().catch(() => undefined);
    expect(await cut).toBe("cut");
  });

  it("a second one of the same config is refused, and says what to do", async () => {
    const { child, exited } = await serve("twice");
    try {
      const second = await cli("twice", "serve", "--listen", "127.0.0.1:0");
      expect(second.code).toBe(1);
      expect(second.err).toContain("toolway status");
    } finally {
      child.kill("SIGTERM");
      await exited;
    }
  });
});

describe("several gateways", () => {
  it("are listed, one is meant by its config alone, and down ends it [right-gateway]", async () => {
    const config = join(folder, "several.json");
    writeFileSync(config, JSON.stringify({ mcpServers: {} }));
    const [demo, own] = await Promise.all([serve("several"), serve("several", config, "--state", join(folder, "own"))]);
    try {
      const { out } = await cli("several", "ps", "--json");
      const listed = JSON.parse(out) as { pid: number; config: string | null; endpoint: string; stateDir: string }[];
      expect(new Set(listed.map(({ pid }) => pid))).toEqual(new Set([demo.child.pid, own.child.pid]));
      expect(listed).toContainEqual(expect.objectContaining({ config: realpathSync(config), endpoint: own.url }));

      const unclear = await cli("several", "token", "show");
      expect(unclear).toMatchObject({ code: 2, out: "" });
      expect(unclear.err).toContain("--config ./several.json");
      // Its state directory is not the usual one; its config is enough.
      const status = await cli("several", "status", "--json", "--config", config);
      expect(JSON.parse(status.out)).toMatchObject({ running: true, pid: own.child.pid });

      const down = await cli("several", "down", config);
      expect(down).toEqual({
        code: 0,
        out: `Stopped the gateway at ${own.url} (process ${own.child.pid}).\n`,
        err: "",
      });
      expect(await own.exited).toBe(0);
      expect(await cli("several", "down", config)).toMatchObject({ code: 1 });
      // One that was killed is on no list either.
      demo.child.kill("SIGKILL");
      await demo.exited;
      expect((await cli("several", "ps")).out).toBe("No gateway runs. `npx toolway serve` starts one.\n");
    } finally {
      demo.child.kill("SIGKILL");
      own.child.kill("SIGKILL");
    }
  });

  it('keep what they have where the config says "state", after it was moved too [state-moves]', async () => {
    const [before, after] = [join(folder, "before"), join(folder, "after")];
    mkdirSync(before);
    writeFileSync(join(before, "toolway.json"), JSON.stringify({ state: "./.toolway", mcpServers: {} }));
    const at = (place: string) => ["--config", join(place, "toolway.json")];
    const made = await cli("moved", "token", "create", "--id", "ci", "--role", "reader", ...at(before));
    expect(made.code).toBe(0);
    renameSync(before, after);
    expect((await cli("moved", "token", "list", ...at(after))).out).toContain("ci ");
    // Nobody commits its tokens by mistake.
    expect(readFileSync(join(after, ".toolway/.gitignore"), "utf8")).toBe("*\n");
  });
});

describe("without a gateway", () => {
  it.each(["serve", "stdio", "doctor"])(
    "%s of a config with a wrong role is 2 and names it, and no server is started",
    async (verb) => {
      const home = mkdtempSync(join(folder, "wrong-role-"));
      const started = join(home, "started");
      const mcpServers = { one: { command: "/bin/sh", args: ["-c", `touch '${started}'; exec cat`] } };
      const config = join(home, "toolway.json");
      writeFileSync(config, JSON.stringify({ mcpServers, roles: { a: { allow: ["//"] } } }));
      const line =
        verb === "serve" ? [config, "--listen", "127.0.0.1:0"] : verb === "stdio" ? ["--config", config] : [config];
      const { code, out, err } = await cli(basename(home), verb, ...line);
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).toMatch(/toolway\.json:1:\d+: roles\.a\.allow\[0\]: /);
      expect(existsSync(started)).toBe(false);
    },
  );

  it("verbs at the same time wait for each other, and all succeed", async () => {
    const calls = ["1", "2", "3"].map((b) => cli("alone", "call", "demo__add", "--arg", "a=1", "--arg", `b=${b}`));
    const ran = await Promise.all(calls);
    expect(ran.map(({ code, out }) => [code, out])).toEqual([
      [0, "2\n"],
      [0, "3\n"],
      [0, "4\n"],
    ]);
  });

  it("tokens can be made, listed and revoked", async () => {
    const made = await cli("tokens", "token", "create", "--id", "ci", "--role", "reader", "--expires", "30d");
    expect(made.out).toMatch(/^tw_\S{30,}\n$/);
    const list = await cli("tokens", "token", "list");
    expect(list.out).toMatch(/ci +reader/);
    expect(list.out).not.toContain(made.out.trim());
    expect((await cli("tokens", "state", "dump")).out).not.toContain(made.out.trim());
    expect(await cli("tokens", "token", "revoke", "ci")).toMatchObject({ code: 0 });
    expect(await cli("tokens", "token", "create", "--id", "x", "--role", "r", "--expires", "soon")).toMatchObject({
      code: 2,
    });
  });

  it("doctor tells a server that works from one that does not", async () => {
    const { code, out } = await cli("doctor", "doctor", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject([
      { name: "demo", ok: true, era: "legacy", tools: ["echo", "add", "now", "wait"] },
    ]);
  });
});

describe("stdio", () => {
  const connect = async (home: string): Promise<Client> => {
    const client = new Client({ name: "test", version: "1" });
    const args = [main, "stdio"];
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args,
        env: environment(home),
        cwd: folder,
        stderr: "pipe",
      }),
    );
    return client;
  };

  const add = async (client: Client): Promise<string | undefined> =>
    textOf(await client.callTool({ name: "demo__add", arguments: { a: 20, b: 22 } }));

  it("is a gateway, or joins the one that is just starting", async () => {
    const both = await Promise.all([connect("stdio"), connect("stdio")]);
    expect(await Promise.all(both.map(add))).toEqual(["42", "42"]);
    const status = JSON.parse((await cli("stdio", "status", "--json")).out) as { sessions: number };
    expect(status.sessions).toBe(2);
    await Promise.all(both.map((client) => client.close()));
  });

  it("goes on when one that joined it has gone", async () => {
    const one = await connect("joined");
    const two = await connect("joined");
    await two.close();
    expect(await add(one)).toBe("42");
    await one.close();
  });
});
