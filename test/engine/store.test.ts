// The store of several gateways against a real nats-server: the contract, and what two gateways see of each other.

import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Store } from "../../src/contracts/store.js";
import type { NatsStores } from "../../src/store/nats/store.js";
import { openNatsStores } from "../../src/store/nats/store.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { testStoreContract } from "../fixtures/store/contract.js";
import { until } from "../fixtures/wait.js";

describe.skipIf(natsPrograms.length === 0)(
  `the store in NATS${natsPrograms.length === 0 ? `, ${NO_NATS}` : ""}`,
  () => {
    let nats: Nats;
    const connections: NatsConnection[] = [];
    let partitions = 0;

    beforeAll(async () => {
      nats = await startNats();
      await nats.ready();
    });
    afterAll(async () => {
      for (const connection of connections) await connection.close();
    });

    async function gateway(prefix = "tw"): Promise<NatsStores> {
      const connection = await connect({ servers: nats.urls.map((url) => url.replace("nats://", "")) });
      connections.push(connection);
      const engine = { connection, ask: <T>(_: number, send: (one: NatsConnection) => Promise<T>) => send(connection) };
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

    it("tells each gateway what another wrote, and lets one of them win [compare-and-set]", async () => {
      await using one = await (await gateway("two")).shared();
      await using two = await (await gateway("two")).shared();
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
      await using later = await (await gateway("two")).shared();
      expect(later.map("m").get("*")).toBe(5);
      expect([...other.map("m").entries()]).toEqual([]);
    });

    it("refuses a former owner of a partition, whatever it knows of the next [one-owner]", async () => {
      const [one, two] = [await gateway("own"), await gateway("own")];
      await using former = await one.partition(7);
      await former.map("m").put("k", 1);
      await using next = await two.partition(7);
      await expect(former.map("m").put("k", 2)).rejects.toMatchObject({ code: "fenced" });
      expect(next.map("m").get("k")).toBe(1);
      await next.map("m").put("k", 3);
      expect(next.map("m").get("k")).toBe(3);
    });
  },
);
