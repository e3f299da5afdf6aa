// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { StdioTarget } from "../contracts/server-spec.js";
import { redactorFor } from "../runtime/redact/secrets-of.js";
import { parseListen } from "./config.js";
import { loadConfig, parseConfig, resolveConfig } from "./load.js";
import { expand, parseEnvFile } from "./variables.js";

const env = { TOKEN: "t0ken", HOST: "example.com", EMPTY: "" };
const options = { path: "/proj/mcp.json", env, home: "/home/me" };
const parse = (value: unknown, path = options.path) => parseConfig(JSON.stringify(value), { ...options, path });
const target = (entry: object, path?: string) => parse({ mcpServers: { a: entry } }, path).servers[0]?.target;

/** Files as the clients write them. None may fail, or warn but of what signs in. */
const CLIENT_FILES: Readonly<Record<string, { path: string; text: string; servers: string[]; warns?: string[] }>> = {
  "Claude Desktop": {
    path: "/home/me/.config/Claude/claude_desktop_config.json",
    text: `{
  "globalShortcut": "Alt+Space",
  "preferences": { "menuBarEnabled": false },
  "mcpServers": {
    "filesystem": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/notes"] },
    "brave search": { "command": "npx", "args": ["-y", "brave"], "env": { "BRAVE_API_KEY": "x" } }
  }
}`,
    servers: ["filesystem", "brave search"],
  },
  "Claude Code, its own": {
    path: "/home/me/.claude.json",
    text: `{
  "numStartups": 12, "installMethod": "npm", "autoUpdates": true, "tipsHistory": { "new-user": 1 }, "userID": "0",
  "theme": "dark", "verbose": false, "model": "x", "env": {}, "hooks": {}, "permissions": { "allow": [] },
  "oauthAccount": { "emailAddress": "me@example.com" }, "sessionCount": 3, "cachedFeatures": {},
  "projects": { "/home/me/p": { "allowedTools": [], "mcpServers": {}, "history": [], "hasTrustDialogAccepted": true } },
  "mcpServers": {
    "sentry": { "type": "http", "url": "https://mcp.sentry.dev/mcp", "oauth": { "clientId": "x" } },
    "asana": { "type": "sse", "url": "https://mcp.asana.com/sse", "headers": { "X-Key": "\${TOKEN}" } },
    "local": { "type": "stdio", "command": "npx", "args": ["-y", "thing"], "env": {}, "alwaysLoad": true }
  }
}`,
    servers: ["sentry", "asana", "local"],
    warns: ["sentry.oauth"],
  },
  "Claude Code, a project's": {
    path: "/proj/.mcp.json",
    text: `{ "mcpServers": { "api": { "type": "http", "url": "\${API_URL:-https://\${HOST}}/mcp",
      "headers": { "Authorization": "Bearer \${TOKEN}" }, "headersHelper": "./token.sh", "timeout": 600000 } } }`,
    servers: ["api"],
    warns: ["api.headersHelper"],
  },
  Cursor: {
    path: "/proj/.cursor/mcp.json",
    text: `{ "mcpServers": {
      "local": { "type": "stdio", "command": "python", "args": ["\${workspaceFolder}/tools/server.py"],
        "env": { "KEY": "\${env:TOKEN}" }, "envFile": "\${workspaceFolder}/package.json" },
      "remote": { "url": "https://x.example/mcp", "auth": { "CLIENT_ID": "\${env:NOT_SET_BUT_NOT_OURS}", "scopes": [] } }
    } }`,
    servers: ["local", "remote"],
    warns: ["remote.auth"],
  },
  "VS Code": {
    path: "/proj/.vscode/mcp.json",
    text: `{
  // comments are usual here
  "inputs": [{ "type": "promptString", "id": "key", "description": "API key", "password": true }],
  "servers": {
    "Github": { "type": "http", "url": "https://api.githubcopilot.com/mcp/", "gallery": true, "version": "1.0.0" },
    "play wright": { "command": "npx", "args": ["-y", "@playwright/mcp@latest"], "type": "stdio",
      "dev": { "watch": "src/**/*.ts" }, "sandboxEnabled": false, "sandbox": { "network": {} }, },
  },
}`,
    servers: ["Github", "play wright"],
  },
  Windsurf: {
    path: "/home/me/.codeium/windsurf/mcp_config.json",
    text: `{ "mcpServers": { "r": { "serverUrl": "https://\${env:HOST}/mcp", "headers": { "K": "v" }, "disabled": false,
      "alwaysAllow": ["x"], "disabledTools": [] } } }`,
    servers: ["r"],
  },
  "Gemini CLI": {
    path: "/home/me/.gemini/settings.json",
    text: `{ "security": { "auth": { "selectedType": "x" } }, "ui": { "theme": "Default" }, "tools": { "core": [] },
      "mcp": { "allowed": ["git", "hub"] }, "general": {}, "model": { "name": "x" },
      "mcpServers": {
        "git": { "command": "uvx", "args": ["mcp-server-git"], "cwd": "./work", "timeout": 30000, "trust": false },
        "hub": { "httpUrl": "https://api.example/mcp", "headers": { "A": "b" }, "description": "d", "authProviderType": "x" }
      } }`,
    servers: ["git", "hub"],
    warns: ["hub.authProviderType"],
  },
  "Cline and Roo": {
    path: "/home/me/cline_mcp_settings.json",
    text: `{ "mcpServers": { "@scope/thing": { "command": "node", "args": ["x.js"], "disabled": false, "autoApprove": [],
      "alwaysAllow": [], "timeout": 60, "watchPaths": ["x.js"], "networkTimeout": 1, "transportType": "stdio" },
      "s": { "type": "streamableHttp", "url": "https://x/mcp" }, "k": { "type": "streamable-http", "url": "https://x/mcp" },
      "off": { "command": "x", "env": { "K": "\${UNSET}" }, "disabled": true } } }`,
    servers: ["@scope/thing", "s", "k"],
  },
  "LM Studio": {
    path: "/home/me/.lmstudio/mcp.json",
    text: `{ "mcpServers": { "hf": { "url": "https://huggingface.co/mcp", "headers": { "Authorization": "Bearer x" } } } }`,
    servers: ["hf"],
  },
};

