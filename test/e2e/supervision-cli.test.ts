// Servers that an operator stops, starts and reloads by the command line, and servers that fail too often: what status
// shows, what an agent is told in each state, and what brings them back.

import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Gateway, isAlive, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { callTool, hasTool, made, refusal, statusOf, toolway } from "./operator.js";

const UNAVAILABLE = -31001;
const OUTCOME_UNKNOWN = -31003;
const SOON = { baseMs: 20, maxMs: 20 };
/** Longer than any run. */
const HOUR_MS = 3_600_000;

interface Moody {
  readonly gateway: Gateway;
  /** While it is broken, it dies at each start. */
  breaks(): Promise<void>;
  mends(): Promise<void>;
  /** Lives and calls of the server, line by line. */
  said(): string[];
}

async function moody(more: object): Promise<Moody> {
  const dir = await temporaryDirectory();
  const [file, broken] = [join(dir, "said"), join(dir, "broken")];
  const entry = stdioFixture("moody", [file, "--broken", broken], { backoff: SOON, ...more });
  const gateway = await startGateway({ mcpServers: { moody: entry, other: stdioFixture("stateful") } });
  await until("the tools", async () => (await hasTool(gateway.url, "pid")) && (await hasTool(gateway.url, "count")));
  return {
    gateway,
    breaks: () => writeFile(broken, ""),
    mends: () => rm(broken),
    said: () => readFileSync(file, "utf8").split("\n").filter(Boolean),
  };
}

const pid = async ({ url }: Gateway) => made<{ pid: number }>(await callTool(url, "pid")).pid;

describe("toolway stop and start", () => {
  it("a stopped server keeps its tools, is not started by calls, and says how it is started [no-orphans]", async () => {
    const { gateway, said } = await moody({});
    const first = await pid(gateway);
    const stop = await toolway(gateway, "stop", "moody");
    expect(stop).toMatchObject({ code: 0 });
    expect(stop.out).toMatch(/Stopped moody, until `npx toolway start moody --config \S+ --state \S+`/);
    expect(isAlive(first)).toBe(false);
    expect(await statusOf(gateway, "moody")).toMatchObject({ state: "stopped", counts: { tools: 9 } });
    expect((await toolway(gateway, "status")).out).toMatch(/moody +stopped/);
    expect(await hasTool(gateway.url, "pid")).toBe(true);
    const lives = said().length;
    expect(await refusal(gateway.url, "pid")).toEqual({
      code: UNAVAILABLE,
      message: 'Server "moody" is stopped. `toolway start moody` starts it.',
      data: { fault: "unavailable", server: "moody", state: "stopped" },
    });
    made(await callTool(gateway.url, "count"));
    expect(said()).toHaveLength(lives);
    const start = await toolway(gateway, "start", "moody", "--json");
    expect(JSON.parse(start.out)).toMatchObject({ server: "moody", state: "ready", tools: 9 });
    expect(await pid(gateway)).not.toBe(first);
    expect(await statusOf(gateway, "moody")).toMatchObject({ state: "ready", restarts: 0 });
  });

  it("a name that is none is a mistake of the operator's", async () => {
    const { gateway } = await moody({});
    const ran = await toolway(gateway, "stop", "moddy");
    expect(ran.code).not.toBe(0);
    expect(ran.err).toContain("The gateway has no server moddy.");
    expect(ran.err).toContain("Did you mean moody?");
    await pid(gateway);
  });
});

