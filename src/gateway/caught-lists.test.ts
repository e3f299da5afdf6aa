// Which lists count as caught, where a server behind the gateway is away: those alone that had its tools for whoever asked.

import { afterAll, afterEach, expect, it, vi } from "vitest";
import { Agent } from "../../test/fixtures/agent.js";
import { closeGateways, listed, start } from "../../test/fixtures/gateways.js";
import { startScripted } from "../../test/fixtures/scripted-mcp.js";
import { systemClock } from "../runtime/clock.js";

/** Two busy cores reconnect to a server in a second or two. */
const SOON = { timeout: 60_000, interval: 20 };

const closing: (() => void)[] = [];
afterEach(closeGateways);
afterAll(() => {
  for (const close of closing) close();
});

const answer = () => ({ result: { content: [] } });

it("a list counts as caught where its agent was given tools of the server that is away, not by another path or role [calls-recorded]", async () => {
  const away = await startScripted([{ name: "read" }, { name: "hidden" }], answer);
  const healthy = await startScripted([{ name: "write" }], answer);
  closing.push(away.close, healthy.close);
  const gateway = await start({
    mcpServers: { away: { ...away.entry, tools: { hidden: { hide: true } } }, healthy: healthy.entry },
    roles: { dev: {}, blind: { deny: ["away"] }, hopeful: { allow: ["healthy", "away/hidden"] } },
  });
  await listed(gateway, "away", "healthy");
  away.close();
  const dev = new Agent(gateway, "ada", "dev");
  const isFailing = () => gateway.servers.supervised("away")?.isFailing;
  await vi.waitFor(async () => {
    await dev.call("away__read").answer();
    expect(isFailing()).toBe(true);
  }, SOON);
  const { records, caught } = gateway.diagnostics;
  const counted = () => {
    records.flush();
    return caught.read(systemClock.wall()).counts["menu"] ?? 0;
  };
  const asks = async (role: string, scope?: string) => {
    const before = counted();
    const agent = new Agent(gateway, `${role} at ${scope}`, role, scope);
    const { result } = await agent.send("tools/list").answer();
    agent.close();
    const names = (result as { tools: { name: string }[] }).tools.map(({ name }) => name);
    return { names, caught: counted() - before, isFailing: isFailing() };
  };
  // For a moment it is being tried again, and nobody knows yet: then it is asked once more.
  const expects = async (names: string[], caught: number, role: string, scope?: string) =>
    expect.poll(() => asks(role, scope), SOON).toEqual({ names, caught, isFailing: true });
  await expects(["away__read", "healthy__write"], 1, "dev");
  await expects(["read"], 1, "dev", "away");
  await expects(["write"], 0, "dev", "healthy");
  await expects(["healthy__write"], 0, "blind");
  await expects(["healthy__write"], 0, "hopeful");
});
