// Real SDK clients behind a small TCP balancer before three gateways on one engine; each gateway is killed in turn. The balancer
// knows nothing of HTTP: each connection goes to the next gateway that takes one.

import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { type ClientV1, connectV1, connectV2 } from "../e2e/clients.js";
import {
  type Gateway,
  sleep,
  startGateway,
  startHttpFixture,
  stdioFixture,
  temporaryDirectory,
  until,
} from "../e2e/harness.js";
import { hasTool } from "../e2e/operator.js";
import { effectsIn } from "../fixtures/ledger.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { full } from "./length.js";
import { linux, report } from "./measure.js";

/** One after the other: each of the three four times. */
const KILLS = 12;
const WRITES_BETWEEN = 40;

const title =
  natsPrograms.length === 0 ? `a balancer, ${NO_NATS}` : "a balancer before gateways that are killed in turn";

interface Answer {
  readonly structuredContent?: { readonly receipt?: string; readonly state?: string; readonly title?: string };
  readonly isError?: boolean;
}

/** Each connection goes to the next that takes one; one that is gone is passed over. */
async function balance(gateways: () => readonly Gateway[]): Promise<{ url: string; server: Server }> {
  let next = 0;
  const open = new Set<Socket>();
  const server = createServer((agent) => {
    open.add(agent);
    agent.on("error", () => agent.destroy()).on("close", () => open.delete(agent));
    const dial = (triesLeft: number): void => {
      const all = gateways();
      const { port } = all[next++ % all.length] as Gateway;
      const gateway = connect(port, "127.0.0.1");
      let isThere = false;
      gateway.on("connect", () => {
        isThere = true;
        agent.pipe(gateway).pipe(agent);
        agent.on("close", () => gateway.destroy());
      });
      gateway.on("error", () => {
        if (!isThere && triesLeft > 0) dial(triesLeft - 1);
        else agent.destroy();
      });
      gateway.on("close", () => isThere && agent.destroy());
    };
    dial(2);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = server.close.bind(server);
  server.close = (done) => {
    for (const one of open) one.destroy();
    return close(done);
  };
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}/mcp`, server };
}

// In the full run alone: it takes long, and test/engine and engine-outbox show the parts of it in a short time.
describe.skipIf(natsPrograms.length === 0 || !linux || !full)(title, () => {
  const ends: (() => unknown)[] = [];
  afterAll(() => {
    for (const end of ends) end();
  });

  it("ends no session of SDK v1 or v2, delivers what was queued and finds every receipt [session-split] [engine-outbox] [ack-is-durable] [no-double-effect]", async () => {
    const nats = await startNats();
    const ledger = join(await temporaryDirectory(), "ledger.jsonl");
    let server = await startHttpFixture("tracker", ["--ledger", ledger]);
    const env = { ...process.env, ENGINE_KEY: makeEngineKey() } as Record<string, string>;
    const engine = { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 1 };
    const outbox = { lane: false, key: "arguments.request_id" };
    const often = { restarts: { max: 1_000 }, breaker: { failures: 1_000 } };
    const tracker = { ...server.entry, ...often, tools: { create_issue: { outbox } } };
    const config = { engine, mcpServers: { tracker, slow: stdioFixture("slow") } };
    const gateways = await Promise.all([0, 1, 2].map(() => startGateway(config, { env })));
    for (const { url } of gateways) {
      await until("the tools", async () => (await hasTool(url, "create_issue")) && hasTool(url, "sleep"));
    }
    const balancer = await balance(() => gateways);
    ends.push(() => balancer.server.close());
    const auto = { capabilities: {}, versionNegotiation: { mode: "auto" } } as const;
    const clients = [
      await connectV1(balancer.url),
      (await connectV2(balancer.url)) as unknown as ClientV1,
      (await connectV2(balancer.url, auto)) as unknown as ClientV1,
    ];
    const sessions = clients.map(({ transport }) => transport?.sessionId);
    expect(sessions.filter((one) => one !== undefined)).toHaveLength(2);

    let cut = 0;
    /** As an agent does whose connection was cut: what is kept, under its key, and what only reads. */
    const again = async (client: ClientV1, name: string, args: Record<string, unknown>): Promise<Answer> => {
      for (;;) {
        try {
          return (await client.callTool({ name, arguments: args })) as Answer;
        } catch (error) {
          // A session that is not known would be a 404, which no client gets over.
          expect(String(error)).not.toMatch(/404|session/i);
          cut++;
          await sleep(50);
        }
      }
    };
    const made: string[] = [];
    const receipts: string[] = [];
    let isOver = false;
    const agents = clients.map(async (client) => {
      while (!isOver) {
        const key = `write-${made.length}`;
        made.push(key);
        const answer = await again(client, "create_issue", { project: "p", title: key, request_id: key });
        if (answer.structuredContent?.receipt !== undefined) receipts.push(answer.structuredContent.receipt);
        await again(client, "sleep", { ms: 5, label: "plain" });
      }
    });
    const some = async () => {
      const goal = made.length + WRITES_BETWEEN;
      await until("some writes", () => made.length >= goal, 120_000);
    };
    for (let turn = 0; turn < KILLS; turn++) {
      const victim = gateways[turn % 3] as Gateway;
      await some();
      if (turn === 0) {
        // What is queued meanwhile outlives the gateway that took it.
        await server.kill();
        await until("a write that is queued", () => receipts.length > 0);
      }
      await victim.stop("SIGKILL");
      if (turn === 0) server = await startHttpFixture("tracker", ["--ledger", ledger], server.port);
      await some();
      gateways[turn % 3] = await victim.again();
      await until("the tools", () => hasTool((gateways[turn % 3] as Gateway).url, "create_issue"));
    }
    isOver = true;
    await Promise.all(agents);

    const [reader] = clients as [ClientV1];
    for (const id of receipts) {
      await until(`the receipt ${id}`, async () => {
        const { structuredContent } = await again(reader, "toolway__receipt", { id });
        return structuredContent?.receipt === id && structuredContent.state === "done";
      });
    }
    const counts = new Map<string, number>();
    for (const { title: name } of effectsIn(ledger)) counts.set(name, (counts.get(name) ?? 0) + 1);
    const lost = made.filter((key) => !counts.has(key));
    const doubled = [...counts].filter(([, count]) => count > 1);
    report(
      "balancer",
      `gateways killed in turn ${KILLS} times under SDK v1 and v2 behind a TCP balancer: ${made.length} writes, ${receipts.length} ` +
        `by a receipt that was found, ${cut} requests cut and made again, ${lost.length} lost, ${doubled.length} doubled, no session ended`,
    );
    expect({ lost, doubled }).toEqual({ lost: [], doubled: [] });
    expect(clients.map(({ transport }) => transport?.sessionId)).toEqual(sessions);
  }, 900_000);
});
