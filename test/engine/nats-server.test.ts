// The nats-servers that other tests build on are real ones, and do what those tests ask of them.

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, it } from "vitest";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

it("a cluster of real nats-servers keeps what it acknowledged when its leader is killed", async (context) => {
  if (natsPrograms.length === 0) return context.skip(NO_NATS);
  const nats = await startNats({ nodes: 3 });
  const connection = await connect({ servers: nats.urls.map((url) => url.slice("nats://".length)) });
  const manager = await jetstreamManager(connection, { timeout: 20_000 });
  await manager.streams.add({ name: "kept", subjects: ["kept.*"], num_replicas: 3 });
  const messages = jetstream(connection);
  await until("an acknowledged message", () => messages.publish("kept.one", "1"));

  const leader = await nats.streamLeader("kept");
  await leader.kill();
  expect(leader.running).toBe(false);
  expect((await nats.streamLeader("kept")).name).not.toBe(leader.name);
  expect((await until("the message", () => manager.streams.getMessage("kept", { seq: 1 })))?.string()).toBe("1");
  await connection.close();
  await nats.stop();
});
