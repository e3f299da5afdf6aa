// Servers that die again and again, and one that will not: nothing of them stays.

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { hashStateDir, MARKER_VARIABLE } from "../../src/runtime/processes/reaper-marker.js";
import { type Gateway, isAlive, root, type ServerEntry, startGateway, until } from "../e2e/harness.js";
import { openHttpWire } from "../e2e/wire.js";
import { call, callText } from "./gateway.js";
import { figure } from "./length.js";
import { descriptors, linux, processesNaming, report, zombiesOf } from "./measure.js";

const mortal = (...args: string[]): ServerEntry => ({
  command: "/bin/sh",
  args: [join(root, "test/faults/servers/mortal.sh"), ...args],
  // Its deaths are the test's doing, and far more than a server is usually forgiven.
  restarts: { max: 1_000 },
});

/** All that descends from the gateway's servers, wherever it went. */
const descendants = ({ stateDir }: Gateway) =>
  processesNaming([`${MARKER_VARIABLE}=${hashStateDir(stateDir)}.`], ["environ"]);

describe.skipIf(!linux)("a server that crashes", () => {
  /** Side by side, because a server that dies soon after its start waits up to 5 s for the next one. */
  const SERVERS = figure(10, 50);
  const CRASHES_EACH = figure(3, 20);

  it("leaves no zombie, no orphan and no descriptor; each next call works [bounded] [no-orphans] [restart-unseen]", async () => {
    const names = Array.from({ length: SERVERS }, (_, n) => `m${n}`);
    const gateway = await startGateway({
      names: "prefixed",
      mcpServers: Object.fromEntries(names.map((name) => [name, mortal()])),
    });
    const wire = await openHttpWire(gateway.url);
    const pids = () => Promise.all(names.map((name) => callText(wire, `${name}__pid`, {}, name)));
    const all = (seen: readonly (string | undefined)[]) => new Set(seen).size === SERVERS && !seen.includes(undefined);
    const first = await until("all servers", async () => {
      const seen = await pids();
      return all(seen) && seen;
    });
    const settled = () => descendants(gateway).length === SERVERS && zombiesOf(gateway.pid).length === 0;
    await until("one process each", settled);
    // The agent's own connections come and go.
    const open = () => descriptors(gateway.pid).filter((kind) => kind !== "tcp");
    const openBefore = open();
    const started = performance.now();
    let unknown = 0;
    let worked = 0;
    await Promise.all(
      names.map(async (name) => {
        for (let n = 0; n < CRASHES_EACH; n++) {
          const { error } = await call(wire, `${name}__die`, {}, name);
          if (error?.message.includes("unknown")) unknown++;
          if ((await callText(wire, `${name}__pid`, {}, name)) !== undefined) worked++;
        }
      }),
    );
    const seconds = (performance.now() - started) / 1000;
    const crashes = SERVERS * CRASHES_EACH;
    await until("no process but the servers, no zombie", settled, 15_000);
    const last = await pids();
    expect(all(last)).toBe(true);
    expect(last.filter((pid) => first.includes(pid))).toEqual([]);
    // Descriptors close with the pipes, a moment later.
    await until("descriptors as before", () => open().length <= openBefore.length, 10_000);
    report(
      "crash cycles",
      `${crashes} in ${seconds.toFixed(1)} s: ${unknown} calls reported as unknown, ${worked} of ${crashes} next calls ` +
        "worked; 0 zombies, 0 orphans, 0 descriptors left [bounded] [no-orphans] [restart-unseen]",
    );
    expect(unknown).toBe(crashes);
    expect(worked).toBe(crashes);
    expect(open()).toEqual(openBefore);
  }, 900_000);
});

describe.skipIf(!linux)("a server that ignores SIGTERM", () => {
  /** Two seconds from the end of its input to SIGTERM, two from there to SIGKILL; the rest is for a busy machine. */
  const DEAD_WITHIN_MS = 10_000;

  it("dies in time when its entry goes, and with the gateway [no-orphans]", async () => {
    const gateway = await startGateway({
      mcpServers: { one: mortal("stubborn"), two: mortal("stubborn") },
      names: "prefixed",
    });
    const wire = await openHttpWire(gateway.url);
    const pidOf = (name: string) => until(name, async () => Number(await callText(wire, `${name}__pid`)) || undefined);
    const one = await pidOf("one");
    const two = await pidOf("two");
    await gateway.writeConfig({ mcpServers: { two: mortal("stubborn") }, names: "prefixed" });
    let started = performance.now();
    await until("its end", () => !isAlive(one), DEAD_WITHIN_MS);
    const aloneMs = performance.now() - started;
    expect(await callText(wire, "two__pid")).toBe(String(two));
    started = performance.now();
    gateway.signal("SIGTERM");
    await gateway.exited;
    const withGatewayMs = performance.now() - started;
    report(
      "a server that ignores SIGTERM",
      `dead ${Math.round(aloneMs)} ms after its entry went, and ${Math.round(withGatewayMs)} ms after SIGTERM of the ` +
        "gateway [no-orphans]",
    );
    expect(isAlive(two)).toBe(false);
    expect(withGatewayMs).toBeLessThan(DEAD_WITHIN_MS);
    expect(descendants(gateway)).toEqual([]);
  }, 60_000);
});
