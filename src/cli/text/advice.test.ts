import { describe, expect, it } from "vitest";
import { SUPERVISED } from "../../../test/fixtures/spec.js";
import type { ServerSpec } from "../../contracts/server-spec.js";
import type { Probe } from "../gateway/port.js";
import { adviceFor } from "./advice.js";

const spec = (target: Partial<ServerSpec["target"]>): ServerSpec => ({
  name: "s",
  target: {
    kind: "stdio",
    command: "npx",
    args: ["secret"],
    env: {},
    cwd: undefined,
    ...target,
  } as ServerSpec["target"],
  isolation: "shared",
  connectTimeoutMs: 1,
  callTimeoutMs: 1,
  ...SUPERVISED,
});

const probe = (message: string, more: Partial<Probe> & { code?: string } = {}): Probe => ({
  ok: false,
  era: undefined,
  version: undefined,
  serverInfo: undefined,
  tools: [],
  problems: [],
  readyMs: undefined,
  error: { code: more.code ?? "unavailable", message },
  stderr: [],
  noise: { count: 0, sample: undefined },
  ...more,
});

const advice = (target: Partial<ServerSpec["target"]>, found: Probe, has = true): string =>
  adviceFor(spec(target), found, () => has).join("\n");

describe("a program that is missing", () => {
  it.each([
    ["npx", "nodejs.org"],
    ["uvx", "docs.astral.sh/uv"],
    ["docker", "docs.docker.com"],
    ["my-own", "no program my-own on the PATH"],
    ["npx -y some-server", 'put what follows it into "args"'],
  ])("%s", (command, says) => {
    const message = `Command not found: "${command}" is not on the PATH.`;
    expect(advice({ kind: "stdio", command }, probe(message), false)).toContain(says);
  });
});

describe("what a server wrote before it died", () => {
  it.each([
    ["npm error code E404", "package does not exist"],
    ["Error: Cannot find module '/x/index.js'", "module is missing"],
    ["ModuleNotFoundError: No module named 'mcp'", "module is missing"],
    ["Cannot connect to the Docker daemon at unix:///var/run/docker.sock", "start it"],
    ["Error: GITHUB_TOKEN environment variable is not set", "environment variable"],
    ["Missing required BRAVE_API_KEY", "environment variable"],
    ["Error: listen EADDRINUSE: address already in use :::3000", "port that is taken"],
    ["getaddrinfo ENOTFOUND registry.example", "network"],
  ])("%s", (line, says) => {
    expect(advice({}, probe("The server ended.", { stderr: [line] }))).toContain(says);
  });

  it("and when nothing fits, it is run by hand, without its arguments in the text", () => {
    const text = advice({}, probe("The server ended."));
    expect(text).toContain("by hand");
    expect(text).not.toContain("secret");
    expect(advice({}, probe("No answer.", { code: "timeout" }))).toContain("connectTimeoutMs");
  });
});

describe("an HTTP server", () => {
  const http = { kind: "http", url: "http://x/mcp", headers: {} } as const;
  it.each([
    ["http://x/mcp wants credentials (HTTP 401).", "unauthorized", "headers"],
    ["cannot be reached: nothing listens there.", "unavailable", "Start that server"],
    ["cannot be reached: the name does not resolve (ENOTFOUND).", "unavailable", "host name"],
    ["http://x/mcp does not exist (HTTP 404).", "protocol", "/mcp"],
    ["No answer.", "timeout", "firewall"],
  ])("%s", (message, code, says) => {
    expect(advice(http, probe(message, { code }))).toContain(says);
  });
});

it("speaks of noise on stdout even when all is well", () => {
  const noisy = { ...probe(""), ok: true, error: undefined, noise: { count: 3, sample: "Listening…" } };
  expect(advice({}, noisy)).toContain("stderr");
  expect(advice({}, { ...noisy, noise: { count: 0, sample: undefined } })).toBe("");
});

describe("the way through an executor", () => {
  it.each([
    ['No executor "office" is connected. Last: nothing listens there (ECONNREFUSED).', "Start that executor"],
    ['Executor "office" does not reach http://wiki/mcp: No --allow rule covers wiki:80.', "--dry-run URL"],
    ['Executor "office" dials in to the gateway, and none runs that could try it.', "Start the gateway"],
    ['http://wiki/mcp cannot be reached through executor "office": nothing listens there.', "Start that server"],
  ])("%s", (message, says) => {
    expect(advice({ kind: "http", url: "http://wiki/mcp", via: "office" }, probe(message))).toContain(says);
  });
});
