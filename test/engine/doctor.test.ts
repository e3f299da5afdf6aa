// `toolway doctor --engine` as it is typed, on a real nats-server. Only its clock is the test's: ten seconds pass in the time that some
// hundred requests take.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { folder, leaveFolder, makeFolder, run } from "../fixtures/fake-gateway.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";

const title = natsPrograms.length === 0 ? `doctor --engine, ${NO_NATS}` : "doctor --engine";
/** Of the trial, as the docs say it. */
const TRIAL_MS = 10_000;
/** At each look at the clock. */
const STEP_MS = 10;

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;

  beforeEach(async () => {
    makeFolder();
    nats ??= await startNats();
    const engine = { nats: nats.urls, key: { env: "KEY" }, replicas: 1, monitor: nats.nodes[0]?.monitor };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify({ mcpServers: {}, engine }));
  });
  afterEach(() => {
    vi.restoreAllMocks();
    leaveFolder();
  });

  /** What it prints, and how long the command took by that clock. */
  async function doctor(...options: string[]) {
    const beganMs = performance.now();
    let nowMs = beganMs;
    vi.spyOn(performance, "now").mockImplementation(() => {
      nowMs += STEP_MS;
      return nowMs;
    });
    const ran = await run(["doctor", "--engine", ...options], {
      env: { KEY: makeEngineKey(), NO_COLOR: "1" },
      isErrTTY: true,
    });
    return { ...ran, tookMs: nowMs - beganMs };
  }

  it("writes, reads and renews a lease for ten seconds, and prints what it measured and what that means [engine-told]", async () => {
    const { code, out, err, tookMs } = await doctor();
    expect(`${err}${out}`).toContain("Writing to the engine for ten seconds…");
    expect(out).toContain(`engine  nats-server ${nats.version}, 1 node, at 127.0.0.1:${nats.nodes[0]?.port}`);
    for (const what of ["writes", "reads", "a lease renewed"]) {
      expect(out).toMatch(
        new RegExp(`^ {2}${what} +[1-9]\\d* +median \\d+(\\.\\d)? ms +slowest \\d+(\\.\\d)? ms$`, "m"),
      );
    }
    expect(out).toMatch(/^– Acknowledged means kept by one node: .*set "replicas" to 3\.$/m);
    expect(out).toMatch(/^ {2}While the one node is away nothing is written/m);
    expect(out).not.toContain("✗");
    expect(code).toBe(0);
    // Each who writes, reads and holds looks at the clock some times more before it ends.
    expect(tookMs).toBeGreaterThan(TRIAL_MS);
    expect(tookMs).toBeLessThan(TRIAL_MS + 300 * STEP_MS);
  });

  it("says the same to scripts [engine-told]", async () => {
    const { code, out } = await doctor("--json");
    const report = JSON.parse(out) as Record<string, unknown>;
    expect(report).toMatchObject({
      ok: true,
      problems: [],
      facts: { version: nats.version, nodes: 1, replicas: 1 },
      writes: { count: expect.any(Number), medianMs: expect.any(Number), slowestMs: expect.any(Number) },
      failed: 0,
    });
    expect(code).toBe(0);
  });
});
