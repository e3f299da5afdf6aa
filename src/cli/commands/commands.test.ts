// Commands from the words of the line to output and exit code, in process, with a fake gateway.

import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  fakeGateway,
  folder,
  leaveFolder,
  makeFolder,
  run,
  STATUS,
  TOOLS,
} from "../../../test/fixtures/fake-gateway.js";
import { ControlError } from "../../control/server.js";
import { CallError } from "../../gateway/program-call.js";
import { Fault } from "../../protocol/errors.js";
import { StateDirError } from "../../runtime/state-dir.js";
import { StoreError } from "../../store/store-error.js";
import { TokenError } from "../../tokens/tokens.js";
import { type GatewayPort, type GatewaySource, replaceGatewayPort } from "../gateway/port.js";
import { Stopped } from "../line/io.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

describe("exit codes", () => {
  it("are 0 for help and version, which load no gateway", async () => {
    replaceGatewayPort(new Proxy({} as GatewayPort, { get: () => expect.unreachable() }));
    expect(await run(["--help"])).toMatchObject({ code: 0, err: "" });
    expect((await run(["--help"])).out).toContain("toolway serve");
    expect(await run(["--version"])).toEqual({ code: 0, out: "0.1.0\n", err: "" });
    expect((await run(["call", "--help"])).out).toContain("toolway call demo__add");
  });

  it("are 2 for a wrong command line, with the way out", async () => {
    expect(await run(["srve"])).toMatchObject({ code: 2, out: "" });
    expect((await run(["srve"])).err).toContain("Did you mean serve?");
    expect(await run(["call"])).toMatchObject({ code: 2 });
    expect(await run(["serve", "--names", "odd"])).toMatchObject({ code: 2 });
    expect(await run(["token", "create", "--id", "x"])).toMatchObject({ code: 2 });
    expect(await run(["serve", "--listen", "nonsense"])).toMatchObject({ code: 2 });
    expect(await run(["serve", "--tls-cert", "x"])).toMatchObject({ code: 2 });
    expect(await run(["serve", "gone.json"])).toMatchObject({ code: 2 });
    expect((await run(["serve", "--listen", "127.0.0.1:99999"])).err).toContain("from 0 to 65535");
  });

  it("are 0 for `help`, and for a config named in the way of other verbs", async () => {
    expect((await run(["help"])).out).toContain("toolway serve");
    expect((await run(["help", "token", "create"])).out).toContain("--expires");
    writeFileSync(join(folder, "mine.json"), '{"mcpServers":{}}');
    expect(await run(["config", "check", "--config", "mine.json"])).toMatchObject({ code: 0 });
    expect((await run(["config", "check", "--help"])).out).not.toContain("--config");
    const { code, err } = await run(["status", "mine.json"]);
    expect(code).toBe(2);
    expect(err).toContain("--config FILE");
  });

  it("are 1 for a path that cannot be used, in words", async () => {
    const inTheWay = Object.assign(new Error("EEXIST: file already exists, mkdir '/x'"), {
      code: "EEXIST",
      path: "/x",
    });
    const noKey = Object.assign(new Error("no start line"), { code: "ERR_OSSL_PEM_NO_START_LINE" });
    fakeGateway({}, { start: async () => Promise.reject(noKey) });
    expect((await run(["serve"])).err).toContain("The TLS certificate or its key cannot be used");
    fakeGateway({}, { start: async () => Promise.reject(inTheWay) });
    expect(await run(["serve"])).toEqual({
      code: 1,
      out: "",
      err: "toolway: /x cannot be used: a file is in the way.\n",
    });
  });

  it("are 2 for a mistake in the config, named by file, line, column and key", async () => {
    writeFileSync(join(folder, "toolway.json"), '{"mcpServers":{"a":{"comand":"x"}}}');
    const { code, err } = await run(["config", "check"]);
    expect(code).toBe(2);
    expect(err).toMatch(/toolway\.json:1:21: mcpServers\.a\.comand: .*"command"/);
    expect(JSON.parse((await run(["config", "check", "--json"])).out)).toMatchObject({ ok: false });
  });

  it("are 1 for a fault, without a stack unless it is asked for", async () => {
    fakeGateway({ "/status": new TypeError("broken inside") });
    const plain = await run(["status"]);
    expect(plain).toMatchObject({ code: 1, out: "" });
    expect(plain.err).toContain("broken inside");
    expect(plain.err).not.toContain("at ");
    expect((await run(["status"], { env: { TOOLWAY_DEBUG: "1" } })).err).toContain("commands.test.ts");
  });

  it.each([
    new Fault("unavailable", "It is away."),
    new CallError({ code: -31004, message: "It is away." }, "timeout"),
    new ControlError("unavailable", "It is away."),
    new StateDirError("held", "It is away."),
    new StoreError("full", "It is away."),
    new TokenError("limit", "It is away."),
  ])("are 1 for a $name, which is expected, and its message is all that is said", async (error) => {
    fakeGateway({ "/status": error });
    expect(await run(["status"])).toEqual({ code: 1, out: "", err: "toolway: It is away.\n" });
  });

  it("are 2 for a bad rule of an executor", async () => {
    expect(await run(["executor", "--allow", "a b", "--dry-run", "http://a"])).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringMatching(/^toolway: --allow "a b": One rule, one host/),
    });
  });

  it.each([undefined, new ControlError("cancelled", "The request was taken back.")])(
    "are 130 after Ctrl-C, which a call ends by: %s",
    async (error) => {
      const stop = new AbortController();
      fakeGateway({
        "/call": () => {
          stop.abort(new Stopped("SIGINT"));
          throw error ?? stop.signal.reason;
        },
      });
      expect(await run(["call", "demo__add"], { signal: stop.signal })).toMatchObject({ code: 130, err: "" });
    },
  );
});

