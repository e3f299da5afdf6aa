import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { until } from "../../test/fixtures/wait.js";
import { Reaper } from "../runtime/processes/reaper.js";
import { findMarked, hashStateDir } from "../runtime/processes/reaper-marker.js";
import { tokenSource } from "./sources.js";

let dir: string;
const reaper = new Reaper({ stateHash: hashStateDir(`test of sources ${process.pid}`), env: process.env });
const context = { env: process.env, reaper };
afterAll(() => reaper.close());
const cleanUp: (() => void)[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolway-credentials-"));
});
afterEach(() => {
  for (const act of cleanUp.splice(0)) act();
  rmSync(dir, { recursive: true, force: true });
});

describe("a token in a file", () => {
  it("is noticed when it changes: written, renamed over it, behind a link, gone and back", async () => {
    const [first, second, link] = ["first", "second", "link"].map((name) => join(dir, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(first, "one\n");
    symlinkSync(first, link);
    const source = tokenSource({ from: "file", path: link }, context);
    let changes = 0;
    const unwatch = source.watch?.(() => changes++);
    cleanUp.push(() => unwatch?.());
    expect(await source.read()).toBe("one");
    const changed = async (act: () => void, token: string | undefined) => {
      const before = changes;
      act();
      await until("the change to be noticed", () => changes > before);
      expect(await source.read()).toBe(token);
    };
    // What changes before the first look is how it was found: it is written until one was noticed.
    await until("the first change to be noticed", () => {
      writeFileSync(first, "other");
      return changes > 0;
    });
    expect(await source.read()).toBe("other");
    writeFileSync(second, "three");
    await changed(() => renameSync(second, first), "three");
    writeFileSync(second, "four");
    rmSync(link);
    await changed(() => symlinkSync(second, link), "four");
    await changed(() => rmSync(second), undefined);
    await changed(() => writeFileSync(second, "five"), "five");
  });

  it("is looked at every second at least", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    cleanUp.push(() => vi.useRealTimers());
    const path = join(dir, "token");
    writeFileSync(path, "one");
    let changes = 0;
    const unwatch = tokenSource({ from: "file", path }, context).watch?.(() => changes++);
    cleanUp.push(() => unwatch?.());
    // The first look, which says how the file was found, goes before these.
    for (let i = 0; i < 20; i++) await stat(path);
    // Of other lengths: where the clock of files is coarse, what changed in the same moment is not seen otherwise.
    for (const [at, word] of ["three", "four", "fifteen"].entries()) {
      writeFileSync(path, word);
      vi.advanceTimersByTime(1_000);
      await until(`the change to ${word}`, () => changes === at + 1);
    }
  });

  it("is refused where it is none, and the text is not shown", async () => {
    const path = join(dir, "token");
    const source = tokenSource({ from: "file", path }, context);
    writeFileSync(path, "two words of a secret");
    await expect(source.read()).rejects.toThrow(
      `The file ${path} holds something that is no token: one word, in ASCII.`,
    );
    writeFileSync(path, "x".repeat(16 * 1024 + 1));
    await expect(source.read()).rejects.toThrow("has 16385 bytes, and no token is so long");
    rmSync(path);
    expect(await source.read()).toBeUndefined();
  });

  it("is not read from a pipe or a device, which might never end", async () => {
    const path = join(dir, "pipe");
    execFileSync("mkfifo", [path]);
    for (const odd of [path, "/dev/zero"]) {
      await expect(tokenSource({ from: "file", path: odd }, context).read()).rejects.toThrow(
        `${odd} is no ordinary file`,
      );
    }
  });
});

describe("a token that a program prints", () => {
  const command = (script: string, env: NodeJS.ProcessEnv = process.env) =>
    tokenSource({ from: "command", line: [process.execPath, "-e", script], ttlMs: 1_000, cwd: dir }, { env, reaper });

  it("is its output without the line break, from the user's environment without Toolway's own", async () => {
    expect(await command("console.log('abc')").read()).toBe("abc");
    const env = { ...process.env, MY_OWN: "mine", TOOLWAY_TOKEN: "s3cret" };
    const seen = "console.log([process.env.MY_OWN, process.env.TOOLWAY_TOKEN, process.cwd().length > 1].join('-'))";
    expect(await command(seen, env).read()).toBe("mine--true");
    // What is swept when we were killed is found by its mark, which is no secret.
    const ours = "console.log(Object.entries(process.env).filter(([name]) => name.startsWith('TOOLWAY_')).join())";
    expect(await command(ours, env).read()).toMatch(/^TOOLWAY_CHILD_OF,[0-9a-f]{16}\.[\w.]+$/);
  });

  it("is none where the program fails, and what it complained of is told without what looks like a token", async () => {
    const fails = "console.error('error: not logged in, sent Bearer abcdef0123456789abcdef'); process.exit(3)";
    await expect(command(fails).read()).rejects.toThrow(
      /ended with the code 3\. It said: error: not logged in.*\[redacted\]/,
    );
    const leaks = "console.error('login failed for token sk-live-S3CRETS3CRET1234'); process.exit(3)";
    await expect(command(leaks).read()).rejects.toThrow(/login failed for token \[redacted\]/);
    await expect(command("console.log('a b')").read()).rejects.toThrow("no token");
    await expect(command("console.log('x'.repeat(20_000))").read()).rejects.toThrow("printed more than 16384 bytes");
    const missing = tokenSource({ from: "command", line: ["no-such-program-here"], ttlMs: 1, cwd: dir }, context);
    await expect(missing.read()).rejects.toThrow(
      "The command no-such-program-here could not be started: there is no such program.",
    );
  });
});

it("a program that prints nothing for 10 s is given up, and no earlier [bounded]", async () => {
  const line = [process.execPath, "-e", "setInterval(() => {}, 1_000)"];
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let told: string | undefined;
  const source = tokenSource({ from: "command", line, ttlMs: 1, cwd: dir }, context);
  const reading = Promise.resolve(source.read()).catch((error: Error) => {
    told = error.message;
  });
  await vi.advanceTimersByTimeAsync(9_999);
  expect(told).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1);
  vi.useRealTimers();
  await reading;
  expect(told).toContain("10 s");
});

