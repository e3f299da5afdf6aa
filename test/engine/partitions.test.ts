// Partitions over a real nats-server: who owns which, and what happens to them when gateways come and go.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Partitions } from "../../src/contracts/engine/partitions.js";
import type { Store } from "../../src/contracts/store.js";
import { systemClock } from "../../src/runtime/clock.js";
import { type Engine, openEngine } from "../../src/store/nats/connection.js";
import { openNatsStores } from "../../src/store/nats/store.js";
import { openPartitions } from "../../src/store/ownership/partitions.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `partitions in NATS, ${NO_NATS}` : "partitions in NATS";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  const engines: Engine[] = [];

  beforeAll(async () => {
    nats = await startNats();
  });
  afterAll(async () => {
    for (const engine of engines) await engine.close();
  });

  async function gateway(self: string, prefix: string, count?: number) {
    const nodes = nats.nodes.map(({ port }) => ({ host: "127.0.0.1", port }));
    const rest = { tls: undefined, auth: undefined, monitor: undefined, replicas: 1, prefix };
    const key = { from: "env", name: "KEY" } as const;
    const engine = await openEngine({ ...rest, nodes, key }, { env: { KEY: "unused" } });
    engines.push(engine);
    const stores = await openNatsStores({ engine, prefix, replicas: 1 });
    const shared = await stores.shared();
    const warned: string[] = [];
    const open = stores.partition;
    const size = count === undefined ? {} : { count };
    const parts = { shared, open, self, clock: systemClock, warn: (text: string) => warned.push(text), ...size };
    const partitions: Partitions = await openPartitions(parts);
    const held = new Map<number, Store>();
    const run = () =>
      partitions.run({
        async taken(partition, store) {
          held.set(partition, store);
        },
        async lost(partition) {
          held.delete(partition);
        },
      });
    return { partitions, held, run, warned };
  }

  it("are spread over the gateways that are there, pass on with what is in them, and go on when one hands over [takeover] [one-owner]", async () => {
    const a = await gateway("a", "spread");
    a.run();
    await until("the first to have all", () => a.held.size === 64);
    const place = a.partitions.of("files");
    await a.held.get(place)?.map("m").put("k", "by the first");
    expect(a.partitions.ownerOf(place)).toBe("a");
    expect(a.partitions.mayAct(place)).toBe(true);
    const b = await gateway("b", "spread");
    expect(b.partitions.of("files")).toBe(place);
    expect(b.partitions.mayAct(place)).toBe(false);
    b.run();
    await until("each to have half", () => a.held.size === 32 && b.held.size === 32);
    const both = (n: number) => Number(a.partitions.mayAct(n)) + Number(b.partitions.mayAct(n));
    expect(Array.from({ length: 64 }, (_, n) => both(n))).toEqual(Array.from({ length: 64 }, () => 1));
    expect(b.partitions.gateways()).toEqual([
      { gateway: "a", isLeaving: false, partitions: 32 },
      { gateway: "b", isLeaving: false, partitions: 32 },
    ]);
    await a.partitions.release();
    expect(a.held.size).toBe(0);
    await until("the other to have all", () => b.held.size === 64);
    expect(b.held.get(place)?.map("m").get("k")).toBe("by the first");
    expect(b.partitions.ownerOf(place)).toBe("b");
    expect(b.partitions.gateways().map(({ gateway: name }) => name)).toEqual(["b"]);
    await b.partitions.release();
    expect([...a.warned, ...b.warned]).toEqual([]);
  });

  it("are as many as when the engine was first used: another number is refused with what to do [one-owner]", async () => {
    const first = await gateway("a", "number", 8);
    expect(first.partitions.count).toBe(8);
    await expect(gateway("b", "number", 16)).rejects.toThrow(
      'The engine has 8 partitions, fixed when it was first used, and this Toolway wants 16: the queues would be looked for in the wrong places. Run the version that made it, or give this one another "prefix" in "engine".',
    );
  });
});
