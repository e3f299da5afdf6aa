// The audit log on a disk that is really full: a small file system of its own, filled and freed under calls, in both settings.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway, stdioFixture, temporaryDirectory, until } from "../e2e/harness.js";
import { callTool, hasTool, listed, statusOfAll, toolway } from "../e2e/operator.js";
import { figure, full } from "./length.js";
import { report } from "./measure.js";

// Namespaces of our own: no root is needed, and nothing stays mounted.
const UNSHARE = ["--user", "--map-root-user", "--mount"];
const mountable = spawnSync("unshare", [...UNSHARE, "mount", "-t", "tmpfs", "tmpfs", tmpdir()]).status === 0;
const title = `an audit log on a full disk${mountable ? "" : " (skipped: it needs namespaces of the user's own)"}`;

/** When it is free again it has room for all lines that waited (8,192 of some 250 bytes), and for those after them. */
const DISK = "8m";
/** Written one by one. */
const SPARE_BLOCKS = 64;
const BLOCK = 4096;
const ENV_CANARY = "canary-of-the-entry-3d81";
/** Without a line that finds no room there is nothing lost: more calls than lines that wait in memory (8,192). */
const CALLS_WHILE_FULL = figure(40, 9_000);
const AT_ONCE = 20;

const keepers: ChildProcess[] = [];
afterAll(async () => {
  for (const keeper of keepers) keeper.kill("SIGKILL");
});

/** A small disk in place of `dir`: the words that run a command with it, and where it is for us. */
async function disk(dir: string): Promise<{ readonly under: string[]; readonly outside: string }> {
  const keep = `mount -t tmpfs -o size=${DISK} tmpfs ${dir} && echo mounted && exec sleep 600`;
  const keeper = spawn("unshare", [...UNSHARE, "sh", "-c", keep], { stdio: ["ignore", "pipe", "inherit"] });
  keepers.push(keeper);
  await once(keeper.stdout, "data");
  const under = ["nsenter", "--target", String(keeper.pid), "--user", "--mount", "--preserve-credentials"];
  return { under, outside: `/proc/${keeper.pid}/root${dir}` };
}

/** All that is left of it: until nothing more can be written, as what statfs says of a larger one is not exact. */
function fill(outside: string): void {
  const ballast = join(outside, "ballast");
  const { bavail, bsize } = statfsSync(outside);
  writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail - SPARE_BLOCKS) * bsize));
  for (const size of [bsize, 1]) expect(() => appended(ballast, size)).toThrow("ENOSPC");
}

/** More than there is room for. */
function appended(file: string, size: number): void {
  for (let n = 0; n < 2 * SPARE_BLOCKS * BLOCK; n++) appendFileSync(file, Buffer.alloc(size));
}

async function calls(gateway: Gateway, count: number): Promise<{ answered: number; refused: string[] }> {
  let answered = 0;
  const refused: string[] = [];
  for (let n = 0; n < count; n += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - n) }, () =>
      callTool(gateway.url, "echo", { text: "x" }),
    );
    for (const { error } of await Promise.all(some)) {
      if (error === undefined) answered++;
      else refused.push(String(error["message"]));
    }
  }
  return { answered, refused };
}

describe.skipIf(!mountable)(title, () => {
  it.each(["drop", "refuse"] as const)(
    "goes on when there is room again, and its chain holds: onFull %s [audit-tells] [secrets-unseen]",
    async (onFull) => {
      const dir = join(await temporaryDirectory(), "disk");
      mkdirSync(dir);
      const { under, outside } = await disk(dir);
      const server = stdioFixture("ledger", [], { env: { LEDGER: "/dev/null", API_TOKEN: ENV_CANARY } });
      const config = { mcpServers: { ledger: server }, audit: { path: join(dir, "audit"), onFull } };
      const gateway = await startGateway(config, { under });
      const audit = async () => (await statusOfAll(gateway)).audit;
      await until("the tools", () => hasTool(gateway.url, "echo"));
      expect(await calls(gateway, 40)).toEqual({ answered: 40, refused: [] });
      fill(outside);
      // The block that was begun takes a few more.
      await until("the disk to be full", async () => {
        await calls(gateway, AT_ONCE);
        return (await audit())?.problem !== undefined;
      });
      expect((await audit())?.problem).toContain("ENOSPC");
      const meanwhile = await calls(gateway, CALLS_WHILE_FULL);
      if (onFull === "drop") expect(meanwhile).toEqual({ answered: CALLS_WHILE_FULL, refused: [] });
      else {
        expect(meanwhile.answered).toBe(0);
        expect(new Set(meanwhile.refused)).toEqual(new Set([expect.stringContaining("audit log")]));
      }
      // Lists go on in either setting.
      expect(await listed(gateway.url)).toContain("echo");
      expect((await toolway(gateway, "status")).out).toContain("cannot be written");
      rmSync(join(outside, "ballast"));
      await until("it to be written again", async () => (await audit())?.problem === undefined);
      await until("calls to be answered", async () => (await calls(gateway, 1)).answered === 1);
      const lost = (await audit())?.lost ?? 0;
      await gateway.stop();
      expect(gateway.log()).toContain("the audit log cannot be written: ENOSPC");
      expect(gateway.log()).toContain("the audit log can be written again");
      const { code, out } = await toolway(gateway, "audit", "verify", "--path", join(outside, "audit"));
      expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining("are as they were written") });
      report(
        "audit-disk",
        `onFull ${onFull}: ${CALLS_WHILE_FULL} calls while it was full, ${lost} lines lost, the chain holds [audit-tells]`,
      );
      if (full && onFull === "drop") {
        expect(lost).toBeGreaterThan(0);
        expect(out).toContain(`${lost} lines were lost before it`);
      } else if (!full) expect(lost).toBe(0);
      const { out: lines } = await toolway(
        gateway,
        "audit",
        "--json",
        "-n",
        "100000",
        "--path",
        join(outside, "audit"),
      );
      expect(lines).not.toContain(ENV_CANARY);
      expect(gateway.log()).not.toContain(ENV_CANARY);
    },
    120_000,
  );
});
