// Many at one broker: workers that call at the same time, and peers that only wait.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { root, startGateway, until } from "../e2e/harness.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { figure, full } from "./length.js";
import { linux, megabytes, report, rss } from "./measure.js";

describe("a crowd of workers", () => {
  const WORKERS = figure(100, 1_000);
  const MAILBOXES = figure(20, 200);
  const CALLS = figure(5, 20);

  afterAll(closeBareClients);

  it(`of ${WORKERS} at ${MAILBOXES} mailboxes gets each of its answers, and none of another's [crossed-never]`, async () => {
    const gateway = await startGateway({ mcpServers: {}, mailboxes: {} } as never);
    const url = `${gateway.origin.replace("http", "ws")}/mailboxes`;
    const sharers = await inTurns(MAILBOXES, (n) => BareClient.connect(url, `box-${n}`, ""));
    const answering = sharers.map((one) => answer(one).catch((error: Error) => error.message));
    const workers = await inTurns(WORKERS, (n) => BareClient.connect(url, `worker-${n}`, ""));
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
    report(
      "mailboxes",
      `${WORKERS} workers at ${MAILBOXES} mailboxes: ${WORKERS * CALLS} calls in ${seconds.toFixed(1)} s`,
    );
    closeBareClients();
    for (const why of await Promise.all(answering)) expect(why).toContain("closed");
    await gateway.stop();
  }, 240_000);
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

  /** The next line of a crowd. */
  async function said(crowd: ChildProcess): Promise<string> {
    if (crowd.stdout === null) throw new Error("No stdout.");
    const over = once(crowd, "exit").then(([code]) => {
      throw new Error(`A crowd ended with ${code}.`);
    });
    const [chunk] = (await Promise.race([once(crowd.stdout, "data"), over])) as [Buffer];
    return chunk.toString();
  }

  it("cost at most 30 kB each, and none is cut off [bounded]", async () => {
    const config = { mcpServers: {}, mailboxes: {}, limits: { connections: 12_000 } };
    const gateway = await startGateway(config as never);
    const url = `${gateway.origin.replace("http", "ws")}/mailboxes`;
    const warm = await gather(url, 1_000);
    for (const crowd of warm) crowd.kill("SIGKILL");
    await until("the first ones to be gone", async () => {
      const client = await BareClient.connect(url, "last", "");
      client.socket.terminate();
      return true;
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
