// Hundreds of processes of one server at once, one for each session: as many as the config lets live, of one principal
// three quarters of them, and none when the gateway has gone.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root, startGateway, until } from "../e2e/harness.js";
import { createToken, hasTool } from "../e2e/operator.js";
import { figure } from "./length.js";
import { linux, processesNaming, report } from "./measure.js";
import { type Agent, openAgent } from "./memory-scene.js";

/** More than the default of 200, so that one principal has more than 500 of them. */
const CAPACITY = figure(16, 680);
/** Three quarters of it: what one principal gets. */
const OF_ONE = figure(12, 510);
/** More than there is room for. */
const ASKED = OF_ONE + 10;
/** The reaper needs a moment for each of them, and the machine may be busy. */
const GONE_WITHIN_MS = 30_000;

describe.skipIf(!linux)("processes of sessions", () => {
  it("live side by side up to their number, and none outlives the gateway [bounded] [no-orphans]", async () => {
    const mark = `little-${randomBytes(8).toString("hex")}`;
    const living = () => processesNaming([mark], ["cmdline"]).length;
    const little = {
      command: "/bin/sh",
      args: [join(root, "test/faults/servers/little.sh"), mark],
      isolation: "session",
      sessionConnections: CAPACITY,
    };
    const gateway = await startGateway({ mcpServers: { little } }, { auth: true });
    const [ada, bob] = [await createToken(gateway, "ada", "default"), await createToken(gateway, "bob", "default")];
    await until("the tool", () => hasTool(gateway.url, "pid", ada));
    const sessions = (count: number, token: string) =>
      Promise.all(Array.from({ length: count }, () => openAgent(gateway, `Bearer ${token}`)));
    const pids = async (agents: readonly Agent[]) => {
      const answers = await Promise.all(agents.map((agent) => agent.call("pid", {})));
      return answers.flatMap(({ text }) => (text === undefined ? [] : [text]));
    };
    const adas = await sessions(ASKED, ada);
    const first = await pids(adas);
    expect(new Set(first).size).toBe(OF_ONE);
    expect(await pids(await sessions(1, bob))).toHaveLength(1);
    const most = living();
    // Each session has its own still, however often it asks.
    expect((await pids(adas)).sort()).toEqual(first.sort());
    expect(most).toBeGreaterThan(OF_ONE);
    expect(most).toBeLessThanOrEqual(CAPACITY);
    const killed = performance.now();
    gateway.signal("SIGKILL");
    await gateway.exited;
    await until("their end", () => living() === 0, GONE_WITHIN_MS);
    report(
      "processes of sessions",
      `${most} at once, ${first.length} of them of one principal; none left ${Math.round(performance.now() - killed)} ms ` +
        "after SIGKILL [bounded] [no-orphans]",
    );
  }, 180_000);
});
