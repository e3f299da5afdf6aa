import { Duplex, PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { expect, it, vi } from "vitest";
import type { RunLine } from "../../contracts/runs.js";
import { createGateway } from "../create.js";
import type { Gateway } from "../gateway.js";

/** Two busy cores start a process in a second or two. */
const SOON = { timeout: 60_000, interval: 20 };

/** A run of this gateway, and what it is told. */
function beginRun(gateway: Gateway) {
  const [toGateway, toRun] = [new PassThrough(), new PassThrough()];
  const told: RunLine[] = [];
  toRun.on("data", (chunk: Buffer) => {
    for (const line of chunk.toString().split("\n").filter(Boolean)) told.push(JSON.parse(line) as RunLine);
  });
  gateway.serveRun(Duplex.from({ readable: toGateway, writable: toRun }));
  toGateway.write('{"kind":"begin","client":"claude","context":{}}\n');
  return { told, end: () => void toGateway.write('{"kind":"end"}\n') };
}

it("a gateway over stdio says of the address that it opened for a run that it is for runs, so that nobody writes it down [setup-keeps]", async () => {
  const gateway = await createGateway({ mcpServers: {} });
  try {
    expect(gateway.status()).toMatchObject({ endpoint: undefined, forRuns: false });
    const { told } = beginRun(gateway);
    await vi.waitFor(() => expect(told).toHaveLength(1), SOON);
    // The gateway itself is its user's, who starts it again.
    expect(told[0]).toMatchObject({ kind: "held", forRuns: false, url: gateway.status().endpoint });
    expect(gateway.status().forRuns).toBe(true);
  } finally {
    await gateway.close({ drainMs: 0 });
  }
});

it("a run is told of each restart of a server while it was under way, and of none before it [restart-unseen] [run-own]", async () => {
  const fixture = fileURLToPath(new URL("../../../test/fixtures/servers/stateful.mjs", import.meta.url));
  const entry = { command: process.execPath, args: [fixture], backoff: { baseMs: 1 } };
  const gateway = await createGateway({ mcpServers: { one: entry } });
  const state = () => gateway.status().servers[0];
  const killOnce = async (restarts: number) => {
    process.kill(state()?.pid ?? 0, "SIGKILL");
    await vi.waitFor(() => expect(state()?.state).not.toBe("ready"), SOON);
    // It is started again when it is wanted, as by a call.
    gateway.servers.supervised("one")?.ensure();
    await vi.waitFor(() => expect(state()).toMatchObject({ restarts, state: "ready" }), SOON);
  };
  try {
    await vi.waitFor(() => expect(state()).toMatchObject({ state: "ready" }), SOON);
    await killOnce(1);
    const { told, end } = beginRun(gateway);
    await vi.waitFor(() => expect(told).toHaveLength(1), SOON);
    await killOnce(2);
    // Nothing else happened in it, and it is told nevertheless.
    const figures = { calls: 0, refused: [], restarts: 1, queued: 0 };
    await vi.waitFor(() => expect(told.slice(1)).toEqual([{ kind: "figures", ...figures }]), SOON);
    end();
    await vi.waitFor(() => expect(told.at(-1)).toEqual({ kind: "ended", ...figures }), SOON);
  } finally {
    await gateway.close({ drainMs: 0 });
  }
});
