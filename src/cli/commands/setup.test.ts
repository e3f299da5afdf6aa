// `setup` from the words of the line to the files of clients, with a fake gateway that keeps tokens.

import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run, STATUS } from "../../../test/fixtures/fake-gateway.js";
import { importConfigs } from "../../agents/import/import.js";
import { SETUP_CLIENTS } from "../../agents/setup/clients.js";

/** The tokens of the fake gateway: id → role. */
let tokens: Map<string, string>;
let made: number;

beforeEach(() => {
  makeFolder();
  tokens = new Map();
  made = 0;
  const roles = { roles: { reader: { allow: [] } }, mcpServers: {} };
  writeFileSync(join(folder, "toolway.json"), JSON.stringify(roles));
  fakeGateway({
    "/tokens": (body?: { id: string; role: string }) => {
      if (body === undefined) return { tokens: [...tokens].map(([id, role]) => ({ id, role })) };
      tokens.set(body.id, body.role);
      return { token: `tw_secret_${++made}` };
    },
    "/tokens/setup-claude/rotate": () => ({ token: `tw_secret_${++made}` }),
    ...Object.fromEntries(
      SETUP_CLIENTS.map(({ id }) => [`DELETE /tokens/setup-${id}`, () => tokens.delete(`setup-${id}`)]),
    ),
    "/roles/raeder": new Error('There is no role "raeder". Did you mean reader?'),
  });
});

afterEach(leaveFolder);

const home = (...path: string[]) => join(folder, "home", ...path);
const put = (path: string, text: string, mode = 0o644) => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, mode);
};
const read = (path: string) => readFileSync(path, "utf8");
const setup = (...words: string[]) => run(["setup", ...words, "--state", "s"]);
const kept = (id: string) => JSON.parse(read(join(folder, "s", "setup", `${id}.json`)));