it("what a program started ends with it, and does not hold up its token", async () => {
  const mark = join(dir, "pid");
  const line = ["sh", "-c", `sleep 1000 & echo $! > ${mark}; echo abc`];
  expect(await tokenSource({ from: "command", line, ttlMs: 1, cwd: dir }, context).read()).toBe("abc");
  const pid = Number(readFileSync(mark, "utf8"));
  await until("what it left behind to be gone", () => {
    try {
      return !process.kill(pid, 0);
    } catch {
      return true;
    }
  });
});

it("a program that is under way ends when nobody needs its token any more, and is known to the reaper until then [no-orphans]", async () => {
  const line = [process.execPath, "-e", "setInterval(() => {}, 1000)"];
  const source = tokenSource({ from: "command", line, ttlMs: 1, cwd: dir }, context);
  const reading = source.read();
  // Whoever finds it after our end knows it by its mark.
  await until(
    "it to carry the mark",
    async () => (await findMarked((mark) => mark.startsWith(reaper.instance))).length === 1,
  );
  await source.stop?.();
  await expect(reading).rejects.toThrow("was ended by SIGKILL");
});

it("a token in a variable is the one that it has when it is needed", () => {
  const env: NodeJS.ProcessEnv = { KEY: "one" };
  const source = tokenSource({ from: "env", name: "KEY" }, { env, reaper });
  // At once: a request does not wait for a look at a table.
  expect(source.read()).toBe("one");
  env["KEY"] = "two";
  expect(source.read()).toBe("two");
  env["KEY"] = "two words";
  expect(() => source.read()).toThrow("no token");
  delete env["KEY"];
  expect(source.read()).toBeUndefined();
});