describe("serve", () => {
  const stopped = (): AbortSignal => AbortSignal.abort(new Stopped("SIGTERM"));

  it("prints where it is and how to connect, and drains when told to stop", async () => {
    const fake = fakeGateway();
    const { code, out } = await run(["serve", "--listen", "127.0.0.1:0"], { signal: stopped() });
    expect(code).toBe(0);
    expect(fake.started).toMatchObject({
      listen: { host: "127.0.0.1", port: 0 },
      noAuth: false,
      configPath: undefined,
    });
    expect(out).toContain("http://127.0.0.1:7420/mcp");
    expect(out).toContain("demo (stdio)");
    expect(out).toContain("none in the config: every token may use every tool");
    expect(out).toContain("export TOOLWAY_TOKEN=$(npx toolway token show)");
    expect(out).toContain("claude mcp add --transport http toolway");
    expect(out).not.toContain("warning");
    // The config decides how long that is.
    expect(fake.closed).toEqual(["drained undefined"]);
    // The token is shown on a terminal alone: what is piped ends up in a log.
    expect(out).not.toContain("tw_secret");
    const seen = await run(["serve", "--listen", "127.0.0.1:0"], { signal: stopped(), isTTY: true });
    expect(seen.out.match(/tw_secret/g)).toHaveLength(1);
  });

  it("drains for as long as --drain says, and refuses what is no time", async () => {
    const fake = fakeGateway();
    expect((await run(["serve", "--drain", "2.5"], { signal: stopped() })).code).toBe(0);
    expect(fake.closed).toEqual(["drained 2500"]);
    for (const wrong of ["soon", "-1", "3601", ""]) {
      expect(await run(["serve", `--drain=${wrong}`])).toMatchObject({
        code: 2,
        err: expect.stringContaining("--drain"),
      });
    }
  });

  it("shows the token at the first start only, and none with --json", async () => {
    const fake = fakeGateway();
    const { start } = fake.port;
    const again = { isNew: false, fromEnv: false, value: "tw_secret" };
    replaceGatewayPort({ ...fake.port, start: async (options) => ({ ...(await start(options)), token: again }) });
    const { out } = await run(["serve"], { signal: stopped() });
    expect(out).not.toContain("tw_secret");
    expect(out).toContain("token show");
    fakeGateway();
    const json = await run(["serve", "--json"], { signal: stopped() });
    expect(JSON.parse(json.out)).toMatchObject({ endpoint: "http://127.0.0.1:7420/mcp", servers: ["demo"] });
    expect(json.out).not.toContain("tw_secret");
  });

  it("refuses --no-auth beyond loopback, from the line and from the config", async () => {
    const fake = fakeGateway();
    expect(await run(["serve", "--no-auth", "--listen", "0.0.0.0:1"])).toMatchObject({ code: 2 });
    writeFileSync(join(folder, "open.json"), '{"mcpServers":{},"listen":"0.0.0.0:7420"}');
    expect((await run(["serve", "open.json", "--no-auth"])).err).toContain("--no-auth is refused on 0.0.0.0");
    expect(fake.started).toBeUndefined();
  });

  it("warns when it is open to others, or to all programs here", async () => {
    const fake = fakeGateway();
    const { start } = fake.port;
    expect((await run(["serve", "--no-auth"], { signal: stopped() })).out).toContain("warning: no token is asked for");
    const url = "http://0.0.0.0:7420/mcp";
    replaceGatewayPort({ ...fake.port, start: async (options) => ({ ...(await start(options)), url }) });
    const { out } = await run(["serve"], { signal: stopped() });
    expect(out).toContain("without TLS");
    expect(out).toContain("allowedHosts");
    // Nobody can connect to that address, from here either.
    expect(out).toContain("claude mcp add --transport http toolway http://127.0.0.1:7420/mcp ");
  });

  it("names the config and state in the lines to paste when they are not the usual ones", async () => {
    fakeGateway();
    writeFileSync(join(folder, "my own.json"), '{"mcpServers":{}}');
    const { out } = await run(["serve", "my own.json", "--state", "st"], { signal: stopped() });
    expect(out).toContain("$(npx toolway token show --config './my own.json' --state ./st)");
  });

  it("finds the config: ./toolway.json, else the user's, else the demo", async () => {
    const path = async (): Promise<string | undefined> => {
      const fake = fakeGateway();
      await run(["serve"], { signal: stopped() });
      return fake.started?.configPath;
    };
    expect(await path()).toBeUndefined();
    const own = join(folder, "home/.config/toolway");
    mkdirSync(own, { recursive: true });
    writeFileSync(join(own, "toolway.json"), "{}");
    expect(await path()).toBe(join(own, "toolway.json"));
    writeFileSync(join(folder, "toolway.json"), "{}");
    expect(await path()).toBe(join(folder, "toolway.json"));
  });
});

