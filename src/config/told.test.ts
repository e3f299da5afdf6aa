// What a config says in vain, or says wrongly of who may come in: told with its place and what to write.

import { describe, expect, it } from "vitest";
import { ConfigError, parseConfig } from "./load.js";

const read = (value: object) =>
  parseConfig(JSON.stringify(value), { path: "/p/mcp.json", env: {}, home: "/home/me" }).warnings.map((line) =>
    line.replace(/^.*?mcp\.json:\d+:\d+: /, ""),
  );

const mistakes = (value: object): string[] => {
  try {
    read(value);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.mistakes.map(({ key, message, hint }) => `${key}: ${message} (${hint})`);
  }
};

const program = { command: "x" };
const address = { url: "https://x.example/mcp" };

describe("keys without an effect [status-true]", () => {
  it("are told where an entry has what is for the other kind of server", () => {
    expect(read({ mcpServers: { a: { ...address, env: { K: "v" }, args: ["y"], cwd: "/" } } })).toEqual([
      expect.stringMatching(/^mcpServers\.a\.env: has no effect: .* this one is at an address$/),
      expect.stringMatching(/^mcpServers\.a\.args: has no effect/),
      expect.stringMatching(/^mcpServers\.a\.cwd: has no effect/),
    ]);
    expect(read({ mcpServers: { a: { ...program, headers: { X: "y" } } } })).toEqual([
      "mcpServers.a.headers: has no effect: it is for a server at an address, and this one is started here",
    ]);
  });

  it("are not told where they are empty, or have one", () => {
    expect(read({ mcpServers: { a: { ...address, env: {}, args: [], headers: { X: "y" } } } })).toEqual([]);
    expect(read({ mcpServers: { a: { ...program, env: { K: "v" }, args: ["y"], headers: {} } } })).toEqual([]);
  });

  it("are told where they need another beside them", () => {
    expect(read({ mcpServers: { a: { ...program, sessionConnections: 3 } } })).toEqual([
      'mcpServers.a.sessionConnections: has no effect: it needs "isolation": "session" beside it',
    ]);
    expect(read({ mcpServers: { a: { ...program, isolation: "session", sessionConnections: 3 } } })).toEqual([]);
  });

  it("are those that give a server up, beside a mailbox: a machine that is away is no fault of it", () => {
    const mailbox = { mailbox: "studio", broker: "wss://broker.example.com" };
    const said = { restarts: { max: 3 }, breaker: { failures: 2 }, ejectedProbeMs: 60_000, pingMs: 5_000 };
    const why = "has no effect: a machine behind a mailbox comes and goes, and is never given up";
    expect(read({ mcpServers: { a: { ...mailbox, ...said } } })).toEqual(
      Object.keys(said).map((key) => `mcpServers.a.${key}: ${why}`),
    );
    expect(read({ mcpServers: { a: { ...mailbox, restarts: {}, backoff: { baseMs: 100 }, lazy: true } } })).toEqual([]);
    expect(read({ mcpServers: { a: { ...program, ...said } } })).toEqual([]);
  });

  it("are an executor that no server goes through, and rules for the role of executors", () => {
    expect(read({ mcpServers: { a: { ...address, via: "lab" } }, executors: { lab: {}, labb: {} } })).toEqual([
      'executors.labb: has no effect: no server goes through it (a server goes through it by "via": "labb")',
    ]);
    expect(read({ mcpServers: { a: program }, roles: { executor: { deny: ["a"] } } })).toEqual([
      expect.stringMatching(/^roles\.executor: this has no effect/),
    ]);
  });
});

describe("roles [status-true]", () => {
  it("that name a server which is not there are told the nearest", () => {
    const roles = { r: { allow: ["gihub/*", "git*/x", "zzz*/x"], deny: ["nothing"] } };
    expect(read({ mcpServers: { github: program }, roles })).toEqual([
      'roles.r.allow[0]: no server of this config matches "gihub/*" (did you mean "github/*"?)',
      'roles.r.allow[2]: no server of this config matches "zzz*/x"',
      'roles.r.deny[0]: no server of this config matches "nothing"',
    ]);
  });

  it('say what becomes of the default token where unlistedRoles is "deny"', () => {
    const base = { mcpServers: { a: program }, unlistedRoles: "deny" };
    expect(read({ ...base, roles: { r: {} } })).toEqual([
      expect.stringMatching(/^unlistedRoles: the default token has the role "default".*: it may use no tool \(add/),
    ]);
    expect(read({ ...base, roles: { default: { allow: ["a"] } } })).toEqual([]);
    expect(read({ ...base, unlistedRoles: "allow" })).toEqual([]);
  });
});

describe("allowedOrigins [pages]", () => {
  const wrong = (...allowedOrigins: string[]) => mistakes({ mcpServers: {}, allowedOrigins });

  it("are origins, as browsers write them", () => {
    expect(
      wrong("https://app.example", "http://localhost:3000", "https://App.example/", "chrome-extension://abc"),
    ).toEqual([]);
  });

  it.each([
    ["*", /without \* \(name each origin/],
    ["https://*.example.com", /without \*/],
    ["app.example", /for instance "https:\/\/app\.example"/],
    ["localhost:3000", /for instance "https:\/\/localhost:3000"/],
    ["https://app.example/mcp", /for instance "https:\/\/app\.example"/],
    ["https://app.example:443", /as browsers write it \(write "https:\/\/app\.example"\)/],
    ["https://me@app.example", /scheme:\/\/host\[:port\]/],
    ["null", /scheme:\/\/host\[:port\]/],
    ["", /scheme:\/\/host\[:port\]/],
  ])("are not %j, and the fix is told", (origin, told) => {
    expect(wrong(origin)).toEqual([expect.stringMatching(told)]);
    expect(wrong(origin)[0]).toMatch(/^allowedOrigins\[0\]: expected the origin of a web page/);
  });
});
