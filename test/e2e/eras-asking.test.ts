// Servers' questions, between agents and servers of both eras: a live request on one side is a result of the type
// input_required on the other.

import { beforeAll, describe, expect, it } from "vitest";
import { type Agent, COMBINATIONS, connect, ERAS, fourServers, SERVERS } from "./eras.js";
import { type Gateway, sleep, startGateway } from "./harness.js";

/** Long enough for a question that should not come to have come. */
const QUIET_MS = 200;

/** Each server is spoken to in its own era, whoever the agent is. */
const eraOf = (server: string) => server.slice(0, server.indexOf("_"));

describe("questions across the eras", () => {
  let gateway: Gateway;

  beforeAll(async () => {
    // A shared legacy server over stdio cannot say whose call it asks about; these tests ask for several at once.
    const mcpServers = await fourServers("asker", { isolation: "session" });
    gateway = await startGateway({ names: "prefixed", mcpServers });
    const agent = await connect("legacy", gateway);
    await agent.waitFor(...SERVERS.map((server) => `${server}__elicit`));
  });

  async function bothAgents(): Promise<readonly Agent[]> {
    return await Promise.all(ERAS.map((era) => connect(era, gateway)));
  }

  it("an agent of each era elicits through a server of each era, all at the same time", async () => {
    const agents = await bothAgents();
    const texts = await Promise.all(
      agents.flatMap((agent) =>
        SERVERS.map((server) => agent.text(`${server}__elicit`, { what: `${agent.era} on ${server}` })),
      ),
    );
    const expected = agents.flatMap(({ era }) =>
      SERVERS.map((server) => ({ action: "accept", content: { answer: `${era}: ${era} on ${server}` } })),
    );
    expect(texts.map((text) => JSON.parse(text))).toEqual(expected);
    for (const agent of agents) expect(agent.asked).toHaveLength(SERVERS.length);
  });

  describe.each(COMBINATIONS)("between a $era agent and $server", ({ era, server }) => {
    it("the server is spoken to in its own era", async () => {
      const agent = await connect(era, gateway);
      const seen = JSON.parse(await agent.text(`${server}__whoami`)) as { era: string; envelope?: object };
      expect(seen.era).toBe(eraOf(server));
      // What a modern request says of itself would be a lie in a legacy session.
      expect(Object.keys(seen.envelope ?? {}).length > 0).toBe(eraOf(server) === "modern");
    });

    it("the server is told what it may ask", async () => {
      const agent = await connect(era, gateway);
      const seen = JSON.parse(await agent.text(`${server}__whoami`)) as { client: { capabilities: object } };
      expect(Object.keys(seen.client.capabilities)).toEqual(
        expect.arrayContaining(["elicitation", "sampling", "roots"]),
      );
    });

    it("elicitation reaches the agent, and the answer the server", async () => {
      const agent = await connect(era, gateway, { name: "ada" });
      const answer = JSON.parse(await agent.text(`${server}__elicit`, { what: "colour?" })) as object;
      expect(answer).toMatchObject({ action: "accept", content: { answer: "ada: colour?" } });
      expect(agent.asked[0]).toMatchObject({
        method: "elicitation/create",
        params: { message: "colour?", requestedSchema: { properties: { answer: { type: "string" } } } },
      });
    });

    it("sampling reaches the agent, and the answer the server", async () => {
      const agent = await connect(era, gateway, { name: "ada" });
      const answer = JSON.parse(await agent.text(`${server}__sample`, { what: "hello" })) as object;
      expect(answer).toMatchObject({ role: "assistant", content: { type: "text", text: "ada samples" } });
      expect(agent.asked[0]).toMatchObject({ method: "sampling/createMessage", params: { maxTokens: 10 } });
    });

    it("roots reach the server", async () => {
      const agent = await connect(era, gateway, { name: "ada" });
      const answer = JSON.parse(await agent.text(`${server}__roots`)) as object;
      expect(answer).toMatchObject({ roots: [{ uri: "file:///ada", name: "ada" }] });
    });

    it("several questions at once are all answered", async () => {
      const agent = await connect(era, gateway, { name: "ada" });
      const answers = JSON.parse(await agent.text(`${server}__ask_all`)) as object;
      expect(answers).toMatchObject({
        name: { content: { answer: "ada: Name?" } },
        greeting: { content: { text: "ada samples" } },
        where: { roots: [{ uri: "file:///ada" }] },
      });
      expect(new Set(agent.asked.map(({ method }) => method))).toEqual(
        new Set(["elicitation/create", "sampling/createMessage", "roots/list"]),
      );
    });

    it("several rounds, each of which knows the answers before it", async () => {
      const agent = await connect(era, gateway, { name: "a" });
      const answers = JSON.parse(await agent.text(`${server}__ask_in_turn`, { count: 3 })) as string[];
      expect(answers).toEqual(["a: 0:", "a: 1:a: 0:", "a: 2:a: 0:,a: 1:a: 0:"]);
      expect(agent.asked).toHaveLength(3);
    });

    it("an agent that cannot be asked is not asked", async () => {
      const agent = await connect(era, gateway, { capabilities: {} });
      // A legacy server is told so and makes of it what it likes; a modern one refuses by -32021.
      const outcome = await agent.call(`${server}__elicit`).then(
        (result) => ({ isError: result.isError, text: result.content[0]?.text ?? "" }),
        (error: Error & { code?: number }) => ({ isError: true, text: `${error.code} ${error.message}` }),
      );
      expect(outcome.isError).toBe(true);
      expect(outcome.text).toMatch(/elicitation/i);
      expect(agent.asked).toEqual([]);
    });

    it("a page for the user: the modern question and the legacy error become one another", async () => {
      const agent = await connect(era, gateway);
      const outcome = await agent.call(`${server}__needs_url`).then(
        (result) => ({ result }),
        (error: { code?: number; data?: unknown }) => ({ error: { code: error.code, data: error.data } }),
      );
      if (era === "legacy" && eraOf(server) === "legacy") {
        // The era's own way: the agent shows the page and calls again.
        expect(outcome).toMatchObject({
          error: { code: -32042, data: { elicitations: [{ mode: "url", url: "https://example.com/allow" }] } },
        });
        return;
      }
      expect(agent.asked[0]).toMatchObject({
        method: "elicitation/create",
        params: { mode: "url", url: "https://example.com/allow", message: "Please allow it" },
      });
      if (era === "legacy") {
        // That era names the page, and is told when the server went on.
        const { elicitationId } = agent.asked[0]?.params ?? {};
        expect(elicitationId).toEqual(expect.any(String));
        const method = "notifications/elicitation/complete";
        expect(agent.notified).toContainEqual({ method, params: { elicitationId } });
      }
    });
  });

  it.each(SERVERS)("an agent's error to a question of %s is no decision of its user's [eras-meet]", async (server) => {
    const agent = await connect("legacy", gateway, { elicitFails: "The window is gone" });
    const text = await agent.text(`${server}__elicit`, { what: "colour?" });
    // A legacy server has the error itself; a modern one cannot be told of it, and hears that nobody chose.
    if (eraOf(server) === "legacy") expect(text).toContain("The window is gone");
    else expect(JSON.parse(text)).toEqual({ action: "cancel" });
  });

  it("a modern server has no way to ask outside of a call", async () => {
    for (const agent of await bothAgents()) {
      for (const server of ["modern_http", "modern_stdio"]) {
        await agent.call(`${server}__ask_outside`, { kind: "elicit", delayMs: 0 });
        await sleep(QUIET_MS);
      }
      expect(agent.asked).toEqual([]);
    }
  });
});
