// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { addServers, serversInText } from "../../config/edit/text.js";
import { parseConfig } from "../../config/load.js";
import { clientFiles, findClientConfigs, type Place } from "./clients.js";
import { type ImportOptions, importConfigs } from "./import.js";

let root: string;
let place: Place;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "toolway-import-"));
  place = { home: join(root, "home"), cwd: join(root, "proj"), platform: "linux", env: {} };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function put(path: string, content: unknown): string {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

const found = (options: Partial<ImportOptions> = {}) => importConfigs({ ...place, ...options });

describe("findClientConfigs", () => {
  it("finds the files that are there, the project's first", () => {
    put("home/.cursor/mcp.json", {});
    put("proj/.mcp.json", {});
    put("home/.claude.json", {});
    expect(findClientConfigs(place).map(({ client, file }) => [client, file.slice(root.length)])).toEqual([
      ["Claude Code", "/proj/.mcp.json"],
      ["Claude Code", "/home/.claude.json"],
      ["Cursor", "/home/.cursor/mcp.json"],
    ]);
  });

  it.each([
    [
      "linux",
      {},
      "/h/.config/Claude/claude_desktop_config.json",
      "/h/.config/Code/User/mcp.json",
      "/h/.config/zed/settings.json",
    ],
    [
      "linux",
      { XDG_CONFIG_HOME: "/c" },
      "/c/Claude/claude_desktop_config.json",
      "/c/Code/User/mcp.json",
      "/c/zed/settings.json",
    ],
    [
      "darwin",
      {},
      "/h/Library/Application Support/Claude/claude_desktop_config.json",
      "/h/Library/Application Support/Code/User/mcp.json",
      "/h/.config/zed/settings.json",
    ],
    [
      "win32",
      { APPDATA: "C:\\A" },
      "C:\\A\\Claude\\claude_desktop_config.json",
      "C:\\A\\Code\\User\\mcp.json",
      "C:\\A\\zed\\settings.json",
    ],
  ] as const)("knows the places on %s %o", (platform, env, ...paths) => {
    const files = clientFiles({ home: platform === "win32" ? "C:\\h" : "/h", cwd: "/p", platform, env }).map(
      (f) => f.file,
    );
    for (const path of paths) expect(files).toContain(path);
  });

  it("follows the variables that move a client's folder", () => {
    const env = { CODEX_HOME: "/codex", CLAUDE_CONFIG_DIR: "/claude" };
    const files = clientFiles({ ...place, env }).map((f) => f.file);
    expect(files).toContain("/codex/config.toml");
    expect(files).toContain("/claude/.claude.json");
  });
});

describe("importConfigs", () => {
  it("reads Codex, with its variables and time limits", () => {
    put(
      "home/.codex/config.toml",
      `model = "x"
[mcp_servers.docs]
command = "npx"
args = ["-y", "docs"]
env_vars = ["HOME_TOKEN"]
startup_timeout_sec = 20
tool_timeout_sec = 1.5
disabled_tools = ["rm"]
[mcp_servers.docs.env]
KEY = "v"
[mcp_servers.remote]
url = "https://x.example/mcp"
bearer_token_env_var = "X_TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Org" = "ORG" }
enabled_tools = ["only"]
[mcp_servers.off]
command = "x"
enabled = false
`,
    );
    const { servers, skipped, notes } = found();
    expect(servers).toEqual({
      docs: {
        command: "npx",
        args: ["-y", "docs"],
        env: { KEY: "v", HOME_TOKEN: "${HOME_TOKEN:-}" },
        connectTimeoutMs: 20_000,
        callTimeoutMs: 1500,
        tools: { rm: { hide: true } },
      },
      remote: {
        url: "https://x.example/mcp",
        headers: { "X-Region": "eu", "X-Org": "${ORG}", Authorization: "Bearer ${X_TOKEN}" },
        only: ["only"],
      },
    });
    expect(skipped).toMatchObject([{ client: "Codex", name: "off", reason: "it is disabled there" }]);
    expect(notes).toEqual([]);
  });

  it("reads opencode, both versions of its form", () => {
    put(
      "home/.config/opencode/opencode.jsonc",
      `{ // c
      "mcp": {
        "a": { "type": "local", "command": ["bun", "x", "a"], "environment": { "K": "{env:K}" }, "enabled": true },
        "b": { "type": "remote", "url": "https://b/mcp", "headers": { "A": "Bearer {env:T}" } },
        "c": { "type": "local", "command": ["x"], "environment": { "K": "{file:~/secret}" } },
      }, }`,
    );
    put("proj/opencode.json", { mcp: { servers: { d: { type: "local", command: ["d"] } } } });
    const { servers, skipped } = found();
    expect(servers).toEqual({
      d: { command: "d", cwd: place.cwd },
      a: { command: "bun", args: ["x", "a"], env: { K: "${K}" } },
      b: { url: "https://b/mcp", headers: { A: "Bearer ${T}" } },
    });
    expect(skipped).toMatchObject([{ name: "c", reason: expect.stringContaining("reads a value from a file") }]);
  });

  it("reads Claude Code, with the servers of its projects", () => {
    put("home/.claude.json", {
      numStartups: 1,
      mcpServers: { all: { type: "http", url: "https://all/mcp" } },
      projects: {
        "/p1": { mcpServers: { one: { type: "stdio", command: "./one", args: [], env: {} } }, disabledMcpServers: [] },
        "/p2": { mcpServers: { two: { command: "two" } }, disabledMcpServers: ["two"] },
        "/p3": { allowedTools: [] },
      },
    });
    const { servers, skipped, taken } = found({ allProjects: true });
    expect(servers).toEqual({ all: { url: "https://all/mcp" }, one: { command: "/p1/one", cwd: "/p1" } });
    expect(skipped).toMatchObject([{ name: "two", reason: "it is disabled there" }]);
    expect(taken).toMatchObject([{ client: "Claude Code", names: ["all", "one"] }]);
  });

  it("reads VS Code, Cursor, Gemini CLI, Windsurf, Zed and Cline", () => {
    put("proj/.vscode/mcp.json", {
      inputs: [
        { id: "api-key", type: "promptString", password: true, default: "never" },
        { id: "region", type: "pickString", default: "eu" },
      ],
      servers: {
        v: { type: "stdio", command: "./v", args: ["${workspaceFolder}/x"], envFile: ".env" },
        far: { type: "stdio", command: "./w", envFile: "${userHome}/.env", cwd: "${env:HOME}" },
        asks: { url: "https://x", headers: { A: "Bearer ${input:api-key}", R: "${input:region}" } },
        runs: { command: "x", args: ["${command:pick}"] },
      },
    });
    put(
      "home/.config/Code/User/settings.json",
      '{ "editor.fontSize": 1, "mcp": { "servers": { "old": { "command": "old" } } } }',
    );
    put("proj/.cursor/mcp.json", { mcpServers: { c: { command: "c", env: { K: "${env:K}" }, cwd: "sub" } } });
    put("home/.gemini/settings.json", {
      mcpServers: { g: { httpUrl: "https://g", headers: { A: "Bearer $G_TOKEN" }, excludeTools: ["x"], trust: true } },
    });
    put("home/.codeium/windsurf/mcp_config.json", { mcpServers: { w: { serverUrl: "https://w", type: "sse" } } });
    put("home/.config/zed/settings.json", {
      context_servers: {
        z: { source: "custom", command: "z", args: ["a"], env: {} },
        older: { command: { path: "o", args: ["b"], env: { K: "v" } }, settings: {} },
        ext: { source: "extension", settings: { token: "x" } },
      },
    });
    put("home/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", {
      mcpServers: { cl: { command: "cl", disabled: true }, ws: { type: "ws", url: "ws://x" }, none: {} },
    });
    const { servers, skipped, notes } = found();
    const { cwd } = place;
    expect(servers).toEqual({
      c: { command: "c", env: { K: "${env:K}" }, cwd: `${cwd}/sub` },
      v: { command: `${cwd}/v`, args: [`${cwd}/x`], envFile: `${cwd}/.env`, cwd },
      far: { command: `${cwd}/w`, envFile: "${userHome}/.env", cwd: "${env:HOME}" },
      asks: { url: "https://x", headers: { A: "Bearer ${input:api-key}", R: "${input:region}" } },
      old: { command: "old" },
      w: { type: "sse", url: "https://w" },
      g: { url: "https://g", headers: { A: "Bearer ${G_TOKEN}" }, tools: { x: { hide: true } } },
      z: { command: "z", args: ["a"] },
      older: { command: "o", args: ["b"], env: { K: "v" } },
    });
    expect(skipped.map(({ name, reason }) => [name, reason])).toEqual([
      ["runs", "its editor fills in ${command:pick}: add it by hand, with ${VAR} in its place"],
      ["ext", "an extension of the editor starts it"],
      ["cl", "it is disabled there"],
      ["ws", 'its type "ws" is not supported'],
      ["none", "it has neither a command nor an address"],
    ]);
    expect(notes.map(({ name, reason }) => [name, reason])).toEqual([
      ["asks", 'its editor asks for "api-key": here INPUT_API_KEY answers it, or what `toolway doctor` is told'],
      [
        "asks",
        'its editor asks for "region": here INPUT_REGION answers it, or what `toolway doctor` is told, else its own default',
      ],
    ]);
  });
});

describe("importConfigs of what VS Code asks for", () => {
  const prompt = { id: "key", type: "promptString", description: "The key" };
  const region = { id: "region", type: "pickString", options: ["eu", "us"], default: "eu" };
  const asks = (url: string) => ({ url, headers: { A: "Bearer ${input:key}", R: "${input:region}" } });

  it("brings the inputs along, so that they mean what they mean where the file is served itself [config-kept]", () => {
    const served = { inputs: [prompt, region, { id: "unused" }], servers: { a: asks("https://a") } };
    put("proj/.vscode/mcp.json", served);
    const { servers, inputs, unanswered } = found();
    expect(inputs).toEqual([prompt, region]);
    expect(unanswered).toEqual({ a: ["INPUT_KEY"] });
    const text = addServers(undefined, servers, "toolway.json", inputs);
    for (const env of [{}, { INPUT_KEY: "k" }, { INPUT_KEY: "k", INPUT_REGION: "us" }]) {
      const outcomes = [text, JSON.stringify(served)].map((one) => {
        const config = parseConfig(one, { path: join(root, "c.json"), env, home: "/h", wrongEntries: "keep" });
        return [
          config.servers.map(({ target }) => target),
          config.misconfigured.map(({ why }) => why),
          config.unanswered,
        ];
      });
      expect(outcomes[0]).toEqual(outcomes[1]);
    }
  });

  it("calls an input by another id where the config means something else by its own [config-kept]", () => {
    put("proj/.vscode/mcp.json", { inputs: [prompt], servers: { a: asks("https://a") } });
    put("home/.config/Code/User/mcp.json", {
      inputs: [{ ...prompt, description: "Another key", password: true, default: "canary" }, region],
      servers: { b: asks("https://b"), c: { command: "c", args: ["${input:key}"] } },
    });
    const existing = { own: { command: "x", args: ["${input:region}"] } };
    const existingInputs = [{ ...region, default: "us" }];
    const { servers, inputs, notes } = found({ existing, existingInputs });
    expect(servers).toMatchObject({
      // The first file does not declare what it means by the region.
      a: { headers: { A: "Bearer ${input:key}", R: "${input:region-2}" } },
      b: { headers: { A: "Bearer ${input:key-2}", R: "${input:region-3}" } },
      c: { args: ["${input:key-2}"] },
    });
    expect(inputs).toEqual([
      prompt,
      { ...prompt, id: "key-2", description: "Another key", password: true },
      { ...region, id: "region-3" },
    ]);
    expect(notes.map(({ reason }) => reason)).toContain(
      'its editor asks for "key", and is called "key-2" here, since another input has its id: ' +
        "here INPUT_KEY_2 answers it, or what `toolway doctor` is told",
    );
    // And a second time finds all of it there.
    const text = addServers(JSON.stringify({ mcpServers: existing, inputs: existingInputs }), servers, "t", inputs);
    const again = JSON.parse(text);
    expect(found({ existing: again.mcpServers, existingInputs: again.inputs })).toMatchObject({
      servers: {},
      inputs: [],
    });
  });
});

it("arguments that are numbers or switches are taken as texts, and an item that is neither leaves the server out [config-kept]", () => {
  put("home/.cursor/mcp.json", {
    mcpServers: {
      odd: { command: "x", args: ["--port", 80, true] },
      none: { command: "x", args: ["--port", null] },
      "": { command: "y" },
    },
  });
  const { servers, skipped, notes } = found();
  expect(servers).toEqual({ odd: { command: "x", args: ["--port", "80", "true"] }, server: { command: "y" } });
  expect(skipped).toMatchObject([{ name: "none", reason: 'an item of its "args" is no text: write it as one' }]);
  expect(notes).toMatchObject([{ name: "", reason: 'its name is empty: it is called "server"' }]);
});

describe("importConfigs with several clients", () => {
  it("takes the same server once, and gives another of the same name a number", () => {
    put("home/.claude.json", { mcpServers: { gh: { type: "http", url: "https://gh/mcp" } } });
    put("home/.cursor/mcp.json", { mcpServers: { gh: { url: "https://gh/mcp" } } });
    put("home/.lmstudio/mcp.json", { mcpServers: { gh: { url: "https://other/mcp" } } });
    const { servers, taken, skipped, notes } = found();
    expect(servers).toEqual({ gh: { url: "https://gh/mcp" }, "gh-2": { url: "https://other/mcp" } });
    expect(taken.map(({ client, names }) => [client, names])).toEqual([
      ["Claude Code", ["gh"]],
      ["LM Studio", ["gh-2"]],
    ]);
    expect(skipped).toMatchObject([{ client: "Cursor", name: "gh", reason: "the same as the one of Claude Code" }]);
    expect(notes).toMatchObject([
      { client: "LM Studio", name: "gh", reason: 'another server has this name: it is called "gh-2"' },
    ]);
  });

  it("names the client whose server is the same one, and not the first of that name [told-truly]", () => {
    put("home/.claude.json", { mcpServers: { gh: { type: "http", url: "https://gh/mcp" } } });
    put("home/.cursor/mcp.json", { mcpServers: { gh: { url: "https://other/mcp" } } });
    put("home/.lmstudio/mcp.json", { mcpServers: { gh: { url: "https://other/mcp" } } });
    expect(found().skipped).toMatchObject([
      { client: "LM Studio", name: "gh", reason: "the same as the one of Cursor" },
    ]);
  });

  it("passes Toolway itself over", () => {
    put("home/.cursor/mcp.json", {
      mcpServers: {
        a: { url: "http://127.0.0.1:7420/mcp" },
        b: { url: "http://localhost:7420/mcp/files" },
        c: { command: "toolway", args: ["stdio"] },
        d: { command: "npx", args: ["-y", "toolway@latest", "stdio"] },
        e: { command: "npx", args: ["toolway-like"] },
        f: { url: "https://example.com/mcp" },
      },
    });
    const { servers, skipped } = found();
    expect(Object.keys(servers)).toEqual(["e", "f"]);
    expect(skipped.map((remark) => remark.reason)).toEqual(Array(4).fill("it is Toolway itself"));
  });

  it("says which file it could not read, and takes the others", () => {
    put("home/.cursor/mcp.json", '{ "mcpServers": {\n broken');
    put("home/.codex/config.toml", "[mcp_servers.a]\ncommand = \n");
    put("home/.lmstudio/mcp.json", { mcpServers: { ok: { command: "ok" } } });
    const { servers, skipped } = found();
    expect(Object.keys(servers)).toEqual(["ok"]);
    expect(skipped.map(({ client, name, reason }) => [client, name, reason.split(":")[0]])).toEqual([
      ["Cursor", undefined, "line 2"],
      ["Codex", undefined, "not valid TOML"],
    ]);
  });

  it("opens what is no ordinary file in no client's place: a pipe that nobody writes into would have it wait for ever", () => {
    put("home/.lmstudio/mcp.json", { mcpServers: { ok: { command: "ok" } } });
    mkdirSync(join(root, "home/.cursor"), { recursive: true });
    // A device stands for the pipe, so that this test ends in either case.
    symlinkSync("/dev/null", join(root, "home/.cursor/mcp.json"));
    const { servers, skipped } = found();
    expect(Object.keys(servers)).toEqual(["ok"]);
    expect(skipped.map(({ client, reason }) => [client, reason])).toEqual([
      ["Cursor", "it cannot be read: it is not an ordinary file"],
    ]);
  });

  it("takes nothing twice out of the file that it writes into [config-kept]", () => {
    const target = put("proj/.mcp.json", { mcpServers: { a: { command: "./a" } } });
    const existing = { a: { command: "./a" } };
    expect(found({ target, existing }).servers).toEqual({});
    expect(found({ existing }).servers).toHaveProperty("a-2");
  });

  it("changes nothing when it runs a second time", () => {
    put("home/.cursor/mcp.json", { mcpServers: { a: { command: "a" }, b: { url: "https://b/" } } });
    const text = addServers(undefined, found().servers);
    const second = found({ existing: serversInText(text) });
    expect(second.servers).toEqual({});
    expect(second.skipped.map((remark) => remark.reason)).toEqual(Array(2).fill("the config has it already"));
  });
});

describe("importConfigs of what was asked for", () => {
  beforeEach(() => {
    put("home/.cursor/mcp.json", { mcpServers: { gh: { command: "gh" }, "test-a": { command: "a" } } });
    put("home/.lmstudio/mcp.json", { mcpServers: { lm: { command: "lm" } } });
    put("home/.claude.json", {
      mcpServers: {},
      projects: {
        [join(root, "proj")]: { mcpServers: { here: { command: "here" } } },
        "/elsewhere": { mcpServers: { there: { command: "there" } } },
      },
    });
  });

  it("takes those clients and those names, and says which names nobody has [config-kept]", () => {
    expect(Object.keys(found({ from: ["cursor"] }).servers)).toEqual(["gh", "test-a"]);
    expect(found({ from: ["cursor"] }).looked.every(({ id }) => id === "cursor")).toBe(true);
    expect(Object.keys(found({ only: ["gh", "l*"] }).servers)).toEqual(["gh", "lm"]);
    expect(Object.keys(found({ exclude: ["test-*", "here"] }).servers)).toEqual(["gh", "lm"]);
    expect(found({ only: ["gh", "gl"], exclude: ["tset-*"] })).toMatchObject({
      unmatched: ["gl", "tset-*"],
      names: ["here", "there", "gh", "test-a", "lm"],
    });
  });

  it("leaves what belongs to other projects where it is, until it is asked for [config-kept]", () => {
    const { servers, skipped } = found();
    expect(servers).toHaveProperty("here");
    expect(servers).not.toHaveProperty("there");
    expect(skipped).toMatchObject([
      { name: "there", reason: "it belongs to another project; --all-projects takes it" },
    ]);
    expect(found({ allProjects: true }).servers).toMatchObject({ there: { command: "there", cwd: "/elsewhere" } });
  });

  it("knows the project by its repository, too", () => {
    mkdirSync(join(root, "proj/.git"), { recursive: true });
    mkdirSync(join(root, "proj/deep/er"), { recursive: true });
    const inside = importConfigs({ ...place, cwd: join(root, "proj/deep/er") });
    expect(inside.servers).toHaveProperty("here");
  });
});

describe("importConfigs heeds what clients switched off", () => {
  const reasons = () => Object.fromEntries(found().skipped.map(({ name, reason }) => [name, reason]));

  it("Claude Code's lists of its projects, settings and administrators [config-kept]", () => {
    put("proj/.mcp.json", {
      mcpServers: {
        yes: { command: "yes" },
        no: { command: "no" },
        unasked: { command: "u" },
        local: { command: "l" },
      },
    });
    put("home/.claude.json", {
      mcpServers: {
        off: { command: "off" },
        bad: { command: "npx", args: ["bad"] },
        web: { url: "https://evil.example/mcp" },
      },
      projects: {
        [join(root, "proj")]: { disabledMcpServers: ["off"], enabledMcpjsonServers: ["yes"] },
        "/other": { disabledMcpjsonServers: ["yes"] },
      },
    });
    put("home/.claude/settings.json", {
      deniedMcpServers: [{ serverCommand: ["npx", "bad"] }, { serverUrl: "https://evil.example/*" }],
    });
    put("proj/.claude/settings.local.json", { disabledMcpjsonServers: ["no"], enabledMcpjsonServers: ["local"] });
    expect(Object.keys(found().servers)).toEqual(["yes", "local"]);
    expect(reasons()).toEqual({
      no: "it is disabled there",
      unasked: "it was not approved there",
      off: "it is disabled there",
      bad: 'its "deniedMcpServers" has it',
      web: 'its "deniedMcpServers" has it',
    });
    put("home/.claude/settings.json", {
      enableAllProjectMcpServers: true,
      allowedMcpServers: [{ serverName: "yes" }, { serverName: "web" }, { serverUrl: "https://good.example/*" }],
    });
    expect(Object.keys(found().servers)).toEqual(["yes"]);
    expect(reasons()).toMatchObject({ unasked: 'its "allowedMcpServers" does not have it' });
  });

  it("Gemini CLI's lists, and what was switched off by its command [config-kept]", () => {
    const servers = { a: { command: "a" }, B: { command: "b" }, c: { command: "c" }, d: { command: "d" } };
    put("home/.gemini/settings.json", { mcpServers: servers, mcp: { allowed: ["a", "B", "c"], excluded: ["c"] } });
    put("home/.gemini/mcp-server-enablement.json", { b: { enabled: false } });
    expect(Object.keys(found().servers)).toEqual(["a"]);
    expect(reasons()).toEqual({
      B: "it is disabled there",
      c: "it is disabled there",
      d: 'its list of allowed servers ("mcp.allowed") does not have it',
    });
    const file = put("home/.gemini/mcp-server-enablement.json", "{ broken");
    expect(found().notes).toMatchObject([{ file, reason: expect.stringContaining("may switch servers off") }]);
  });

  it("opencode's patterns over all tools of a server", () => {
    const mcp = { a: { type: "local", command: ["a"] }, b: { type: "local", command: ["b"] } };
    put("home/.config/opencode/opencode.json", { mcp, tools: { "a*": false }, permission: { "b_*": "deny" } });
    expect(found().servers).toEqual({});
    expect(reasons()).toEqual({ a: "it is disabled there", b: "it is disabled there" });
  });
});

describe("importConfigs of twins", () => {
  it("takes one of those that differ in their folder alone, where the program comes from elsewhere [config-kept]", () => {
    const twins = {
      npx: { command: "npx", args: ["-y", "@a/b"] },
      uvx: { command: "/usr/bin/uvx", args: ["tool"] },
      docker: { command: "docker", args: ["run", "-i", "--rm", "img"] },
      own: { command: "node", args: ["server.js"] },
      path: { command: "npx", args: ["-y", "@a/files", "."] },
    };
    put("proj/.cursor/mcp.json", { mcpServers: twins });
    put("home/.lmstudio/mcp.json", { mcpServers: twins });
    const { servers, skipped } = found();
    expect(Object.keys(servers)).toEqual(["npx", "uvx", "docker", "own", "path", "own-2", "path-2"]);
    expect(skipped.map(({ name, reason }) => [name, reason])).toEqual(
      ["npx", "uvx", "docker"].map((name) => [name, "the same as the one of Cursor"]),
    );
  });
});

describe("importConfigs of what makes a server safe", () => {
  it("keeps it in the entry, and says what it means [config-kept]", () => {
    put("proj/.vscode/mcp.json", { servers: { boxed: { command: "x", sandboxEnabled: true } } });
    put("home/.claude.json", {
      mcpServers: {
        helped: { type: "http", url: "https://h/mcp", headersHelper: "/bin/h" },
        signed: { type: "http", url: "https://s/mcp", oauth: { clientId: "me" } },
        open: { type: "http", url: "https://o/mcp", oauth: false },
      },
    });
    const { servers, notes } = found();
    expect(servers).toMatchObject({
      boxed: { sandboxEnabled: true },
      helped: { headersHelper: "/bin/h" },
      signed: { oauth: { clientId: "me" } },
    });
    expect(servers["open"]).toEqual({ url: "https://o/mcp" });
    expect(notes.map(({ name, reason }) => [name, reason])).toEqual([
      ["boxed", expect.stringContaining('"sandbox": "none"')],
      ["helped", expect.stringContaining('"headersHelper"')],
      ["signed", expect.stringContaining('write "auth": "oauth" for a login')],
    ]);
  });

  it("takes time limits over in the unit of their client", () => {
    put("home/.claude.json", { mcpServers: { ms: { command: "a", timeout: 90_000 } } });
    put("proj/.roo/mcp.json", { mcpServers: { s: { command: "b", timeout: 3600 } } });
    expect(found().servers).toMatchObject({ ms: { callTimeoutMs: 90_000 }, s: { callTimeoutMs: 3_600_000 } });
  });

  it("takes lists of shown tools over, and leaves a server out whose list cannot be read [config-kept] [only-is-all]", () => {
    put("home/.copilot/mcp-config.json", {
      mcpServers: {
        all: { type: "local", command: "a", tools: ["*"] },
        some: { type: "local", command: "b", tools: ["read"] },
      },
    });
    put("home/.gemini/settings.json", {
      mcpServers: { g: { command: "g", includeTools: ["find(path)"] }, wrong: { command: "w", includeTools: "find" } },
    });
    const { servers, skipped } = found();
    expect(servers).toEqual({
      all: { command: "a" },
      some: { command: "b", only: ["read"] },
      g: { command: "g", only: ["find"] },
    });
    expect(skipped).toMatchObject([
      { name: "wrong", reason: 'its "includeTools" cannot be taken over: expected a list of names of tools' },
    ]);
    const config = parseConfig(addServers(undefined, servers), { path: "/x/toolway.json", env: {} });
    expect(config.servers.map(({ only }) => only)).toEqual([undefined, ["read"], ["find"]]);
  });
});
