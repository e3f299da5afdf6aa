// `toolway run` with stand-in clients: what they and their children are given, signals and exit codes, runs that are
// killed, gateways that are, and what is left behind.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { Io, TakenSignal } from "../../src/cli/line/io.js";
import { runChild } from "../../src/cli/run/child.js";
import { type Started, start } from "../fixtures/processes.js";
import { hasTerminals, startOnTerminal } from "../fixtures/terminal.js";
import { cli, type Gateway, root, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";

const CANARY = "canary-upstream-credential";
const CONFIG = {
  mcpServers: { ledger: stdioFixture("ledger", [], { env: { LEDGER: "/dev/null", KEY: "$" + "{CANARY_KEY}" } }) },
  roles: { reader: { allow: ["ledger/echo"] } },
  menus: [{ when: { client: "codex" }, hide: ["ledger/note"] }],
};

const CLIENTS = ["claude", "codex", "gemini", "opencode", "copilot", "qwen"];

interface Report {
  readonly argv: string[];
  readonly env: Record<string, string>;
  readonly grandchild: { readonly env: Record<string, string>; readonly argv: string[] };
  readonly cmdline: string[];
  readonly parent: number;
  readonly pid: number;
  readonly group: string;
  readonly foreground: string;
  readonly terminals: boolean[];
  readonly typed: string;
  readonly signals: string[];
}

let home: string;
let bin: string;
let gateway: Gateway;
let reports = 0;
const runs: Started[] = [];

beforeAll(async () => {
  home = await temporaryDirectory();
  bin = join(home, "bin");
  mkdirSync(bin);
  for (const name of [...CLIENTS, "my-agent"]) {
    symlinkSync(join(root, "test/fixtures/stand-in-agent.mjs"), join(bin, name));
  }
  mkdirSync(join(home, ".gemini"));
  writeFileSync(join(home, ".gemini", "settings.json"), '{\n  // Mine.\n  "theme": "dark"\n}\n');
  writeFileSync(join(home, ".gemini", "oauth_creds.json"), "old");
  gateway = await startGateway(CONFIG, { auth: true, env: { CANARY_KEY: CANARY } });
});

// What a test that failed left is not in the way of the next, or of its own second try.
afterEach(() => Promise.all(runs.splice(0).map((one) => one.stop("SIGKILL"))));

/** What a person has, with canaries. */
function environment(more: Record<string, string>): NodeJS.ProcessEnv {
  return {
    PATH: `${bin}:${process.env["PATH"]}`,
    HOME: home,
    CANARY_KEY: CANARY,
    TOOLWAY_TOKEN: "canary-token-of-the-gateway",
    MINE: "kept",
    ...more,
  };
}

interface Run {
  readonly one: Started;
  readonly report: () => Report;
  readonly secret: string;
  readonly url: string;
  end(code?: number): void;
}

function launch(line: readonly string[], more: Record<string, string> = {}, at: readonly string[] = where()): Started {
  const one = start("run", process.execPath, [cli, "run", ...at, ...line], environment(more));
  runs.push(one);
  return one;
}

const where = () => ["--config", gateway.configPath, "--state", gateway.stateDir];

/** One whose agent is there, and waits. */
async function begin(line: readonly string[], at?: readonly string[]): Promise<Run> {
  const path = join(home, `report-${++reports}`);
  const one = launch(line, { STAND_IN: "wait", STAND_IN_REPORT: path }, at);
  const report = () => JSON.parse(readFileSync(path, "utf8")) as Report;
  await until("the agent", () => existsSync(path) || one.child.exitCode !== null);
  const { env, argv } = report();
  const url = env["TOOLWAY_URL"] ?? /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(argv.join(" "))?.[0] ?? gateway.url;
  const end = (code = 0) => writeFileSync(`${path}.end`, String(code));
  return { one, report, secret: env["TOOLWAY_SESSION_TOKEN"] ?? "", url, end };
}

/** The status of the answer, and its text. */
async function post(url: string, secret: string, method: string, params: object = {}): Promise<[number, string]> {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "stand-in", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const name = (params as { name?: string }).name;
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${secret}`,
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": "2026-07-28",
      "Mcp-Method": method,
      ...(name === undefined ? {} : { "Mcp-Name": name }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } }),
  });
  return [answer.status, await answer.text()];
}

const call = (run: Pick<Run, "url" | "secret">, name: string) =>
  post(run.url, run.secret, "tools/call", { name, arguments: { text: "hello" } });

describe("toolway run", () => {
  it("gives the agent a secret of its own by its environment, and no server's credential to it or its children [run-secret] [run-own] [agent-9]", async () => {
    const run = await begin(["--role", "reader", "claude", "--", "-p", "hi"]);
    const { argv, env, grandchild, cmdline } = run.report();
    expect(argv.slice(-2)).toEqual(["-p", "hi"]);
    expect(argv[0]).toMatch(/^--mcp-config=\{/);
    expect(run.secret).toMatch(/^tw_[\w-]{43}$/);
    expect(env).toMatchObject({ MINE: "kept", HOME: home });
    for (const seen of [env, grandchild.env]) {
      expect(JSON.stringify(seen)).not.toContain("canary");
      expect(Object.keys(seen).filter((name) => name.startsWith("TOOLWAY_"))).toEqual(["TOOLWAY_SESSION_TOKEN"]);
    }
    for (const words of [cmdline, grandchild.argv]) expect(words.join(" ")).not.toContain(run.secret);
    expect(readFileSync(`/proc/${run.one.child.pid}/cmdline`, "utf8")).not.toContain(run.secret);
    // Its role counts, what it may not use is refused, and the last line says so.
    expect((await call(run, "echo"))[1]).toContain("hello");
    expect((await call(run, "note"))[1]).toContain("You may not use");
    // The servers' own processes see none of it.
    const [pid] = readdirSync("/proc").filter((one) => /^\d+$/.test(one) && isLedger(one));
    expect(readFileSync(`/proc/${pid}/environ`, "utf8")).not.toMatch(/TOOLWAY_(?:SESSION_)?TOKEN/);
    run.end(7);
    expect(await run.one.closed).toBe(7);
    expect(run.one.log()).toMatch(/run-[0-9a-f]{12}: 2 calls, 1 refused \(role "reader": .*\)\n/);
    expect(run.one.log()).toContain("left out of the agent's environment: CANARY_KEY (--keep-env NAME keeps one)");
    expect(run.one.log()).toContain("Claude Code will refuse calls");
    expect((await call(run, "echo"))[0]).toBe(401);
  });

  it.each(CLIENTS)(
    "gives %s its endpoint, and no secret by an argument or a file; its children see no more than it does [run-secret] [run-own] [agent-9]",
    async (client) => {
      const run = await begin([client, "--", "-m", "x"]);
      const { argv, env, grandchild, cmdline } = run.report();
      const files = textsIn(join(gateway.stateDir, "runs"));
      const given = JSON.stringify([argv, env, files]);
      expect(argv.slice(-2)).toEqual(["-m", "x"]);
      // In the client's own way, the address and the variable that its secret is in.
      expect(given).toContain(gateway.url);
      expect(given.match(/TOOLWAY_SESSION_TOKEN/g)?.length).toBeGreaterThan(1);
      for (const seen of [env, grandchild.env]) {
        expect(seen["TOOLWAY_SESSION_TOKEN"]).toMatch(/^tw_[\w-]{43}$/);
        expect(JSON.stringify({ ...seen, TOOLWAY_SESSION_TOKEN: "" })).not.toContain(run.secret);
        expect(Object.keys(seen).filter((name) => name.startsWith("TOOLWAY_"))).toEqual(["TOOLWAY_SESSION_TOKEN"]);
      }
      for (const words of [cmdline, grandchild.argv]) expect(words.join(" ")).not.toContain(run.secret);
      expect(readFileSync(`/proc/${run.one.child.pid}/cmdline`, "utf8")).not.toContain(run.secret);
      expect(files).not.toContain(run.secret);
      expect(JSON.stringify([given, grandchild])).not.toContain("canary");
      expect((await call(run, "echo"))[1]).toContain("hello");
      run.end();
      expect(await run.one.closed).toBe(0);
      expect((await call(run, "echo"))[0]).toBe(401);
    },
  );

  it("says what did not come up before the agent has the terminal, and what it was to keep and is not there [told-why]", async () => {
    const mcpServers = {
      ...CONFIG.mcpServers,
      keyless: { command: "x", env: { KEY: "$" + "{TOOLWAY_TEST_NO_SUCH_KEY}" } },
      broken: { command: "/bin/sh", args: ["-c", "echo 'no such database' >&2; exit 3"] },
    };
    const other = await startGateway({ mcpServers }, { auth: true, env: { CANARY_KEY: CANARY } });
    const at = ["--config", other.configPath, "--state", other.stateDir];
    const run = await begin(["--keep-env", "NOT_HERE", "--", "my-agent"], at);
    const log = await until("what is said", () => run.one.log().includes("broken is") && run.one.log());
    expect(log).toMatch(/^toolway: keyless is misconfigured\. .*NO_SUCH_KEY.*doctor --server keyless/m);
    expect(log).toMatch(/^toolway: broken is (?:down|ejected).*no such database.*doctor --server broken/m);
    expect(log).toContain("--keep-env NOT_HERE: this variable is not set here, so the agent has none.");
    expect(log).not.toContain("toolway: ledger");
    run.end();
    expect(await run.one.closed).toBe(0);
  });

  it("is in the foreground: the group is one, signals of the terminal are the agent's, others are passed on, its end is ours [run-foreground]", async () => {
    const run = await begin(["--", "my-agent", "a b"]);
    const { pid = 0 } = run.one.child;
    expect(run.report()).toMatchObject({ argv: ["a b"], parent: pid });
    expect(run.report().group).toBe(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[2]);
    // A terminal would have sent it to both.
    process.kill(pid, "SIGINT");
    process.kill(pid, "SIGQUIT");
    process.kill(pid, "SIGHUP");
    process.kill(pid, "SIGCONT");
    await until("signals", () => run.report().signals.length >= 2);
    expect(run.report().signals.sort((a, b) => a.localeCompare(b))).toEqual(["SIGCONT", "SIGHUP"]);
    process.kill(pid, "SIGTERM");
    // 128 and SIGTERM.
    expect(await run.one.closed).toBe(143);
  });

  it.skipIf(!hasTerminals)(
    "leaves the terminal to the agent: what is typed, Ctrl-C, and the exit code [run-foreground]",
    async () => {
      const path = join(home, `report-${++reports}`);
      const env = environment({ STAND_IN: "wait", STAND_IN_REPORT: path }) as Record<string, string>;
      const one = startOnTerminal("run", [process.execPath, cli, "run", ...where(), "--", "my-agent"], env);
      runs.push(one);
      const report = () => JSON.parse(readFileSync(path, "utf8")) as Report;
      await until("the agent", () => existsSync(path));
      expect(report()).toMatchObject({ terminals: [true, true, true], foreground: report().group });
      one.child.stdin.write("typed by a person\r");
      await until("what was typed", () => report().typed === "typed by a person\n");
      one.child.stdin.write("\x03");
      await until("Ctrl-C", () => report().signals.length > 0);
      // It was the agent's, which goes on with it.
      expect(report().signals).toEqual(["SIGINT"]);
      one.child.stdin.write("and more\r");
      await until("more", () => report().typed.endsWith("and more\n"));
      writeFileSync(`${path}.end`, "9");
      expect(await one.closed).toBe(9);
    },
  );

  it.skipIf(!hasTerminals)(
    "stops with an agent that stops itself alone, and goes on with it [run-foreground]",
    async () => {
      const line = [process.execPath, cli, "run", ...where(), "--", "my-agent"].map((word) => `"${word}"`).join(" ");
      // As a shell at a terminal has it: a job that stops gives the shell back, and fg continues it.
      const script = `set -m; ${line}; echo "stopped $?"; fg >/dev/null; echo "ended $?"`;
      const more = environment({ STAND_IN: "stop", STAND_IN_REPORT: join(home, `report-${++reports}`) });
      const shell = startOnTerminal("a shell", ["bash", "-c", script], more as Record<string, string>);
      runs.push(shell);
      await shell.closed;
      // 128 and SIGTSTP.
      expect(shell.log().match(/^(?:stopped|ended) \d+/gm)).toEqual(["stopped 148", "ended 7"]);
    },
  );

  it("stops with an agent that had stopped itself before its signals were taken [run-foreground]", async () => {
    const program = join(home, "stops.sh");
    writeFileSync(program, "kill -STOP $$\nexit 7\n");
    const kill = vi.spyOn(process, "kill").mockReturnValue(true);
    let pass = (_: TakenSignal) => {};
    const takeSignals = (listener: typeof pass) => {
      // Long enough for the agent to stop.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
      pass = listener;
    };
    const env = { PATH: process.env["PATH"] ?? "" };
    const ended = runChild("sh", [program], { env, io: { cwd: home, takeSignals } as unknown as Io });
    await until("our own stop", () => kill.mock.calls.some(([, signal]) => signal === "SIGTSTP"), 5_000);
    kill.mockRestore();
    pass("SIGCONT");
    expect(await ended).toBe(7);
  });

  it("is told where the gateway hangs, in place of waiting for it, and --fallback goes on without [told-why] [run-own]", async () => {
    process.kill(gateway.pid, "SIGSTOP");
    try {
      const line = (...more: string[]) => [cli, "run", ...where(), ...more, "--", "sh", "-c", "exit 7"];
      const [plain, fallback] = [line(), line("--fallback")].map((args) =>
        start("run", process.execPath, args, environment({})),
      ) as [Started, Started];
      expect(await plain.closed).toBe(1);
      expect(plain.log()).toMatch(/has said nothing for 10 s: .*ps` names it/);
      expect(await fallback.closed).toBe(7);
    } finally {
      process.kill(gateway.pid, "SIGCONT");
    }
  });

  it("tells the gateway what the agent is, unless the line says otherwise [run-own]", async () => {
    const [as, other] = await Promise.all([
      begin(["codex", "--as", "me"]),
      begin(["codex", "--context", "client=other"]),
    ]);
    const [mine, theirs] = await Promise.all([as, other].map((run) => post(run.url, run.secret, "tools/list")));
    expect(mine?.[1]).not.toContain('"note"');
    expect(theirs?.[1]).toContain('"note"');
    as.end();
    other.end();
    await Promise.all([as.one.closed, other.one.closed]);
    // What was named is there for the next run of that name.
    const shown = start("context", process.execPath, [cli, "context", "show", "--json", ...where()], environment({}));
    await shown.closed;
    expect(shown.log()).toContain('"client": "codex"');
    expect(shown.log()).not.toContain('"client": "other"');
  });

  it("ends a secret within 5 s of a run that was killed, sweeps what it wrote, and touches no other run [run-own] [run-clean]", async () => {
    const [first, second] = await Promise.all([begin(["--", "my-agent"]), begin(["--", "my-agent"])]);
    const file = first.report().env["TOOLWAY_MCP_CONFIG"] ?? "";
    expect(readFileSync(file, "utf8")).toContain(first.secret);
    // What it was given by files has its own secret in it, and nobody else's.
    expect(textsIn(join(file, ".."))).not.toMatch(/canary/);
    first.one.child.kill("SIGKILL");
    await until("the end of its secret", async () => (await call(first, "echo"))[0] === 401, 5_000);
    await until("the sweep", () => !existsSync(file), 5_000);
    expect((await call(second, "echo"))[1]).toContain("hello");
    process.kill(first.report().pid, "SIGKILL");
    second.end();
    expect(await second.one.closed).toBe(0);
  });

  it("gives back what Gemini rotated and changed, also where the run was killed in between [run-clean]", async () => {
    const run = await begin(["gemini"]);
    const folder = join(run.report().env["GEMINI_CLI_HOME"] ?? "", ".gemini");
    // Its settings and all else that was written for it name the variable of its secret, and hold none.
    const written = textsIn(join(folder, "..", ".."));
    expect(written).toContain("TOOLWAY_SESSION_TOKEN");
    for (const secret of ["canary", run.secret]) expect(written).not.toContain(secret);
    const { renameSync } = await import("node:fs");
    writeFileSync(join(home, "fresh"), "rotated");
    renameSync(join(home, "fresh"), join(folder, "oauth_creds.json"));
    const settings = join(folder, "settings.json");
    writeFileSync(settings, readFileSync(settings, "utf8").replace('"dark"', '"light"'));
    run.one.child.kill("SIGKILL");
    await until("the sweep", () => !existsSync(folder), 5_000);
    const mine = (name: string) => readFileSync(join(home, ".gemini", name), "utf8");
    expect(mine("oauth_creds.json")).toBe("rotated");
    expect(mine("settings.json")).toBe('{\n  // Mine.\n  "theme": "light"\n}\n');
    process.kill(run.report().pid, "SIGKILL");
  });

  it("keeps its secret over a restart of the gateway, and ends it after [run-own] [restart-unseen]", async () => {
    const run = await begin(["claude"]);
    expect((await call(run, "echo"))[1]).toContain("hello");
    // It ends in good order, and says what was done before it goes.
    await gateway.stop();
    gateway = await gateway.again();
    expect((await call(run, "echo"))[1]).toContain("hello");
    // It is back when the gateway says so; then its end is the end of the secret.
    const isHeld = async () => {
      const { connectControl } = await import("../../src/control/client.js");
      const { runs: all } = await connectControl(join(gateway.stateDir, "control.sock")).get<{
        runs: { isHeld: boolean }[];
      }>("/runs");
      return all.length === 1 && all[0]?.isHeld;
    };
    await until("the run", isHeld);
    run.end();
    expect(await run.one.closed).toBe(0);
    expect(run.one.log()).toMatch(/2 calls, none refused, 1 restart of the gateway/);
    expect((await call(run, "echo"))[0]).toBe(401);
  });
});

