// What the status says of a server behind an executor that dials in: a real gateway, executors in this process that dial
// its endpoint, and a server as a process.

import { afterEach, expect, it, vi } from "vitest";
import { startHttpServer } from "../../test/fixtures/http-server.js";
import { dialOut } from "../../test/fixtures/via.js";
import { Destinations } from "../executor/allow/destinations.js";
import { createExecutor } from "../executor/server/executor.js";
import { createGateway, type Gateway } from "../index.js";

/** Two busy cores start a process in a second or two. */
const SOON = { timeout: 60_000, interval: 20 };

const cleanUp: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

/** An executor that may reach this, connected until what it returns is called. */
function dialIn(gateway: Gateway, allow: string): () => Promise<void> {
  const executor = createExecutor({ destinations: Destinations.parse([allow]) });
  const url = (gateway.status().endpoint ?? "").replace(/^http/, "ws").replace(/\/mcp$/, "/executors/office");
  const dialled = dialOut(executor, url);
  const leave = async (): Promise<void> => {
    await dialled.close();
    await executor.close();
  };
  cleanUp.push(leave);
  return leave;
}

it("it waits without one, is down where none reaches it, and is ready with one that does [status-true]", async () => {
  const { url } = await startHttpServer(cleanUp, "slow");
  const gateway = await createGateway(
    { mcpServers: { wiki: { url, via: "office" } }, executors: { office: { noAuth: true } } },
    { noAuth: true, env: {} },
  );
  cleanUp.push(() => gateway.close({ drainMs: 0 }));
  await gateway.listen({ host: "127.0.0.1", port: 0 });
  const wiki = () => gateway.status().servers[0];
  const waits = { state: "waiting", lastError: expect.stringMatching(/^No executor "office" is connected\./) };

  // It has begun to start, and cannot go on.
  expect(wiki()).toMatchObject(waits);

  const leave = dialIn(gateway, "127.0.0.1");
  await vi.waitFor(() => expect(wiki()).toMatchObject({ state: "ready", listsFromBefore: false }), SOON);
  expect(wiki()?.lastError).toBeUndefined();
  await leave();
  await vi.waitFor(() => expect(wiki()).toMatchObject(waits), SOON);

  const leaveOther = dialIn(gateway, "10.9.9.9");
  const refused = { state: "backoff", lastError: expect.stringContaining('Executor "office" does not reach') };
  await vi.waitFor(() => expect(wiki()).toMatchObject(refused), SOON);
  await leaveOther();

  dialIn(gateway, "127.0.0.1");
  await vi.waitFor(() => expect(wiki()).toMatchObject({ state: "ready", listsFromBefore: false }), SOON);
  expect(wiki()?.lastError).toBeUndefined();
});
