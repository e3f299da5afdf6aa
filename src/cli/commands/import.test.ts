// `import` from the words of the line to what it shows and writes.

import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { folder, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

describe("import", () => {
  beforeEach(() => {
    mkdirSync(join(folder, "home/.cursor"), { recursive: true });
    const servers = { gh: { command: "npx", args: ["gh"], env: { TOKEN: "ghp_canary", REF: `\${REF}` } } };
    writeFileSync(join(folder, "home/.cursor/mcp.json"), JSON.stringify({ mcpServers: servers }));
  });

  it("shows first, without secrets, and writes nothing", async () => {
    const { code, out, err } = await run(["import"]);
    expect(code).toBe(0);
    expect(out).toContain("taken    Cursor, ./home/.cursor/mcp.json: gh");
    expect(out).toContain(`"REF": "\${REF}"`);
    expect(out + err).not.toContain("ghp_canary");
    expect(err).toContain("Nothing was written");
    expect(existsSync(join(folder, "toolway.json"))).toBe(false);
    await run(["import", "--write", "--dry-run"]);
    expect(existsSync(join(folder, "toolway.json"))).toBe(false);
  });

  it("ends with what is left to do: variables to set, and keys that are copied [config-kept]", async () => {
    const { out } = await run(["import"], { env: { REF: "1" } });
    const [, tail = ""] = out.split("\ntaken ");
    expect(tail).toContain("Variables that the servers need, to be set where the gateway runs:\n  REF: gh\n");
    expect(tail).toContain("Keys that would be copied as they stand:\n  gh: env.TOKEN\n");
    expect(tail).toContain(`Keep ./toolway.json out of git, or put \${VAR} in their place.`);
    expect(out.indexOf('"mcpServers"')).toBeLessThan(out.indexOf("\ntaken "));
    const written = (await run(["import", "--write"])).out;
    expect(written).toContain("REF (not set here): gh");
    expect(written).toContain("Keys that were copied as they stand:");
    expect(written).toContain("Next: `toolway doctor`, then `toolway serve`.");
    expect((await run(["import", "--write", "mine.json"])).out).toContain(
      "Next: `toolway doctor --config ./mine.json`, then",
    );
    const json = JSON.parse((await run(["import", "--json", "--write", "other.json"])).out);
    expect(json.needs).toEqual([{ name: "gh", variables: ["REF"], inputs: [], secrets: ["env.TOKEN"] }]);
  });

  it("writes what VS Code would ask for beside the servers, and says who answers it [config-kept]", async () => {
    rmSync(join(folder, "home/.cursor/mcp.json"));
    mkdirSync(join(folder, ".vscode"));
    const key = { id: "api-key", type: "promptString", description: "Key", password: true };
    writeFileSync(
      join(folder, ".vscode/mcp.json"),
      JSON.stringify({ inputs: [key], servers: { gh: { command: "gh", env: { KEY: `\${input:api-key}` } } } }),
    );
    writeFileSync(join(folder, "toolway.json"), '{\n  // mine\n  "inputs": [\n    { "id": "x" }, // own\n  ],\n}\n');
    const { out } = await run(["import", "--write"]);
    expect(out).toContain("  INPUT_API_KEY (not set here; else `toolway doctor` asks for it): gh\n");
    expect(out).not.toContain("were copied as they stand");
    const written = readFileSync(join(folder, "toolway.json"), "utf8");
    expect(written).toMatch(/\/\/ mine\n {2}"inputs": \[\n {4}\{ "id": "x" \},\n {4}\{\n {6}"id": "api-key"/);
    expect((await run(["list"])).out).toContain("misconfigured");
    expect((await run(["list"], { env: { INPUT_API_KEY: "k" } })).out).not.toContain("misconfigured");
  });

  it("takes what was named, and refuses a name that nobody has [config-kept]", async () => {
    const file = join(folder, "home/.cursor/mcp.json");
    writeFileSync(
      file,
      JSON.stringify({ mcpServers: { a: { command: "a" }, b: { command: "b" }, c: { command: "c" } } }),
    );
    const taken = async (...words: string[]) =>
      Object.keys(JSON.parse((await run(["import", "--json", ...words])).out).servers);
    expect(await taken("--only", "a,b", "--exclude", "b")).toEqual(["a"]);
    expect(await taken("--from", "Cursor")).toEqual(["a", "b", "c"]);
    expect(await taken("--from", "vs-code")).toEqual([]);
    const narrowed = await run(["import", "--from", "cursor", "--exclude", "b*"]);
    expect(narrowed.err).toContain("`toolway import --from cursor --exclude 'b*' --write` adds 2 servers");
    expect(await run(["import", "--only", "d"])).toMatchObject({ code: 2, out: "" });
    expect((await run(["import", "--from", "cursr"])).err).toContain("Did you mean cursor?");
  });

  it("says where it looked when there is nothing [told-truly]", async () => {
    rmSync(join(folder, "home/.cursor/mcp.json"));
    writeFileSync(join(folder, "home/.claude.json"), "{}");
    const { code, out } = await run(["import"]);
    expect(code).toBe(0);
    expect(out).toContain("No servers were found. It was looked here:\n");
    expect(out).toContain("  Cursor: ./home/.cursor/mcp.json\n");
    expect(out).toContain("  Claude Code: ./home/.claude.json (no servers in it)\n");
  });

  it("names commands as they can be typed, also in what it says of an entry [told-why]", async () => {
    const typed = { program: "npx toolway" };
    const servers = { linear: { url: "https://linear.example/mcp", oauth: { clientId: "x" } } };
    writeFileSync(join(folder, "home/.cursor/mcp.json"), JSON.stringify({ mcpServers: servers }));
    expect((await run(["import"], typed)).out).toContain("for a login by `npx toolway login`");
    rmSync(join(folder, "home/.cursor/mcp.json"));
    expect((await run(["import"], typed)).out).toContain("`npx toolway add NAME COMMAND…` adds a server by hand");
  });

  it("shows no key that stands in arguments or in an address [secrets-unseen]", async () => {
    const args = ["-y", "server", "--api-key", "canary-key", "--token=canary-token", "--ref", `\${REF}`, "/srv/data"];
    const servers = {
      a: { command: "npx", args },
      b: { url: "https://me:canary-pass@h.example/mcp?key=canary-query" },
    };
    writeFileSync(join(folder, "home/.cursor/mcp.json"), JSON.stringify({ mcpServers: servers }));
    const { out, err } = await run(["import"]);
    expect(out + err).not.toContain("canary");
    for (const kept of [
      '"--api-key"',
      '"--token=[redacted]"',
      `"\${REF}"`,
      '"/srv/data"',
      "@h.example/mcp?key=[redacted]",
    ]) {
      expect(out).toContain(kept);
    }
  });

  it("writes a private file, keeps what is there, and takes nothing twice", async () => {
    expect((await run(["import", "--write"])).out).toContain("Wrote 1 server to ./toolway.json");
    const path = join(folder, "toolway.json");
    expect(readFileSync(path, "utf8")).toContain("ghp_canary");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    chmodSync(path, 0o666);
    writeFileSync(path, '// mine\n{"mcpServers": {"own": {"command": "x"}}}');
    await run(["import", "--write", "toolway.json"]);
    expect(readFileSync(path, "utf8")).toMatch(/\/\/ mine[\s\S]*own[\s\S]*gh/);
    // Whatever the umask takes from new files.
    expect(statSync(path).mode & 0o777).toBe(0o666);
    expect((await run(["import", "--write"])).out).toContain("the config has it already");
    expect(await run(["config", "check"], { env: { REF: "1" } })).toMatchObject({ code: 0 });
  });
});
