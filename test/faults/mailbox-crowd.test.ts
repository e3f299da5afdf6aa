// Many at one broker: workers that call at the same time, and peers that only wait.

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { root, startGateway, temporaryDirectory, until } from "../e2e/harness.js";
import { toolway } from "../e2e/operator.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { closeGateways, start } from "../fixtures/gateways.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { ScriptedSharer } from "../fixtures/mailbox/scripted-sharer.js";
import { TestBroker } from "../fixtures/mailbox/test-broker.js";
import { said } from "../fixtures/processes.js";
import { figure, full } from "./length.js";
import { linux, megabytes, report, rss } from "./measure.js";
import { expectShortOwnTurn, watchedTurns } from "./turns.js";

describe("a crowd of workers", () => {
  const WORKERS = figure(100, 1_000);
  const MAILBOXES = figure(20, 200);
  const CALLS = figure(5, 20);

  afterAll(closeBareClients);

  it(`of ${WORKERS} at ${MAILBOXES} mailboxes gets each of its answers, and none of another's [crossed-never]`, async () => {
    const turns = watchedTurns(await temporaryDirectory());
    const gateway = await startGateway({ mcpServers: {}, mailboxes: {} } as never, { env: turns.env });
    const url = `${gateway.origin.replace("http", "ws")}/mailboxes`;
    const sharers = await inTurns(MAILBOXES, (n) => BareClient.connect(url, `box-${n}`, ""));
    const answering = sharers.map((one) => answer(one).catch((error: Error) => error.message));
    const workers = await inTurns(WORKERS, (n) => BareClient.connect(url, `worker-${n}`, ""));
    turns.begin();
    const started = performance.now();
    await Promise.all(
      workers.map(async (worker, n) => {
        worker.send({ kind: "subscribe" });
        const open = new Map<string, string>();
        for (let call = 0; call < CALLS; call++) {
          // The same ids at all workers.
          const text = `${n} ${call}`;
          open.set(`m-${call}`, text);
          worker.deliver(`box-${(n + call) % MAILBOXES}`, `m-${call}`, { text });
        }
        while (open.size > 0) {
          const message = await worker.message();
          const asked = String(message["correlation_id"]);
          if (open.get(asked) !== (message["body"] as { text: string }).text) throw new Error(`astray: ${asked}`);
          open.delete(asked);
          worker.send({ kind: "ack", id: message.id });
        }
      }),
    );
    const seconds = (performance.now() - started) / 1000;
    const turn = await turns.worst();
    report(
      "mailboxes",
      `${WORKERS} workers at ${MAILBOXES} mailboxes: ${WORKERS * CALLS} calls in ${seconds.toFixed(1)} s, ` +
        `longest turn ${turns.text(turn)} [crossed-never]`,
    );
    expectShortOwnTurn(turn);
    closeBareClients();
    for (const why of await Promise.all(answering)) expect(why).toContain("closed");
    await gateway.stop();
  }, 240_000);
});