describe("tools", () => {
  it("are listed in a table, or as JSON", async () => {
    fakeGateway();
    const { out } = await run(["tools"]);
    expect(out.split("\n")[1]).toBe("demo__add   demo    Adds two numbers. And more.");
    expect(JSON.parse((await run(["tools", "--json"])).out)).toEqual(TOOLS);
    expect(await run(["tools", "--server", "x"])).toMatchObject({ code: 1 });
  });

  it("say which of them are quarantined", async () => {
    fakeGateway({ "/tools": { tools: [{ ...TOOLS[0], quarantined: "its description changed" }, TOOLS[1]] } });
    const { out, err } = await run(["tools"]);
    expect(out).toMatch(/demo__add +demo +quarantined: its description changed/);
    expect(err).toContain("toolway pins diff");
  });

  it("say whose tools are not known", async () => {
    const [demo] = STATUS.servers;
    const away = { ...demo, name: "away", counts: { tools: 0, prompts: 0, resources: 0, resourceTemplates: 0 } };
    fakeGateway({ "/status": { ...STATUS, servers: [demo, away] } });
    expect((await run(["tools"])).err).toContain("Not up, so that their tools are not known: away.");
    expect((await run(["tools", "--json"])).err).toBe("");
  });

  it("that are not there are blamed on servers that could have them, and on no others [status-true]", async () => {
    const [demo] = STATUS.servers;
    const away = { ...demo, name: "away", counts: { tools: 0, prompts: 0, resources: 0, resourceTemplates: 0 } };
    fakeGateway({
      "/status": { ...STATUS, servers: [demo, away] },
      "/tools/owners?tool=xyz": { servers: ["away"] },
      "/tools/owners?tool=demo__xyz": { servers: ["demo"] },
    });
    expect((await run(["call", "xyz"])).err).toContain("away");
    expect((await run(["call", "demo__xyz"])).err).not.toContain("away");
  });

  it("that are not there are waited for while a server that could have them starts, and it is said at once [status-true]", async () => {
    const [demo] = STATUS.servers;
    const slow = { ...demo, name: "slow", state: "starting", counts: { tools: 0 } };
    const owners = {
      "/tools/owners?tool=demo__xyz": { servers: ["demo"] },
      "/tools/owners?tool=xyz": { servers: ["slow"] },
    };
    // It starts for ever: whoever waited for it would not come back.
    fakeGateway({
      "/status": { ...STATUS, servers: [{ ...demo, state: "ready", listsFromBefore: false }, slow] },
      ...owners,
    });
    expect((await run(["call", "demo__xyz"])).err).not.toContain("slow");
    let asked = 0;
    fakeGateway({
      "/status": () => ({
        ...STATUS,
        servers: [demo, asked++ < 4 ? slow : { ...slow, state: "ready", listsFromBefore: false }],
      }),
      ...owners,
    });
    const { code, err } = await run(["call", "xyz"]);
    expect(code).toBe(1);
    expect(err.split("\n")[0]).toBe("xyz is not among the tools that are known; waiting for slow …");
    expect(err).toContain("There is no tool xyz.");
  });

  it("are those of a gateway of our own where none runs, which is closed again", async () => {
    const fake = fakeGateway({ "/status": { ...STATUS, servers: [] } }, {}, false);
    expect((await run(["tools"])).out).toContain("demo__add");
    expect(fake.closed).toEqual(["local"]);
  });

  it("wait for servers that start, and say so when it takes long", async () => {
    const [server] = STATUS.servers;
    let polls = 0;
    const status = (): unknown => ({ ...STATUS, servers: [{ ...server, state: polls++ < 45 ? "starting" : "ready" }] });
    fakeGateway({ "/status": status }, {}, false);
    const { err, out } = await run(["tools"]);
    expect(err).toContain("waiting for demo");
    expect(out).toContain("demo__add");
  });
});

