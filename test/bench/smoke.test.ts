// The bench runs: each workload gives rows, every answer is verified, and a wrong one ends the run. It asserts no time.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { natsPrograms } from "../fixtures/nats.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** `TOOLWAY_CLI`: another build than the one in dist/. The bench knows it too. */
const cli = process.env["TOOLWAY_CLI"] ?? join(root, "dist/cli/main.js");
/** The bench starts dozens of processes; two busy cores may take long over that. */
const RUN_MS = 300_000;

interface Row {
  readonly workload: string;
  readonly upstream: string;
  readonly answers: string;
  readonly era: string;
  readonly inFlight: number;
  readonly unit?: string;
  readonly ratio?: number;
  readonly target: string;
  readonly cpuUs: number;
  readonly cpuRounds: readonly number[];
  readonly calls: number;
  readonly verified: number;
}

interface Goal {
  readonly goal: string;
  readonly limit: number;
  readonly value?: number;
  readonly met?: boolean;
}

interface Results {
  readonly rows: readonly Row[];
  readonly measures: readonly { readonly measure: string; readonly target: string; readonly value: number }[];
  readonly goals: readonly Goal[];
}

let dir = "";

beforeAll(async () => {
  if (!existsSync(cli)) throw new Error("The bench runs what is in dist/: build first.");
  dir = await mkdtemp(join(tmpdir(), "toolway-smoke-"));
});

afterAll(async () => {
  await rm(dir, { recursive: true, force: true, maxRetries: 5 });
});

