// The circuit breaker through a real gateway: what opens it and what does not, who is let through, and what operators
// and agents are told meanwhile.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listensToCached } from "./eras.js";
import {
  type Gateway,
  type GatewayConfig,
  startGateway,
  startHttpFixture,
  stdioFixture,
  temporaryDirectory,
  until,
} from "./harness.js";
import { callTool, hasTool, made, refusal, statusOf, toolway } from "./operator.js";

const UNAVAILABLE = -31001;
const OUTCOME_UNKNOWN = -31003;
const TIMEOUT = -31004;
/** Nothing is ejected here, and a restart is soon. */
const RESTARTS = { restarts: { max: 1_000 }, backoff: { baseMs: 20, maxMs: 20 } };
/** Longer than any run. */
const HOUR_MS = 3_600_000;

interface Moody {
  readonly gateway: Gateway;
  /** The calls that reached the server. */
  calls(): string[];
}

/** The breaker counts to five by default. */
async function moody(breaker: object, more: object = {}, others: GatewayConfig["mcpServers"] = {}): Promise<Moody> {
  const file = join(await temporaryDirectory(), "said");
  const entry = stdioFixture("moody", [file], { ...RESTARTS, breaker, ...more });
  const gateway = await startGateway({ mcpServers: { moody: entry, ...others } });
  await until("its tools", () => hasTool(gateway.url, "pid"));
  const calls = () =>
    readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line.startsWith("call "));
  return { gateway, calls };
}

async function die({ url }: Gateway, times: number): Promise<void> {
  for (let n = 0; n < times; n++) expect(await refusal(url, "die")).toMatchObject({ code: OUTCOME_UNKNOWN });
}

describe.concurrent("a breaker", () => {
  it("opens after five faults in a row, is seen in status, and says when to come back [host-6] [unknown-is-said]", async () => {
    const { gateway, calls } = await moody({ openMs: HOUR_MS }, {}, { other: stdioFixture("stateful") });
    await die(gateway, 4);
    // An answer in between: the count begins anew.
    made(await callTool(gateway.url, "pid"));
    await die(gateway, 4);
    expect(await statusOf(gateway, "moody")).toMatchObject({ circuit: "closed", failures: 4 });
    await die(gateway, 1);
    const reached = calls().length;
    const told = await refusal(gateway.url, "pid");
    expect(told).toMatchObject({ code: UNAVAILABLE, data: { fault: "unavailable", server: "moody", state: "open" } });
    expect(told.data["nextTryInMs"]).toBeGreaterThan(0);
    expect(told.message).toMatch(
      /^Server "moody" failed 5 times in a row, so calls to it are held back\. The next call is tried in \d+ s\.$/,
    );
    expect(calls()).toHaveLength(reached);
    const status = await statusOf(gateway, "moody");
    expect(status).toMatchObject({ circuit: "open", failures: 5, ejected: false });
    expect(status.nextTryInMs).toBeGreaterThan(0);
    const { out } = await toolway(gateway, "status");
    expect(out).toMatch(/moody: failed 5 times in a row, so its calls are held back; the next is tried in /);
    // Its tools stay listed, and nobody else is held back.
    expect(await hasTool(gateway.url, "pid")).toBe(true);
    made(await callTool(gateway.url, "count"));
    // A reload forgives it.
    expect(await toolway(gateway, "reload", "moody")).toMatchObject({ code: 0 });
    made(await callTool(gateway.url, "pid"));
    expect(await statusOf(gateway, "moody")).toMatchObject({ circuit: "closed", failures: 0 });
  });

  it("counts neither errors of tools nor errors that the server answers [host-6]", async () => {
    const { gateway } = await moody({ failures: 2, openMs: HOUR_MS });
    for (let n = 0; n < 6; n++) {
      expect((await callTool(gateway.url, "is_error")).result).toMatchObject({ isError: true });
      expect(await refusal(gateway.url, "refuse")).toMatchObject({ code: -32000, message: "connect ECONNREFUSED" });
    }
    expect(await statusOf(gateway, "moody")).toMatchObject({ circuit: "closed", failures: 0, restarts: 0 });
    made(await callTool(gateway.url, "pid"));
  });

  it("counts one crash once, however many calls were in flight [host-7]", async () => {
    const { gateway, calls } = await moody({ failures: 2, openMs: HOUR_MS });
    const waiting = Array.from({ length: 20 }, () => refusal(gateway.url, "wait"));
    await until("all of them", () => calls().length === 20);
    await die(gateway, 1);
    for (const told of await Promise.all(waiting)) expect(told).toMatchObject({ code: OUTCOME_UNKNOWN });
    made(await callTool(gateway.url, "pid"));
    expect(await statusOf(gateway, "moody")).toMatchObject({ circuit: "closed", restarts: 1 });
  });

  it("lets exactly one call through when its time is over, and closes when that is answered [host-5]", async () => {
    const { gateway, calls } = await moody({ failures: 2, openMs: 1_500 }, { callTimeoutMs: 3_000 });
    await die(gateway, 2);
    const before = calls().length;
    // One is let through, and hangs; whoever comes meanwhile is told that it is being tried.
    const probe = until("a probe", async () => {
      const told = await refusal(gateway.url, "wait");
      return told.code === TIMEOUT ? told : undefined;
    });
    await until("the probe at the server", () => calls().length > before);
    const crowd = await Promise.all(Array.from({ length: 20 }, () => callTool(gateway.url, "pid")));
    const refused = crowd.map(({ error }) => error as { code: number; message: string; data: { state: string } });
    // On a slow machine the probe may have ended before the last of them came: the circuit is open again then.
    for (const error of refused) expect(error).toMatchObject({ code: UNAVAILABLE, data: { server: "moody" } });
    expect(refused[0]).toMatchObject({ data: { state: "half-open" } });
    expect(refused[0]?.message).toContain("One call is being tried now");
    expect(calls().slice(before)).toEqual(["call wait"]);
    await probe;
    // It failed: the next round begins, whose one call is answered.
    await until("an answer", async () => (await callTool(gateway.url, "pid")).result !== undefined);
    expect(calls().slice(before)).toEqual(["call wait", "call pid"]);
    expect(await statusOf(gateway, "moody")).toMatchObject({ circuit: "closed", failures: 0, state: "ready" });
  });

  it("of a server over HTTP that went away leaves hits served, and closes when the server is back", async () => {
    const server = await startHttpFixture("cached", ["--era", "modern"]);
    const entry = { ...server.entry, ...RESTARTS, breaker: { openMs: 1_000 }, tools: { stamp: { cache: true } } };
    const gateway = await startGateway({ mcpServers: { cached: entry } });
    await listensToCached(gateway);
    const stamp = (key: string) => callTool(gateway.url, "stamp", { key });
    const kept = made(await stamp("kept"));
    await server.kill();
    let faults = 0;
    await until("the breaker to open", async () => {
      const { data } = await refusal(gateway.url, "stamp", { key: `lost ${faults++}` });
      return data["state"] === "open";
    });
    expect(faults).toBeGreaterThan(5);
    expect(made(await stamp("kept"))).toEqual(kept);
    expect(await hasTool(gateway.url, "stamp")).toBe(true);
    await startHttpFixture("cached", ["--era", "modern"], server.port);
    await until("an answer of the new one", async () => (await stamp("new")).result !== undefined);
    expect(await statusOf(gateway, "cached")).toMatchObject({ circuit: "closed", failures: 0 });
  });
});
