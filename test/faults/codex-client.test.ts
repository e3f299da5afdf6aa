// The real Codex as the agent, its MCP server in another network. In the full runs only: Codex is a large download.

import { afterEach, describe, expect, it } from "vitest";
import { codexOfFullRuns } from "../codex/binary.js";
import { type CodexOutcome, type CodexRun, runCodex } from "../codex/codex-agent.js";
import { startCodexExecServer } from "../codex/exec-server.js";
import { type Guard, startGuard } from "../codex/guard.js";
import { startToolwayExecutor } from "../codex/toolway-executor.js";
import { startGateway, startHttpFixture, stdioFixture, until } from "../e2e/harness.js";
import { full } from "./length.js";
import { report } from "./measure.js";

/** What the guard of a server asks for, and an executor never sees. */
const SERVER_TOKEN = "of-the-server";

/** One call of `count`, or of another tool, at a server that Codex reaches by the executor. */
function codexThrough(
  executor: { readonly url: string; readonly token: string },
  mcpUrl: string,
  more: Partial<CodexRun> = {},
): Promise<CodexOutcome> {
  return runCodex({ mcpUrl, executorUrl: executor.url, token: executor.token, tool: { name: "count" }, ...more });
}

const codex = await codexOfFullRuns();
if (full && codex.path === undefined) report("codex as the agent", `skipped: ${codex.missing}`);

describe.skipIf(codex.path === undefined)("Codex with a remote environment", () => {
  const stops: (() => Promise<void>)[] = [];
  const stoppedLater = <T extends { stop(): Promise<void> }>(started: T): T => {
    stops.push(() => started.stop());
    return started;
  };
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  const guarded = async (fixture: string): Promise<Guard> => {
    const guard = await startGuard((await startHttpFixture(fixture)).url, SERVER_TOKEN);
    stops.push(guard.close);
    return guard;
  };

  it("calls a tool through its own exec-server: what the others are compared with", async () => {
    const executor = stoppedLater(await startCodexExecServer());
    const mcp = await startHttpFixture("stateful");
    const outcome = await codexThrough(executor, mcp.url);
    expect(outcome.toolResult, outcome.output).toContain('"count":1');
    expect(outcome.finished).toBe(true);
  });

  it("calls a tool through toolway executor [exec-keep]", async () => {
    const executor = stoppedLater(await startToolwayExecutor());
    const mcp = await startHttpFixture("stateful");
    const outcome = await codexThrough(executor, mcp.url);
    expect(outcome.toolResult, outcome.output + executor.log()).toContain('"count":1');
    expect(outcome.finished).toBe(true);
    // Nothing that Codex asks besides makes it complain.
    expect(outcome.output).not.toContain("ERROR");
    report("codex as the agent", "one tool call of Codex 0.166.0 through toolway executor: answered [exec-keep]");
  });

  it("brings its server's bearer token itself: the executor holds none [exec-keep]", async () => {
    const executor = stoppedLater(await startToolwayExecutor());
    const guard = await guarded("stateful");
    const outcome = await codexThrough(executor, guard.url, { mcpToken: SERVER_TOKEN });
    expect(outcome.toolResult, outcome.output + executor.log()).toContain('"count":1');
    expect(guard.passed.some((body) => body.includes("tools/call"))).toBe(true);
    expect(guard.refused).toBe(0);
    expect(executor.log()).not.toContain(SERVER_TOKEN);
  });

  it("reads progress and a large answer from an event stream [exec-keep]", async () => {
    const executor = stoppedLater(await startToolwayExecutor());
    const mcp = await startHttpFixture("slow");
    const outcome = await codexThrough(executor, mcp.url, {
      tool: { name: "sleep", arguments: { ms: 600, everyMs: 50, label: "x".repeat(200_000) } },
    });
    expect(outcome.toolResult?.length, outcome.output.slice(-4000)).toBeGreaterThan(200_000);
  });

  it("reaches a gateway, and the tools behind that [exec-keep]", async () => {
    const executor = stoppedLater(await startToolwayExecutor());
    const gateway = await startGateway({ mcpServers: { counter: stdioFixture("stateful") } });
    await until("its server", () => gateway.log().includes("ready after"));
    const outcome = await codexThrough(executor, gateway.url);
    expect(outcome.toolResult, outcome.output + executor.log()).toContain('"count":1');
  });

  it("gets no tools of a place that the executor may not reach, and goes on [exec-6]", async () => {
    const executor = stoppedLater(await startToolwayExecutor(["wiki.internal"]));
    const guard = await guarded("stateful");
    const outcome = await codexThrough(executor, guard.url);
    expect(outcome.toolResult).toBeUndefined();
    expect(outcome.finished, outcome.output).toBe(true);
    // Nobody knocked.
    expect(guard.refused).toBe(0);
  });

  it("hears of an executor that dies in the middle of a call [exec-3]", async () => {
    const executor = stoppedLater(await startToolwayExecutor());
    const guard = await guarded("hang");
    const run = codexThrough(executor, guard.url, { tool: { name: "hang" }, mcpToken: SERVER_TOKEN });
    await until("the call", () => guard.passed.some((body) => body.includes("tools/call")));
    await executor.stop("SIGKILL");
    const outcome = await run;
    expect(outcome.toolResult).toBeUndefined();
    expect(outcome.toolError, outcome.output).toContain("disconnected");
    expect(outcome.finished).toBe(true);
  });

  it("does without its tools when its token is wrong [exec-7]", async () => {
    const executor = stoppedLater(await startToolwayExecutor());
    const mcp = await startHttpFixture("stateful");
    const outcome = await codexThrough({ ...executor, token: "another" }, mcp.url);
    expect(outcome.toolResult).toBeUndefined();
    expect(outcome.output).not.toContain(executor.token);
  });
});
