// A budget of several gateways on one engine, under load at all of them at once.

import { describe, expect, it } from "vitest";
import { largestSlice } from "../../src/policy/slices.js";
import { begin, type EngineGateway, post, startOnEngine, tokenAtAll } from "../fixtures/engine-gateways.js";
import { entry } from "../fixtures/gateways.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `a budget over gateways, ${NO_NATS}` : "a budget over gateways";
const CALLS = 1_000;
/** Longer than any run: nothing is given back meanwhile. */
const HOUR_MS = 3_600_000;
const AT_ONCE = 8;

describe.skipIf(natsPrograms.length === 0)(title, () => {
  it("of 1,000 calls lets through 1,000 and at most a slice a gateway, of three under load [budget-slices]", async () => {
    const nats = await startNats();
    const config = {
      mcpServers: { stateful: entry("stateful") },
      roles: { frugal: { budget: { calls: CALLS, windowMs: HOUR_MS } } },
    };
    const gateways: EngineGateway[] = [];
    for (let n = 0; n < 3; n++) gateways.push(await startOnEngine(nats, config));
    try {
      for (const { gateway } of gateways) await gateway.servers.get("stateful")?.firstTry;
      const [first] = gateways as [EngineGateway];
      const token = await tokenAtAll(gateways, { id: "worker", role: "frugal" });
      const name = (await first.gateway.tools()).find(({ ownName }) => ownName === "count")?.name;
      const call = { id: 1, method: "tools/call", params: { name, arguments: {} } };
      let made = 0;
      let refused = "";
      const unanswered: string[] = [];
      const load = async (one: EngineGateway, headers: Record<string, string>): Promise<void> => {
        for (;;) {
          const { text } = await post(one, token, call, headers);
          if (text.includes('"isUnanswered"')) unanswered.push(text);
          if (text.includes('"error"')) {
            refused = text;
            return;
          }
          made++;
        }
      };
      await Promise.all(
        gateways.map(async (one) => {
          const headers = await begin(one, token);
          await Promise.all(Array.from({ length: AT_ONCE }, () => load(one, headers)));
        }),
      );
      console.info(`a budget of ${CALLS} over 3 gateways let through ${made}`);
      expect(refused).toContain('"fault":"budget"');
      expect(refused).toContain(`${CALLS} calls in 3600 s`);
      // The engine was there all the time.
      expect(unanswered).toEqual([]);
      expect(made).toBeLessThanOrEqual(CALLS + 3 * largestSlice(CALLS, 3));
      expect(made).toBeGreaterThanOrEqual(CALLS - 3 * largestSlice(CALLS, 3));
      // What one of them was granted and did not use comes back, and is another's.
      const headers = await begin(first, token);
      await until("the last call", async () => {
        const { text } = await post(first, token, call, headers);
        if (!text.includes('"error"')) made++;
        return made >= CALLS;
      });
      expect(made).toBe(CALLS);
    } finally {
      await Promise.all(gateways.map(({ gateway }) => gateway.close({ drainMs: 0 })));
    }
    // A machine that is busy with other tests takes a minute for it.
  }, 300_000);
});