describe("inspect", () => {
  const needy = {
    name: "demo__add",
    server: "demo",
    ownName: "add",
    description: "Adds two numbers.",
    inputSchema: { properties: { a: { type: "number", description: "The first." } }, required: ["a"] },
    annotations: { readOnlyHint: true },
  };
  const answers = {
    "/tools": { tools: [needy] },
    "/pins": { pins: [{ server: "demo", tool: "add", state: "pinned", hash: "HASH", firstSeen: "2026-01-01" }] },
    "/access?server=demo&tool=add": {
      access: [
        { role: "reader", allowed: true },
        { role: "(any other role)", allowed: false, rule: 'unlistedRoles is "deny"' },
      ],
    },
  };

  it("shows what a tool takes, a call to paste, what is claimed of it, its pin and who may call it", async () => {
    fakeGateway(answers);
    const { code, out } = await run(["inspect", "add"]);
    expect(code).toBe(0);
    expect(out).toBe(`demo__add
Adds two numbers.

add of server demo

PARAMETERS
  a  number  required  The first.

EXAMPLE
  toolway call demo__add --arg a=1

CLAIMS OF ITS SERVER
  readOnlyHint: true

PIN
  pinned, HASH, since 2026-01-01

MAY CALL IT
  reader: yes
  (any other role): no, unlistedRoles is "deny"
`);
  });

  it("prints all of it as JSON for scripts, and says what is near a name that is not there", async () => {
    fakeGateway(answers);
    const { out } = await run(["inspect", "demo__add", "--json"]);
    expect(JSON.parse(out)).toMatchObject({ ...needy, pin: { hash: "HASH" }, example: expect.any(String) });
    expect((await run(["inspect", "demo__ad"])).err).toContain("Did you mean demo__add?");
  });

  it("is what call goes by: it refuses what is missing or forbidden before anything is called", async () => {
    const inputSchema = { ...needy.inputSchema, additionalProperties: false };
    const gateway = fakeGateway({ ...answers, "/tools": { tools: [{ ...needy, inputSchema }] } });
    expect(await run(["call", "demo__add"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("needs a (number)"),
    });
    const wrong = await run(["call", "demo__add", "--arg", "a=1", "--arg", "aa=2"]);
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("Did you mean a?") });
    expect(gateway.requests.map(({ path }) => path)).not.toContain("/call");
  });

  it("is what completes --arg", async () => {
    fakeGateway(answers);
    expect((await run(["__complete", "argument", "--", "call", "demo__add", "--arg"])).out).toBe("a=\n");
  });
});

