// What keys of other clients mean here: which tools are shown, how long things may take, and what is never dropped in
// silence.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { describe, expect, it } from "vitest";
import { parseConfig } from "../load.js";
import { readForeign } from "./foreign-keys.js";

const read = (entry: object, path = "/home/me/mcp.json") =>
  parseConfig(JSON.stringify({ mcpServers: { a: entry } }), { path, env: {}, home: "/home/me", wrongEntries: "keep" });
const serverOf = (entry: object, path?: string) => read(entry, path).servers[0];
const wrongOf = (entry: object) => read({ command: "x", ...entry }).misconfigured[0]?.why;

describe("another client's list of tools", () => {
  it.each(["includeTools", "enabledTools", "enabled_tools", "allowedTools", "tools"])(
    "in %s is all that is shown [only-is-all]",
    (key) => {
      expect(serverOf({ command: "x", [key]: ["read_file", "find(path)"] })?.only).toEqual(["read_file", "find"]);
      expect(serverOf({ command: "x", [key]: [] })?.only).toEqual([]);
    },
  );

  it.each(["excludeTools", "disabledTools", "disabled_tools", "disallowedTools"])(
    "in %s is hidden, beside what the entry says of tools [only-is-all]",
    (key) => {
      const tools = { rm: { name: "remove" }, ls: { readOnly: true } };
      const server = serverOf({ command: "x", tools, [key]: ["rm", "constructor"] });
      expect(server?.tools["rm"]).toMatchObject({ name: "remove", hide: true });
      expect(server?.tools["constructor"]).toMatchObject({ hide: true });
      expect(server?.tools["ls"]).toMatchObject({ readOnly: true, hide: false });
    },
  );

  it("that cannot be read leaves the server out: nobody can tell what may be shown [only-is-all] [bad-entry-alone]", () => {
    for (const wrong of ["read_*", [1], [""], { a: 1 }, true]) {
      expect(wrongOf({ includeTools: wrong }), JSON.stringify(wrong)).toContain("(includeTools)");
      expect(wrongOf({ excludeTools: wrong }), JSON.stringify(wrong)).toContain("(excludeTools)");
      expect(wrongOf({ only: wrong }), JSON.stringify(wrong)).toContain("(only");
    }
    expect(wrongOf({ onyl: ["a"] })).toContain("unknown key (onyl)");
    expect(wrongOf({ only: ["a"], includeTools: ["b"] })).toContain("expected one of them");
    expect(wrongOf({ enabled_tools: ["a"], includeTools: ["b"] })).toContain("expected one of them");
    expect(wrongOf({ only: null })).toContain("expected a list");
  });

  it("of approvals narrows nothing", () => {
    expect(serverOf({ command: "x", alwaysAllow: ["a"], autoApprove: ["b"] })).toMatchObject({
      only: undefined,
      tools: {},
    });
  });
});

describe("another client's time limits", () => {
  it.each([
    ["milliseconds, as Claude Code, Gemini CLI and opencode mean them", { timeout: 600_000 }, "/p/.mcp.json", 600_000],
    ["seconds in a file of Cline", { timeout: 1800 }, "/x/settings/cline_mcp_settings.json", 1_800_000],
    ["seconds in a file of Roo Code", { timeout: 3600 }, "/x/settings/mcp_settings.json", 3_600_000],
    ["seconds in a project's file of Roo Code", { timeout: 60 }, "/p/.roo/mcp.json", 60_000],
    ["seconds where milliseconds make no sense", { timeout: 60 }, "/p/mcp.json", 60_000],
    ["Codex's seconds", { tool_timeout_sec: 1.5 }, "/p/mcp.json", 1_500],
  ])("mean here what they mean to that client: %s", (_, limits, path, ms) => {
    expect(serverOf({ command: "x", ...limits }, path)?.callTimeoutMs).toBe(ms);
  });

  it("of a start are those of a start, and ours go before theirs", () => {
    expect(serverOf({ command: "x", startup_timeout_sec: 90 })?.connectTimeoutMs).toBe(90_000);
    expect(serverOf({ command: "x", startup_timeout_ms: 90 })?.connectTimeoutMs).toBe(90);
    expect(serverOf({ command: "x", timeout: 5000, callTimeoutMs: 7 })?.callTimeoutMs).toBe(7);
  });

  it("that make no sense are passed over", () => {
    for (const timeout of [0, -1, "30", null, {}]) {
      expect(serverOf({ command: "x", timeout })?.callTimeoutMs, JSON.stringify(timeout)).toBe(300_000);
    }
    expect(serverOf({ command: "x", timeout: 1e300 })?.callTimeoutMs).toBe(2_147_483_647);
  });
});

describe("what makes a server safer, or signs in to it, is not dropped in silence:", () => {
  it("a sandbox is missed until the entry says that it may be [bad-entry-alone]", () => {
    expect(wrongOf({ sandboxEnabled: true })).toContain("would run without one (sandboxEnabled)");
    expect(wrongOf({ sandboxEnabled: true, sandbox: { network: {} } })).toContain("sandboxEnabled");
    expect(serverOf({ command: "x", sandboxEnabled: true, sandbox: "none" })).toBeDefined();
    expect(serverOf({ command: "x", sandboxEnabled: false, sandbox: { network: {} } })).toBeDefined();
    // An address is no program of ours.
    expect(serverOf({ url: "http://x/mcp", sandboxEnabled: true })).toBeDefined();
    expect(wrongOf({ sandbox: "nonne" })).toContain('expected "none"');
  });

  it.each([
    ["headersHelper", "./token.sh", ""],
    ["http_headers_helper", "./token.sh", ""],
    ["oauth", { clientId: "s3cret" }, false],
    ["auth", { CLIENT_ID: "s3cret" }, {}],
    ["authProviderType", "google_credentials", "dynamic_discovery"],
  ])("%s warns with what it means and what to do, unless it asks for nothing", (key, asking, silent) => {
    const { warnings, servers } = read({ url: "http://x/mcp", [key]: asking });
    expect(servers).toHaveLength(1);
    expect(warnings).toEqual([
      expect.stringMatching(new RegExp(`mcpServers\\.a\\.${key}: .* \\((?:put what it needs into|write "auth")`)),
    ]);
    expect(warnings.join()).not.toContain("s3cret");
    expect(read({ url: "http://x/mcp", [key]: silent }).warnings).toEqual([]);
  });
});

it("an entry without foreign keys means nothing foreign", () => {
  expect(readForeign({ command: "x", tools: { a: {} } }, undefined)).toEqual({
    only: undefined,
    hidden: [],
    connectTimeoutMs: undefined,
    callTimeoutMs: undefined,
    remarks: [],
  });
});