const folder = mkdtempSync(join(tmpdir(), "toolway-load-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the lists of Gemini CLI beside the entries of a file", () => {
  const read = (lists: object) =>
    resolveConfig({ ...lists, mcpServers: { a: { command: "a" }, b: { command: "b", env: { K: "${UNSET_HERE}" } } } });

  it.each([
    [{ mcp: { excluded: ["b"] } }, ["a"], ["b"]],
    [{ mcp: { allowed: ["a"] } }, ["a"], ["b"]],
    [{ mcp: { allowed: ["a", "b"], excluded: ["b"] } }, ["a"], ["b"]],
    [{ excludeMCPServers: ["b"] }, ["a"], ["b"]],
    [{ allowMCPServers: ["a"] }, ["a"], ["b"]],
    [{ mcp: { allowed: [] } }, [], ["a", "b"]],
  ])("switch servers off as they do there: %j [config-kept]", (lists, on, off) => {
    const { servers, disabled } = read(lists);
    expect([servers.map(({ name }) => name), disabled]).toEqual([on, off]);
  });
});

describe("an existing file of a client works unchanged", () => {
  it.each(Object.entries(CLIENT_FILES))("as %s has it", (_, { path, text, servers, warns = [] }) => {
    // On disk, in a home and a project of their own: an envFile must be there.
    const at = join(folder, path);
    mkdirSync(join(at, ".."), { recursive: true });
    mkdirSync(join(folder, "proj"), { recursive: true });
    writeFileSync(join(folder, "proj/package.json"), "");
    writeFileSync(at, text);
    const config = loadConfig(at, { env, home: join(folder, "home/me") });
    expect(config.servers.map((server) => server.name)).toEqual(servers);
    expect(config.warnings).toEqual(warns.map((key) => expect.stringContaining(`mcpServers.${key}: the `)));
    expect(config.path).toBe(at);
  });

  it("leaves out what is switched off, and remembers the names", () => {
    const config = parse({
      mcpServers: { a: { command: "x", disabled: true }, b: { url: "http://b", enabled: false } },
    });
    expect(config.servers).toEqual([]);
    expect(config.disabled).toEqual(["a", "b"]);
  });

  it("merges both groups, in the order of the file", () => {
    const config = parse({ servers: { z: { command: "z" } }, mcpServers: { a: { command: "a" } } });
    expect(config.servers.map((server) => server.name)).toEqual(["z", "a"]);
  });
});

describe("an address on a Unix socket", () => {
  it.each([
    ["unix:///run/a.sock", "/run/a.sock", "http://localhost/"],
    ["unix:///run/a.sock#/mcp", "/run/a.sock", "http://localhost/mcp"],
    ["unix:///run/a.sock:/mcp?x=1", "/run/a.sock", "http://localhost/mcp?x=1"],
    ["unix:/run/a.sock", "/run/a.sock", "http://localhost/"],
    ["unix://./a.sock#/mcp", "/proj/a.sock", "http://localhost/mcp"],
    ["unix://~/a%20b.sock", "/home/me/a b.sock", "http://localhost/"],
    ["unix:///run/${HOST}.sock", "/run/example.com.sock", "http://localhost/"],
  ])("%s is read", (url, socketPath, at) => {
    expect(target({ url })).toMatchObject({ kind: "http", url: at, socketPath });
    expect(target({ type: "sse", url })).toMatchObject({ kind: "sse", socketPath });
  });

  it.each(["unix://", "unix://run/a.sock", `unix:///${"x".repeat(120)}.sock`])("%s is a mistake", (url) => {
    expect(() => target({ url })).toThrow(/mcpServers\.a\.url: .*socket/);
  });

  it("is on this machine: no executor reaches it", () => {
    const entry = { url: "unix:///run/a.sock", via: "office" };
    expect(() => parse({ executors: { office: {} }, mcpServers: { a: entry } })).toThrow(/no executor reaches it/);
  });
});

describe("warnings", () => {
  it("tell of an unknown key with its place, and of a better word", () => {
    const text = '{ "mcpServers": {\n  "a": { "command": "x", "frobnicate": 1, "environment": {} }\n} }';
    expect(parseConfig(text, { ...options, path: "mcp.json" }).warnings).toEqual([
      "mcp.json:2:26: mcpServers.a.frobnicate: unknown key, ignored",
      'mcp.json:2:43: mcpServers.a.environment: unknown key, ignored (did you mean "env"?)',
    ]);
  });

  it("tell of a role's pattern that matches no server, and of a config without servers", () => {
    const mcpServers = { gh: { command: "x" }, "@s/x": { command: "x" } };
    const roles = { r: { allow: ["gh", "gh/*", "*", "*/read", "@s/x/y"], deny: ["git/push"] } };
    expect(parse({ mcpServers, roles }).warnings).toHaveLength(1);
    expect(parse({}).warnings[0]).toContain('expected "mcpServers"');
  });

  it("tell of bodies that there is never room for, at the limit that the file sets [bounded]", () => {
    const warningsOf = (limits: string) =>
      parseConfig(`{ "mcpServers": {}, "limits": ${limits} }`, { ...options, path: "mcp.json" }).warnings;
    expect(warningsOf('{ "heldBytes": 8388608 }')).toEqual([
      'mcp.json:1:46: limits.heldBytes: bodies of more than 2097152 bytes are refused, although "bodyBytes" is 16777216: there is never room for them with "heldBytes" at 8388608 (four times "bodyBytes", 67108864, has room for the largest)',
    ]);
    expect(warningsOf('{ "bodyBytes": 67108864 }')[0]).toMatch(
      /^mcp\.json:1:46: limits\.bodyBytes: .*of more than 33554432/,
    );
    expect(warningsOf('{ "heldBytes": 67108864 }')).toEqual([]);
    expect(warningsOf('{ "heldBytes": 1048576, "bodyBytes": 262144 }')).toEqual([]);
  });

  it("tell of a form that is no variable, which stays", () => {
    const config = parse({ mcpServers: { a: { command: "sh", args: ["-c", "echo ${x%y}"] } } });
    expect(config.servers[0]?.target).toMatchObject({ args: ["-c", "echo ${x%y}"] });
    expect(config.warnings).toHaveLength(1);
  });
});

describe("variables", () => {
  const arg = (text: string) =>
    (target({ command: "x", args: [text] }, "/proj/.vscode/mcp.json") as StdioTarget).args[0];

  it.each([
    ["${TOKEN}", "t0ken"],
    ["a${TOKEN}b${env:HOST}c", "at0kenbexample.comc"],
    ["${EMPTY}", ""],
    ["${EMPTY:-d}", "d"],
    ["${UNSET:-}", ""],
    ["${UNSET:-http://x:80/${TOKEN}}", "http://x:80/t0ken"],
    ["${env:UNSET:-d}", "d"],
    ["${userHome}${/}x", "/home/me/x"],
    ["${workspaceFolder}${pathSeparator}${workspaceFolderBasename}", "/proj/proj"],
    ["$TOKEN $${", "$TOKEN $${"],
  ])("are put in where a text names them: %s becomes %s", (text, value) => expect(arg(text)).toBe(value));

  it("need no braces in Gemini CLI's own files [config-kept]", () => {
    const entry = {
      httpUrl: "https://$HOST/mcp",
      headers: { A: "Bearer $TOKEN", B: "$TOKEN.${HOST}-$1 $$ 5$", C: "${UNSET:-$TOKEN}" },
    };
    expect(target(entry, "/home/me/.gemini/settings.json")).toMatchObject({
      url: "https://example.com/mcp",
      headers: { A: "Bearer t0ken", B: "t0ken.example.com-$1 $$ 5$", C: "t0ken" },
      secrets: [
        { name: "TOKEN", value: "t0ken" },
        { name: "HOST", value: "example.com" },
      ],
    });
    expect(() => target({ httpUrl: "https://x/$UNSET" }, "/p/.gemini/settings.json")).toThrow(/UNSET is not set/);
    expect(target({ url: "https://x/$UNSET" }, "/p/mcp.json")).toMatchObject({ url: "https://x/$UNSET" });
  });

  it("are expanded where a value can hold them", () => {
    expect(
      target({ command: "${HOST}", args: ["${HOST}"], env: { A: "${HOST}", N: 1, B: true, U: null }, cwd: "${HOST}" }),
    ).toEqual({
      kind: "stdio",
      command: "example.com",
      args: ["example.com"],
      env: { A: "example.com", N: "1", B: "true" },
      cwd: "/proj/example.com",
      secrets: [{ name: "HOST", value: "example.com" }],
    });
    expect(target({ url: "https://${HOST}/mcp?k=${TOKEN}", headers: { A: "Bearer ${TOKEN}", N: 1 } })).toEqual({
      kind: "http",
      url: "https://example.com/mcp?k=t0ken",
      headers: { A: "Bearer t0ken", N: "1" },
      secrets: [
        { name: "TOKEN", value: "t0ken" },
        { name: "HOST", value: "example.com" },
      ],
    });
  });

  it("are told apart from what the file says, but for those that say who and where one is [secrets-unseen]", () => {
    const entry = { command: "x", args: ["${userHome}/notes", "${NONE:-usual}", "${NONE:-${TOKEN}}"] };
    expect(target(entry)).toMatchObject({
      args: ["/home/me/notes", "usual", "t0ken"],
      secrets: [{ name: "TOKEN", value: "t0ken" }],
    });
    const variables = { env: { HOME: "/home/me", KEY: "k3y" }, home: "/home/me", workspaceFolder: "/proj" };
    expect(expand("${HOME} ${KEY} ${env:KEY}", variables).outside.map(({ value }) => value)).toEqual(["k3y", "k3y"]);
    expect(target({ command: "x", args: ["plain"] })).not.toHaveProperty("secrets");
  });

  it("hide a password in a neutral place, also one that is spelt like a host [secrets-unseen]", () => {
    writeFileSync(join(folder, "file.env"), "DB_PASSWD=correct.file\nDB_HOST=db.file\n");
    const env = {
      DB_PASSWORD: "correct.horse",
      DB_HOST: "db.internal",
      INPUT_PASS: "correct.answer",
      INPUT_WHERE: "db.asked",
    };
    const inputs = [
      { id: "pass", type: "promptString", password: true },
      { id: "where", type: "promptString" },
    ];
    const line =
      "${DB_PASSWORD} ${DB_HOST} ${input:pass} ${input:where} ${API_TOKEN:-correct.usual} ${API_URL:-db.usual}";
    const entry = {
      command: "x",
      envFile: "file.env",
      env: Object.fromEntries(line.split(" ").map((one, at) => [`V${at}`, one])),
    };
    const config = parseConfig(JSON.stringify({ inputs, mcpServers: { a: entry } }), {
      ...options,
      env,
      path: join(folder, "mcp.json"),
    });
    const said = "correct.horse correct.answer correct.usual correct.file db.internal db.asked db.usual db.file";
    expect(redactorFor(config.servers[0]?.target ?? {}).redact(said)).toBe(
      "[redacted] [redacted] [redacted] [redacted] db.internal db.asked db.usual db.file",
    );
  });
});

describe("paths", () => {
  it.each([
    ["npx", "npx"],
    ["./run.sh", "/proj/run.sh"],
    ["../run.sh", "/run.sh"],
    ["~/bin/x", "/home/me/bin/x"],
    ["/usr/bin/x", "/usr/bin/x"],
    ["bin/x", "bin/x"],
  ])("of a command are found from the file and from home, and a bare word on the PATH: %s", (command, value) =>
    expect(target({ command })).toMatchObject({ command: value }),
  );

  it("start at the file, or at the project of a client's own folder", () => {
    expect(target({ command: "x" })).toMatchObject({ cwd: "/proj" });
    expect(target({ command: "x", cwd: "sub" }, "/proj/.cursor/mcp.json")).toMatchObject({ cwd: "/proj/sub" });
    expect(target({ command: "x", cwd: "~" })).toMatchObject({ cwd: "/home/me" });
    const { tls } = parse({ mcpServers: {}, tls: { cert: "c.pem", key: "~/k.pem" } });
    expect(tls).toEqual({ cert: "/proj/c.pem", key: "/home/me/k.pem" });
  });

  it("lead to an envFile, which is read, and env wins over it", () => {
    writeFileSync(
      join(folder, "a.env"),
      "\uFEFF# c\nexport A=1\nB='x # y'\nC=\"l1\\nl2\" # c\nD=a#b # c\nE=\nbroken\n",
    );
    writeFileSync(
      join(folder, "m.json"),
      '{ "mcpServers": { "a": { "command": "x", "envFile": "a.env", "env": { "A": 2 } } } }',
    );
    const config = loadConfig(join(folder, "m.json"), { env });
    const values = { A: "2", B: "x # y", C: "l1\nl2", D: "a#b", E: "" };
    expect(config.servers[0]?.target).toMatchObject({ env: values });
    expect(parseEnvFile("")).toEqual({});
  });
});

it("a file in UTF-16 is told as one, and not as broken JSON [told-why]", () => {
  const folder = mkdtempSync(join(tmpdir(), "toolway-load-"));
  const path = join(folder, "wide.json");
  writeFileSync(path, Buffer.from('\uFEFF{"mcpServers":{}}', "utf16le"));
  expect(() => loadConfig(path)).toThrow(`${path}: this file is in UTF-16`);
  rmSync(folder, { recursive: true, force: true });
});

describe("what is resolved", () => {
  it("has every default", () => {
    const config = resolveConfig({ mcpServers: { a: { command: "x" } } }, { dir: "/d", env });
    expect(config).toMatchObject({
      path: undefined,
      dir: "/d",
      listen: { host: "127.0.0.1", port: 7420 },
      names: "prefixed",
      menu: "full",
      tls: undefined,
      unlistedRoles: "allow",
      limits: { batch: 100 },
      warnings: [],
    });
    expect(config.servers[0]).toMatchObject({ isolation: "shared", connectTimeoutMs: 30_000, callTimeoutMs: 300_000 });
  });

  it("keeps our own keys", () => {
    const config = parse({
      mcpServers: {
        a: { command: "x", isolation: "session", tools: { constructor: { hide: true }, b: { name: "c" } } },
      },
      roles: { r: { deny: ["a/b"] } },
      limits: { batch: 5 },
      sessions: { max: 1 },
    });
    const said = { readOnly: false, idempotent: false, cache: false, ask: false };
    expect(config.servers[0]?.tools["constructor"]).toEqual({
      name: undefined,
      description: undefined,
      hide: true,
      ...said,
    });
    expect(config.servers[0]?.prompts["constructor"]).toBeUndefined();
    expect(config.roles["r"]).toEqual({ allow: undefined, deny: ["a/b"] });
    expect(config.limits).toMatchObject({ batch: 5, depth: 128 });
    expect(config.sessions.max).toBe(1);
  });

  it.each([
    ["localhost:0", { host: "localhost", port: 0 }],
    ["[::1]:80", { host: "::1", port: 80 }],
    ["0.0.0.0:65535", { host: "0.0.0.0", port: 65_535 }],
    ["7420", undefined],
    [":7420", undefined],
    ["::1:80", undefined],
    ["a:65536", undefined],
    ["http://a:1", undefined],
  ])("reads a host and a port of an address, or says that it has none: %s", (text, address) =>
    expect(parseListen(text)).toEqual(address),
  );

  it("takes the names that people have, and refuses what no address can hold", () => {
    for (const name of ["my server", "@scope/x", "ä", "日本", "a.b", "x".repeat(128)]) {
      expect(parse({ mcpServers: { [name]: { command: "x" } } }).servers[0]?.name).toBe(name);
    }
    for (const name of ["n".repeat(129), ".", "..", "\ud800"]) {
      expect(() => parse({ mcpServers: { [name]: { command: "x" } } })).toThrow(/rename the server/);
    }
  });
});