describe("call", () => {
  const text = (value: string): unknown => ({ result: { content: [{ type: "text", text: value }] } });

  it("passes arguments of each form, and prints text plainly", async () => {
    const fake = fakeGateway({ "/call": text("5") });
    expect(await run(["call", "demo__add", "--arg", "a=2", "--arg", "b=3"])).toEqual({ code: 0, out: "5\n", err: "" });
    await run(["call", "add", '{"a":1}']);
    await run(["call", "demo/add", "-"], { stdin: Readable.from(['{"a":', "4}"]) });
    writeFileSync(join(folder, "args.json"), '{"a":5}');
    await run(["call", "demo__add", "@args.json"]);
    const sent = fake.requests.filter(({ path }) => path === "/call").map(({ body }) => body);
    expect(sent).toEqual([
      { tool: "demo__add", arguments: { a: 2, b: 3 } },
      { tool: "demo__add", arguments: { a: 1 } },
      { tool: "demo__add", arguments: { a: 4 } },
      { tool: "demo__add", arguments: { a: 5 } },
    ]);
  });

  it("exits 1 when the tool says error, or the call fails; stdout stays clean", async () => {
    fakeGateway({ "/call": { result: { isError: true, content: [{ type: "text", text: "no such file" }] } } });
    expect(await run(["call", "demo__add"])).toEqual({ code: 1, out: "", err: "no such file\n" });
    fakeGateway({ "/call": { error: { code: -31004, message: "It took too long." } } });
    expect(await run(["call", "demo__add"])).toMatchObject({ code: 1, err: "toolway: It took too long. (-31004)\n" });
  });

  it("prints the whole result with --json", async () => {
    fakeGateway({ "/call": text("5") });
    const { out } = await run(["call", "demo__add", "--json"]);
    expect(JSON.parse(out)).toEqual({ content: [{ type: "text", text: "5" }] });
  });

  it("names the near tools when there is none of that name", async () => {
    fakeGateway();
    const { code, err } = await run(["call", "demo__ad"]);
    expect(code).toBe(1);
    expect(err).toContain("Did you mean demo__add?");
    expect(await run(["call", "demo__add", "{"])).toMatchObject({ code: 2 });
  });
});

it("status shows what is wrong below the table", async () => {
  fakeGateway();
  const { out } = await run(["status"]);
  expect(out).toMatch(/demo +down +stdio +2 \(from before\)/);
  expect(out).toContain(
    "demo: It ended with code 1. Next try in 2.0 s.\n  stderr: Error: no key\n`toolway doctor` says what to fix.",
  );
  expect(JSON.parse((await run(["status", "--json"])).out)).toMatchObject({ running: true, pid: 7 });
});

it("status without a gateway promises no next try, and config check misses no file of tls [told-why]", async () => {
  fakeGateway({}, {}, false);
  const { out } = await run(["status"]);
  expect(out).toContain("demo: It ended with code 1.\n");
  expect(out).not.toContain("Next try");
  const tls = { cert: "cert.pem", key: "key.pem" };
  writeFileSync(join(folder, "toolway.json"), JSON.stringify({ mcpServers: {}, tls }));
  writeFileSync(join(folder, "key.pem"), "");
  const { code, err } = await run(["config", "check"]);
  expect(code).toBe(2);
  expect(err).toMatch(/toolway\.json:1:\d+: tls\.cert: .*cert\.pem cannot be read: it does not exist/);
  expect(err).not.toContain("tls.key");
});

