import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../../test/fixtures/wait.js";
import { Reaper, sweepOrphans } from "./reaper.js";
import { findMarked, groupIsAlive, hashStateDir, killMarked, MARKER_VARIABLE } from "./reaper-marker.js";

/** Each test has its own, so that files that run at the same time do not meet. */
let stateHash = "";
const newHash = () => {
  stateHash = hashStateDir(randomBytes(8).toString("hex"));
  return stateHash;
};

afterEach(async () => {
  await killMarked((marker) => marker.startsWith(`${stateHash}.`));
});

async function sleeper(env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const child = spawn("sleep", ["1000"], {
    detached: true,
    stdio: "ignore",
    env: { PATH: process.env["PATH"], ...env },
  });
  await once(child, "spawn");
  // The exec that we hear of has only begun: its environment shows a moment later.
  await until(() => readFileSync(`/proc/${child.pid}/environ`).length > 0);
  return child;
}

const marked = (prefix: string) => findMarked((marker) => marker.startsWith(prefix));
const running = (pid: number | undefined) => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return !stat.slice(stat.lastIndexOf(")")).startsWith(") Z");
  } catch {
    return false;
  }
};

describe("the reaper", () => {
  it("is started with the first child only, and goes away at the end", async () => {
    const reaper = new Reaper({ stateHash: newHash(), env: process.env });
    expect(reaper.pid).toBeUndefined();
    expect(reaper.prepare()).toBe(`${reaper.instance}.1`);
    expect(reaper.prepare()).toBe(`${reaper.instance}.2`);
    const { pid } = reaper;
    expect(running(pid)).toBe(true);
    await reaper.close();
    // close() itself waits for some seconds at most.
    await until(() => !running(pid));
  });

  it("kills the groups that it knows and all that carry the marker, and nobody else [no-orphans]", async () => {
    const reaper = new Reaper({ stateHash: newHash(), env: process.env });
    const marker = reaper.prepare();
    const inGroup = await sleeper({});
    const withMarker = await sleeper({ [MARKER_VARIABLE]: marker });
    const released = await sleeper({});
    const stranger = await sleeper({ [MARKER_VARIABLE]: `${stateHash}.other.1` });
    for (const child of [inGroup, released]) reaper.adopt(child.pid as number);
    reaper.release(released.pid as number);
    const ends = Promise.all([once(inGroup, "exit"), once(withMarker, "exit")]);
    await reaper.close();
    expect(await ends).toEqual([
      [null, "SIGKILL"],
      [null, "SIGKILL"],
    ]);
    expect([released, stranger].map((child) => running(child.pid))).toEqual([true, true]);
    released.kill("SIGKILL");
  });

  it("kills one child's family alone, several at the same time [no-orphans]", async () => {
    const reaper = new Reaper({ stateHash: newHash(), env: process.env });
    const markers = Array.from({ length: 12 }, () => reaper.prepare());
    const children = await Promise.all(markers.map((marker) => sleeper({ [MARKER_VARIABLE]: marker })));
    await Promise.all(markers.slice(1).map((marker) => reaper.kill(marker)));
    expect(children.map((child) => running(child.pid))).toEqual([true, ...markers.slice(1).map(() => false)]);
    await reaper.close();
  });

  it("is started again when it dies, and knows the groups of before [no-orphans]", async () => {
    const reaper = new Reaper({ stateHash: newHash(), env: process.env });
    reaper.prepare();
    const child = await sleeper({});
    reaper.adopt(child.pid as number);
    const first = reaper.pid as number;
    // Longer than what counts as a broken reaper.
    await sleep(1_200);
    process.kill(first, "SIGKILL");
    await until(() => reaper.pid !== undefined && reaper.pid !== first);
    const exit = once(child, "exit");
    await reaper.close();
    expect(await exit).toEqual([null, "SIGKILL"]);
  });

  it("says so when it cannot be kept running, and tries again with the next child", async () => {
    const problems: string[] = [];
    const reaper = new Reaper({ stateHash: newHash(), env: process.env, onProblem: (text) => problems.push(text) });
    reaper.prepare();
    process.kill(reaper.pid as number, "SIGKILL");
    await until(() => problems.length === 1);
    expect(problems[0]).toMatch(/not running: it ended with SIGKILL/);
    reaper.prepare();
    expect(running(reaper.pid)).toBe(true);
    await reaper.close();
    expect(problems.length).toBe(1);
  });

  it("refuses numbers that would hit everybody", () => {
    const reaper = new Reaper({ stateHash: newHash(), env: process.env });
    for (const bad of [0, 1, -5, Number.NaN, 1.5]) expect(() => reaper.adopt(bad)).toThrow(RangeError);
  });
});

describe("the sweep at the start", () => {
  it("kills what earlier gateways of this state directory left, and nothing else [no-orphans]", async () => {
    const mine = new Reaper({ stateHash: newHash(), env: process.env });
    const children = await Promise.all(
      [`${stateHash}.before.1`, `${stateHash}.before.2`, `${mine.instance}.1`, `x${stateHash}.before.1`].map((marker) =>
        sleeper({ [MARKER_VARIABLE]: marker }),
      ),
    );
    expect(await sweepOrphans(stateHash, mine.instance)).toBe(2);
    expect(children.map((child) => running(child.pid))).toEqual([false, false, true, true]);
    expect(await sweepOrphans(stateHash, undefined)).toBe(1);
    expect(await marked(`${stateHash}.`)).toEqual([]);
    children[3]?.kill("SIGKILL");
  });

  it("is not misled by a marker inside another variable", async () => {
    const child = await sleeper({ NOTE: `${MARKER_VARIABLE}=${newHash()}.a.1` });
    expect(await sweepOrphans(stateHash, undefined)).toBe(0);
    child.kill("SIGKILL");
  });
});

it("a group with members is told from an empty one", async () => {
  const child = await sleeper({});
  expect(await groupIsAlive(child.pid as number)).toBe(true);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(await groupIsAlive(child.pid as number)).toBe(false);
});

it.skipIf(process.platform !== "linux")(
  "looks once for all groups that are asked after at the same time [bounded]",
  async () => {
    const child = await sleeper({});
    const reads = () => readdirSync("/proc/self/fd").filter((fd) => linkOf(fd).endsWith("/stat")).length;
    let most = 0;
    let over = false;
    const watch = (async () => {
      while (!over) {
        most = Math.max(most, reads());
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const answers = await Promise.all(Array.from({ length: 300 }, () => groupIsAlive(child.pid as number)));
    over = true;
    await watch;
    expect(answers).not.toContain(false);
    // As many as are read at once, not that for each who asked.
    expect(most).toBeLessThanOrEqual(4);
    child.kill("SIGKILL");
  },
);

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}