it("where no gateway runs, one is started for runs, comes back at its address after a kill, and is found by the next run [run-own] [restart-unseen]", async () => {
  const state = join(await temporaryDirectory(), "state");
  const at = ["--config", gateway.configPath, "--state", state];
  const run = await begin(["--", "my-agent"], at);
  expect((await call(run, "echo"))[1]).toContain("hello");
  const pid = Number(readFileSync(join(state, "pid"), "utf8"));
  // It is in no terminal's way.
  expect(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[3]).toBe(String(pid));
  expect(readFileSync(`/proc/${pid}/environ`, "utf8")).not.toContain("TOOLWAY_SESSION_TOKEN");
  process.kill(pid, "SIGKILL");
  await until("the next gateway", async () => (await call(run, "echo"))[1].includes("hello"));
  const next = Number(readFileSync(join(state, "pid"), "utf8"));
  expect(next).not.toBe(pid);
  const second = await begin(["--", "my-agent"], at);
  expect(second.url).toBe(run.url);
  for (const one of [run, second]) one.end();
  expect(await run.one.closed).toBe(0);
  expect(await second.one.closed).toBe(0);
  expect(readdirSync(join(state, "runs"))).toEqual([]);
  expect(existsSync(join(state, "gateway.log"))).toBe(true);
  const down = start("down", process.execPath, [cli, "down", ...at, "--drain", "0"], environment({}));
  // It waits until the state directory is free.
  expect(await down.closed).toBe(0);
});

