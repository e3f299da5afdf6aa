import { Duplex, PassThrough } from "node:stream";
import { expect, it, vi } from "vitest";
import type { RunLine } from "../../contracts/runs.js";
import { createGateway } from "../create.js";

it("a gateway over stdio says of the address that it opened for a run that it is for runs, so that nobody writes it down [setup-keeps]", async () => {
  const gateway = await createGateway({ mcpServers: {} });
  try {
    const [toGateway, toRun] = [new PassThrough(), new PassThrough()];
    const told: RunLine[] = [];
    toRun.on("data", (chunk: Buffer) => void told.push(JSON.parse(chunk.toString().split("\n")[0] ?? "") as RunLine));
    expect(gateway.status()).toMatchObject({ endpoint: undefined, forRuns: false });
    gateway.serveRun(Duplex.from({ readable: toGateway, writable: toRun }));
    toGateway.write('{"kind":"begin","client":"claude","context":{}}\n');
    await vi.waitFor(() => expect(told).toHaveLength(1), { timeout: 30_000 });
    // The gateway itself is its user's, who starts it again.
    expect(told[0]).toMatchObject({ kind: "held", forRuns: false, url: gateway.status().endpoint });
    expect(gateway.status().forRuns).toBe(true);
  } finally {
    await gateway.close({ drainMs: 0 });
  }
});
