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

const probe = (error: Partial<NonNullable<Probe["error"]>>, stderr: readonly string[] = []): Probe => ({
  ok: false,
  era: undefined,
  version: undefined,
  serverInfo: undefined,
  tools: [],
  problems: [],
  readyMs: undefined,
  error: { code: "unavailable", reason: undefined, message: "", remedy: undefined, ...error },
  stderr,
  noise: { count: 0, sample: undefined },
});

const advice = (target: Partial<ServerSpec["target"]>, found: Probe): string =>
  adviceFor(spec(target), found).join("\n");

describe("a program that is missing", () => {
  it.each([
    ["npx", "nodejs.org"],
    ["uvx", "docs.astral.sh/uv"],
    ["docker", "docs.docker.com"],
    ["my-own", "Install it."],
  ])("%s", (command, says) => {
    const error = { reason: "command-unknown", message: "Command not found.", remedy: "Install it." } as const;
    expect(advice({ kind: "stdio", command }, probe(error))).toContain(says);
  });

  it("is told what its fault says, and what its program wrote before counts for nothing [host-3]", () => {
    const error = { reason: "cwd-missing", remedy: 'Create it, or correct "cwd".' } as const;
    expect(advice({}, probe(error, ["npm error code E404"]))).toBe('Create it, or correct "cwd".');
  });
});

it("a home folder that a shell would have put in is told of, and not as something to be tried by hand [told-why]", () => {
  const args = ["-y", "files", "~/notes"];
  const said = advice({ args }, probe({}, ["Error: None of the specified directories are accessible"]));
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is a variable of the config
  expect(said).toBe("An argument begins with ~/, and no shell is there to read it: write ${userHome}/ in its place.");
  expect(advice({ args: ["-y", "files"] }, probe({}))).toContain("Run it by hand");
});

describe("what a server wrote before it died", () => {
  it.each([
    ["npm error code E404", "package does not exist"],
    ["npm error notarget No matching version found for x@9.", "no such version"],
    ["Error: Cannot find module '/x/index.js'", "module is missing"],
    ["Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'", "module is missing"],
    ["ModuleNotFoundError: No module named 'mcp'", "module is missing"],
    ["Cannot connect to the Docker daemon at unix:///var/run/docker.sock", "start it"],
    ["Error: GITHUB_TOKEN environment variable is not set", "environment variable"],
    ["Missing required BRAVE_API_KEY", "environment variable"],
    ["Error: listen EADDRINUSE: address already in use :::3000", "port that is taken"],
    ["getaddrinfo ENOTFOUND registry.example", "network"],
  ])("%s", (line, says) => {
    expect(advice({}, probe({ reason: "exited" }, [line]))).toContain(says);
  });

  it("and when nothing fits, it is run by hand, without its arguments in the text", () => {
    const text = advice({}, probe({ reason: "exited", message: "The server ended." }));
    expect(text).toContain("by hand");
    expect(text).not.toContain("secret");
    expect(advice({}, probe({ code: "timeout" }))).toContain("downloading");
    expect(advice({ command: "mine" }, probe({ code: "timeout" }))).toContain("connectTimeoutMs");
  });
});

it("a server that comes up, and cannot say what tools it has, is not taken for one that cannot be started [told-why]", () => {
  const error = { reason: "server-error", message: "Its tools could not be read: database is locked." } as const;
  expect(advice({}, probe(error))).toBe(
    "It comes up, and fails when it is asked for its tools: look at what it needs, or tell its maker.",
  );
  expect(advice({}, probe({ ...error, code: "timeout" }))).toContain('If it is only slow, raise "connectTimeoutMs".');
});

describe("an HTTP server", () => {
  const http = { kind: "http", url: "http://x/401/mcp", headers: {} } as const;

  it("is told what its fault says, whatever words and numbers its address has [host-3]", () => {
    const message = "http://x/401/mcp cannot be reached: nothing listens there.";
    const remedy = 'Start that server, or correct the port in "url".';
    expect(advice(http, probe({ reason: "nothing-listens", message, remedy }))).toBe(remedy);
    expect(advice(http, probe({ reason: "server-error", message: "http://x/401/mcp failed (HTTP 500)." }))).toContain(
      "Its own log",
    );
    expect(advice(http, probe({ code: "timeout" }))).toContain("firewall");
  });

  it("that wants a login is told the line that makes it, with its own name [told-why]", () => {
    const remedy = 'Add "auth": "oauth" to the entry, and log in with `toolway login NAME`.';
    expect(advice(http, probe({ reason: "oauth", remedy }))).toContain("`toolway login s`");
  });

  it("behind an executor is told of the executor where that is what failed [host-3]", () => {
    const via = { ...http, via: "office" } as const;
    expect(advice(via, probe({ reason: "no-executor" }))).toContain("Start that executor");
    expect(advice(via, probe({ reason: "executor-refuses" }))).toContain("--dry-run URL");
  });
});

it("speaks of noise on stdout even when all is well", () => {
  const noisy = { ...probe({}), ok: true, error: undefined, noise: { count: 3, sample: "Listening…" } };
  expect(advice({}, noisy)).toContain("stderr");
  expect(advice({}, { ...noisy, noise: { count: 0, sample: undefined } })).toBe("");
});
