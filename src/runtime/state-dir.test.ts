import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ensureStateDir, lockStateDir, stateDirFor } from "./state-dir.js";

const root = resolve(fileURLToPath(import.meta.url), "../../..");
let built: string;
let dir: string;
let children: ChildProcess[] = [];

beforeAll(() => {
  built = mkdtempSync(join(tmpdir(), "toolway-state-built-"));
  writeFileSync(join(built, "package.json"), '{"type":"module"}');
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const options = "--ignoreConfig --module nodenext --target es2023 --lib es2023,esnext.disposable --types node";
  const files = ["--skipLibCheck", "--rootDir", "src", "--outDir", built, "src/runtime/state-dir.ts"];
  execFileSync(process.execPath, [tsc, ...options.split(" "), ...files], { cwd: root });
});
afterAll(() => rmSync(built, { recursive: true, force: true }));
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolway-state-"));
});
afterEach(async () => {
  await Promise.all(children.map(kill));
  children = [];
  rmSync(dir, { recursive: true, force: true });
});

function kill(child: ChildProcess): Promise<unknown> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  const exit = new Promise((done) => child.once("exit", done));
  child.kill("SIGKILL");
  return exit;
}

interface Starter {
  readonly child: ChildProcess;
  /** "won", or the error's code and pid. */
  readonly result: Promise<{ won: boolean; code?: string; pid?: number; message?: string }>;
}

/** A process that tries to take the lock, once `race` says so, and holds it until it is killed. */
function starter(state: string, race = new Race(1)): Starter {
  const body = `import { lockStateDir } from ${JSON.stringify(join(built, "runtime", "state-dir.js"))};
    console.log("ready");
    await new Promise((go) => process.stdin.once("data", go));
    process.stdin.destroy();
    try { await lockStateDir(process.argv[1]); console.log(JSON.stringify({ won: true })); setInterval(() => {}, 1000); }
    catch (e) { console.log(JSON.stringify({ won: false, code: e.code, pid: e.pid, message: e.message })); }`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", body, "--", state], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.push(child);
  const result = new Promise<string>((done) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line === "ready") race.enter(() => child.stdin.write("go"));
      else done(line);
    });
  });
  return { child, result: result.then((line) => JSON.parse(line)) };
}

/** Lets nobody go before all are there, however long their processes take to start. */
class Race {
  readonly #size: number;
  readonly #starts: (() => void)[] = [];

  constructor(size: number) {
    this.#size = size;
  }

  enter(start: () => void): void {
    this.#starts.push(start);
    if (this.#starts.length === this.#size) for (const go of this.#starts) go();
  }
}

describe("the state directory", () => {
  const home = "/home/me";
  it("is below XDG_STATE_HOME when that is absolute, else below the home", () => {
    expect(stateDirFor(undefined, { XDG_STATE_HOME: "/var/s" }, home)).toBe("/var/s/toolway/default");
    expect(stateDirFor(undefined, { XDG_STATE_HOME: "rel" }, home)).toBe("/home/me/.local/state/toolway/default");
    expect(stateDirFor(undefined, {}, home)).toBe("/home/me/.local/state/toolway/default");
  });

  it("is named after the config and differs for configs of one name", () => {
    const a = stateDirFor("/a/mcp.json", {}, home);
    expect(a).toMatch(/^\/home\/me\/\.local\/state\/toolway\/mcp-[0-9a-f]{10}$/);
    expect(stateDirFor("/a/../a/mcp.json", {}, home)).toBe(a);
    expect(stateDirFor("/b/mcp.json", {}, home)).not.toBe(a);
    expect(stateDirFor("/a/.x y/ü.json", {}, home)).toMatch(/\/config-[0-9a-f]{10}$/);
    expect(stateDirFor(`/a/${"n".repeat(200)}.json`, {}, home).length).toBeLessThan(90);
  });

  it("is one for a config and a link to it", () => {
    writeFileSync(join(dir, "mcp.json"), "{}");
    symlinkSync(join(dir, "mcp.json"), join(dir, "link.json"));
    expect(stateDirFor(join(dir, "link.json"), {}, home)).toBe(stateDirFor(join(dir, "mcp.json"), {}, home));
  });

  it("is for us alone", () => {
    const state = join(dir, "a", "b");
    ensureStateDir(state);
    expect(statSync(state).mode & 0o777).toBe(0o700);
    const open = join(dir, "open");
    mkdirSync(open);
    chmodSync(open, 0o755);
    ensureStateDir(open);
    expect(statSync(open).mode & 0o777).toBe(0o700);
    chmodSync(open, 0o755);
    writeFileSync(join(open, "thesis.doc"), "");
    expect(() => ensureStateDir(open)).toThrow(/chmod 700/);
    expect(statSync(open).mode & 0o777).toBe(0o755);
  });
});

describe("its lock", () => {
  it("has one holder, names it, and is free after release", async () => {
    const lock = await lockStateDir(dir);
    await expect(lockStateDir(dir)).rejects.toMatchObject({
      code: "held",
      pid: process.pid,
      message: expect.stringMatching(new RegExp(`already running .*process ${process.pid}.*--state DIR`)),
    });
    await lock.release();
    const again = await lockStateDir(dir);
    await again.release();
    expect(readdirSync(dir).filter((name) => name.startsWith("lock")).length).toBeLessThanOrEqual(1);
  });

  it("is won by one of ten that race, after each kill -9 of the holder before", async () => {
    let last: ChildProcess | undefined;
    for (let round = 0; round < 4; round++) {
      if (last !== undefined) await kill(last);
      const race = new Race(10);
      const starters = Array.from({ length: 10 }, () => starter(dir, race));
      const results = await Promise.all(starters.map((s) => s.result));
      expect(results.filter((r) => r.won)).toHaveLength(1);
      for (const result of results) if (!result.won) expect(result.code).toBe("held");
      last = starters[results.findIndex((r) => r.won)]?.child;
      const late = await starter(dir).result;
      expect(late).toMatchObject({ won: false, code: "held", pid: last?.pid });
    }
    // Nothing piles up.
    if (process.platform === "linux") expect(readdirSync(dir).sort()).toEqual(["lock.4", "pid"]);
  });

  it("is held by a process that is stopped or busy", async () => {
    const holder = starter(dir);
    expect((await holder.result).won).toBe(true);
    holder.child.kill("SIGSTOP");
    expect((await starter(dir).result).code).toBe("held");
    await kill(holder.child);
    expect((await starter(dir).result).won).toBe(true);
  });

  it("works in a directory whose path is too long for a socket", async () => {
    const deep = join(dir, "d".repeat(100), "e".repeat(100));
    const holder = starter(deep);
    expect(await holder.result).toEqual({ won: true });
    await expect(lockStateDir(deep)).rejects.toMatchObject({ code: "held", pid: holder.child.pid });
    await kill(holder.child);
    const lock = await lockStateDir(deep);
    await lock.release();
  });

  it("does not keep a process alive", () => {
    const body = `import { lockStateDir } from ${JSON.stringify(join(built, "runtime", "state-dir.js"))};
      await lockStateDir(process.argv[1]);`;
    execFileSync(process.execPath, ["--input-type=module", "-e", body, "--", dir], { timeout: 60_000 });
  });
});
