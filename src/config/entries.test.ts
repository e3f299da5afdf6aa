// Entries that are wrong in themselves, one by one: which are set aside, what is said of them, and what still makes the
// whole config wrong.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { describe, expect, it } from "vitest";
import { inFileOrder } from "./config.js";
import { ConfigError, parseConfig } from "./load.js";

const OURS = { TOOLWAY_TOKEN: "ours", TOOLWAY_SESSION_TOKEN: "ours", TOOLWAY_ENGINE_KEY: "ours" };
const around = { path: "/proj/mcp.json", env: { TOKEN: "s3cret", ...OURS }, home: "/home/me" };
const good = { command: "node" };
const read = (value: unknown, wrongEntries: "throw" | "keep" = "keep") =>
  parseConfig(typeof value === "string" ? value : JSON.stringify(value), { ...around, wrongEntries });
const namesOf = (of: readonly { name: string }[]) => of.map(({ name }) => name);

/** What may be wrong with an entry, and a word of what is said. */
const WRONG: readonly (readonly [what: string, entry: unknown, said: string])[] = [
  [
    "a variable that is not set",
    { url: "https://x/mcp", headers: { A: "${NOT_SET}" } },
    "NOT_SET is not set (headers.A)",
  ],
  [
    "a token of Toolway's for its process",
    { ...good, env: { X: "${TOOLWAY_SESSION_TOKEN}" } },
    "TOOLWAY_SESSION_TOKEN holds a secret of Toolway's, which is given to no server (env.X)",
  ],
  [
    "a token of Toolway's among its arguments",
    { ...good, args: ["--token", "${env:TOOLWAY_GEMINI_TOKEN:-none}"] },
    "given to no server (args[1])",
  ],
  ["a key of Toolway's as what another lacks", { command: "${A:-${TOOLWAY_ENGINE_KEY}}" }, "TOOLWAY_ENGINE_KEY holds"],
  ["an envFile that is missing", { ...good, envFile: "no/such" }, "it does not exist (envFile)"],
  ["an unknown type", { type: "websocket", url: "https://x/mcp" }, 'found "websocket" (type)'],
  ["a key with a typo", { comand: "x" }, "unknown key (comand)"],
  ["neither a command nor an address", {}, 'missing: expected "command" or "url"'],
  ["no object", "npx server", "expected an object"],
  ["an executor that is not there", { url: "http://x", via: "office" }, 'no executor "office"'],
  ["settings of tools that cannot be read", { ...good, tools: { a: { hidden: true } } }, "unknown key"],
  ["a flag that is none", { ...good, disabled: "yes" }, "expected true or false"],
];

describe("an entry with", () => {
  it.each(WRONG)("%s is misconfigured, and the others are used [bad-entry-alone]", (_, entry, said) => {
    const config = read({ mcpServers: { first: good, bad: entry, last: good } });
    expect(namesOf(config.servers)).toEqual(["first", "last"]);
    expect(namesOf(config.misconfigured)).toEqual(["bad"]);
    expect(config.misconfigured[0]?.why).toContain(said);
    expect(config.misconfigured[0]?.forOperator).toMatch(/^\/proj\/mcp\.json:1:\d+: mcpServers\.bad/);
    expect(namesOf(inFileOrder(config.servers, config.misconfigured))).toEqual(["first", "bad", "last"]);
  });

  it.each(WRONG)("%s is a mistake where the whole is checked", (_, entry) => {
    expect(() => read({ mcpServers: { first: good, bad: entry } }, "throw")).toThrow(ConfigError);
  });
});

