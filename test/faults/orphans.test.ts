// Kills gateways at random moments, also while they spawn, and looks for processes that they left.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { sweepOrphans } from "../../src/runtime/processes/reaper.js";
import { hashStateDir, MARKER_VARIABLE } from "../../src/runtime/processes/reaper-marker.js";
import { cli, freePort, root, sleep, temporaryDirectory, until } from "../e2e/harness.js";
import { figure } from "./length.js";
import { linux, processesNaming, report } from "./measure.js";

const KILLS = figure(12, 40);
/** The last of them come when all servers are up. */
const KILLS_AFTERWARDS = figure(2, 8);
/** So many at least must fall between the first process of a server and the last, or nothing was shown of spawns. */
const KILLS_DURING = figure(3, 8);
/** For those that are aimed at a spawn and come too late, on a busy machine. */
const MOST_KILLS = 4 * KILLS;
/** The reaper needs some 50 ms; the machine may be busy. */
const GONE_WITHIN_MS = 15_000;
/** Also in the gateway's environment: a process between fork and exec still has that one. */
const CANARY = "TOOLWAY_FAULT_RUN";

const runs: Run[] = [];

/** One gateway's family: by the marker in the environment of servers and the reaper's arguments, or by the canary. */
class Run {
  readonly canary = randomBytes(8).toString("hex");
  readonly hash: string;
  readonly env = { ...process.env, [CANARY]: this.canary };

  constructor(stateDir: string) {
    this.hash = hashStateDir(stateDir);
    runs.push(this);
  }

  all(): number[] {
    return processesNaming([this.canary, this.hash], ["environ", "cmdline"]);
  }

  servers(): number[] {
    return processesNaming([`${MARKER_VARIABLE}=${this.hash}.`], ["environ"]);
  }

  reapers(): number[] {
    return processesNaming([`${MARKER_VARIABLE}=${this.hash}.`], ["cmdline"]);
  }

  /** How long it took until nothing was left, in ms. */
  async kill(gateway: ChildProcess): Promise<number> {
    const exit = once(gateway, "close");
    gateway.kill("SIGKILL");
    const killed = performance.now();
    await exit;
    await until("the end of all processes", () => this.all().length === 0, GONE_WITHIN_MS);
    return performance.now() - killed;
  }
}

/** What is left of a run that failed dies with the test. */
afterAll(() => {
  for (const pid of runs.flatMap((run) => run.all())) process.kill(pid, "SIGKILL");
});

describe.skipIf(!linux)("SIGKILL of the gateway", () => {
  const child = (name: string) => [join(root, "test/fixtures/children", `${name}.mjs`)];

  const entry = (name: string) => ({ command: process.execPath, args: child(name) });
  /** One that answers, one that ignores SIGTERM and its input, one whose grandchildren leave its group and session. */
  const servers = { echo: entry("echo"), scattered: entry("scattered"), stubborn: entry("stubborn") };
  /** echo; stubborn with one grandchild; scattered with three. */
  const SERVER_PROCESSES = 7;

  it("leaves no process in many kills of `toolway serve`, some of them during spawn [no-orphans]", async () => {
    const dir = await temporaryDirectory();
    const stateDir = join(dir, "state");
    const run = new Run(stateDir);
    const config = join(dir, "toolway.json");
    await writeFile(config, JSON.stringify({ mcpServers: servers }));
    const listen = `127.0.0.1:${await freePort()}`;
    const args = [cli, "serve", config, "--listen", listen, "--state", stateDir, "--no-auth"];
    const start = () => spawn(process.execPath, args, { stdio: "ignore", env: run.env });

    const started = performance.now();
    const first = start();
    const allUp = () => run.servers().length >= SERVER_PROCESSES;
    await until("all processes of the servers", allUp);
    const allUpMs = performance.now() - started;
    let slowestMs = await run.kill(first);
    const seen = { none: 0, some: 0, all: 0 };
    let kills = 0;
    for (; kills < KILLS || (seen.some < KILLS_DURING && kills < MOST_KILLS); kills++) {
      const gateway = start();
      // One kill in each slice of the start, at a random moment of it. The later slices are shorter: they spawn.
      const rest = 1 - (kills + Math.random()) / (KILLS - KILLS_AFTERWARDS);
      if (kills >= KILLS) await until("the first process of a server", () => run.servers().length > 0);
      else if (rest > 0) await sleep((1 - rest ** 2) * allUpMs);
      else await until("all processes of the servers", allUp);
      const count = run.servers().length;
      seen[count === 0 ? "none" : count < SERVER_PROCESSES ? "some" : "all"]++;
      slowestMs = Math.max(slowestMs, await run.kill(gateway));
    }
    report(
      "SIGKILL of the gateway",
      `${kills} kills, from 0 ms after the start on (${seen.none} before, ${seen.some} during, ` +
        `${seen.all} after the spawns): 0 processes left, all gone within ${Math.round(slowestMs)} ms [no-orphans]`,
    );
    // Else it was shown for one stage only.
    expect(seen.some).toBeGreaterThanOrEqual(KILLS_DURING);
    expect(seen.all).toBeGreaterThan(0);
  }, 900_000);
});

/** The same with servers spawned one in each turn of the event loop: more kills hit the middle of a spawn. */
describe.skipIf(!linux)("SIGKILL amid spawns", () => {
  const SERVERS = 6;
  const LATEST_KILL_MS = 150;
  const guardian = fileURLToPath(new URL("../fixtures/children/guardian.mjs", import.meta.url));

  /** A gateway that has begun to spawn, and the count of its servers so far. */
  async function start(run: Run): Promise<{ gateway: ChildProcess; servers: () => number }> {
    const gateway = spawn(process.execPath, [guardian, run.hash, String(SERVERS)], {
      stdio: ["ignore", "pipe", "inherit"],
      env: run.env,
    });
    let said = "";
    gateway.stdout?.on("data", (chunk: Buffer) => {
      said += chunk;
    });
    while (!said.includes("\n")) await sleep(1);
    return { gateway, servers: () => said.length - said.indexOf("\n") - 1 };
  }

  it("leaves no process [no-orphans]", async () => {
    const [fewest, most] = [figure(10, 40), figure(40, 160)];
    const run = new Run(randomBytes(8).toString("hex"));
    let amid = 0;
    let kills = 0;
    for (; kills < fewest || (amid < fewest / 2 && kills < most); kills++) {
      const { gateway, servers } = await start(run);
      // Squared: more of the kills come early, while servers are being spawned.
      await sleep(Math.random() ** 2 * LATEST_KILL_MS);
      await run.kill(gateway);
      if (servers() < SERVERS) amid++;
    }
    report("SIGKILL amid spawns", `${kills} kills, ${amid} amid the spawns: 0 processes left [no-orphans]`);
    expect(amid).toBeGreaterThanOrEqual(fewest / 2);
  }, 180_000);

  it("leaves what the next start sweeps away, where the reaper was killed too [no-orphans]", async () => {
    const run = new Run(randomBytes(8).toString("hex"));
    const { gateway } = await start(run);
    await until("the servers", () => run.servers().length >= SERVERS);
    const exit = once(gateway, "exit");
    gateway.kill("SIGSTOP");
    for (const pid of run.reapers()) process.kill(pid, "SIGKILL");
    gateway.kill("SIGKILL");
    await exit;
    expect(run.servers().length).toBeGreaterThan(0);
    expect(await sweepOrphans(run.hash, undefined)).toBeGreaterThan(0);
    expect(run.servers()).toEqual([]);
  });
});
