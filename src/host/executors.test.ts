// A program's own servers, in a network that it cannot reach.

import { afterEach, expect, it } from "vitest";
import { startHttpServer } from "../../test/fixtures/http-server.js";
import { ConfigError } from "../config/mistakes.js";
import { Destinations } from "../executor/allow/destinations.js";
import { createExecutor } from "../executor/server/executor.js";
import { listenForClients } from "../executor/server/listener.js";
import { createHost } from "./create.js";

const TOKEN = "a-token-of-the-tests-0123456789";
const cleanUp: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

it("a host's servers are reached through the executors that it was given", async () => {
  const { url } = await startHttpServer(cleanUp, "slow");
  const executor = createExecutor({ destinations: Destinations.parse(["127.0.0.1"]) });
  const listener = await listenForClients(executor, { host: "127.0.0.1", port: 0, token: TOKEN });
  cleanUp.push(
    () => executor.close(),
    () => listener.close(),
  );
  const host = await createHost({ executors: { office: { url: listener.url, token: TOKEN } } });
  cleanUp.push(() => host.close());
  await host.spawn({ name: "wiki", url, via: "office" });
  expect(executor.status().sessions).toBe(1);
  const result = await host.call("wiki", "sleep", { ms: 1, label: "x" });
  expect(JSON.stringify(result)).toContain("label");
  expect(host.status()).toMatchObject([{ name: "wiki", via: "office", state: "ready" }]);
  await expect(host.spawn({ name: "lost", url, via: "ofice" })).rejects.toThrow(ConfigError);
});
