// A state directory without room leaves the gateway serving; one that cannot be written is told at once.

import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { linux } from "../faults/measure.js";
import { start } from "../fixtures/processes.js";
import { callJson, connectV1, toolNames, waitForTools } from "./clients.js";
import { cli, isAlive, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";

const MIB = 1024 * 1024;
/** Runs what follows as a root that is one in its own namespaces alone. */
const UNSHARE = ["unshare", "--user", "--map-root-user", "--mount"];
const hasNamespaces = linux && spawnSync("unshare", [...UNSHARE.slice(1), "true"]).status === 0;

/** A place for the state that takes so much and no more, for a gateway that is no root. */
interface SmallDisk {
  readonly under: readonly string[];
  readonly stateDir: string;
  fill(pid: number): Promise<void>;
  free(pid: number): Promise<void>;
}

/** A disk of its own, in a namespace of its own: seen from here by way of its process. */
async function smallDisk(): Promise<SmallDisk> {
  const mount = await temporaryDirectory();
  const script = `mount -t tmpfs -o size=24m tmpfs ${mount} && exec "$@"`;
  const filler = (pid: number) => `/proc/${pid}/root${mount}/filler`;
  return {
    under: [...UNSHARE, "sh", "-c", script, "-"],
    stateDir: join(mount, "state"),
    fill: async (pid) => {
      await expect(writeFile(filler(pid), Buffer.alloc(64 * MIB))).rejects.toMatchObject({ code: "ENOSPC" });
    },
    free: async (pid) => await writeFile(filler(pid), ""),
  };
}

/** Where there are no such namespaces: no file may become longer than the largest of the state is by then. */
async function shortFiles(): Promise<SmallDisk> {
  const stateDir = join(await temporaryDirectory(), "state");
  const limit = (pid: number, bytes: string) => void execFileSync("prlimit", ["--pid", `${pid}`, `--fsize=${bytes}:`]);
  return {
    under: [],
    stateDir,
    fill: async (pid) => {
      const sizes = readdirSync(stateDir, { recursive: true }).map(
        (file) => statSync(join(stateDir, String(file))).size,
      );
      limit(pid, String(Math.max(...sizes)));
    },
    free: async (pid) => limit(pid, "unlimited"),
  };
}

describe.skipIf(!linux)("a full disk", () => {
  const disks = { "a disk without room": smallDisk, "files that may not grow": shortFiles };

  it.for(Object.entries(disks))(
    "leaves the gateway serving, and it goes on when there is room again: %s",
    async ([, small], { skip }) => {
      if (small === smallDisk && !hasNamespaces) skip("needs namespaces of the user's own");
      const { under, stateDir, fill, free } = await small();
      const servers = { stateful: stdioFixture("stateful"), changing: stdioFixture("changing") };
      const gateway = await startGateway({ mcpServers: servers }, { stateDir, under });
      const client = await connectV1(gateway.url);
      await waitForTools(client, "count", "set_tool");
      await fill(gateway.pid);
      // What would be written now: changed lists, new sessions.
      await callJson(client, "count");
      for (let n = 0; n < 20; n++) {
        await client.callTool({ name: "set_tool", arguments: { name: `t${n}`, description: "x".repeat(300_000) } });
      }
      await waitForTools(client, "t19");
      await until("a word of it in the log", () => /disk is full|disk-full|no room/i.test(gateway.log()));
      const other = await connectV1(gateway.url);
      expect(await toolNames(other)).toContain("t19");
      expect(await callJson(other, "count")).toMatchObject({ count: 2 });
      expect(isAlive(gateway.pid)).toBe(true);
      await free(gateway.pid);
      await client.callTool({ name: "set_tool", arguments: { name: "after", description: "room again" } });
      await waitForTools(client, "after");
      await gateway.stop();
      // The disk without room is gone with its gateway; what is in files is what the next one begins with.
      if (small === smallDisk) return;
      const next = await gateway.again();
      await waitForTools(await connectV1(next.url), "count", "after");
    },
  );
});

describe("a state directory that cannot be written", () => {
  const config = { mcpServers: { stateful: stdioFixture("stateful") } };

  /** What `toolway serve` says before it ends, and its exit code. */
  async function refusal(stateDir: string, under: readonly string[] = []): Promise<[string, number | null]> {
    const file = join(await temporaryDirectory(), "toolway.json");
    await writeFile(file, JSON.stringify(config));
    const args = [cli, "serve", file, "--listen", "127.0.0.1:0", "--no-auth", "--state", stateDir];
    const [command = process.execPath, ...line] = [...under, process.execPath, ...args];
    const one = start("toolway serve", command, line);
    const code = await one.closed;
    return [one.log(), code];
  }

  it("is told before anything is served, with what to do: in the place of a folder is a file", async () => {
    const file = join(await temporaryDirectory(), "file");
    await writeFile(file, "");
    const [said, code] = await refusal(join(file, "state"));
    expect(code).toBe(1);
    expect(said).toContain(
      `The state directory ${join(file, "state")} cannot be made: ENOTDIR. Use another one (--state DIR).`,
    );
    expect(said).not.toContain("endpoint");
  });

  it.runIf(hasNamespaces)("is told before anything is served, with what to do: a disk that is read-only", async () => {
    const mount = await temporaryDirectory();
    const script = `mount -t tmpfs -o ro tmpfs ${mount} && exec "$@"`;
    const [said, code] = await refusal(join(mount, "state"), [...UNSHARE, "sh", "-c", script, "-"]);
    expect(code).toBe(1);
    expect(said).toContain("cannot be made: EROFS. Use another one (--state DIR).");
    expect(said).not.toContain("endpoint");
  });
});
