// What whoever reads the disks of NATS sees of what a gateway keeps there: every message of every stream, and in none of them a word of a
// write, a result, a message, a login or a token.

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { grantKeeper } from "../../src/credentials/grant.js";
import type { Reply } from "../e2e/eras.js";
import { startHttpFixture } from "../e2e/harness.js";
import { callTool } from "../e2e/operator.js";
import { type EngineGateway, startOnEngine } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `what stands in an engine, ${NO_NATS}` : "what stands in an engine";

interface Kept {
  readonly stream: string;
  readonly subject: string;
  readonly body: string;
}

/** Names of maps and keys, which stay readable. */
const headOf = ({ body }: Kept) => body.split("\n", 1)[0] ?? "";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  let connection: NatsConnection;
  let server: Awaited<ReturnType<typeof startHttpFixture>>;
  let one: EngineGateway;
  const files = ["--ledger", join(temporaryFolder("toolway-ledger-"), "ledger.jsonl")];

  beforeAll(async () => {
    nats = await startNats();
    connection = await connect({ servers: nats.nodes.map(({ port }) => `127.0.0.1:${port}`) });
    server = await startHttpFixture("tracker", files);
    const outbox = { lane: "arguments.project", key: "arguments.request_id" };
    const tracker = { type: "http" as const, url: server.url, tools: { create_issue: { outbox } } };
    one = await startOnEngine(nats, { names: "plain", mailboxes: {}, mcpServers: { tracker } });
    await one.gateway.servers.get("tracker")?.firstTry;
  });
  afterAll(async () => {
    closeBareClients();
    await one?.gateway.close({ drainMs: 0 });
    await connection?.close();
  });

  const write = (args: Record<string, unknown>): Promise<Reply> =>
    callTool(one.url, "create_issue", args, one.gateway.token);

  /** All that is in all streams, as it lies on the disk. */
  async function everything(): Promise<Kept[]> {
    const manager = await jetstreamManager(connection);
    const found: Kept[] = [];
    for (const { config, state } of await manager.streams.list().next()) {
      for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
        // One that another write has taken the place of is not there any more.
        const message = await manager.streams.getMessage(config.name, { seq }).catch(() => undefined);
        if (message) found.push({ stream: config.name, subject: message.subject, body: message.string() });
      }
    }
    return found;
  }

  it("says nothing of arguments, results, keys, lanes, mailbox messages, logins and tokens [engine-sealed]", async () => {
    const words = {
      finished: `canary-finished-${randomUUID()}`,
      queued: `canary-queued-${randomUUID()}`,
      lane: `canary-lane-${randomUUID()}`,
      key: `canary-key-${randomUUID()}`,
      message: `canary-message-${randomUUID()}`,
      access: `canary-access-${randomUUID()}`,
      refresh: `canary-refresh-${randomUUID()}`,
      context: `canary-context-${randomUUID()}`,
    };
    const { state } = one.gateway;
    // ── A write that is done, with its result, and one that waits for its server.
    await server.kill();
    server = await startHttpFixture("tracker", files, server.port);
    const first = { project: randomUUID(), title: words.finished, request_id: randomUUID() };
    const done = await until("its result", async () => {
      // It is queued where its server was not met again yet: the same key is the same write.
      const told = await write(first);
      return JSON.stringify(told).includes('"queued":true') ? undefined : told;
    });
    expect(done.result?.["structuredContent"]).toMatchObject({ title: words.finished });
    await server.kill();
    const queued = await write({ project: words.lane, title: words.queued, request_id: words.key });
    expect(JSON.stringify(queued.result)).toContain('"queued":true');
    // ── A message that its mailbox's machine has not fetched.
    const own = randomUUID();
    const [studio, worker] = [`studio-${own}`, `worker-${own}`];
    const tokens = [
      await state.tokens.create({ id: studio, role: "sharer" }, Date.now()),
      await state.tokens.create({ id: worker, role: "dev", maySendTo: [studio] }, Date.now()),
    ] as const;
    const sender = await BareClient.connect(
      one.url.replace("http", "ws").replace("/mcp", "/mailboxes"),
      worker,
      tokens[1],
    );
    sender.deliver(studio, `m-${own}`, { op: words.message });
    expect((await sender.next("delivered", "error")).kind).toBe("delivered");
    // ── A login, and what an agent is known by.
    await grantKeeper(state.grants, "tracker", { url: server.url, clientId: undefined }).put({
      issuer: { url: "https://login.example", metadata: undefined, resource: undefined, scopes: [] },
      client: { client_id: "c" },
      redirectUri: "http://127.0.0.1/",
      tokens: { access: words.access, refresh: words.refresh, scopes: [], endsAt: undefined, lifeMs: undefined },
    });
    await one.gateway.setContext("worker", { phase: words.context });

    // Each of them is there, under a name that can be read.
    const names = ["outbox", "outbox-messages", "outbox-results", "mail", "logins", "contexts", "tokens"];
    const kept = await until("all of it in the engine", async () => {
      const all = await everything();
      const heads = all.map(headOf).join("\n");
      return names.every((name) => heads.includes(`,"${name}",`)) ? all : undefined;
    });
    expect(new Set(kept.map(({ stream }) => stream))).toEqual(new Set(["tw_state", "tw_parts"]));
    const text = kept.map(({ body }) => body).join("\n");
    for (const word of [...Object.values(words), ...tokens, one.gateway.token]) expect(text).not.toContain(word);
    // But for the sealing key, which is wrapped, and cannot lie under itself.
    const open = kept.filter((one) => !headOf(one).includes('"sealed":1'));
    expect(open.filter(({ subject }) => !subject.startsWith("tw.state.keys."))).toEqual([]);
  });
});