describe("a line of toolway run", () => {
  const ended = async (line: readonly string[], more: Record<string, string> = {}, at?: readonly string[]) => {
    const report = join(home, `report-${++reports}`);
    const one = launch(line, { STAND_IN: "3", STAND_IN_REPORT: report, ...more }, at);
    const code = await one.closed;
    const seen = existsSync(report) ? (JSON.parse(readFileSync(report, "utf8")) as Report) : undefined;
    return { code, text: one.log(), report: seen };
  };

  it("shows arguments, variables without their values, and files, and starts nothing, with --dry-run [run-secret]", async () => {
    // A gateway that is named by its state directory alone has its config too.
    const other = join(home, "other.json");
    writeFileSync(other, '{ "mcpServers": { "x": { "command": "x", "args": ["$' + '{OTHER}"] } } }');
    const [{ code, text, report }, joined, both] = await Promise.all([
      ended(["gemini", "--dry-run", "--", "-p", "hi"]),
      ended(["claude", "--dry-run"], {}, ["--state", gateway.stateDir]),
      ended(["claude", "--dry-run"], { OTHER: "canary" }, ["--state", gateway.stateDir, "--config", other]),
    ]);
    expect(code).toBe(0);
    expect(report).toBeUndefined();
    expect(text).toContain("TOOLWAY_SESSION_TOKEN=(hidden)");
    expect(text).toContain("left out:\n  CANARY_KEY");
    expect(text).toMatch(/files:\n {2}.*gemini\/\.gemini\/settings\.json/);
    expect(text).not.toContain("canary");
    // One that is named with another config than it runs with: what either refers to is left out.
    expect(both.text).toContain("left out:\n  CANARY_KEY\n  OTHER");
    expect(joined.text).toContain("left out:\n  CANARY_KEY");
  });

  it("says that the tools are those of the demo where no config is named or found [told-why]", async () => {
    const line = ["my-agent", "--dry-run"];
    // In a home where nothing is.
    const nobody = { HOME: join(home, "nobody"), XDG_CONFIG_HOME: "" };
    const [without, by] = await Promise.all([ended(line, nobody, []), ended(line)]);
    expect(without.code).toBe(0);
    expect(without.text).toContain(
      "no config is named here or found: the agent gets the tools of Toolway's built-in demo.",
    );
    expect(by.text).not.toContain("demo");
  });

  it.each(["0", "false", "off", "OFF"])(
    "starts the client as it is where TOOLWAY_RUN is %s, and says so [run-foreground]",
    async (value) => {
      const said = `TOOLWAY_RUN is ${value}: claude is started as it is`;
      const { code, text, report } = await ended(["claude", "--", "x"], { TOOLWAY_RUN: value });
      expect([code, report?.argv]).toEqual([3, ["x"]]);
      expect(text).toContain(said);
      // Asked what it would do, it says that, and starts nothing.
      const dry = await ended(["claude", "--dry-run", "--", "x"], { TOOLWAY_RUN: value });
      expect([dry.code, dry.report]).toEqual([0, undefined]);
      expect(dry.text).toContain(said);
      expect(dry.text).toContain(`arguments:\n  ${join(bin, "claude")}\n  x\n`);
    },
  );

  it.each(["1", "true", ""])("runs the client with Toolway where TOOLWAY_RUN is %j [run-foreground]", async (value) => {
    const { text, report } = await ended(["claude", "--", "x"], { TOOLWAY_RUN: value });
    expect(report?.argv[0]).toMatch(/^--mcp-config=/);
    expect(text).not.toContain("as it is");
  });

  it("keeps what the line says in the agent's environment, and says no more that it was left out [run-own]", async () => {
    const { text, report } = await ended(["claude", "--keep-env", "CANARY_KEY"]);
    expect(report?.env["CANARY_KEY"]).toBe(CANARY);
    expect(text).not.toContain("left out");
  });

  it("says what to do where the client is not installed or the role is unknown [run-own]", async () => {
    const [missing, role] = await Promise.all([
      ended(["copilot"], { PATH: join(home, "nothing-here") }),
      ended(["claude", "--role", "raeder"]),
    ]);
    expect(missing.code).toBe(2);
    expect(missing.text).toContain("Copilot CLI is not installed");
    expect(missing.text).toContain("npm install -g @github/copilot");
    expect(role.report).toBeUndefined();
    expect(role.text).toMatch(/raeder.*reader/s);
  });

  it("does not start opencode without Toolway where its variable cannot be read, but with --fallback [told-why] [run-foreground]", async () => {
    const state = join(await temporaryDirectory(), "state");
    const at = ["--config", gateway.configPath, "--state", state];
    const wrong = { OPENCODE_CONFIG_CONTENT: "{ canary" };
    const [refused, dry, alone] = await Promise.all([
      ended(["opencode", "--", "x"], wrong, at),
      ended(["opencode", "--dry-run", "--", "x"], wrong, at),
      ended(["opencode", "--fallback", "--", "x"], wrong, at),
    ]);
    for (const { code, text, report } of [refused, dry]) {
      expect([code, report]).toEqual([2, undefined]);
      expect(text).toMatch(/OPENCODE_CONFIG_CONTENT is set and is no JSON.*env -u OPENCODE_CONFIG_CONTENT/s);
      expect(text).not.toContain("canary");
    }
    expect([alone.code, alone.report?.argv]).toEqual([3, ["x"]]);
    expect(alone.text).toMatch(/is no JSON.*with its own servers alone/s);
    // Nothing was begun for it.
    expect(existsSync(join(state, "gateway.log"))).toBe(false);
  });

  it("says why no gateway can be had, and with --fallback starts the client with its own servers alone [run-foreground]", async () => {
    const broken = join(home, "broken.json");
    writeFileSync(broken, '{ "mcpServers": 7, "headers": "$' + '{CANARY_KEY}" }');
    const at = (state: string) => ["--config", broken, "--state", join(home, state)];
    const [refused, alone] = await Promise.all([
      ended(["claude"], {}, at("broken-state")),
      ended(["claude", "--fallback", "--", "x"], {}, at("broken-too")),
    ]);
    expect(refused.code).toBe(1);
    expect(refused.text).toMatch(/could not be started; it says:\n.*broken\.json.*mcpServers/s);
    expect(refused.report).toBeUndefined();
    expect(alone.code).toBe(3);
    expect(alone.report?.argv).toEqual(["x"]);
    // Its own servers may need them.
    expect(alone.report?.env).toMatchObject({ CANARY_KEY: CANARY, MINE: "kept" });
    expect(alone.text).toContain("with its own servers alone: nothing of it is resilient");
  });

  it("says why the endpoint cannot be bound, and with --fallback starts the client with its own servers alone [run-foreground]", async () => {
    const preload = join(home, "no-ports.cjs");
    // The gateway's process gets no port; its control socket is none.
    writeFileSync(
      preload,
      `const { Server } = require("node:net"), { listen } = Server.prototype;
      Server.prototype.listen = function (at, ...rest) {
        if (typeof at !== "object" || at.port === undefined) return listen.call(this, at, ...rest);
        process.nextTick(() => this.emit("error", Object.assign(new Error("listen EACCES"), { code: "EACCES" })));
        return this;
      };`,
    );
    const env = { NODE_OPTIONS: `--require=${preload}` };
    const at = (state: string) => ["--config", gateway.configPath, "--state", join(home, state)];
    const [refused, alone] = await Promise.all([
      ended(["claude"], env, at("no-port")),
      ended(["claude", "--fallback", "--", "x"], env, at("no-port-either")),
    ]);
    expect([refused.code, refused.report]).toEqual([1, undefined]);
    expect(refused.text).toMatch(/could not be started; it says:\n.*Cannot listen on 127\.0\.0\.1/s);
    expect([alone.code, alone.report?.argv]).toEqual([3, ["x"]]);
    expect(alone.text).toMatch(/Cannot listen on 127\.0\.0\.1.*with its own servers alone/s);
  });

  it("is put away with pipes in Gemini's home, which nobody waits for, and takes what else is new there [run-clean]", async () => {
    const run = await begin(["gemini"]);
    const own = join(run.report().env["GEMINI_CLI_HOME"] ?? "", ".gemini");
    const before = readFileSync(join(home, ".gemini", "settings.json"), "utf8");
    mkdirSync(join(own, "ide"));
    writeFileSync(join(own, "ide", "port"), "1");
    rmSync(join(own, "settings.json"));
    const pipes = ["pipe", "settings.json", join("ide", "pipe")];
    execFileSync(
      "mkfifo",
      pipes.map((name) => join(own, name)),
    );
    run.end();
    expect(await run.one.closed).toBe(0);
    expect(run.one.log()).not.toContain("could not be put away");
    expect(existsSync(own)).toBe(false);
    expect(readdirSync(join(home, ".gemini", "ide"))).toEqual(["port"]);
    expect(existsSync(join(home, ".gemini", "pipe"))).toBe(false);
    expect(readFileSync(join(home, ".gemini", "settings.json"), "utf8")).toBe(before);
  });

  it("does not wait for a pipe in the place of a client's config [run-foreground]", async () => {
    const pipe = join(home, ".claude.json");
    execFileSync("mkfifo", [pipe]);
    try {
      expect((await ended(["--dry-run", "claude"])).code).toBe(0);
    } finally {
      rmSync(pipe);
    }
  });
});

/** All that is written below a folder of a run; what its links lead to is the user's. */
function textsIn(folder: string): string {
  if (!existsSync(folder)) return "";
  const found = readdirSync(folder, { withFileTypes: true, recursive: true }).filter((one) => one.isFile());
  return found.map((one) => readFileSync(join(one.parentPath, one.name), "utf8")).join("\n");
}

function isLedger(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("ledger.mjs");
  } catch {
    return false;
  }
}