describe("setting up a client", () => {
  it("writes an entry that the client's format takes, for every client [setup-keeps]", async () => {
    for (const { id, ways } of SETUP_CLIENTS) {
      for (const via of ways) {
        const ran = await setup(id, "--via", via, "--yes", "--json");
        expect(ran, `${id} ${via} ${ran.err}`).toMatchObject({ code: 0 });
        const { file, principal } = JSON.parse(ran.out);
        expect(principal).toBe(`setup-${id}`);
        expect(read(file), "no token in a client's file").not.toContain("tw_secret");
        expect(statSync(file).mode & 0o777, file).toBe(0o600);
      }
      expect(tokens.get(`setup-${id}`)).toBe("default");
    }
    // All of them started last: `toolway import` reads the files as the clients do.
    const { looked, servers } = importConfigs(places());
    expect(looked.length).toBeGreaterThanOrEqual(SETUP_CLIENTS.length - 1);
    expect(servers, "a gateway behind itself would wait for itself").toEqual({});
    const listed = JSON.parse((await run(["setup", "--json"])).out) as { id: string; files: { state: string }[] }[];
    expect(listed.map(({ files }) => files.map(({ state }) => state))).toEqual(SETUP_CLIENTS.map(() => ["set up"]));
  });

  it("without a client lists which are installed, which are set up, and whose entry of our name is another", async () => {
    put(join(folder, "bin", "gemini"), "#!/bin/sh\n", 0o755);
    // What cannot be started is no program.
    put(join(folder, "bin", "qwen"), "", 0o644);
    put(home(".cursor", "mcp.json"), '{ "mcpServers": { "toolway": { "command": "another" } } }');
    await setup("claude", "--yes");
    const ran = await run(["setup", "--json"], { env: { PATH: join(folder, "bin") } });
    const listed = JSON.parse(ran.out) as { id: string; installed: boolean; files: { state: string }[] }[];
    const stateOf = (id: string) =>
      listed.filter((one) => one.id === id).map((one) => [one.installed, one.files.map(({ state }) => state)]);
    expect(stateOf("gemini")).toEqual([[true, []]]);
    expect(stateOf("qwen")).toEqual([[false, []]]);
    expect(stateOf("cursor")).toEqual([[true, ["other"]]]);
    // `toolway run claude` would not find it: what it has left in the home folder does not make it installed.
    expect(stateOf("claude")).toEqual([[false, ["set up"]]]);
    const told = (await run(["setup"], { env: { PATH: join(folder, "bin") } })).out;
    expect(told).toMatch(/^gemini .* yes +no *$/m);
    expect(told).toMatch(/^claude .* not on the PATH /m);
    expect((await run(["run", "claude"], { env: { PATH: join(folder, "bin") } })).err).toContain("is not installed");
    expect(told).toContain("toolway setup gemini");
  });

  it("is not taken for a server of the client by import, at whatever port the gateway listens", async () => {
    const STATUS_AT = { ...STATUS, endpoint: "http://127.0.0.1:7999/mcp" };
    fakeGateway({ "/status": STATUS_AT, "/tokens": (body?: object) => (body ? { token: "tw_x" } : { tokens: [] }) });
    for (const { id } of SETUP_CLIENTS) expect((await setup(id, "--yes")).code).toBe(0);
    const { servers, skipped } = importConfigs(places());
    expect(servers).toEqual({});
    expect(skipped.length).toBeGreaterThanOrEqual(SETUP_CLIENTS.length - 1);
  });

  it("does not write the address of a gateway that ends with its last run", async () => {
    const status = { ...STATUS, endpoint: "http://127.0.0.1:41833/mcp", forRuns: true };
    fakeGateway({ "/status": status });
    const { url, entry } = JSON.parse((await setup("claude", "--dry-run", "--json")).out);
    expect([url, entry.url]).toEqual(["http://127.0.0.1:7420/mcp", "http://127.0.0.1:7420/mcp"]);
  });

  it("writes an address of this machine where the gateway listens on all of them, whether it runs or not", async () => {
    const urlOf = async () => JSON.parse((await setup("claude", "--dry-run", "--json")).out).url;
    fakeGateway({ "/status": { ...STATUS, endpoint: "http://0.0.0.0:7420/mcp" } });
    expect(await urlOf()).toBe("http://127.0.0.1:7420/mcp");
    fakeGateway({}, {}, false);
    for (const [listen, host] of [
      ["0.0.0.0:7499", "127.0.0.1"],
      ["[::]:7499", "[::1]"],
    ]) {
      writeFileSync(join(folder, "toolway.json"), JSON.stringify({ mcpServers: {}, listen }));
      expect(await urlOf()).toBe(`http://${host}:7499/mcp`);
    }
  });

  it("gives those that take it a helper, others a variable, and the rest a program", async () => {
    const vias: Record<string, string> = {};
    for (const { id } of SETUP_CLIENTS) vias[id] = JSON.parse((await setup(id, "--dry-run", "--json")).out).via;
    expect(vias).toEqual({
      ...{ claude: "helper", codex: "helper" },
      ...{ gemini: "variable", opencode: "variable", cursor: "variable", vscode: "variable" },
      ...{ copilot: "variable", qwen: "variable" },
      ...{ "claude-desktop": "program", windsurf: "program", zed: "program", amp: "program" },
    });
  });

  it("has entries that read as the clients want them", async () => {
    const entry = async (...words: string[]) => JSON.parse((await setup(...words, "--dry-run", "--json")).out).entry;
    const url = "http://127.0.0.1:7420/mcp";
    const state = join(folder, "s");
    const own = [process.execPath, process.argv[1] ?? ""];
    const helper = `${own.join(" ")} token header --id setup-claude --state ${state}`;
    expect(await entry("claude")).toEqual({ type: "http", url, headersHelper: helper });
    expect(await entry("claude", "--via", "variable")).toEqual({
      type: "http",
      url,
      headers: { Authorization: `Bearer \${TOOLWAY_CLAUDE_TOKEN}` },
    });
    expect(await entry("codex", "--via", "variable")).toEqual({ url, bearer_token_env_var: "TOOLWAY_CODEX_TOKEN" });
    expect(await entry("gemini")).toEqual({
      httpUrl: url,
      headers: { Authorization: `Bearer \${TOOLWAY_GEMINI_TOKEN}` },
    });
    expect(await entry("opencode")).toEqual({
      ...{ type: "remote", url, oauth: false },
      headers: { Authorization: "Bearer {env:TOOLWAY_OPENCODE_TOKEN}" },
    });
    expect(await entry("vscode")).toMatchObject({ headers: { Authorization: `Bearer \${env:TOOLWAY_VSCODE_TOKEN}` } });
    expect(await entry("claude-desktop")).toEqual({
      command: own[0],
      args: [own[1], "stdio", join(folder, "toolway.json"), "--as", "setup-claude-desktop", "--state", state],
    });
  });

  it("shows the change first, and not the keys of others [setup-keeps]", async () => {
    const before = `{\n  "mcpServers": {\n    "a": { "command": "x", "env": { "KEY": "sekret" } } // mine\n  }\n}\n`;
    put(home(".gemini", "settings.json"), before);
    const ran = await setup("gemini", "--dry-run");
    expect(ran.out).toContain(`+       "httpUrl": "http://127.0.0.1:7420/mcp"`);
    expect(ran.out).not.toContain("sekret");
    put(
      home(".qwen", "settings.json"),
      `{"k":"sekret","mcpServers":{"a":{"command":"x","env":{"KEY":"sekret ${"x".repeat(99)}"}}}}`,
    );
    const long = await setup("qwen", "--dry-run");
    expect(long.out).toContain("TOOLWAY_QWEN_TOKEN");
    expect(long.out).not.toContain("sekret");
    expect(read(home(".gemini", "settings.json"))).toBe(before);
    expect(tokens.size).toBe(0);
  });

  it("asks on a terminal, and in a pipe wants --yes [setup-keeps]", async () => {
    const piped = await setup("claude");
    expect(piped).toMatchObject({ code: 2 });
    expect(piped.err).toContain("Say --yes");
    expect(existsSync(home(".claude.json"))).toBe(false);
    for (const [answer, code] of [
      ["n", 1],
      ["y", 0],
    ] as const) {
      const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => stdin });
      const stderr = new PassThrough();
      let asked = "";
      stderr.on("data", (chunk: Buffer) => {
        asked += chunk.toString();
        if (!asked.includes("[y/N]")) return;
        asked = "";
        stdin.write(`${answer}\r`);
      });
      const ran = await run(["setup", "claude", "--state", "s"], { stdin, stderr, isErrTTY: true });
      expect(ran.code).toBe(code);
      expect(existsSync(home(".claude.json"))).toBe(code === 0);
    }
  });

  it("twice is once, and its token stays the same [setup-keeps]", async () => {
    put(home(".codex", "config.toml"), '# mine\nmodel = "x"\n');
    await setup("codex", "--yes");
    const [text, secret] = [read(home(".codex", "config.toml")), kept("setup-codex")];
    const again = await setup("codex");
    expect(again).toMatchObject({ code: 0 });
    expect(again.out).toContain("Codex is set up already, in");
    expect(read(home(".codex", "config.toml"))).toBe(text);
    expect(kept("setup-codex")).toEqual(secret);
    expect(made).toBe(1);
  });

  it("keeps what was there beside it, links as links, and modes as they were [setup-keeps]", async () => {
    const real = join(folder, "dotfiles.json");
    put(real, '{ "a": 1 }\n', 0o640);
    symlinkSync(real, home(".claude.json"));
    const ran = await setup("claude", "--yes");
    expect(ran.out).toContain("What was there before is in");
    expect(lstatSync(home(".claude.json")).isSymbolicLink()).toBe(true);
    expect(realpathSync(home(".claude.json"))).toBe(realpathSync(real));
    expect(read(home(".claude.json.toolway.bak"))).toBe('{ "a": 1 }\n');
    for (const path of [real, home(".claude.json.toolway.bak")]) expect(statSync(path).mode & 0o777).toBe(0o640);
    const secret = join(folder, "s", "setup", "setup-claude.json");
    expect(statSync(secret).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(secret)).mode & 0o777).toBe(0o700);
  });

  it("leaves a link alone that leads to no file: one in its place would not be where its owner keeps it [setup-keeps]", async () => {
    const gone = join(folder, "dotfiles", "mcp.json");
    mkdirSync(home(".cursor"), { recursive: true });
    symlinkSync(gone, home(".cursor", "mcp.json"));
    const ran = await setup("cursor", "--yes");
    expect(ran.code).toBe(1);
    expect(ran.err).toContain(`is a link to ${gone}, which is not there. It was left as it is.`);
    expect(lstatSync(home(".cursor", "mcp.json")).isSymbolicLink()).toBe(true);
    expect(tokens.size).toBe(0);
  });

  it("keeps what was there in a file of its own, also where a project has a link in its place that leads to a file of the user's [setup-keeps]", async () => {
    const [file, profile] = [join(folder, ".mcp.json"), home(".profile")];
    put(file, '{ "a": 1 }\n');
    put(profile, "mine\n", 0o600);
    symlinkSync(profile, `${file}.toolway.bak`);
    expect(await setup("claude", "--scope", "project", "--yes")).toMatchObject({ code: 0 });
    expect(read(profile)).toBe("mine\n");
    expect(statSync(profile).mode & 0o777).toBe(0o600);
    expect(lstatSync(`${file}.toolway.bak`).isFile()).toBe(true);
    expect(read(`${file}.toolway.bak`)).toBe('{ "a": 1 }\n');
  });

  it("refuses a broken file with its place, and leaves it alone [setup-keeps]", async () => {
    put(home(".gemini", "settings.json"), '{\n  "a": 1\n  "b": 2\n}\n');
    const ran = await setup("gemini", "--yes");
    expect(ran.code).toBe(2);
    expect(ran.err).toContain(`${home(".gemini", "settings.json")}:3:3: not valid JSON`);
    expect(read(home(".gemini", "settings.json"))).toBe('{\n  "a": 1\n  "b": 2\n}\n');
    expect(tokens.size).toBe(0);
    expect((await run(["setup"])).out).toContain("settings.json:3:3");
  });

  it("leaves a file alone that is not in UTF-8: what is not ours would not stay byte for byte [setup-keeps]", async () => {
    const bytes = Buffer.from('{\n  // caf\xe9\n  "a": 1\n}\n', "latin1");
    put(home(".qwen", "settings.json"), "");
    writeFileSync(home(".qwen", "settings.json"), bytes);
    const ran = await setup("qwen", "--yes");
    expect(ran.code).toBe(1);
    expect(ran.err).toContain("it is not in UTF-8, and would not stay what it is. It was left as it is.");
    expect(readFileSync(home(".qwen", "settings.json"))).toEqual(bytes);
    expect(tokens.size).toBe(0);
  });

  it("leaves an entry of that name alone that somebody else made [setup-keeps]", async () => {
    const text = '{ "mcpServers": { "toolway": { "command": "mine" } } }';
    put(home(".cursor", "mcp.json"), text);
    for (const more of [[], ["--remove"]]) {
      const ran = await setup("cursor", "--yes", ...more);
      expect(ran.code).toBe(1);
      expect(ran.err).toContain('has an entry "toolway" that is not of this gateway. It was left as it is.');
    }
    expect(read(home(".cursor", "mcp.json"))).toBe(text);
  });

  it("gives the role that is asked for, also later, and refuses one that the config has not", async () => {
    await setup("claude", "--yes");
    const first = kept("setup-claude").token;
    await setup("claude", "--role", "reader");
    expect(tokens.get("setup-claude")).toBe("reader");
    expect(kept("setup-claude").token).not.toBe(first);
    await setup("claude");
    expect(tokens.get("setup-claude")).toBe("reader");
    expect((await setup("gemini", "--role", "raeder", "--yes")).err).toContain("Did you mean reader?");
    expect(existsSync(home(".gemini", "settings.json"))).toBe(false);
  });

  it("says which clients there are where the word is none, and what a client does not take", async () => {
    expect((await setup("cluade", "--yes")).err).toContain("Did you mean claude?");
    expect((await setup("gemini", "--via", "helper")).err).toContain("It takes: variable, program.");
    expect((await setup("windsurf", "--scope", "project")).err).toContain("not known to have a config for one project");
    expect((await run(["setup", "--remove"])).err).toContain("Say which client is meant.");
    const listed = await run(["setup"]);
    expect(await run(["setup", "--dry-run"])).toMatchObject({ code: 0, out: listed.out });
  });
});