describe("a server that fails too often", () => {
  const RULES = { restarts: { max: 2 }, breaker: { failures: 1_000 } };

  async function eject({ gateway, breaks }: Moody): Promise<void> {
    await breaks();
    expect(await refusal(gateway.url, "die")).toMatchObject({ code: OUTCOME_UNKNOWN });
    await until("its ejection", async () => (await refusal(gateway.url, "pid")).data["state"] === "ejected");
  }

  it("says while it is down which server it is, why, and when it is tried again", async () => {
    const one = await moody({ restarts: { max: 1_000 }, breaker: { failures: 1_000 } });
    await one.breaks();
    expect(await refusal(one.gateway.url, "die")).toMatchObject({ code: OUTCOME_UNKNOWN });
    const told = await refusal(one.gateway.url, "pid");
    expect(told).toMatchObject({
      code: UNAVAILABLE,
      data: { fault: "unavailable", server: "moody", state: "backoff" },
    });
    expect(told.data["nextTryInMs"]).toBeGreaterThanOrEqual(0);
    expect(told.message).toMatch(/^Server "moody" is not available: .*not today.* It is tried again on the next call/);
    made(await callTool(one.gateway.url, "count"));
    await one.mends();
    await until("its return", async () => (await callTool(one.gateway.url, "pid")).result !== undefined);
  });

  it("is ejected: seen in status, log and answers, and back only by a reload [host-14] [one-bad-server]", async () => {
    const one = await moody({ ...RULES, ejectedProbeMs: 0 });
    const { gateway, said } = one;
    await eject(one);
    const told = await refusal(gateway.url, "pid");
    expect(told).toMatchObject({
      code: UNAVAILABLE,
      data: { fault: "unavailable", server: "moody", state: "ejected" },
    });
    expect(told.data).not.toHaveProperty("nextTryInMs");
    expect(told.message).toMatch(
      /^Server "moody" is ejected: it was restarted 2 times within 300 s and failed again\. .*until `toolway reload moody`\.$/,
    );
    expect(await statusOf(gateway, "moody")).toMatchObject({ state: "ejected", ejected: true, restarts: 2 });
    expect((await toolway(gateway, "status")).out).toMatch(
      /`npx toolway reload moody --config \S+ --state \S+` tries it\./,
    );
    expect(gateway.log()).toMatch(/moody.*ejected/);
    expect(await hasTool(gateway.url, "pid")).toBe(true);
    made(await callTool(gateway.url, "count"));
    // Two restarts, and no third, whoever calls.
    const tries = said().length;
    for (let n = 0; n < 5; n++) await refusal(gateway.url, "pid");
    expect(said()).toHaveLength(tries);
    // A reload that meets the same trouble says so.
    const failed = await toolway(gateway, "reload", "moody");
    expect(failed.code).toBe(1);
    expect(failed.err).toMatch(/moody (did not come up|was restarted too often)/);
    await one.mends();
    const reloaded = await toolway(gateway, "reload", "moody");
    expect(reloaded).toMatchObject({ code: 0 });
    expect(reloaded.out).toContain("Reloaded moody: ready, with 9 tools.");
    await pid(gateway);
    expect(await statusOf(gateway, "moody")).toMatchObject({ state: "ready", ejected: false, restarts: 0 });
  });

  it("is tried again by itself where the config says so [host-14]", async () => {
    const one = await moody({ ...RULES, ejectedProbeMs: 1_500 });
    await eject(one);
    const told = await refusal(one.gateway.url, "pid");
    expect(told.message).toMatch(/It is tried again in \d+ s, or by `toolway reload moody`\.$/);
    expect(told.data["nextTryInMs"]).toBeGreaterThanOrEqual(0);
    await one.mends();
    await until("its return", async () => (await callTool(one.gateway.url, "pid")).result !== undefined);
    expect(await statusOf(one.gateway, "moody")).toMatchObject({ state: "ready", ejected: false });
  });
});

it("a reload of a healthy server ends the old process before the new one is begun, and no other's [host-2]", async () => {
  const { gateway, said } = await moody({ pingMs: HOUR_MS });
  const first = await pid(gateway);
  const other = made<{ pid: number }>(await callTool(gateway.url, "count")).pid;
  expect(await toolway(gateway, "reload", "moody")).toMatchObject({ code: 0 });
  expect(isAlive(first)).toBe(false);
  expect(await pid(gateway)).not.toBe(first);
  expect(made(await callTool(gateway.url, "count"))).toMatchObject({ pid: other, count: 2 });
  expect(said().filter((line) => line.startsWith("start "))).toEqual([
    expect.stringMatching(/beside 0$/),
    expect.stringMatching(/beside 0$/),
  ]);
});
