// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { mistakesOf } from "../../test/fixtures/config-mistakes.js";
import { loadConfig, parseConfig, resolveConfig } from "./load.js";
import type { ConfigInput } from "./schema.js";

const folder = mkdtempSync(join(tmpdir(), "toolway-mistakes-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const env = { TOKEN: "s3cret-value", EMPTY: "" };

const parse = (text: string) => mistakesOf(() => parseConfig(text, { path: "mcp.json", env, home: "/home/me" }));
const entry = (text: string) => parse(`{ "mcpServers": {\n  "gh": { ${text} }\n} }`);

/** What is in the file → all that is printed. */
const TABLE: readonly [what: string, text: string, printed: string][] = [
  [
    "a comma is missing",
    '{\n  "mcpServers": {\n    "a": { "command": "x" }\n    "b": { "command": "y" }\n  }\n}',
    'mcp.json:4:5: not valid JSON: expected "," before this',
  ],
  [
    "single quotes",
    "{ 'mcpServers': {} }",
    "mcp.json:1:3: not valid JSON: this is neither a string in double quotes, a number, true, false nor null",
  ],
  [
    "an empty file",
    "\n",
    'mcp.json:1:1: the file is empty: expected an object with servers (write { "mcpServers": {} })',
  ],
  ["not an object", "[]", 'mcp.json:1:1: expected an object with "mcpServers", found a list'],
  [
    "the servers' key in another spelling",
    '{\n  "mcp_servers": {}\n}',
    'mcp.json:2:3: mcp_servers: unknown key (did you mean "mcpServers"?)',
  ],
  [
    "a key of ours with a typo",
    '{ "mcpServers": {}, "lisen": "x" }',
    'mcp.json:1:21: lisen: unknown key (did you mean "listen"?)',
  ],
  [
    "the form of another client",
    '{ "context_servers": { "a": { "command": "x" } } }',
    'mcp.json:1:3: context_servers: expected the servers under "mcpServers": this is the form of another client (run `toolway import` to bring its servers over)',
  ],
  [
    "servers as a list",
    '{ "mcpServers": [] }',
    "mcp.json:1:17: mcpServers: expected an object with a server under each name, found a list",
  ],
  [
    "a server as a string",
    '{ "mcpServers": { "a": "npx" } }',
    'mcp.json:1:24: mcpServers.a: expected an object with "command" or "url", found a string',
  ],
  [
    "a server twice",
    '{ "mcpServers": {\n  "a": { "command": "x" },\n  "a": { "command": "y" }\n} }',
    "mcp.json:3:3: mcpServers.a: this key is already there: only one of the two can count (remove or rename one)",
  ],
  [
    "a server in both groups",
    '{ "mcpServers": { "a": { "command": "x" } },\n  "servers": { "a ": { "command": "x" } } }',
    'mcp.json:2:16: servers["a "]: a server of this name is already there, as mcpServers.a (rename one)',
  ],
  [
    "no name",
    '{ "mcpServers": { " ": { "command": "x" } } }',
    'mcp.json:1:19: mcpServers[" "]: expected a name for the server, found none (rename the server)',
  ],
  [
    "a control character in the name",
    '{ "mcpServers": { "a\\nb": { "command": "x" } } }',
    'mcp.json:1:19: mcpServers["a\\nb"]: a name must not hold control characters (rename the server)',
  ],
  [
    "a bad port",
    '{ "mcpServers": {}, "listen": "127.0.0.1:74200" }',
    'mcp.json:1:31: listen: expected HOST:PORT with a port from 0 to 65535 (for instance "127.0.0.1:7420" or "[::1]:7420")',
  ],
  [
    "an unknown word",
    '{ "mcpServers": {}, "names": "prefix" }',
    'mcp.json:1:30: names: expected "prefixed" or "plain", found "prefix" (did you mean "prefixed"?)',
  ],
  [
    "an unknown limit",
    '{ "mcpServers": {}, "limits": { "bodybytes": 1 } }',
    'mcp.json:1:33: limits.bodybytes: unknown key: expected "bodyBytes", "batch", "depth", "headerMs", "connections", "outputBytes", "questionMs" or "heldBytes" (did you mean "bodyBytes"?)',
  ],
  [
    "no room for ordinary calls",
    '{ "mcpServers": {}, "limits": { "heldBytes": 5 } }',
    "mcp.json:1:46: limits.heldBytes: expected a number of at least 1048576",
  ],
  [
    "a limit of nothing",
    '{ "mcpServers": {}, "limits": { "batch": 0 } }',
    "mcp.json:1:42: limits.batch: expected a number of at least 1",
  ],
  [
    "half a certificate",
    '{ "mcpServers": {}, "tls": { "cert": "a.pem" } }',
    "mcp.json:1:28: tls.key: missing: expected a string",
  ],
  [
    "a role's pattern without a tool",
    '{ "mcpServers": {}, "roles": { "r": { "allow": ["gh/"] } } }',
    'mcp.json:1:49: roles.r.allow[0]: expected a pattern of the form "server/tool" or "server" (for instance "github/*")',
  ],
];

const ENTRIES: readonly [what: string, text: string, printed: string][] = [
  ["a typo in a key", '"comand": "npx"', 'mcp.json:2:11: mcpServers.gh.comand: unknown key (did you mean "command"?)'],
  ["a swapped key", '"ulr": "http://x"', 'mcp.json:2:11: mcpServers.gh.ulr: unknown key (did you mean "url"?)'],
  [
    "another case",
    '"command": "x", "ENV_FILE": ".env"',
    'mcp.json:2:27: mcpServers.gh.ENV_FILE: unknown key (did you mean "envFile"?)',
  ],
  [
    "command and url",
    '"command": "npx", "url": "http://x"',
    'mcp.json:2:29: mcpServers.gh.url: expected either "command" or "url", found both (a server is a program to start or an address to connect to: remove one)',
  ],
  [
    "an era that its transport does not have",
    '"type": "sse", "url": "http://x", "era": "modern"',
    "mcp.json:2:52: mcpServers.gh.era: the old HTTP+SSE is of the legacy era alone (remove the key)",
  ],
  [
    "neither",
    '"args": []',
    'mcp.json:2:3: mcpServers.gh: missing: expected "command" or "url" (for instance "command": "npx" with "args", or "url": "https://example.com/mcp")',
  ],
  [
    "a type without its url",
    '"type": "sse"',
    'mcp.json:2:3: mcpServers.gh: missing: expected "url" (for instance "command": "npx" with "args", or "url": "https://example.com/mcp")',
  ],
  [
    "a type that contradicts",
    '"type": "http", "command": "x"',
    'mcp.json:2:19: mcpServers.gh.type: "http" needs a "url", and the entry has a "command" (set "type" to "stdio" or remove it)',
  ],
  [
    "two addresses",
    '"url": "http://x", "httpUrl": "http://x"',
    'mcp.json:2:30: mcpServers.gh.httpUrl: "url" and "httpUrl" mean the same: expected one of them (remove one)',
  ],
  [
    "no http address",
    '"url": "localhost:3000/mcp"',
    'mcp.json:2:18: mcpServers.gh.url: expected an address that starts with http:// or https:// (for instance "https://example.com")',
  ],
  [
    "a number among the arguments",
    '"command": "x", "args": ["--port", 3000]',
    "mcp.json:2:46: mcpServers.gh.args[1]: expected a string, found the number 3000",
  ],
  [
    "args as a string",
    '"command": "x", "args": "-y"',
    "mcp.json:2:35: mcpServers.gh.args: expected a list, found a string",
  ],
  [
    "an object in env",
    '"command": "x", "env": { "A": {} }',
    "mcp.json:2:41: mcpServers.gh.env.A: expected a string, a number, a boolean or null, found an object",
  ],
  [
    "an unset variable",
    '"url": "https://x/mcp", "headers": { "Authorization": "Bearer ${NOT_SET}" }',
    "mcp.json:2:65: mcpServers.gh.headers.Authorization: NOT_SET is not set (set this environment variable and restart the gateway, which keeps the environment that it was started with; or give a default: ${NOT_SET:-default})",
  ],
  [
    "an input of VS Code",
    '"command": "x", "env": { "KEY": "${input:api-key}" }',
    'mcp.json:2:43: mcpServers.gh.env.KEY: INPUT_API_KEY is not set (the file asks for the input "api-key": set this environment variable before the start, or run `toolway doctor` on a terminal, which asks for it and keeps the answer)',
  ],
  [
    "an envFile that is not there",
    '"command": "x", "envFile": "./nowhere.env"',
    "mcp.json:2:38: mcpServers.gh.envFile: this file cannot be read: it does not exist (the path is relative to the folder of the config; create the file or remove the key)",
  ],
  [
    "two tools of one name",
    '"command": "x", "tools": { "a": { "name": "n" }, "b": { "name": "n" } }',
    'mcp.json:2:75: mcpServers.gh.tools.b.name: "n" is already the name of "a" (choose another)',
  ],
  [
    "an unknown override",
    '"command": "x", "tools": { "a": { "hiden": true } }',
    'mcp.json:2:45: mcpServers.gh.tools.a.hiden: unknown key: expected "name", "description", "hide", "readOnly", "idempotent", "cache", "ask" or "outbox" (did you mean "hide"?)',
  ],
  [
    "a timeout as text",
    '"command": "x", "callTimeoutMs": "5s"',
    "mcp.json:2:44: mcpServers.gh.callTimeoutMs: expected a number, found a string",
  ],
];

describe("a mistake prints its place, its key, and what was expected", () => {
  it.each(TABLE)("%s", (_, text, printed) => expect(parse(text)).toBe(printed));
  it.each(ENTRIES)("in an entry: %s", (_, text, printed) => expect(entry(text)).toBe(printed));

  it("tells all of them at once, in the order of the file", () => {
    const text = `{
      "names": "x",
      "mcpServers": {
        "a": { "comand": "npx", "args": [1, 2], "env": { "A": "\${GONE}" } },
        "b": {},
      },
      "listen": 7420,
    }`;
    expect(
      parse(text)
        .split("\n")
        .map((line) => line.split(": ")[1]),
    ).toEqual([
      "names",
      "mcpServers.a.comand",
      "mcpServers.a.args[0]",
      "mcpServers.a.args[1]",
      "mcpServers.a.env.A",
      "mcpServers.b",
      "listen",
    ]);
  });

  it("never shows the value of a variable", () => {
    const printed = entry('"url": "${TOKEN}", "headers": { "A": "${TOKEN}\\n", "${TOKEN}": "x" }');
    expect(printed).toContain("http://");
    expect(printed).not.toContain("s3cret-value");
  });
});

describe("a file that cannot be read", () => {
  const load = (path: string) => mistakesOf(() => loadConfig(join(folder, path), { env }));

  it("is reported where it is not there", () => {
    expect(load("gone.json")).toBe(
      `${folder}/gone.json: there is no such file (check the path, or run \`toolway import\` to make a config from your clients')`,
    );
  });

  it("is reported where it is a folder", () => {
    mkdirSync(join(folder, "conf"));
    expect(load("conf")).toBe(
      `${folder}/conf: this is a folder: expected a file (name the file in it, for instance mcp.json)`,
    );
  });

  it("is reported where it is a link to itself", () => {
    symlinkSync("loop.json", join(folder, "loop.json"));
    expect(load("loop.json")).toContain("this link leads back to itself");
  });

  it("is reported where it is TOML", () => {
    writeFileSync(join(folder, "config.toml"), '[mcp_servers.a]\ncommand = "x"\n');
    expect(load("config.toml")).toContain("expected a JSON file (run `toolway import`");
  });
});

it("an object has mistakes without a place", () => {
  const input = { mcpServers: { a: { comand: "x" } } } as unknown as ConfigInput;
  expect(mistakesOf(() => resolveConfig(input))).toBe(
    'config: mcpServers.a.comand: unknown key (did you mean "command"?)',
  );
});