describe("tokens", () => {
  it("are made, listed, shown and revoked through the gateway", async () => {
    const tokens = [{ id: "ci", role: "reader", createdAt: "2026-01-01", expiresAt: "2020-01-01T00:00:00Z" }];
    const fake = fakeGateway({
      "/tokens/default": { token: "tw_default" },
      "/tokens": (body: unknown) => (body ? { token: "tw_new" } : { tokens }),
    });
    expect(await run(["token", "create", "--id", "ci", "--role", "reader", "--expires", "30d"])).toMatchObject({
      out: "tw_new\n",
    });
    expect(fake.requests[0]?.body).toEqual({ id: "ci", role: "reader", expires: "30d" });
    expect((await run(["token", "list"])).out).toContain("(expired)");
    expect(await run(["token", "show"])).toMatchObject({ code: 0, out: "tw_default\n" });
    expect((await run(["token", "revoke", "cy"])).err).toContain("Did you mean ci?");
    expect(await run(["token", "revoke", "ci"])).toMatchObject({ code: 0, out: "Revoked ci.\n" });
    expect(fake.requests.at(-1)?.path).toBe("DELETE /tokens/ci");
  });

  it("of a role that the config does not have are made, with a remark", async () => {
    const roles = { roles: { reader: { allow: [] } }, mcpServers: {} };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify(roles));
    fakeGateway({ "/tokens": { token: "tw_new" } });
    const create = (role: string) => run(["token", "create", "--id", "x", "--role", role]);
    expect(await create("reader")).toEqual({ code: 0, out: "tw_new\n", err: "" });
    expect((await create("raeder")).err).toContain('no role "raeder"');
    expect((await create("raeder")).err).toContain('this token may use every tool. Did you mean "reader"? Then revoke');
    expect((await create("executer")).err).toContain('this token may use every tool. Did you mean "executor"?');
    expect((await create("Executor")).err).toContain('Did you mean "executor"?');
    expect((await create("something")).err).not.toContain("Did you mean");
    rmSync(join(folder, "toolway.json"));
    expect((await create("executer")).err).toContain('Did you mean "executor"?');
    expect((await create("something")).err).toBe("The built-in demo has no roles: this token may use every tool.\n");
  });

  it("of executors that the config does not have are made, with a remark [status-true]", async () => {
    const executors = { mcpServers: { a: { url: "http://a", via: "office" } }, executors: { office: {}, lab: {} } };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify(executors));
    fakeGateway({ "/tokens": { token: "tw_new" } });
    const create = (...more: string[]) => run(["token", "create", "--role", "executor", ...more]);
    expect((await create("--id", "office")).err).toBe("");
    expect((await create("--id", "x", "--name", "lab,office")).err).toBe("");
    expect((await create("--id", "ofice")).err).toBe(
      'The config has no executor "ofice" under "executors": nobody is let in by that name. ' +
        'Did you mean "office"? Then revoke this one, and make another.\n',
    );
    expect((await create("--id", "office", "--name", "lab,annex")).err).toContain(
      'no executor "annex" under "executors": nobody is let in by that name. Add it: "executors": { "annex": {} }.',
    );
  });

  it("are shown from the state directory where no gateway runs", async () => {
    fakeGateway(
      {},
      {
        defaultToken: async (source: GatewaySource) => (source.stateDir === join(folder, "s") ? "tw_file" : undefined),
      },
      false,
    );
    expect(await run(["token", "show", "--state", "s"])).toMatchObject({ out: "tw_file\n" });
    expect(await run(["token", "show"])).toMatchObject({ code: 1, out: "" });
  });
});

it("state dump prints the lines as they come", async () => {
  fakeGateway();
  expect((await run(["state", "dump"])).out).toBe('{"a":1}\n{"b":2}\n');
});

