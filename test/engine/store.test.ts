// The store of several gateways against a real nats-server: the contract, and what two gateways see of each other.

import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Store } from "../../src/contracts/store.js";
import { type Engine, openEngine } from "../../src/store/nats/connection.js";
import type { NatsStores } from "../../src/store/nats/store.js";
import { openNatsStores } from "../../src/store/nats/store.js";
import { JetStreamStream } from "../../src/store/nats/stream.js";
import { freshId } from "../e2e/operator.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { testMaps, testStoreContract } from "../fixtures/store/contract.js";
import { sleep, until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `the store in NATS, ${NO_NATS}` : "the store in NATS";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  const engines: Engine[] = [];
  let partitions = 0;

  beforeAll(async () => {
    nats = await startNats();
    await nats.ready();
  });
  afterAll(async () => {
    for (const engine of engines) await engine.close();
  });

  async function gateway(prefix = "tw"): Promise<NatsStores> {
    const nodes = nats.nodes.map(({ port }) => ({ host: "127.0.0.1", port }));
    const rest = { tls: undefined, auth: undefined, monitor: undefined, replicas: 1, prefix };
    const key = { from: "env", name: "KEY" } as const;
    const engine = await openEngine({ ...rest, nodes, key }, { env: { KEY: "unused" } });
    engines.push(engine);
    return openNatsStores({ engine, prefix, replicas: 1 });
  }

  describe("is a store [compare-and-set]", () => {
    let stores: NatsStores;
    beforeAll(async () => {
      stores = await gateway();
    });
    testStoreContract({
      open: () => stores.partition(++partitions),
      async reopen(store: Store) {
        await store.close();
        return stores.partition(partitions);
      },
    });
  });

  describe("is a store of what all gateways read, one key a write [compare-and-set]", () => {
    let stores: NatsStores;
    let prefixes = 0;
    testMaps({
      async open() {
        // Another prefix for each: what one test wrote all gateways of its prefix see.
        stores = await gateway(`maps-${++prefixes}`);
        return stores.shared();
      },
      async reopen(store: Store) {
        await store.close();
        return stores.shared();
      },
    });

    it("refuses a log and a batch of two keys, which could be written in part", async () => {
      await using store = await (await gateway(`maps-${++prefixes}`)).shared();
      const map = store.map<number>("m");
      const two = store.batch((batch) => {
        batch.put(map, "a", 1);
        batch.put(map, "b", 2);
      });
      await expect(two).rejects.toMatchObject({ code: "invalid" });
      expect(() => store.log("l")).toThrow("logs are a partition's");
      expect([...map.entries()]).toEqual([]);
    });
  });

  it("tells each gateway what another wrote, and lets one of them win [compare-and-set]", async () => {
    const prefix = freshId("two");
    await using one = await (await gateway(prefix)).shared();
    await using two = await (await gateway(prefix)).shared();
    await using other = await (await gateway("elsewhere")).shared();
    const [here, there] = [one.shared<number>("m"), two.shared<number>("m")];
    const keys = ["a", "x.y", "*", ">", "ä", "k".repeat(500)];
    for (const [i, key] of keys.entries()) await here.put(key, i);
    await until("the other gateway to have them", () => keys.every((key, i) => there.get(key) === i));
    const told = await Promise.all([
      here.update("a", 10, here.read("a")?.revision ?? 0),
      there.update("a", 20, there.read("a")?.revision ?? 0),
    ]);
    expect(told.filter((revision) => revision !== undefined)).toHaveLength(1);
    await there.delete("*");
    await until("the deletion to be told", () => here.get("*") === undefined);
    expect(await here.create("*", 5)).toBeTypeOf("number");
    await using later = await (await gateway(prefix)).shared();
    expect(later.map("m").get("*")).toBe(5);
    expect([...other.map("m").entries()]).toEqual([]);
  });

  it("is not kept in a stream that was made otherwise than it has to be, and says what to do", async () => {
    const prefix = freshId("loose");
    await gateway(prefix);
    const connection = await connect({ servers: nats.nodes.map(({ port }) => `127.0.0.1:${port}`) });
    try {
      const { streams } = await jetstreamManager(connection);
      // By copies that may be behind the leader.
      await streams.update(`${prefix}_state`, {
        ...(await streams.info(`${prefix}_state`)).config,
        allow_direct: true,
      });
    } finally {
      await connection.close();
    }
    await expect(gateway(prefix)).rejects.toThrow(
      new RegExp(
        `^The stream ${prefix}_state has allow_direct true, and Toolway needs false\\. .*nats stream edit ${prefix}_state.*"prefix"\\.$`,
      ),
    );
  });

  it("takes nothing for gone that the node which tells does not have yet [ack-is-durable]", async () => {
    const prefix = freshId("lag");
    const stores = await gateway(prefix);
    await using store = await stores.shared();
    for (let i = 1; i <= 3; i++) await store.map("m").put(`k${i}`, i);
    const engine = engines.at(-1) as Engine;
    const stream = await JetStreamStream.open(engine, `${prefix}_state`, {
      now: () => performance.now(),
      random: Math.random,
      sleep: () => sleep(5),
    });
    expect((await stream.last(`${prefix}.state.>`))?.message?.sequence).toBe(3);
    // The leader has five, and the node that we are told by three of them.
    let asked = 0;
    stream.last = async (subject) => {
      asked++;
      return { message: { subject, sequence: 5, body: "", atMs: 0 } };
    };
    const told: string[] = [];
    const end = stream.follow(`${prefix}.state.`, {
      restarted: () => told.push("restarted"),
      message: ({ sequence }) => told.push(String(sequence)),
      current: () => told.push("current"),
    });
    await until("what is there, and a second question", () => told.length > 4 || (told.length === 4 && asked > 2));
    expect(told).toEqual(["restarted", "1", "2", "3"]);
    await store.map("m").put("k4", 4);
    await store.map("m").put("k5", 5);
    await until("the rest", () => told.includes("current"));
    expect(told).toEqual(["restarted", "1", "2", "3", "4", "5", "current"]);
    await end();
  });

  it("refuses a former owner of a partition, whatever it knows of the next [one-owner]", async () => {
    const prefix = freshId("own");
    const [one, two] = [await gateway(prefix), await gateway(prefix)];
    await using former = await one.partition(7);
    await former.map("m").put("k", 1);
    await using next = await two.partition(7);
    await expect(former.map("m").put("k", 2)).rejects.toMatchObject({ code: "fenced" });
    expect(next.map("m").get("k")).toBe(1);
    await next.map("m").put("k", 3);
    expect(next.map("m").get("k")).toBe(3);
  });

  it("loses nothing that was acknowledged, and makes nothing twice, when the server is killed under writes [ack-is-durable] [compare-and-set]", async () => {
    const prefix = freshId("kill");
    const stores = await gateway(prefix);
    await using shared = await stores.shared();
    await using owned = await stores.partition(1);
    const counter = shared.shared<number>("n");
    await counter.create("n", 0);
    let isOver = false;
    let steps = 0;
    const unknown = { steps: 0, entries: 0 };
    const isUnknown = (error: unknown) => {
      expect(["unknown", "away"]).toContain((error as { code?: string }).code);
      return (error as { code?: string }).code === "unknown";
    };
    const count = async () => {
      while (!isOver) {
        const now = counter.read("n");
        try {
          if ((await counter.update("n", (now?.value ?? 0) + 1, now?.revision ?? 0)) !== undefined) steps++;
        } catch (error) {
          if (isUnknown(error)) unknown.steps++;
          await sleep(5);
        }
      }
    };
    const appended: number[] = [];
    const append = async () => {
      for (let i = 0; !isOver; i++) {
        try {
          await owned.log("l").append(String(i));
          appended.push(i);
        } catch (error) {
          if (isUnknown(error)) unknown.entries++;
          await sleep(5);
        }
      }
    };
    const writers = [count(), append()];
    await until("some writes", () => steps > 20 && appended.length > 20);
    await nats.nodes[0]?.kill();
    nats.nodes[0]?.start();
    await nats.ready();
    const [stepsBefore, entriesBefore] = [steps, appended.length];
    await until("writes after it", () => steps > stepsBefore + 20 && appended.length > entriesBefore + 20);
    isOver = true;
    await Promise.all(writers);
    await using again = await (await gateway(prefix)).shared();
    const counted = again.map<number>("n").get("n") ?? 0;
    expect(counted).toBeGreaterThanOrEqual(steps);
    expect(counted).toBeLessThanOrEqual(steps + unknown.steps);
    await using next = await (await gateway(prefix)).partition(1);
    const kept = [...next.log("l").entries()].map(([, json]) => Number(json));
    expect(new Set(kept).size).toBe(kept.length);
    expect(kept).toEqual(kept.toSorted((a, b) => a - b));
    expect(appended.filter((one) => !kept.includes(one))).toEqual([]);
    expect(kept.length).toBeLessThanOrEqual(appended.length + unknown.entries);
  });
});
