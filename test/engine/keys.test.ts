// The engine's key: a gateway that was given another does not start, and says so; a new one is added first and used later.

import { describe, expect, it } from "vitest";
import { makeEngineKey, readEngineKeys } from "../../src/gateway/engine/keys.js";
import { type Gateway, startGateway, stdioFixture } from "../e2e/harness.js";
import { callTool, hasTool } from "../e2e/operator.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `the engine's key, ${NO_NATS}` : "the engine's key";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  it("is changed without a gap, and a gateway that lacks the one in use says which that is and ends [engine-sealed] [told-why]", async () => {
    const nats = await startNats();
    const [first, second] = [makeEngineKey(), makeEngineKey()];
    const idOf = (key: string) => readEngineKeys(key, "the test")[0].id;
    const config = {
      mcpServers: { slow: stdioFixture("slow") },
      engine: { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 1 },
    };
    const startWith = (...keys: string[]) => startGateway(config, { env: { ENGINE_KEY: keys.join("\n") } });
    const serves = async (one: Gateway) => {
      await until("its tools", () => hasTool(one.url, "sleep"));
      expect((await callTool(one.url, "sleep", { ms: 1 })).error).toBeUndefined();
    };
    /** Said in a line, and not as a crash, which shows where it was thrown. */
    const refuses = async (given: string, inUse: string) => {
      const said = await startWith(given).then(String, ({ message }: Error) => message);
      expect(said).toMatch(
        new RegExp(
          `^toolway: What is kept in the engine is sealed under its key ${idOf(inUse)}, .* given ${idOf(given)}`,
          "m",
        ),
      );
      expect(said).not.toMatch(/^ +at /m);
    };

    const old = await startWith(first);
    await refuses(second, first);
    const both = await startWith(first, second);
    const changed = await startWith(second, first);
    for (const one of [old, both, changed]) await serves(one);
    const next = await startWith(second);
    await serves(next);
    await refuses(first, second);
  }, 120_000);
});
