// A plain balancer before three gateways on one engine: each request of a session goes to the next of them, and agents do not
// notice.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Agent, connect, ERAS, type Era } from "../e2e/eras.js";
import { begin, type EngineGateway, post, startOnEngine } from "../fixtures/engine-gateways.js";
import { entry } from "../fixtures/gateways.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";
import { hearAndTakeBack } from "./progress-and-cancel.js";

const title =
  natsPrograms.length === 0 ? `a session that is split, ${NO_NATS}` : "a session that is split over gateways";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  let gateways: EngineGateway[] = [];
  /** The next gateway for each request, whatever it is. */
  function balanced(): typeof fetch {
    let next = 0;
    return (input, init) => {
      const { url } = gateways[next++ % gateways.length] as EngineGateway;
      const asked = new URL(input instanceof Request ? input.url : input);
      return fetch(new URL(asked.pathname + asked.search, url), init);
    };
  }

  async function agentOf(era: Era): Promise<Agent> {
    const [first] = gateways as [EngineGateway];
    const agent = await connect(era, first.url, { token: first.gateway.token, fetch: balanced() });
    await agent.waitFor("elicit", "sleep", "count");
    return agent;
  }

  beforeAll(async () => {
    nats = await startNats();
    const mcpServers = {
      asker: entry("asker"),
      slow: entry("slow"),
      resources: entry("resources"),
      stateful: entry("stateful", ["--fill"], { isolation: "session" }),
    };
    const config = { names: "plain", mcpServers } as const;
    gateways = await Promise.all([0, 1, 2].map(() => startOnEngine(nats, config)));
    await until("each gateway to know the others", () =>
      gateways.every(({ gateway }) => gateway.state.engine?.partitions.gateways().length === 3),
    );
  });
  afterAll(async () => {
    await Promise.all(gateways.map(({ gateway }) => gateway.close({ drainMs: 0 })));
  });

  it.each(ERAS)("answers of a %s agent to questions reach the gateway that asked [session-split]", async (era) => {
    const agent = await agentOf(era);
    for (let n = 0; n < 4; n++) expect(await agent.text("elicit", { what: `q${n}` })).toContain(`${era}: q${n}`);
    expect(await agent.text("ask_in_turn", { count: 3 })).toContain(era);
  });

  it.each(ERAS)(
    "a call of a %s agent that is taken back ends at its server, and progress comes [session-split]",
    async (era) => {
      const agent = await agentOf(era);
      await hearAndTakeBack(agent);
    },
  );

  it.each(ERAS)(
    "a %s agent that subscribed is told on its stream, wherever that and its requests are [session-split]",
    async (era) => {
      const agent = await agentOf(era);
      await agent.waitFor("touch");
      const listening = await agent.listen({ uris: ["fixture://one"] });
      // Each gateway has a process of this server of its own, and one of three calls is made where the agent listens.
      await until("the notification", async () => {
        await agent.call("touch", { uri: "fixture://one" });
        return agent.notified.some(({ method }) => method === "notifications/resources/updated");
      });
      await listening.close();
    },
  );

  it.each(ERAS)("a process that a %s session has for itself is one, at its home [session-split]", async (era) => {
    const agent = await agentOf(era);
    const counts = [];
    for (let n = 0; n < 6; n++) counts.push(JSON.parse(await agent.text("count")) as { count: number; pid: number });
    expect(counts.map(({ count }) => count)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(new Set(counts.map(({ pid }) => pid)).size).toBe(1);
  });

  it("a request with whatever headers, and an answer that is large, are passed on and end no gateway [session-split]", async () => {
    const [first, second] = gateways as [EngineGateway, EngineGateway];
    const { token } = first.gateway;
    const session = await begin(first, token ?? "");
    const call = (name: string, args: object) => ({
      id: name,
      method: "tools/call",
      params: { name, arguments: args },
    });
    await until("the tools at the second gateway", async () =>
      (await post(second, token ?? "", { id: 1, method: "tools/list" }, session)).text.includes("fill"),
    );
    const odd = { ...session, trailer: "x-sum", te: "trailers", "x-unknown": "kept" };
    const counted = await post(second, token ?? "", call("count", {}), odd);
    expect([counted.status, counted.text]).toEqual([200, expect.stringContaining("count")]);
    const large = await post(second, token ?? "", call("fill", { characters: 2_000_000 }), session);
    expect([large.status, large.text.length > 2_000_000]).toEqual([200, true]);
  });
});
