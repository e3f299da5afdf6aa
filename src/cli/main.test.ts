// The program itself, from dist/: how its process ends.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

let folder: string;

beforeAll(() => {
  if (!existsSync(main)) throw new Error("These tests run what is in dist/: run `npm run build` first.");
  folder = mkdtempSync(join(tmpdir(), "toolway-process-"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the process of the CLI", () => {
  const cli = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
    spawnSync(process.execPath, [main, ...args], { cwd: folder, encoding: "utf8", timeout: 60_000 });

  it("exits with the command's code, all output written", () => {
    expect(cli("--version")).toMatchObject({ status: 0, stderr: "" });
    expect(cli("nonsense")).toMatchObject({ status: 2, stdout: "" });
    expect(cli("config", "check", "gone.json")).toMatchObject({ status: 2, stdout: "" });
    const schema = cli("config", "schema");
    expect(schema.status).toBe(0);
    expect(JSON.parse(schema.stdout)).toHaveProperty("properties.mcpServers");
  });

  it("says where an id belongs that looks like an option, and takes it there", () => {
    const refused = cli("outbox", "show", "-abc_def", "--json");
    expect(refused).toMatchObject({ status: 2, stdout: "" });
    expect(refused.stderr).toContain("put -- before it, as the last word: -- -abc_def");
    expect(cli("outbox", "show", "--json", "--", "-abc_def")).toMatchObject({ status: 1 });
    expect(cli("outbox", "show", "--jsn", "abc").stderr).not.toContain("put -- before it");
  });

  it("started in a folder that was deleted, says so where it needs one, and goes on where it does not [told-why]", () => {
    const home = join(folder, "home");
    const state = join(folder, "state");
    const gone = (...args: string[]) => {
      const script = 'mkdir "$0" && cd "$0" && rmdir "$0" && exec "$@"';
      const words = ["-c", script, join(folder, "gone"), process.execPath, main, ...args];
      const env = { ...process.env, HOME: home, XDG_STATE_HOME: state };
      return spawnSync("sh", words, { encoding: "utf8", timeout: 60_000, env });
    };
    for (const words of [["list"], ["status"], ["import"], ["serve"], ["call", "demo__add", "@x.json"]]) {
      expect(gone(...words)).toMatchObject({
        status: 2,
        stdout: "",
        stderr: "toolway: The folder that this was started in no longer exists.\n  cd to another one, and try again.\n",
      });
    }
    expect(gone("--version")).toMatchObject({ status: 0, stderr: "" });
    expect(gone("ps")).toMatchObject({ status: 0, stderr: "" });
    const config = join(folder, "kept.json");
    writeFileSync(config, '{"mcpServers":{"a":{"command":"a"}}}');
    expect(gone("list", "--config", config)).toMatchObject({ status: 0, stderr: "" });
  });

  it("starts many servers for one call, and Node has nothing to warn of [told-why]", () => {
    const config = join(folder, "many.json");
    const names = Array.from({ length: 14 }, (_, n) => [`s${n}`, { command: "no-such-program-of-ours" }] as const);
    // One that cannot be started at all: the others are started by their names then.
    const wrong = { command: "x", env: { KEY: `\${TOOLWAY_TEST_NO_SUCH_KEY}` } };
    writeFileSync(config, JSON.stringify({ mcpServers: { ...Object.fromEntries(names), wrong } }));
    const { status, stderr } = cli("call", "zz", "--config", config, "--state", join(folder, "many"));
    expect(status).toBe(1);
    expect(stderr).toContain("There is no tool zz");
    expect(stderr).not.toContain("Warning");
  });

  it("ends quietly when its reader has gone", async () => {
    const child = spawn("sh", ["-c", '"$0" "$1" config schema | true', process.execPath, main], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let err = "";
    child.stderr.on("data", (chunk: Buffer) => {
      err += chunk.toString();
    });
    await new Promise((resolve) => child.once("close", resolve));
    expect(err).toBe("");
  });
});
