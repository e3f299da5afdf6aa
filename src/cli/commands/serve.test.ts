// `serve` from the words of the line to what it prints and how it ends, with a fake gateway.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";
import { resolveConfig } from "../../config/load.js";
import { replaceGatewayPort } from "../gateway/port.js";
import { Stopped } from "../line/io.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

describe("serve", () => {
  const stopped = (): AbortSignal => AbortSignal.abort(new Stopped("SIGTERM"));

  it("prints where it is and how to connect, and drains when told to stop", async () => {
    const fake = fakeGateway();
    const { code, out } = await run(["serve", "--listen", "127.0.0.1:0"], {
      signal: stopped(),
      program: "npx toolway",
    });
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

  it("shows a new token and its note on one line of a terminal, without an escaped character [told-why]", async () => {
    fakeGateway();
    const { out } = await run(["serve"], { signal: stopped(), isTTY: true });
    expect(out).toMatch(/^ {2}token +tw_secret {2}\(shown this once; later: toolway token show\)$/m);
    expect(out).not.toContain("\\u{");
  });

  it("asks nobody on a terminal for inputs that nobody answered: that server alone is misconfigured [bad-entry-alone]", async () => {
    const fake = fakeGateway();
    const servers = { good: { command: "x" }, wrong: { command: "x", env: { A: "$" + "{input:my-key}" } } };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify({ servers }));
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    stdin.write("s3cret\r");
    const ran = await run(["serve"], { signal: stopped(), stdin, isTTY: true, isErrTTY: true });
    expect([ran.code, fake.started?.configPath]).toEqual([0, join(folder, "toolway.json")]);
    expect(ran.out + ran.err).not.toContain("[my-key]");
    expect(String(stdin.read())).toBe("s3cret\r");
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
    expect(out).toContain("  toolway run claude\n");
    fakeGateway();
    const json = await run(["serve", "--json"], { signal: stopped() });
    expect(JSON.parse(json.out)).toMatchObject({ endpoint: "http://127.0.0.1:7420/mcp", servers: ["demo"] });
    expect(json.out).not.toContain("tw_secret");
  });

  it("says where mailboxes are, where they are kept [status-true]", async () => {
    const fake = fakeGateway();
    expect((await run(["serve"], { signal: stopped() })).out).not.toContain("mailboxes");
    const { start } = fake.port;
    const config = resolveConfig({ mcpServers: {}, mailboxes: {} });
    replaceGatewayPort({ ...fake.port, start: async (options) => ({ ...(await start(options)), config }) });
    const { out } = await run(["serve"], { signal: stopped() });
    expect(out).toMatch(/mailboxes +kept, at ws:\/\/127\.0\.0\.1:7420\/mailboxes\n/);
  });

  it("leaves to the log what the config warns of: on a terminal each is read once [status-true]", async () => {
    const fake = fakeGateway();
    const { start } = fake.port;
    const config = resolveConfig({ mcpServers: {}, roles: { reader: { deny: ["gihub/x"] } } });
    expect(config.warnings).not.toEqual([]);
    replaceGatewayPort({ ...fake.port, start: async (options) => ({ ...(await start(options)), config }) });
    const { out } = await run(["serve"], { signal: stopped(), isTTY: true, isErrTTY: true });
    expect(out).toContain("http://127.0.0.1:7420/mcp");
    expect(out).not.toContain("warning");
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
  });

  it.each([
    ["0.0.0.0", "127.0.0.1"],
    ["[::]", "[::1]"],
  ])("has no line to paste with %s in it, for any client: %s reaches it from here", async (all, here) => {
    const fake = fakeGateway();
    const { start } = fake.port;
    const url = `http://${all}:7420/mcp`;
    replaceGatewayPort({ ...fake.port, start: async (options) => ({ ...(await start(options)), url }) });
    const { out } = await run(["serve"], { signal: stopped() });
    const pasted = out.slice(out.indexOf("Run an agent with it"));
    expect(pasted).not.toContain(all);
    const lines = pasted.split("\n").filter((line) => line.includes(" mcp add "));
    expect(lines.map((line) => line.trim().split(" ")[0])).toEqual(["claude", "codex", "gemini", "opencode"]);
    for (const line of lines) expect(line).toContain(` http://${here}:7420/mcp`);
    expect(out).toContain(`it listens on ${all.replace(/[[\]]/g, "")}`);
  });

  it("names the config and state in the lines to paste when they are not the usual ones", async () => {
    fakeGateway();
    writeFileSync(join(folder, "my own.json"), '{"mcpServers":{}}');
    const { out } = await run(["serve", "my own.json", "--state", "st"], { signal: stopped(), program: "npx toolway" });
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
