// Of two gateways on one engine one runs each server for both: agents of either have the one process, with all that goes between an
// agent and a server, until it is another gateway's to run.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Agent, connect, ERAS, type Era, send } from "../e2e/eras.js";
import { begin, type EngineGateway, post, startOnEngine } from "../fixtures/engine-gateways.js";
import { entry } from "../fixtures/gateways.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";
import { hearAndTakeBack } from "./progress-and-cancel.js";

const title =
  natsPrograms.length === 0 ? `servers at one of two gateways, ${NO_NATS}` : "servers at one of two gateways";

const one = { placement: "one" };
const mcpServers = {
  asker: entry("asker", [], one),
  slow: entry("slow", [], one),
  resources: entry("resources", [], one),
  stateful: entry("stateful", ["--fill"], one),
  tasks: entry("legacy-tasks", [], one),
};
const names = Object.keys(mcpServers) as (keyof typeof mcpServers)[];

interface Counted {
  readonly count: number;
  readonly pid: number;
}

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  const open: EngineGateway[] = [];
  const statusOf = ({ gateway }: EngineGateway, server: string) =>
    gateway.status().servers.find(({ name }) => name === server);
  const isAt = (gateway: EngineGateway, server: string) => statusOf(gateway, server)?.placement?.isHere === true;
  const elsewhere = (server: string) => open.find((gateway) => !isAt(gateway, server)) as EngineGateway;
  const here = (server: string) => open.find((gateway) => isAt(gateway, server)) as EngineGateway;

  async function agentAt({ url, gateway }: EngineGateway, era: Era, tool: string): Promise<Agent> {
    const agent = await connect(era, url, { token: gateway.token });
    await agent.waitFor(tool);
    return agent;
  }
  const count = async (agent: Agent) => JSON.parse(await agent.text("count")) as Counted;

  beforeAll(async () => {
    nats = await startNats();
    const config = { names: "plain", mcpServers } as const;
    for (let n = 0; n < 2; n++) open.push(await startOnEngine(nats, config));
    const areSpread = () =>
      open.every(({ gateway }) => {
        const seen = gateway.state.engine?.partitions.gateways() ?? [];
        return seen.length === 2 && seen.every(({ partitions }) => partitions === 32);
      });
    await until("each to have half of the partitions", areSpread);
    const isReady = (gateway: EngineGateway) => names.every((name) => statusOf(gateway, name)?.state === "ready");
    await until("all servers at both", () => open.every(isReady)).catch((error: unknown) => {
      const seen = open.map((gateway) => [names.map((name) => statusOf(gateway, name)), gateway.log]);
      throw new Error(JSON.stringify(seen, null, 1), { cause: error });
    });
  });
  afterAll(async () => {
    await Promise.all(open.map(({ gateway }) => gateway.close({ drainMs: 0 })));
  });

  it("have one process for the agents of both, and status says where it is [placement-one]", async () => {
    const agents = await Promise.all(open.map((gateway) => agentAt(gateway, "legacy", "count")));
    const counted: Counted[] = [];
    for (const agent of [...agents, ...agents]) counted.push(await count(agent));
    expect(counted.map(({ count: at }) => at)).toEqual([1, 2, 3, 4]);
    expect(new Set(counted.map(({ pid }) => pid)).size).toBe(1);
    const holder = here("stateful");
    expect(statusOf(holder, "stateful")).toMatchObject({ pid: counted[0]?.pid, placement: { isHere: true } });
    const gateway = holder.gateway.state.engine?.self;
    const passed = statusOf(elsewhere("stateful"), "stateful");
    expect(passed).toMatchObject({ pid: undefined, placement: { gateway, isHere: false } });
    // The definitions are the server's own at both: a pin of the one is good at the other.
    for (const one of open) expect(statusOf(one, "stateful")?.quarantined).toBe(0);
  });

  it.each(ERAS)("ask a %s agent at the other gateway what they ask, each its own [placement-one]", async (era) => {
    const agent = await agentAt(elsewhere("asker"), era, "elicit");
    expect(await agent.text("elicit", { what: "q" })).toContain(`${era}: q`);
    expect(await agent.text("sample")).toContain(`${era} samples`);
    expect(await agent.text("ask_in_turn", { count: 3 })).toContain(era);
  });

  it("are answered by a modern agent whose retry comes to any gateway, the one that runs them included [placement-one] [session-split]", async () => {
    const [first, second] = [elsewhere("asker"), here("asker")];
    const headers = { authorization: `Bearer ${first.gateway.token}` };
    const call = (at: EngineGateway, more: object) =>
      send(at.url, { method: "tools/call", params: { name: "elicit", arguments: { what: "q" }, ...more }, headers });
    const { result } = (await call(first, {})).reply;
    const { requestState, inputRequests } = result as { requestState: string; inputRequests: object };
    const answer = { action: "accept", content: { answer: "an answer" } };
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer]));
    const { reply } = await call(second, { requestState, inputResponses });
    expect(JSON.stringify(reply.result)).toContain("an answer");
  });

  it("never ask one agent what the call of another made them ask [placement-one]", async () => {
    const { url, gateway } = elsewhere("asker");
    const [ada, bob] = await Promise.all(
      ["ada", "bob"].map((name) => connect("legacy", url, { token: gateway.token, name })),
    );
    const asked = await Promise.all([
      ada?.text("elicit", { what: "a", delayMs: 200 }),
      bob?.text("elicit", { what: "b", delayMs: 1_500 }),
    ]);
    // A legacy child does not say whose call makes it ask: while two sessions are calling, neither is asked.
    expect(asked[0]).not.toContain("bob");
    expect(asked[1]).toContain("bob: b");
  });

  it.each(ERAS)(
    "tell a %s agent at the other gateway of progress, and hear what it takes back [placement-one]",
    async (era) => {
      const agent = await agentAt(elsewhere("slow"), era, "sleep");
      await hearAndTakeBack(agent);
    },
  );

  it("tell agents of both what they subscribed to, and one that leaves takes nothing from the others [placement-one]", async () => {
    const agents = await Promise.all(open.map((gateway) => agentAt(gateway, "legacy", "touch")));
    const uri = "fixture://one";
    const listening = await Promise.all(agents.map((agent) => agent.listen({ uris: [uri] })));
    const updates = (agent: Agent) =>
      agent.notified.filter(({ method }) => method === "notifications/resources/updated").length;
    await agents[0]?.call("touch", { uri });
    await until("both to be told", () => agents.every((agent) => updates(agent) > 0));
    const [first, second] = agents as [Agent, Agent];
    await listening[0]?.close();
    const before = updates(second);
    await first.call("touch", { uri });
    await until("the one that stays to be told", () => updates(second) > before);
    await listening[1]?.close();
    await first.call("add", { uri: "fixture://late" });
    await until("the new list at both", async () => {
      const lists = await Promise.all(agents.map(({ client }) => client.listResources()));
      return lists.every(({ resources }) => resources.some((one) => one.uri === "fixture://late"));
    });
  });

  it("tell the owner of a task at the other gateway of its state, under the id that it knows, and nobody else [placement-one] [tasks-apart]", async () => {
    const hearing = new AbortController();
    const heard = async (at: EngineGateway, token: string) => {
      const session = await begin(at, token);
      const text: string[] = [];
      const headers = { ...session, authorization: `Bearer ${token}`, accept: "text/event-stream" };
      const stream = await fetch(at.url, { headers, signal: hearing.signal });
      void (async () => {
        for await (const chunk of stream.body ?? []) text.push(Buffer.from(chunk).toString());
      })().catch(() => {});
      return { session, text: () => text.join("") };
    };
    const params = { name: "announce", arguments: {}, task: { ttl: 60_000 } };
    for (const at of [elsewhere("tasks"), here("tasks")]) {
      const { token = "", state } = at.gateway;
      const id = `not-the-owner-${isAt(at, "tasks")}`;
      const other = await heard(at, await state.tokens.create({ id, role: "default" }, Date.now()));
      const owner = await heard(at, token);
      const { text } = await post(at, token, { id: 1, method: "tools/call", params }, owner.session);
      const { result } = JSON.parse(text.replace(/^.*?data: /s, "")) as { result: { task: { taskId: string } } };
      await until("the owner to be told", () => owner.text().includes(result.task.taskId));
      expect(owner.text()).toContain('"notifications/tasks/status"');
      expect(other.text()).not.toContain("notifications/tasks/status");
    }
    hearing.abort();
  });

  it("answer a legacy agent at the other gateway as one at their own, and a modern one in its era [placement-one] [eras-meet]", async () => {
    const requests = [
      { method: "tools/call", params: { name: "subscriptions", arguments: {} } },
      { method: "resources/read", params: { uri: "fixture://two" } },
    ];
    const answersAt = async (at: EngineGateway) => {
      const { token = "" } = at.gateway;
      const session = await begin(at, token);
      const answers: Record<string, unknown>[] = [];
      for (const request of requests) {
        const { text } = await post(at, token, { id: 1, ...request }, session);
        answers.push((JSON.parse(text.replace(/^.*?data: /s, "")) as { result: Record<string, unknown> }).result);
      }
      return answers;
    };
    const passed = await answersAt(elsewhere("resources"));
    expect(passed).toEqual(await answersAt(here("resources")));
    for (const result of passed) expect(result).not.toHaveProperty("resultType");
    const { url, gateway } = elsewhere("resources");
    const headers = { authorization: `Bearer ${gateway.token}` };
    for (const request of requests) {
      const { reply } = await send(url, { ...request, headers });
      expect(reply.result).toMatchObject({ resultType: "complete" });
    }
  });

  it("give back large results whole [placement-one]", async () => {
    const agent = await agentAt(elsewhere("stateful"), "modern", "fill");
    expect(await agent.text("fill", { characters: 3_000_000 })).toBe("x".repeat(3_000_000));
  });

  it("go to the other where their gateway hands over, and no call is lost, made twice or told as unknown that was not begun [placement-one] [takeover] [unknown-is-said]", async () => {
    const holder = here("stateful");
    const other = elsewhere("stateful");
    const agents = await Promise.all(Array.from({ length: 8 }, (_, n) => agentAt(other, ERAS[n % 2] as Era, "count")));
    const { pid } = await count(agents[0] as Agent);
    const long = agents[0]?.call("sleep", { ms: 300, label: "while it leaves" });
    const leaving = holder.gateway.close({ drainMs: 5_000 });
    // What is answered at once has ended before the process does: what is told as unknown was never begun.
    const during: Counted[] = [];
    const hasMoved = () => during.some((one) => one.pid !== pid);
    const going = agents.map(async (agent) => {
      while (!hasMoved()) during.push(await count(agent));
    });
    await Promise.all(going);
    await leaving;
    await long?.catch((error: unknown) => expect(String(error)).toContain("unknown"));
    const after = await count(agents[0] as Agent);
    expect(isAt(other, "stateful")).toBe(true);
    // None was made twice: each process counted its own without a gap.
    const all = [...during, after];
    for (const one of new Set(all.map((seen) => seen.pid))) {
      const counts = all.filter((seen) => seen.pid === one).map((seen) => seen.count);
      const first = Math.min(...counts);
      expect(counts.sort((a, b) => a - b)).toEqual(counts.map((_, at) => first + at));
    }
    expect(all.filter((seen) => seen.pid === after.pid && seen.count === 1)).toHaveLength(1);
    expect(() => process.kill(pid, 0)).toThrow();
  });
});
