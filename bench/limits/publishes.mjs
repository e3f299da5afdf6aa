// The limit for writes that an engine keeps: so many writers that each publish as often as a gateway does for one write, to one
// stream of a NATS server, and wait for each acknowledgement. No call, key, lane, seal or receipt. It is its own load, told
// what to do by IPC as bench/mailbox-load.mjs is.

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { serveRounds } from "../mailbox-load.mjs";

/** About as many bytes as a sealed commit of the outbox has. */
const BODY = "x".repeat(1_200);
const STREAM = "bare";

let client;
let operations;
let next = 0;

serveRounds({
  open: async (message) => {
    ({ operations } = message);
    const connection = await connect({ servers: message.address });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: STREAM, subjects: [`${STREAM}.*`], num_replicas: 1 });
    client = jetstream(connection);
  },
  worker: async (_job, n) => ({
    async once() {
      for (let i = 0; i < operations; i++) {
        const msgID = String(++next);
        await client.publish(`${STREAM}.${n}`, BODY, { msgID, expect: { streamName: STREAM } });
      }
    },
    close() {},
  }),
});
