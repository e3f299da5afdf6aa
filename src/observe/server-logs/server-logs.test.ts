// The files of what servers write to stderr: written, exchanged, read and followed.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LOGS_FOLDER, loggedServers, logPath } from "./files.js";
import { Follower } from "./reader.js";
import { ServerLogs } from "./writer.js";

let stateDir: string;

beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "toolway-logs-"));
});

afterEach(() => rmSync(stateDir, { recursive: true, force: true }));

const NOW = Date.parse("2026-03-04T05:06:07.089Z");
const made = (maxFileBytes?: number, failed = vi.fn()) =>
  new ServerLogs({ stateDir, wall: () => NOW, failed, ...(maxFileBytes === undefined ? {} : { maxFileBytes }) });
const texts = (lines: readonly { text: string }[]) => lines.map(({ text }) => text);
const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `line ${from + i}`);

describe("files of what servers write", () => {
  it("are for their owner alone, a line with its time each", async () => {
    const logs = made();
    logs.add("github", ["one", "two"], 0);
    logs.add("github", ["three"], 77);
    await logs.close();
    const path = logPath(stateDir, "github");
    const time = "2026-03-04T05:06:07.089Z";
    const leftOut = `${time} … 77 bytes left out: it wrote more than is kept in a second`;
    expect(readFileSync(path, "utf8").split("\n")).toEqual([
      `${time} one`,
      `${time} two`,
      `${time} three`,
      leftOut,
      "",
    ]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(stateDir, LOGS_FOLDER)).mode & 0o777).toBe(0o700);
  });

  it("are bounded in size and number, and the last lines are read over all of them [bounded]", async () => {
    const logs = made(1_000);
    for (let i = 0; i < 200; i++) {
      logs.add("a", numbered(i * 5, i * 5 + 5), 0);
      await logs.close();
    }
    const files = readdirSync(join(stateDir, LOGS_FOLDER));
    expect(files.sort()).toEqual(["a.log", "a.log.1", "a.log.2"]);
    for (const file of files) expect(statSync(join(stateDir, LOGS_FOLDER, file)).size).toBeLessThanOrEqual(1_000);
    const follower = new Follower(stateDir, "a");
    expect(texts(await follower.begin(50))).toEqual(numbered(950, 1_000));
    expect(await follower.look()).toEqual([]);
    await follower.close();
  });

  it("go on where an earlier gateway ended", async () => {
    for (const text of ["before", "after"]) {
      const logs = made(60);
      logs.add("a", [text], 0);
      await logs.close();
    }
    expect(readFileSync(logPath(stateDir, "a", 1), "utf8")).toContain("before");
  });

  it("take any name of a server, and none leads elsewhere", async () => {
    const names = ["../../etc", "a/b", "ünï cödé", "A", "%2e", "n".repeat(300), "é".repeat(60)];
    const logs = made();
    for (const name of names) logs.add(name, [name], 0);
    await logs.close();
    expect(readdirSync(join(stateDir, LOGS_FOLDER))).toHaveLength(names.length);
    expect(loggedServers(stateDir)).toEqual(expect.arrayContaining(names.slice(0, 5)));
    for (const name of names) {
      const follower = new Follower(stateDir, name);
      expect(texts(await follower.begin(9))).toEqual([name]);
      await follower.close();
    }
  });

  it("that cannot be written cost a warning once, and nothing else", async () => {
    const failed = vi.fn();
    writeFileSync(join(stateDir, LOGS_FOLDER), "in the way");
    const logs = made(undefined, failed);
    for (let i = 0; i < 3; i++) {
      logs.add("a", ["lost"], 0);
      await logs.close();
    }
    expect(failed).toHaveBeenCalledTimes(1);
    rmSync(join(stateDir, LOGS_FOLDER));
    logs.add("a", ["kept"], 0);
    await logs.close();
    expect(readFileSync(logPath(stateDir, "a"), "utf8")).toContain("kept");
  });

  it("whose disk is slow hold a bounded text in memory, and say what was left out [bounded]", async () => {
    const logs = made();
    const line = "z".repeat(1_000);
    for (let i = 0; i < 2_000; i++) logs.add("a", [line], 0);
    await logs.close();
    const written = [0, 1, 2].flatMap((age) => {
      try {
        return readFileSync(logPath(stateDir, "a", age), "utf8");
      } catch {
        return [];
      }
    });
    expect(written.join("").length).toBeLessThan(600 * 1024);
    expect(written.join("")).toMatch(/… \d{6,} bytes left out/);
  });
});

describe("following a server", () => {
  it("gives every line once and in order, over exchanges of its files, whenever it looks", async () => {
    // A look after so many pieces; 30 bytes of time a line, so a file holds three of them.
    for (const every of [1, 2, 3, 5]) {
      const server = `s${every}`;
      const follower = new Follower(stateDir, server);
      const seen = texts(await follower.begin(0));
      const logs = made(300);
      for (let i = 0; i < 60; i++) {
        logs.add(server, numbered(i * 2, i * 2 + 2), 0);
        await logs.close();
        if (i % every === 0) seen.push(...texts(await follower.look()));
      }
      seen.push(...texts(await follower.look()));
      await follower.close();
      expect(seen).toEqual(numbered(0, 120));
    }
  });

  it("that was exchanged more often than there are files goes on with the oldest that is there", async () => {
    const logs = made(100);
    const add = async (from: number, to: number) => {
      for (const line of numbered(from, to)) {
        logs.add("a", [line], 0);
        await logs.close();
      }
    };
    await add(0, 2);
    const follower = new Follower(stateDir, "a");
    await follower.begin(0);
    await add(2, 40);
    const seen = texts(await follower.look());
    expect(seen.at(-1)).toBe("line 39");
    expect(seen).toEqual(seen.toSorted((a, b) => Number(a.slice(5)) - Number(b.slice(5))));
    await follower.close();
  });

  it("begins before it has written anything", async () => {
    const follower = new Follower(stateDir, "new");
    expect(await follower.begin(10)).toEqual([]);
    expect(await follower.look()).toEqual([]);
    const logs = made();
    logs.add("new", ["first"], 0);
    await logs.close();
    expect(await follower.look()).toEqual([{ server: "new", time: "2026-03-04T05:06:07.089Z", text: "first" }]);
    await follower.close();
  });
});
