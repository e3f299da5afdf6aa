// Kills a gateway at random moments, also while it spawns, and looks for processes that it left.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { sweepOrphans } from "../../src/upstream/reaper.js";
import { findMarked, hashStateDir } from "../../src/upstream/reaper-marker.js";

const KILLS = 40;
const LATEST_KILL_MS = 150;
const SERVERS = 6;
/** The reaper needs some 50 ms; the machine may be busy. */
const GONE_WITHIN_MS = 15_000;

const guardian = fileURLToPath(new URL("../fixtures/children/guardian.mjs", import.meta.url));
const stateHash = hashStateDir(randomBytes(8).toString("hex"));
const left = () => findMarked((marker) => marker.startsWith(`${stateHash}.`));

/** Pids of reapers of ours: they carry the marker as an argument, not in their environment. */
function reapers(): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      const argv = readFileSync(`/proc/${pid}/cmdline`, "latin1");
      return argv.includes("toolway-reaper") && argv.includes(stateHash);
    } catch {
      return false;
    }
  });
}

/** A gateway that has begun to spawn, and the count of its servers so far. */
async function start(): Promise<{ gateway: ChildProcess; servers: () => number }> {
  const gateway = spawn(process.execPath, [guardian, stateHash, String(SERVERS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  gateway.stdout?.on("data", (chunk: Buffer) => {
    said += chunk;
  });
  while (!said.includes("\n")) await sleep(1);
  return { gateway, servers: () => said.length - said.indexOf("\n") - 1 };
}

async function gone(): Promise<boolean> {
  const end = Date.now() + GONE_WITHIN_MS;
  while (reapers().length > 0 || (await left()).length > 0) {
    if (Date.now() > end) return false;
    await sleep(20);
  }
  return true;
}

afterAll(async () => {
  await sweepOrphans(stateHash, undefined);
});

describe.skipIf(process.platform !== "linux")("orphans", () => {
  it("[no-orphans] no process left after SIGKILL of the gateway, also during spawn (40 times)", async () => {
    let whileSpawning = 0;
    let afterwards = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const { gateway, servers } = await start();
      // Squared: more of the kills come early, while servers are being spawned.
      const afterMs = Math.random() ** 2 * LATEST_KILL_MS;
      await sleep(afterMs);
      const exit = once(gateway, "close");
      gateway.kill("SIGKILL");
      await exit;
      if (servers() === SERVERS) afterwards++;
      else whileSpawning++;
      expect(await gone(), `kill ${kill}, ${afterMs.toFixed(1)} ms after the start, left ${await left()}`).toBe(true);
    }
    // Else it was not shown for both: by far most kills would have come before, or after, the spawns.
    expect(whileSpawning).toBeGreaterThan(0);
    expect(afterwards).toBeGreaterThan(0);
  }, 180_000);

  it("[no-orphans] what is left when the reaper was killed too is gone at the next start", async () => {
    const { gateway } = await start();
    while ((await left()).length < SERVERS) await sleep(20);
    const exit = once(gateway, "exit");
    gateway.kill("SIGSTOP");
    for (const pid of reapers()) process.kill(pid, "SIGKILL");
    gateway.kill("SIGKILL");
    await exit;
    expect((await left()).length).toBeGreaterThan(0);
    expect(await sweepOrphans(stateHash, undefined)).toBeGreaterThan(0);
    expect(await left()).toEqual([]);
  });
});
