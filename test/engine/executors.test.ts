// An executor that dialled in at one gateway on an engine serves the agents of another.

import { randomUUID } from "node:crypto";
import { connect, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Destinations } from "../../src/executor/allow/destinations.js";
import { createExecutor } from "../../src/executor/server/executor.js";
import { startHttpFixture } from "../e2e/harness.js";
import { callTool } from "../e2e/operator.js";
import { begin, type EngineGateway, post, startOnEngine } from "../fixtures/engine-gateways.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { dialOut } from "../fixtures/via.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `an executor elsewhere, ${NO_NATS}` : "an executor at another gateway";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  let gateways: EngineGateway[] = [];
  let token: string;
  const ends: (() => Promise<unknown>)[] = [];
  /** Ends the executor that is at the first gateway. */
  let leaveFirst: (() => Promise<void>) | undefined;

  const dialIn = ({ url }: Pick<EngineGateway, "url">): (() => Promise<void>) => {
    const executor = createExecutor({ destinations: Destinations.parse(["127.0.0.1"]) });
    const dialled = dialOut(executor, url.replace(/^http/, "ws").replace(/\/mcp$/, "/executors/office"), token);
    const leave = async () => {
      await dialled.close();
      await executor.close();
    };
    ends.push(leave);
    return leave;
  };
  const start = async (config: object) => {
    const one = await startOnEngine(nats, config);
    ends.push(() => one.gateway.close({ drainMs: 0 }));
    return one;
  };
  const membersAt = ({ gateway }: EngineGateway) => gateway.status().executors[0]?.members ?? [];
  const states = (one: EngineGateway) => one.gateway.status().servers.map(({ state }) => state);
  const call = ({ url, gateway }: EngineGateway, tool: string, args: object = {}) =>
    callTool(url, tool, args as Record<string, unknown>, gateway.token);

  beforeAll(async () => {
    nats = await startNats();
    const slow = await startHttpFixture("slow");
    const stateful = await startHttpFixture("stateful", ["--fill"]);
    const mcpServers = {
      slow: { type: "http", url: slow.url, via: "office" },
      stateful: { type: "http", url: stateful.url, via: "office" },
    };
    const config = { names: "plain", mcpServers, executors: { office: {} } };
    const [a, b] = [await start(config), await start(config)];
    token = await a.gateway.state.tokens.create({ id: "office", role: "executor" }, Date.now());
    gateways = [a, b];
  });
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
  });

  it("serves agents of both, with large answers and streams, and is shown with its gateway [executor-elsewhere]", async () => {
    const [a, b] = gateways as [EngineGateway, EngineGateway];
    // What an earlier try of this test has left.
    await leaveFirst?.();
    await until("nobody to be there", () => membersAt(b).length === 0);
    leaveFirst = dialIn(a);
    await until("the servers at both", () => [a, b].every((one) => states(one).every((state) => state === "ready")));
    expect(membersAt(b)).toMatchObject([
      { where: `gateway ${a.gateway.state.engine?.self}`, state: "ready", extended: true },
    ]);
    expect(membersAt(a).map(({ where }) => where)).not.toContainEqual(expect.stringContaining("gateway "));
    const filled = await call(b, "fill", { characters: 3_000_000 });
    expect(JSON.stringify(filled).length).toBeGreaterThan(3_000_000);
    // Many at once, each on a stream of its own.
    const texts = await Promise.all(
      Array.from({ length: 40 }, (_, n) => call(b, "sleep", { ms: 10, label: `call-${n}` })),
    );
    expect(texts.filter(({ error }) => error !== undefined)).toEqual([]);
    // Progress comes as it happens.
    const session = await begin(b, b.gateway.token);
    const params = {
      name: "sleep",
      arguments: { ms: 300, everyMs: 40, label: "steady" },
      _meta: { progressToken: "p" },
    };
    const { text } = await post(b, b.gateway.token, { id: 5, method: "tools/call", params }, session);
    expect(text.match(/notifications\/progress/g)?.length).toBeGreaterThan(1);
    expect(membersAt(b)).toMatchObject([{ inFlight: expect.any(Number) }]);
  });

  it("is left for one that is here while there is one, and known to a gateway that comes later [executor-elsewhere]", async () => {
    const [, b] = gateways as [EngineGateway, EngineGateway];
    // One that is here is taken in place of one that is elsewhere.
    const leave = dialIn(b);
    await until("its own", () =>
      membersAt(b).some(({ where, state }) => !where.startsWith("gateway") && state === "ready"),
    );
    expect((await call(b, "sleep", { ms: 1, label: "own" })).error).toBeUndefined();
    await leave();
    await until("its end", () => membersAt(b).length === 1);
    expect((await call(b, "sleep", { ms: 1, label: "elsewhere again" })).error).toBeUndefined();
    const third = await start({ mcpServers: {}, executors: { office: {}, lab: {} } });
    await until("the executor at the third", () => membersAt(third).length === 1);
  });

  it("is told as unknown to whoever waits for it when its gateway goes, and one that comes elsewhere takes its place [executor-elsewhere] [unknown-is-said]", async () => {
    const [a, b] = gateways as [EngineGateway, EngineGateway];
    const waiting = call(b, "sleep", { ms: 60_000, label: "cut" });
    await until("it to be under way", () => membersAt(b).some(({ inFlight }) => inFlight > 0));
    await until("it at the server", async () => JSON.stringify(await call(b, "started")).includes("cut"));
    await a.gateway.close({ drainMs: 0 });
    expect(JSON.stringify(await waiting)).toMatch(/unknown/);
    await until("that it is missed", () => membersAt(b).length === 0);
    await until("that its servers are not there", () => states(b).every((state) => state !== "ready"));
    dialIn(b);
    await until("the servers", () => states(b).every((state) => state === "ready"));
    expect((await call(b, "sleep", { ms: 1, label: "after" })).error).toBeUndefined();
  });

  it("goes to another gateway when its own leaves: no request at the others fails, and what is under way ends [executor-elsewhere] [engine-drain]", async () => {
    const stateful = await startHttpFixture("stateful", ["--fill"]);
    const slow = await startHttpFixture("slow");
    const config = {
      names: "plain",
      mcpServers: {
        slow: { type: "http", url: slow.url, via: "office" },
        stateful: { type: "http", url: stateful.url, via: "office" },
      },
      executors: { office: {} },
    } as const;
    const own = { prefix: `leaving-${randomUUID().slice(0, 8)}` };
    const [a, b] = [await startOnEngine(nats, config, own), await startOnEngine(nats, config, own)];
    ends.push(() => b.gateway.close({ drainMs: 0 }));
    token = await a.gateway.state.tokens.create({ id: "office", role: "executor" }, Date.now());
    // A plain balancer: to the first that takes agents.
    const balancer = createServer((socket) => {
      const to = a.gateway.readiness.isLeaving ? b : a;
      const far = connect(Number(new URL(to.url).port), "127.0.0.1");
      socket.pipe(far).pipe(socket);
      for (const [one, other] of [
        [socket, far],
        [far, socket],
      ] as const) {
        one.on("error", () => {});
        one.on("close", () => other.destroy());
      }
    });
    await new Promise<void>((resolve) => balancer.listen(0, "127.0.0.1", resolve));
    ends.push(async () => balancer.close());
    dialIn({ url: `http://127.0.0.1:${(balancer.address() as { port: number }).port}/mcp` });
    await until("the servers at both", () => [a, b].every((one) => states(one).every((state) => state === "ready")));
    expect(membersAt(b)).toMatchObject([{ where: `gateway ${a.gateway.state.engine?.self}` }]);

    const long = call(b, "sleep", { ms: 3_000, label: "long" });
    await until("it at the server", async () => JSON.stringify(await call(b, "started")).includes("long"));
    let isOver = false;
    const failed: unknown[] = [];
    const steady = (async () => {
      for (let n = 0; !isOver; n++) {
        const answer = await call(b, "sleep", { ms: 5, label: `steady-${n}` });
        if (answer.error !== undefined || answer.result?.["isError"] === true) failed.push(answer);
      }
    })();
    await a.gateway.leave();
    // It is missing among those that live from here on, and has a call under way.
    await until("that it is missing", () => b.gateway.state.engine?.partitions.gateways().length === 1);
    expect(membersAt(b)).toMatchObject([{ where: `gateway ${a.gateway.state.engine?.self}`, state: "ready" }]);
    await a.gateway.close({ drainMs: 20_000 });
    await until("the executor at the other", () => membersAt(b).some(({ where }) => !where.startsWith("gateway")));
    expect((await call(b, "sleep", { ms: 1, label: "after" })).error).toBeUndefined();
    isOver = true;
    await steady;
    expect(failed).toEqual([]);
    expect(JSON.stringify((await long).result)).toContain("slept");
    await until("that it is missed", () => membersAt(b).every(({ where }) => !where.startsWith("gateway")));
  }, 60_000);
});
