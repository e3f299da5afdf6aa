// A cluster of real nats-servers, and the connection of a gateway to it.

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { expect, it } from "vitest";
import { openEngine } from "../../src/store/nats/connection.js";
import { type NatsNode, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

it("[engine-away] the loss of the node that one is connected to, leader of the stream, is passed over by another node", async (context) => {
  if (natsPrograms.length === 0) return context.skip(NO_NATS);
  const nats = await startNats({ nodes: 3 });
  const settingsOf = (nodes: readonly NatsNode[]) =>
    ({
      nodes: nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
      tls: undefined,
      auth: undefined,
      key: { from: "env", name: "KEY" },
      replicas: 3,
      prefix: "tw",
      monitor: undefined,
    }) as const;
  {
    await using first = await openEngine(settingsOf(nats.nodes), { env: {} });
    // The nodes may still be choosing who leads them; the same stream is added once, however often it is asked for.
    await until("a stream", async () => {
      const { streams } = await jetstreamManager(first.connection, { timeout: 20_000 });
      return streams.add({ name: "kept", subjects: ["kept.*"], num_replicas: 3 });
    });
  }
  const leader = await nats.streamLeader("kept");
  // The others are known by what the cluster says.
  await using engine = await openEngine(settingsOf([leader]), { env: {} });
  const messages = jetstream(engine.connection);
  const publish = (text: string) =>
    until("an acknowledged message", () => engine.ask(1, () => messages.publish("kept.one", text, { msgID: text })));
  await publish("1");
  await leader.kill();
  expect((await nats.streamLeader("kept")).name).not.toBe(leader.name);
  await publish("2");
  expect(engine.status.state).toBe("connected");
  expect(engine.status.node).not.toBe(`127.0.0.1:${leader.port}`);
  const manager = await until("a manager", () => jetstreamManager(engine.connection, { timeout: 20_000 }));
  for (const seq of [1, 2]) {
    const found = await until("the message", () => manager.streams.getMessage("kept", { seq }));
    expect(found?.string()).toBe(String(seq));
  }
});
