// Our executor under the suite that the real exec-server passes.

import { Destinations } from "../../src/executor/allow/destinations.js";
import { createExecutor } from "../../src/executor/server/executor.js";
import { listenForClients } from "../../src/executor/server/listener.js";
import { wireSuite } from "./wire-suite.js";

wireSuite("our executor", async () => {
  const executor = createExecutor({ destinations: Destinations.parse(["127.0.0.1", "localhost"]) });
  const token = "the-token-of-this-test";
  const listener = await listenForClients(executor, { host: "127.0.0.1", port: 0, token });
  return {
    url: listener.url,
    token,
    async stop() {
      await listener.close();
      await executor.close();
    },
  };
});