describe("two gateways with one token", () => {
  const CALLS = figure(100, 1_000);
  /** Of one gateway. */
  const AT_ONCE = 16;

  it(`get the answers to ${CALLS} calls each, and none of the other's [crossed-never]`, async () => {
    const broker = await TestBroker.open();
    const machine = await ScriptedSharer.open(broker.url, ({ id, method, params }) => {
      const results: Record<string, string> = {
        "server/discover": '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}',
        "tools/list": '"tools":[{"name":"say","inputSchema":{"type":"object"}}],"ttlMs":60000,"cacheScope":"public"',
        "tools/call": `"content":[{"type":"text","text":${JSON.stringify((params?.["arguments"] as { text?: string })?.text ?? "")}}]`,
      };
      return `{"message":{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete",${results[method]}}}}`;
    });
    const studio = { mailbox: "studio", broker: broker.url, token: "worker-token" };
    const gateways = await Promise.all(
      ["left", "right"].map(async (name) => {
        const stateDir = temporaryFolder(`toolway-${name}-`);
        const gateway = await start({ names: "prefixed", mcpServers: { studio } }, { stateDir });
        await gateway.listen({ host: "127.0.0.1", port: 0 });
        await until("its tool", async () => (await gateway.tools()).some((tool) => tool.name === "studio__say"));
        return { name, gateway };
      }),
    );
    const astray: string[] = [];
    await Promise.all(
      gateways.map(async ({ name, gateway }) => {
        let next = 0;
        const caller = async () => {
          while (next < CALLS) {
            const text = `${name} ${next++}`;
            const { content } = await gateway.call("studio__say", { text });
            if ((content[0] as { text: string }).text !== text) astray.push(`${text}: ${JSON.stringify(content)}`);
          }
        };
        await Promise.all(Array.from({ length: AT_ONCE }, caller));
      }),
    );
    expect(astray).toEqual([]);
    const called = machine.asked.filter(({ rpc }) => rpc.method === "tools/call");
    expect(called).toHaveLength(2 * CALLS);
    // One token, and an address for each.
    expect(new Set(called.map(({ message }) => message.from)).size).toBe(2);
    report("mailboxes", `two gateways with one token, ${CALLS} calls each: ${astray.length} astray [crossed-never]`);
    machine.close();
    await closeGateways();
    await broker.end();
  }, 120_000);
});

/** Answers each message with what is in it. */
async function answer(sharer: BareClient): Promise<string> {
  sharer.send({ kind: "subscribe" });
  for (;;) {
    const { id, from, body } = await sharer.message();
    const { session_id: to } = from as { session_id: string };
    sharer.deliver(to, `r-${id}-${to}`, body, {}, { kind: "mcp_reply", correlation_id: id });
    sharer.send({ kind: "ack", id });
  }
}

async function inTurns<T>(count: number, make: (n: number) => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  while (made.length < count) {
    const size = Math.min(50, count - made.length);
    made.push(...(await Promise.all(Array.from({ length: size }, (_, n) => make(made.length + n)))));
  }
  return made;
}

describe.skipIf(!linux || !full)("idle peers of a broker", () => {
  const PEERS = 10_000;
  /** Sockets of one client process: a usual hard limit on descriptors is 4,096. */
  const IN_ONE_PROCESS = 2_500;
  const BYTES_EACH = 30_000;
  const crowds: ChildProcess[] = [];

  afterAll(() => {
    for (const crowd of crowds) crowd.kill("SIGKILL");
  });

  async function gather(url: string, count: number): Promise<ChildProcess[]> {
    const joined: ChildProcess[] = [];
    for (let left = count; left > 0; left -= IN_ONE_PROCESS) {
      const args = [join(root, "test/faults/mailbox-crowd.mjs"), url, String(Math.min(left, IN_ONE_PROCESS))];
      joined.push(spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] }));
    }
    crowds.push(...joined);
    for (const text of await Promise.all(joined.map(said))) expect(text).toBe("open\n");
    return joined;
  }

  it("cost at most 30 kB each, and none is cut off [bounded]", async () => {
    const config = { mcpServers: {}, mailboxes: {}, limits: { connections: 12_000 } };
    const gateway = await startGateway(config as never);
    const url = `${gateway.origin.replace("http", "ws")}/mailboxes`;
    const warm = await gather(url, 1_000);
    for (const crowd of warm) crowd.kill("SIGKILL");
    await until("the first ones to be gone", async () => {
      const { out } = await toolway(gateway, "status", "--json");
      return (JSON.parse(out) as { mailboxes: { connections: number } }).mailboxes.connections === 0;
    });
    const before = rss(gateway.pid);
    const started = performance.now();
    const crowd = await gather(url, PEERS);
    const seconds = (performance.now() - started) / 1000;
    const growth = rss(gateway.pid) - before;
    for (const part of crowd) {
      part.kill("SIGUSR2");
      expect(await said(part)).toBe("closed 0\n");
    }
    const each = Math.round(growth / PEERS);
    report("idle peers", `${PEERS} in ${seconds.toFixed(1)} s: ${megabytes(growth)}, ${each} bytes each [bounded]`);
    expect(each).toBeLessThanOrEqual(BYTES_EACH);
    await gateway.stop();
  }, 300_000);
});
