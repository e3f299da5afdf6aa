// A gateway that is taken out of use while calls are open at it: their agents go on at the other gateways, by the balancer, and what
// they say about these calls reaches it as long as it is there.

import { request } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Agent, connect, ERAS, type Era } from "../e2e/eras.js";
import { type EngineGateway, post, startOnEngine } from "../fixtures/engine-gateways.js";
import { entry } from "../fixtures/gateways.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const DRAIN_MS = 20_000;

const title = natsPrograms.length === 0 ? `a gateway that leaves, ${NO_NATS}` : "a gateway that leaves";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let leaving: EngineGateway;
  let staying: EngineGateway;
  /** Where the balancer sends the next request. */
  let at: EngineGateway;
  const balanced: typeof fetch = (input, init) => {
    const asked = new URL(input instanceof Request ? input.url : input);
    return fetch(new URL(asked.pathname + asked.search, at.url), init);
  };

  async function agentOf(era: Era): Promise<Agent> {
    const agent = await connect(era, leaving.url, { token: leaving.gateway.token, fetch: balanced });
    await agent.waitFor("asker__elicit", "slow__sleep");
    return agent;
  }

  /** It says that it leaves, and hands over; then it ends, and lets calls in flight do so first. */
  async function takeOut(isEnding: boolean): Promise<void> {
    at = staying;
    await leaving.gateway.leave();
    await until("the other to be alone", () => seenBy(staying) === 1);
    if (isEnding) void leaving.gateway.close({ drainMs: DRAIN_MS });
  }

  const seenBy = ({ gateway }: EngineGateway) => gateway.state.engine?.partitions.gateways().length;

  beforeEach(async () => {
    const nats = await startNats();
    const mcpServers = { asker: entry("asker"), slow: entry("slow"), own: entry("slow", [], { isolation: "session" }) };
    const config = { names: "prefixed", mcpServers } as const;
    [leaving, staying] = await Promise.all([startOnEngine(nats, config), startOnEngine(nats, config)]);
    at = leaving;
    await until("each to know the other", () => [leaving, staying].every((one) => seenBy(one) === 2));
  });
  afterEach(async () => {
    await Promise.all([leaving, staying].map((one) => one?.gateway.close({ drainMs: 0 })));
  });

  describe.each([
    ["has handed over", false],
    ["lets its calls end", true],
  ])("and %s", (_state, isEnding) => {
    it.each(ERAS)("is given the answer of a %s agent to what it asks [engine-drain] [session-split]", async (era) => {
      const agent = await agentOf(era);
      const answered = agent.text("asker__elicit", { what: "still there?", delayMs: 3_000 });
      await new Promise((resolve) => setTimeout(resolve, 200));
      await takeOut(isEnding);
      expect(await answered).toContain(`${era}: still there?`);
    });

    it("is told that a call is taken back [engine-drain] [session-split]", async () => {
      const agent = await agentOf("legacy");
      const abort = new AbortController();
      const gone = expect(
        agent.call("slow__sleep", { ms: 15_000, label: "long" }, { signal: abort.signal }),
      ).rejects.toThrow();
      const server = () => leaving.gateway.status().servers.find(({ name }) => name === "slow");
      await until("the call", () => server()?.inFlight === 1);
      await takeOut(isEnding);
      abort.abort();
      await gone;
      await until("its end", () => server()?.inFlight === 0, 5_000);
    });

    it("answers what was passed to it, whoever else is connected [engine-drain] [session-split]", async () => {
      const { token } = leaving.gateway;
      const session = await beginAlone(leaving, token);
      await until("the tools", async () =>
        (await post(staying, token, { id: 1, method: "tools/list" }, session)).text.includes("own__sleep"),
      );
      const params = { name: "own__sleep", arguments: { ms: 4_000, label: "passed" } };
      const passed = post(staying, token, { id: 2, method: "tools/call", params }, session);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      await takeOut(isEnding);
      expect((await passed).text).toContain("passed");
    });
  });
});

/** A session whose connection to its gateway is gone afterwards. */
function beginAlone({ url }: EngineGateway, token: string): Promise<Record<string, string>> {
  const version = "2025-11-25";
  const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: "test", version: "1" } };
  const headers = {
    authorization: `Bearer ${token}`,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
  };
  return new Promise((resolve, reject) => {
    const asked = request(url, { method: "POST", headers, agent: false }, (answer) => {
      const id = String(answer.headers["mcp-session-id"]);
      answer.resume().on("end", () => resolve({ "mcp-session-id": id, "mcp-protocol-version": version }));
    });
    asked.on("error", reject).end(JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params }));
  });
}