describe("taking a client out", () => {
  it("leaves what was there, and revokes its token and no other [setup-keeps]", async () => {
    const before = '# mine\nmodel = "x"\n';
    put(home(".codex", "config.toml"), before);
    await setup("codex", "--yes");
    await setup("claude", "--yes");
    const ran = await setup("codex", "--remove", "--yes");
    expect(ran.out).toContain("The token of setup-codex is revoked.");
    expect(read(home(".codex", "config.toml"))).toBe(before);
    expect([...tokens.keys()]).toEqual(["setup-claude"]);
    expect(existsSync(join(folder, "s", "setup", "setup-codex.json"))).toBe(false);
    expect((await setup("codex", "--remove", "--yes")).out).toContain("Codex is not set up in");
  });

  it.each<[string, string | undefined]>([
    ["no file", undefined],
    ["an empty file", ""],
    ["an empty object", "{}"],
    ["an empty group", '{\n    "mcpServers": {   }\n}'],
    ["no group, in one line", '{ "a": 1 }\n'],
    ["no group, no last line break", '{\r\n\t"a": 1, // mine\r\n}'],
    ["another server", '{\n  "mcpServers": { "a": { "command": "x" } } /* mine */\n}\n'],
  ])("leaves %s, byte for byte, also after it was set up in another way [setup-keeps]", async (_, before) => {
    const [file, backup] = [home(".claude.json"), home(".claude.json.toolway.bak")];
    const now = () => (existsSync(file) ? read(file) : undefined);
    if (before !== undefined) put(file, before);
    for (const via of ["helper", "program", "variable"]) await setup("claude", "--yes", "--via", via);
    expect(now()).toContain("TOOLWAY_CLAUDE_TOKEN");
    expect(existsSync(backup) ? read(backup) : undefined).toBe(before);
    const ran = await setup("claude", "--remove", "--yes");
    expect(ran.code).toBe(0);
    expect(now()).toBe(before);
    expect(existsSync(backup) ? read(backup) : undefined).toBe(before);
  });

  it("leaves what was changed meanwhile, without a group of ours, and keeps the next first state [setup-keeps]", async () => {
    const file = home(".gemini", "settings.json");
    put(file, '{ "a": 1 }\n');
    await setup("gemini", "--yes");
    put(file, read(file).replace('"a": 1', '"a": 2'));
    await setup("gemini", "--remove", "--yes");
    expect(read(file)).toBe('{ "a": 2 }\n');
    expect(read(`${file}.toolway.bak`)).toBe('{ "a": 1 }\n');
    await setup("gemini", "--yes");
    expect(read(`${file}.toolway.bak`)).toBe('{ "a": 2 }\n');
    // A group that was there before us is the user's.
    put(file, '{ "mcpServers": {}, "a": 1 }\n');
    await setup("gemini", "--yes");
    put(file, read(file).replace('"a": 1', '"a": 2'));
    await setup("gemini", "--remove", "--yes");
    expect(JSON.parse(read(file))).toEqual({ mcpServers: {}, a: 2 });
  });

  it("keeps the token while another file of the client uses it", async () => {
    await setup("claude", "--yes");
    const project = await setup("claude", "--yes", "--scope", "project");
    expect(project.out).toContain("TOOLWAY_CLAUDE_TOKEN");
    expect(statSync(join(folder, ".mcp.json")).mode & 0o044).toBe(0o044 & ~process.umask());
    expect(read(join(folder, ".mcp.json")), "a project's file has no path of this machine").not.toContain(folder);
    expect((await setup("claude", "--remove", "--yes")).out).toContain("Its token stays, for ./.mcp.json.");
    expect(tokens.has("setup-claude")).toBe(true);
    await setup("claude", "--remove", "--yes", "--scope", "project");
    expect(tokens.has("setup-claude")).toBe(false);
  });
});

describe("the token of a client that is set up", () => {
  it("is printed as a header and alone, from the disk", async () => {
    await setup("claude", "--yes");
    const header = await run(["token", "header", "--id", "setup-claude", "--state", "s"]);
    expect(JSON.parse(header.out)).toEqual({ Authorization: "Bearer tw_secret_1" });
    expect((await run(["token", "show", "--id", "setup-claude", "--state", "s"])).out).toBe("tw_secret_1\n");
    const none = await run(["token", "header", "--id", "../token", "--state", "s"]);
    expect(none).toMatchObject({ code: 1, out: "" });
    expect(none.err).toContain("run `toolway setup CLIENT");
  });

  it("is made anew where what was kept is lost", async () => {
    await setup("claude", "--yes");
    writeFileSync(join(folder, "s", "setup", "setup-claude.json"), "{");
    await setup("claude");
    expect(kept("setup-claude").token).toBe("tw_secret_2");
  });
});

function places() {
  return { home: home(), cwd: join(folder, "nowhere"), platform: process.platform, env: {}, allProjects: false };
}
