// The scenarios of eras-notifications for agents that come in by `toolway stdio`: one pipe carries all that is said to them, and
// all that they take back. An agent uses one server after another, since each agent here is a process.

import { beforeAll, describe, expect, it } from "vitest";
import { type Agent, connect, ERAS, type Era, fourServers, SERVERS } from "./eras.js";
import { type Gateway, sleep, startGateway, until } from "./harness.js";
import { freshId } from "./operator.js";

/** Long enough for a notification that should not come to have come. */
const QUIET_MS = 300;

/** A gateway with this fixture four times; what comes back makes an agent on a pipe to it. */
function pipesTo(fixture: string, tool: string, argsOf?: (server: string) => readonly string[]) {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startGateway({ names: "prefixed", mcpServers: await fourServers(fixture, {}, argsOf) });
  });
  return async (era: Era): Promise<Agent> => {
    const agent = await connect(era, gateway, { stdio: true });
    await agent.waitFor(...SERVERS.map((server) => `${server}__${tool}`));
    return agent;
  };
}

describe.each(ERAS)("to a %s agent on a pipe", (era) => {
  describe("of calls", () => {
    const open = pipesTo("slow", "sleep");

    it("progress is told as it comes [eras-meet]", async () => {
      const agent = await open(era);
      for (const server of SERVERS) {
        const seen: (string | undefined)[] = [];
        const args = { ms: 400, everyMs: 100, label: freshId(server) };
        const onprogress = ({ message }: { message?: string | undefined }) => void seen.push(message);
        await agent.call(`${server}__sleep`, args, { onprogress });
        expect(seen).toEqual([100, 200, 300].map((ms) => `${args.label} ${ms}`));
      }
    });

    it("those that are taken back end at the server [eras-meet]", async () => {
      const agent = await open(era);
      for (const server of SERVERS) {
        const label = freshId(server);
        const controller = new AbortController();
        const call = agent.call(`${server}__sleep`, { ms: 20_000, label }, { signal: controller.signal });
        const refused = expect(call).rejects.toThrow();
        const lists = async (tool: string) => (await agent.text(`${server}__${tool}`)).includes(label);
        await until(`the call to start at ${server}`, () => lists("started"));
        controller.abort("second thoughts");
        await refused;
        await until(`${server} to hear of it`, () => lists("cancelled"));
      }
    });
  });

  describe("of logs", () => {
    const open = pipesTo("logger", "log_all");

    it("those from its level on are told [eras-meet]", async () => {
      const agent = await open(era);
      // One era asks once for the session, the other with each request.
      if (agent.era === "legacy") await agent.client.setLoggingLevel("warning");
      for (const server of SERVERS) {
        const data = freshId(server);
        await agent.call(`${server}__log_all`, { data }, agent.era === "modern" ? { logLevel: "warning" } : {});
        const levels = () =>
          agent.notified.filter(({ params }) => params["data"] === data).map(({ params }) => params["level"]);
        await until(`the last of ${server}`, () => levels().includes("emergency"));
        expect(levels()).toEqual(["warning", "error", "critical", "alert", "emergency"]);
      }
    });
  });

  describe("of lists", () => {
    const open = pipesTo("changing", "set_tool");

    it("changes are told, and found [eras-meet]", async () => {
      const agent = await open(era);
      const listening = await agent.listen({ lists: true });
      const told = () => agent.notified.filter(({ method }) => method === "notifications/tools/list_changed").length;
      for (const server of SERVERS) {
        const name = freshId("new").replace("-", "_");
        const before = told();
        await agent.call(`${server}__set_tool`, { name, description: "new" });
        await until(`the notification of ${server}`, () => told() > before);
        await agent.waitFor(`${server}__${name}`);
        expect(await agent.text(`${server}__${name}`)).toBe(`${name}: new`);
      }
      await listening.close();
    });
  });

  describe("of resources", () => {
    const schemeOf = (server: string) => server.replace("_", "-");
    const open = pipesTo("resources", "touch", (server) => ["--scheme", schemeOf(server)]);

    it("updates of those that it subscribed to are told, and no others [eras-meet]", async () => {
      const agent = await open(era);
      const updates = () =>
        agent.notified
          .filter(({ method }) => method === "notifications/resources/updated")
          .map(({ params }) => params["uri"]);
      for (const server of SERVERS) {
        const [mine, other] = [`${schemeOf(server)}://one`, `${schemeOf(server)}://two`];
        const subscription = await agent.listen({ uris: [mine] });
        await agent.call(`${server}__touch`, { uri: mine });
        await until(`the update at ${server}`, () => updates().includes(mine));
        await agent.call(`${server}__touch`, { uri: other });
        await sleep(QUIET_MS);
        expect(updates()).not.toContain(other);
        await subscription.close();
      }
    });
  });
});