async function bench(
  args: readonly string[],
  program = "run",
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const line = [join(root, `bench/${program}.mjs`), ...args];
  const child = spawn(process.execPath, line, { stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { code, stdout, stderr };
}

async function measured(name: string, args: readonly string[]): Promise<Results> {
  const out = join(dir, name);
  const { code, stderr } = await bench([...args, "--no-peers", "--rounds", "1", "--quick", "--out", out]);
  expect(code, stderr.slice(-4000)).toBe(0);
  return JSON.parse(await readFile(join(out, "latest.json"), "utf8")) as Results;
}

function expectVerified(rows: readonly Row[]): void {
  for (const row of rows) {
    expect(row.calls, row.target).toBeGreaterThan(0);
    expect(row.verified, row.target).toBe(row.calls);
    if (row.target !== "direct") expect(row.cpuUs, row.target).toBeGreaterThan(0);
  }
}

const casesOf = (rows: readonly Row[], target: string) =>
  rows
    .filter((row) => row.target === target)
    .map((row) => [row.workload, row.upstream, row.answers, row.era, row.inFlight].join(" "));

describe.skipIf(process.platform !== "linux")("the bench", () => {
  test("measures small calls of the gateway and the limits on both transports and in both eras, and verifies every answer", {
    timeout: RUN_MS,
  }, async () => {
    // With 32 in flight that is one slice of a round, with one it is six; more calls would only warm up more.
    const { rows } = await measured("small", [
      "small",
      "--calls",
      "32",
      "--targets",
      "direct,pass-through,bridge,toolway",
    ]);
    const http = ["legacy", "modern"].flatMap((era) =>
      [1, 32].flatMap((count) => ["json", "sse"].map((answers) => `small http ${answers} ${era} ${count}`)),
    );
    const stdio = ["legacy", "modern"].flatMap((era) => [1, 32].map((count) => `small stdio json ${era} ${count}`));
    expect(casesOf(rows, "toolway")).toEqual([...http, ...stdio]);
    for (const target of ["direct", "pass-through"]) expect(casesOf(rows, target)).toEqual(http);
    expect(casesOf(rows, "bridge")).toEqual(stdio);
    expectVerified(rows);
  });

  test("measures large results and merged lists, and verifies every answer", { timeout: RUN_MS }, async () => {
    const { rows } = await measured("large", [
      "big",
      "list",
      "--calls",
      "24",
      "--targets",
      "pass-through,bridge,list,toolway",
    ]);
    expect(casesOf(rows, "toolway")).toEqual([
      "big http json legacy 8",
      "big http sse legacy 8",
      "big stdio json legacy 8",
      "list http json legacy 8",
      "list http json modern 8",
    ]);
    expect(casesOf(rows, "list")).toEqual(["list http json legacy 8", "list http json modern 8"]);
    expectVerified(rows);
  });

  test("says what the checks of a call cost as shares of calls that were measured in the same run", {
    timeout: RUN_MS,
  }, async () => {
    const { code, stdout, stderr } = await bench(["--quick", "--rounds", "1", "--calls", "16"], "shares");
    expect(code, stderr.slice(-4000)).toBe(0);
    const [head, ...rows] = stdout.trimEnd().split("\n");
    expect(head).toMatch(/^result +whole call +reply +room +list age +together +were it a body$/);
    // Three kinds in three sizes, and a small call.
    expect(rows).toHaveLength(10);
    for (const row of rows) expect(row).toMatch(/^\S.* +\d+ µs( +[\d.]+ µs [\d.]+ %){4} +[\d.]+ µs$/);
  });

  test("measures results of three kinds and three sizes, and verifies every answer", { timeout: RUN_MS }, async () => {
    const { rows, goals } = await measured("results", [
      "results",
      "--calls",
      "16",
      "--targets",
      "bridge,pass-through,toolway",
    ]);
    const kinds = ["prose", "JSON as text", "rows with ids"];
    const names = kinds.flatMap((kind) => ["16 KiB", "128 KiB", "1 MiB"].map((size) => `${kind}, ${size}`));
    expect(casesOf(rows, "toolway")).toEqual(
      ["http", "stdio"].flatMap((upstream) => names.map((name) => `${name} ${upstream} json legacy 8`)),
    );
    expectVerified(rows);
    expect(goals.filter(({ value }) => value !== undefined).length).toBe(12);
  });

  test("measures starts, memory and a growing number of tools", { timeout: RUN_MS }, async () => {
    const { rows, measures, goals } = await measured("rest", ["start", "memory", "scale-tools", "--calls", "96"]);
    const of = (target: string) => measures.filter((one) => one.target === target).map(({ measure }) => measure);
    expect(of("toolway")).toEqual(["start", "firstCall", "rssIdle", "rssPerSession", "rssPerStream", "rssPerListen"]);
    expect(of("bare")).toEqual(["start", "rssIdle"]);
    expect(rows.map(({ workload }) => workload)).toEqual(["scale-tools", "scale-tools"]);
    expectVerified(rows);
    const named = goals.filter(({ value }) => value !== undefined).map(({ goal }) => goal);
    expect(named).toContain("RSS for each open session");
    expect(named).toContain("small call with 5000 tools: CPU against 10 tools");
  });

  test("measures many servers and sessions, servers in trouble, and the gateway with all that is off by default", {
    timeout: RUN_MS,
  }, async () => {
    const names = ["scale-servers", "scale-sessions", "ten", "equipped", "observe"];
    const { rows } = await measured("many", [...names, "--calls", "96"]);
    expect([...new Set(rows.map(({ workload }) => workload))]).toEqual(names);
    expectVerified(rows);
  });

  test("leaves no workload out of these tests", async () => {
    const { stdout } = await bench(["--list"]);
    const all = stdout
      .split("\n\n")[0]
      ?.split("\n")
      .map((line) => line.split(" ")[0]);
    const calls = ["small", "big", "results"].flatMap((name) => [`${name}-http`, `${name}-stdio`]);
    const tried = [...calls, "list", "start", "memory", "scale-servers", "scale-tools", "scale-sessions"];
    expect(all).toEqual([...tried, "ten", "equipped", "observe", "executor", "mailbox", "outbox", "machines"]);
  });

  test.skipIf(natsPrograms.length === 0)(
    "measures one, two and three gateways on an engine, and verifies each answer",
    { timeout: RUN_MS },
    async () => {
      const { rows, goals } = await measured("machines", ["machines", "--calls", "96"]);
      expect(rows.map(({ target }) => target)).toEqual([...Array(5).fill("toolway"), "publishes"]);
      expectVerified(rows);
      expect(goals.filter(({ value }) => value !== undefined).map(({ limit }) => limit)).toEqual([1.05, 1.15, 1.5, 4]);
    },
  );

  test("measures bodies and small requests through an executor, a bare tunnel and directly, and verifies every byte count", {
    timeout: RUN_MS,
  }, async () => {
    const { rows, goals } = await measured("executor", ["executor", "--calls", "24"]);
    const ways = ["direct", "tunnel", "toolway"];
    expect(rows.map(({ target, unit = "call", inFlight }) => `${target} ${unit} ${inFlight}`)).toEqual(
      ["MiB 4", "call 1", "call 32"].flatMap((one) => ways.map((way) => `${way} ${one}`)),
    );
    expectVerified(rows);
    for (const row of rows) expect(row.ratio, row.target).toBeGreaterThan(0);
    const goal = goals.find(({ value }) => value !== undefined);
    expect(goal).toMatchObject({ limit: 1.5, value: rows.find(({ target }) => target === "toolway")?.ratio });
  });

  test("measures messages through a broker against a bare echo and a bare append, and verifies each answer", {
    timeout: RUN_MS,
  }, async () => {
    const { rows, goals } = await measured("mailbox", ["mailbox", "--calls", "192"]);
    // One more where there is an engine for the broker.
    const own = natsPrograms.length === 0 ? 4 : 5;
    expect(rows.map(({ target }) => target)).toEqual(["ws-echo", "lmdb-append", ...Array(own).fill("toolway")]);
    expectVerified(rows);
    expect(goals.filter(({ value }) => value !== undefined).map(({ limit }) => limit)).toEqual([2, 4, 2, 4]);
  });

  test("measures writes that survive against a bare loop with the same commits, and verifies each answer", {
    timeout: RUN_MS,
  }, async () => {
    const { rows, goals } = await measured("outbox", ["outbox", "--calls", "96"]);
    expect(rows.map(({ target }) => target)).toEqual(["commits", "commits", ...Array(3).fill("toolway")]);
    expectVerified(rows);
    expect(goals.filter(({ value }) => value !== undefined).map(({ limit }) => limit)).toEqual([1 / 0.7, 1.03]);
  });

  test("fails the run where a target answers a call wrongly now and then", { timeout: RUN_MS }, async () => {
    const out = join(dir, "liar");
    const args = ["small-http", "--targets", "pass-through,liar", "--rounds", "1", "--calls", "300", "--out", out];
    const { code, stderr } = await bench(args);
    expect(code).toBe(2);
    expect(stderr).toContain("liar: A wrong answer to");
    expect(stderr).toContain("something else");
    expect(existsSync(out)).toBe(false);
  });
});

interface GoalsModule {
  goalsOf(results: { rows: readonly object[]; measures: readonly object[] }): Goal[];
}

describe("goals", () => {
  const load = async () => (await import(join(root, "bench/goals.mjs"))) as GoalsModule;
  const small = { workload: "small", upstream: "http", answers: "json", era: "legacy", inFlight: 32 };
  const find = (goals: readonly Goal[], text: string) => goals.find(({ goal }) => goal.includes(text));

  test("have no verdict on a run that measured nothing", async () => {
    const { goalsOf } = await load();
    const goals = goalsOf({ rows: [], measures: [] });
    expect(goals.length).toBeGreaterThan(10);
    expect(goals.every(({ met, value }) => met === undefined && value === undefined)).toBe(true);
  });

  test("compare ratios with their limits, and take the peer that costs least as the best", async () => {
    const { goalsOf } = await load();
    const rows = [
      { ...small, target: "toolway", group: "toolway", cpuRounds: [100, 110, 90], cpuUs: 100, ratio: 0.98 },
      {
        ...small,
        target: "toolway",
        answers: "sse",
        group: "toolway",
        cpuRounds: [130, 130, 130],
        cpuUs: 130,
        ratio: 1,
      },
      { ...small, target: "slow", group: "peer", cpuRounds: [9000, 9000, 9000], cpuUs: 9000, ratio: 88.2 },
      { ...small, target: "fast", group: "peer", cpuRounds: [500, 500, 500], cpuUs: 500, ratio: 4.9 },
    ];
    const goals = goalsOf({ rows, measures: [] });
    expect(find(goals, "legacy: CPU against pass-through")).toMatchObject({ value: 0.98, met: true });
    expect(find(goals, "legacy: CPU against the best peer")).toMatchObject({
      value: expect.closeTo(0.2, 10),
      met: false,
    });
    expect(find(goals, "legacy: CPU of SSE")).toMatchObject({ value: 1.3, met: false });
    expect(find(goals, "modern: CPU against pass-through")?.met).toBeUndefined();
  });

  test("take as memory what is above the bare server, and scaling against the smallest case", async () => {
    const { goalsOf } = await load();
    const measures = [
      { measure: "rssIdle", target: "bare", value: 46 },
      { measure: "rssIdle", target: "toolway", value: 67 },
      { measure: "start", target: "toolway", value: 90, ratio: 2 },
    ];
    const rows = [
      { workload: "scale-tools", target: "toolway", variant: "10 tools", against: "10 tools", ratio: 1 },
      { workload: "scale-tools", target: "toolway", variant: "5000 tools", against: "10 tools", ratio: 1.21 },
    ];
    const goals = goalsOf({ rows, measures });
    expect(find(goals, "RSS idle")).toMatchObject({ value: 21, met: false });
    expect(find(goals, "start to listening")).toMatchObject({ value: 2, met: true });
    expect(find(goals, "5000 tools")).toMatchObject({ value: 1.21, met: false });
    expect(goals.filter(({ goal }) => goal.includes("10 tools"))).toHaveLength(1);
  });
});
