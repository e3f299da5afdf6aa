// When a gateway says that agents may be sent to it.

import { describe, expect, it } from "vitest";
import { type GatewayConfig, startGateway, stdioFixture, until } from "./harness.js";

/** Comes up never. */
const HANGING = { command: "sleep", args: ["600"] };
/** As long as a server that hangs keeps a gateway from being ready. */
const WAIT_MS = 5_000;

async function readyz(origin: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`${origin}/readyz`);
  return { status: response.status, text: await response.text() };
}

/** How long it took from the first sign of life until it was ready. */
async function readyAfter(config: GatewayConfig): Promise<number> {
  const gateway = await startGateway(config, { auth: true });
  const began = performance.now();
  await until("a gateway that is ready", async () => {
    const { status, text } = await readyz(gateway.origin);
    // It is open to everybody: what it says is the same whatever is behind it.
    expect(['{"status":"starting"}', '{"status":"ready"}']).toContain(text);
    expect(status).toBe(text.includes("ready") ? 200 : 503);
    return status === 200;
  });
  return performance.now() - began;
}

describe("/readyz", () => {
  it("waits 5 s for a server that hangs, and not at all for a lazy one [one-bad-server]", async () => {
    const waited = await readyAfter({ mcpServers: { good: stdioFixture("slow"), hanging: HANGING } });
    // It began to wait a moment before it answered for the first time.
    expect(waited).toBeGreaterThan(WAIT_MS / 2);
    const lazy = await startGateway({ mcpServers: { hanging: { ...HANGING, lazy: true } } });
    expect((await readyz(lazy.origin)).status).toBe(200);
  });

  it("is 200 at once where the lists of a server are known from before [menu-survives]", async () => {
    const first = await startGateway({ mcpServers: { wiki: stdioFixture("slow") } });
    await until("its lists", async () => (await readyz(first.origin)).status === 200);
    await first.stop();
    const { port, stateDir } = first;
    const next = await startGateway({ mcpServers: { wiki: HANGING } }, { port, stateDir });
    expect((await readyz(next.origin)).status).toBe(200);
  });

  // A machine that stalls for seconds is no fault of the gateway.
  it("is 200 once a server that cannot be started was tried", { retry: 2 }, async () => {
    const gateway = await startGateway({ mcpServers: { missing: { command: "/nonexistent" } } });
    const began = performance.now();
    await until("a gateway that is ready", async () => (await readyz(gateway.origin)).status === 200);
    expect(performance.now() - began).toBeLessThan(WAIT_MS);
  });
});