it("a token of Toolway's is where the gateway uses it itself, and under its own name it is told that no process gets it [run-secret]", () => {
  const named = "${TOOLWAY_TOKEN}";
  const config = read({
    executors: { office: { url: "wss://e/", token: named } },
    mcpServers: {
      other: { url: "https://x/mcp", headers: { Authorization: `Bearer ${named}` } },
      away: { mailbox: "studio", broker: "wss://b/", token: named },
      here: { ...good, env: { TOOLWAY_TOKEN: "mine", A: "1" } },
    },
  });
  expect(config.misconfigured).toEqual([]);
  expect(config.servers.map(({ target }) => target)).toMatchObject([
    { headers: { Authorization: "Bearer ours" } },
    { kind: "mailbox" },
    { env: { A: "1" } },
  ]);
  expect(config.warnings.join()).toMatch(/mcpServers\.here\.env\.TOOLWAY_TOKEN: has no effect/);
});

it("what is wrong outside of the servers stays a mistake of the config [bad-entry-alone]", () => {
  const wrong = [
    { roles: { a: { allow: ["//"] } } },
    { listen: "nowhere" },
    { tls: { cert: "x" } },
    { limits: { depth: 0 } },
    { executors: { office: { url: "${NOT_SET}" } } },
    { rolse: {} },
  ];
  for (const more of wrong) {
    expect(() => read({ mcpServers: { bad: {} }, ...more }), JSON.stringify(more)).toThrow(ConfigError);
  }
  expect(() => read({ mcpServers: ["x"] })).toThrow(ConfigError);
  expect(() => read("{ not json")).toThrow(ConfigError);
});

it("of two entries of one name neither is used, and one server says so", () => {
  const across = read({ mcpServers: { a: good, b: good }, servers: { b: good, c: good } });
  expect(namesOf(across.servers)).toEqual(["a", "c"]);
  expect(across.misconfigured).toMatchObject([{ name: "b", place: 1, menu: undefined }]);
  const within = read(
    '{ "mcpServers": { "a": { "command": "x" }, "b": { "command": "y" }, "a": { "command": "z" } } }',
  );
  expect(namesOf(within.servers)).toEqual(["b"]);
  expect(within.misconfigured).toMatchObject([{ name: "a", why: expect.stringContaining("already there") }]);
});

it("a server with a name that cannot be used is shown by one that can", () => {
  const config = read(
    '{ "mcpServers": { "": {"command":"x"}, "a\\u0007b": {"command":"x"}, "..": {"command":"x"}, "__proto__": {"command":"x"}, "ok": {"command":"x"} } }',
  );
  expect(namesOf(config.servers)).toEqual(["ok"]);
  expect(namesOf(config.misconfigured)).toEqual(["?", "a?b", "..?", "__proto__"]);
});

it("one that is switched off need not be right", () => {
  const config = read({ mcpServers: { off: { comand: "x", disabled: true }, on: good } });
  expect(config).toMatchObject({ misconfigured: [], disabled: ["off"] });
  expect(config.warnings.join()).toContain("unknown key");
});

it("a role may name a server that is misconfigured", () => {
  const config = read({ mcpServers: { bad: {} }, roles: { a: { allow: ["bad/*"] } } });
  expect(config.warnings).toEqual([]);
});

it("what was known of its tools is shown only where the mistake cannot be about what is shown", () => {
  const menuOf = (entry: object) => read({ mcpServers: { bad: entry } }).misconfigured[0]?.menu;
  const tools = { secret: { hide: true } };
  expect(menuOf({ command: "${NOT_SET}", tools })?.tools["secret"]?.hide).toBe(true);
  expect(menuOf({ command: "x", tools: { secret: { hide: "yes" } } })).toBeUndefined();
  expect(menuOf({ command: "${NOT_SET}", tool: tools })).toBeUndefined();
  expect(menuOf({ command: "x", trust: "never", tools })).toBeUndefined();
});

it("no value of a variable is in what is said of an entry", () => {
  const config = read({ mcpServers: { bad: { url: "${TOKEN}", headers: { "a b": "${TOKEN}" } } } });
  expect(config.misconfigured).toHaveLength(1);
  expect(JSON.stringify(config.misconfigured)).not.toContain("s3cret");
});
