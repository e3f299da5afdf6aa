// Menus that follow the context, as an operator sets it and agents of both eras meet it, over a restart too.

import { beforeAll, describe, expect, it } from "vitest";
import { connect, ERAS } from "./eras.js";
import { type Gateway, startGateway, stdioFixture, until } from "./harness.js";
import { createToken, freshId, refusal, toolway } from "./operator.js";

const TOOLS_CHANGED = "notifications/tools/list_changed";

describe("the menus of a config", () => {
  let gateway: Gateway;
  const config = {
    names: "prefixed" as const,
    mcpServers: { slow: stdioFixture("slow"), crash: stdioFixture("crash") },
    menus: [{ when: { phase: "review" }, show: ["slow/start*", "crash"] }],
  };

  beforeAll(async () => {
    gateway = await startGateway(config, { auth: true });
    const token = await createToken(gateway, "first", "default");
    await (await connect("legacy", gateway, { token })).waitFor("slow__sleep", "crash__pid");
  });

  it.each(ERAS)(
    "change for a %s agent when the operator sets its context, and for nobody else [menu-narrows]",
    async (era) => {
      const id = freshId(`${era}-one`);
      const token = await createToken(gateway, id, "default");
      const agent = await connect(era, gateway, { token });
      const other = await connect(era, gateway, {
        token: await createToken(gateway, freshId(`${era}-other`), "default"),
      });
      for (const one of [agent, other]) if (one.era === "modern") await one.listen({ lists: true });
      const whole = await agent.names();
      expect(whole).toContain("slow__sleep");

      const { out } = await toolway(gateway, "context", "set", "phase=review", "repo=acme/site", "--principal", id);
      expect(out).toMatch(/phase\s+review/);
      await until("the agent to be told", () => agent.notified.some(({ method }) => method === TOOLS_CHANGED));
      const menu = await agent.names();
      expect(menu).toContain("slow__started");
      expect(menu).toContain("crash__pid");
      expect(menu).not.toContain("slow__sleep");
      const shown = await toolway(gateway, "tools", "--as", id, "--json");
      const all = (JSON.parse(shown.out) as { name: string }[]).map(({ name }) => name);
      expect(new Set(all)).toEqual(new Set(menu));
      const { message } = await refusal(gateway.url, "slow__sleep", {}, token);
      expect(message).toContain('menus[0] (phase is "review") shows other tools only');

      await toolway(gateway, "context", "unset", "phase", "--principal", id);
      await until("the whole list", async () => (await agent.names()).length === whole.length);
      expect(other.notified.filter(({ method }) => method === TOOLS_CHANGED)).toEqual([]);
      expect(await other.names()).toEqual(whole);
    },
  );

  it("are the same after a restart of the gateway, and a principal that there is not is named", async () => {
    const token = await createToken(gateway, "kept", "default");
    await toolway(gateway, "context", "set", "phase=review", "--principal", "kept");
    await gateway.stop();
    const again = await gateway.again();
    const agent = await connect("legacy", again, { token });
    await agent.waitFor("slow__started");
    expect(await agent.names()).not.toContain("slow__sleep");
    const wrong = await toolway(again, "context", "set", "phase=x", "--principal", "kep");
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("Did you mean kept?")]);
    const shown = await toolway(again, "context", "show", "--principal", "nobody");
    expect([shown.code, shown.err]).toEqual([2, expect.stringMatching(/no principal "nobody".*toolway token list/)]);
    // Whoever comes by a mailbox has a token of its broker, and none here.
    const worker = await toolway(again, "context", "set", "phase=review", "--principal", "mailbox/worker-1");
    expect(worker.out).toMatch(/mailbox\/worker-1\s+phase\s+review/);
    const menu = await toolway(again, "tools", "--as", "mailbox/worker-1");
    expect([menu.code, menu.err]).toEqual([2, expect.stringContaining("comes from its broker")]);
  });
});
