// The real Codex as the agent, its MCP server in another network. In the full runs only: Codex is a large download.

import { afterAll, describe, expect, it } from "vitest";
import { findCodex } from "../codex/binary.js";
import { runCodex } from "../codex/codex-agent.js";
import { startCodexExecServer } from "../codex/exec-server.js";
import { startHttpFixture } from "../e2e/harness.js";
import { full } from "./length.js";
import { report } from "./measure.js";

const codex = full ? await findCodex() : { path: undefined, missing: "in the full runs only" };
if (full && codex.path === undefined) report("codex as the agent", `skipped: ${codex.missing}`);

describe.skipIf(codex.path === undefined)("Codex with a remote environment", () => {
  const stops: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const stop of stops) await stop();
  });

  it("calls a tool through its own exec-server: what the others are compared with", async () => {
    const executor = await startCodexExecServer();
    stops.push(executor.stop);
    const mcp = await startHttpFixture("stateful");
    const run = { mcpUrl: mcp.url, executorUrl: executor.url, token: executor.token, tool: { name: "count" } };
    const outcome = await runCodex(run);
    expect(outcome.toolResult, outcome.output).toContain('"count":1');
    expect(outcome.finished).toBe(true);
  });
});