describe("import", () => {
  beforeEach(() => {
    mkdirSync(join(folder, "home/.cursor"), { recursive: true });
    const servers = { gh: { command: "npx", args: ["gh"], env: { TOKEN: "ghp_canary", REF: `\${REF}` } } };
    writeFileSync(join(folder, "home/.cursor/mcp.json"), JSON.stringify({ mcpServers: servers }));
  });

  it("shows first, without secrets, and writes nothing", async () => {
    const { code, out, err } = await run(["import"]);
    expect(code).toBe(0);
    expect(out).toContain("taken    Cursor, ./home/.cursor/mcp.json: gh");
    expect(out).toContain(`"REF": "\${REF}"`);
    expect(out + err).not.toContain("ghp_canary");
    expect(err).toContain("Nothing was written");
    expect(existsSync(join(folder, "toolway.json"))).toBe(false);
    await run(["import", "--write", "--dry-run"]);
    expect(existsSync(join(folder, "toolway.json"))).toBe(false);
  });

  it("ends with what is left to do: variables to set, and keys that are copied [config-kept]", async () => {
    const { out } = await run(["import"], { env: { REF: "1" } });
    const [, tail = ""] = out.split("\ntaken ");
    expect(tail).toContain("Variables that the servers need, to be set where the gateway runs:\n  REF: gh\n");
    expect(tail).toContain("Keys that would be copied as they stand:\n  gh: env.TOKEN\n");
    expect(tail).toContain(`Keep ./toolway.json out of git, or put \${VAR} in their place.`);
    expect(out.indexOf('"mcpServers"')).toBeLessThan(out.indexOf("\ntaken "));
    const written = (await run(["import", "--write"])).out;
    expect(written).toContain("REF (not set here): gh");
    expect(written).toContain("Keys that were copied as they stand:");
    expect(written).toContain("Next: `toolway doctor`, then `toolway serve`.");
    expect((await run(["import", "--write", "mine.json"])).out).toContain(
      "Next: `toolway doctor --config ./mine.json`, then",
    );
    const json = JSON.parse((await run(["import", "--json", "--write", "other.json"])).out);
    expect(json.needs).toEqual([{ name: "gh", variables: ["REF"], secrets: ["env.TOKEN"] }]);
  });

  it("takes what was named, and refuses a name that nobody has [config-kept]", async () => {
    const file = join(folder, "home/.cursor/mcp.json");
    writeFileSync(
      file,
      JSON.stringify({ mcpServers: { a: { command: "a" }, b: { command: "b" }, c: { command: "c" } } }),
    );
    const taken = async (...words: string[]) =>
      Object.keys(JSON.parse((await run(["import", "--json", ...words])).out).servers);
    expect(await taken("--only", "a,b", "--exclude", "b")).toEqual(["a"]);
    expect(await taken("--from", "Cursor")).toEqual(["a", "b", "c"]);
    expect(await taken("--from", "vs-code")).toEqual([]);
    const narrowed = await run(["import", "--from", "cursor", "--exclude", "b*"]);
    expect(narrowed.err).toContain("`toolway import --from cursor --exclude 'b*' --write` adds 2 servers");
    expect(await run(["import", "--only", "d"])).toMatchObject({ code: 2, out: "" });
    expect((await run(["import", "--from", "cursr"])).err).toContain("Did you mean cursor?");
  });

  it("says where it looked when there is nothing [told-truly]", async () => {
    rmSync(join(folder, "home/.cursor/mcp.json"));
    writeFileSync(join(folder, "home/.claude.json"), "{}");
    const { code, out } = await run(["import"]);
    expect(code).toBe(0);
    expect(out).toContain("No servers were found. It was looked here:\n");
    expect(out).toContain("  Cursor: ./home/.cursor/mcp.json\n");
    expect(out).toContain("  Claude Code: ./home/.claude.json (no servers in it)\n");
  });

  it("shows no key that stands in arguments or in an address [secrets-unseen]", async () => {
    const args = ["-y", "server", "--api-key", "canary-key", "--token=canary-token", "--ref", `\${REF}`, "/srv/data"];
    const servers = {
      a: { command: "npx", args },
      b: { url: "https://me:canary-pass@h.example/mcp?key=canary-query" },
    };
    writeFileSync(join(folder, "home/.cursor/mcp.json"), JSON.stringify({ mcpServers: servers }));
    const { out, err } = await run(["import"]);
    expect(out + err).not.toContain("canary");
    for (const kept of [
      '"--api-key"',
      '"--token=[redacted]"',
      `"\${REF}"`,
      '"/srv/data"',
      "@h.example/mcp?key=[redacted]",
    ]) {
      expect(out).toContain(kept);
    }
  });

  it("writes a private file, keeps what is there, and takes nothing twice", async () => {
    expect((await run(["import", "--write"])).out).toContain("Wrote 1 server to ./toolway.json");
    const path = join(folder, "toolway.json");
    expect(readFileSync(path, "utf8")).toContain("ghp_canary");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    chmodSync(path, 0o666);
    writeFileSync(path, '// mine\n{"mcpServers": {"own": {"command": "x"}}}');
    await run(["import", "--write", "toolway.json"]);
    expect(readFileSync(path, "utf8")).toMatch(/\/\/ mine[\s\S]*own[\s\S]*gh/);
    // Whatever the umask takes from new files.
    expect(statSync(path).mode & 0o777).toBe(0o666);
    expect((await run(["import", "--write"])).out).toContain("the config has it already");
    expect(await run(["config", "check"], { env: { REF: "1" } })).toMatchObject({ code: 0 });
  });
});

it("the hidden verb for completion gives names, and nothing when there is no gateway", async () => {
  fakeGateway();
  expect((await run(["__complete", "tool", "--", "call", "--json"])).out).toBe("demo__add\ndemo__echo\n");
  expect((await run(["__complete", "server"])).out).toBe("demo\n");
  fakeGateway({ "/tools": () => new Promise(() => undefined) });
  expect(await run(["__complete", "tool"])).toEqual({ code: 0, out: "", err: "" });
  fakeGateway({}, {}, false);
  expect(await run(["__complete", "tool"])).toEqual({ code: 0, out: "", err: "" });
});
