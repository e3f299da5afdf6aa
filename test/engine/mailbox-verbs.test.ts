// The operator's verbs about mailboxes at two brokers on one engine: each is asked of both, whoever has the mailbox in hand.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { cli, type Gateway, root, startGateway, until } from "../e2e/harness.js";
import { toolway } from "../e2e/operator.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";

const title = natsPrograms.length === 0 ? `verbs about mailboxes in NATS, ${NO_NATS}` : "verbs about mailboxes in NATS";
interface Listed {
  readonly mailboxes: readonly { mailbox: string; waiting: number; leased: number; dead: number }[];
}

describe.skipIf(natsPrograms.length === 0)(title, () => {
  const brokers: Gateway[] = [];
  const tokens: Record<string, string> = {};
  const urlOf = (n: number) => `${(brokers[n] as Gateway).origin.replace("http", "ws")}/mailboxes`;
  const at = (n: number, ...words: string[]) => toolway(brokers[n] as Gateway, ...words);
  const json = async <T>(n: number, ...words: string[]): Promise<T> => {
    const { code, out, err } = await at(n, ...words, "--json");
    expect([code, err]).toEqual([0, ""]);
    return JSON.parse(out) as T;
  };

  beforeAll(async () => {
    const nats = await startNats();
    const engine = { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 1 };
    const env = { ...process.env, ENGINE_KEY: makeEngineKey() };
    const config = { engine, mailboxes: {}, mcpServers: {} };
    for (let n = 0; n < 2; n++) brokers.push(await startGateway(config as never, { env }));
    const make = async (id: string, ...more: string[]) => {
      tokens[id] = (await at(0, "token", "create", "--id", id, ...more)).out.trim();
    };
    await make("studio", "--role", "sharer");
    await make("worker", "--role", "dev", "--may-send-to", "studio");
  });
  afterAll(() => closeBareClients());

  const connect = (n: number, id: string) => BareClient.connect(urlOf(n), id, tokens[id] ?? "", { version: 1 });

  it("list, show, dead, watch, retry and drop say and do the same at both [mail-anywhere] [status-true]", async () => {
    const worker = await until("the token", () => connect(1, "worker").catch(() => undefined));
    worker.send({ kind: "subscribe" });
    worker.send({ kind: "credit", messages: 100 });
    for (const id of ["fails-0", "fails-1", "waits-0", "waits-1", "waits-2"]) {
      worker.deliver("studio", id);
      expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered" });
    }
    const machine = await connect(0, "studio");
    machine.send({ kind: "subscribe" });
    machine.send({ kind: "credit", messages: 100 });
    for (let failed = 0; failed < 10; ) {
      const { id } = await machine.message();
      if (!id.startsWith("fails")) continue;
      failed++;
      machine.send({ kind: "release", id, from: "worker", failed: true, reason: "no brush" });
    }
    machine.socket.terminate();
    // One of the two has it in hand, and the other asks.
    const has = async (n: number, counts: { waiting: number; dead: number }) => {
      const { mailboxes } = await json<Listed>(n, "mailbox", "list");
      const { waiting, dead } = mailboxes.find(({ mailbox }) => mailbox === "studio") ?? {};
      return waiting === counts.waiting && dead === counts.dead;
    };
    for (const n of [0, 1]) {
      await until("what waits and what failed", () => has(n, { waiting: 3, dead: 2 }));
      expect((await at(n, "mailbox", "show", "studio")).out).toMatch(/waits-0 +worker .* (waiting|returned)/);
      expect((await at(n, "mailbox", "dead", "studio")).out).toMatch(/fails-0 +worker .*no brush/);
      const { configPath, stateDir } = brokers[n] as Gateway;
      const words = [cli, "mailbox", "watch", "--json", "--config", configPath, "--state", stateDir];
      const watch = spawn(process.execPath, words, { cwd: root });
      let out = "";
      watch.stdout.on("data", (chunk: Buffer) => {
        out += chunk.toString();
      });
      await until("the first line", () => out.includes("\n"));
      const [first = ""] = out.split("\n");
      // Of all mailboxes: the notices to the worker wait too.
      const { waiting, leased, dead } = JSON.parse(first) as Listed["mailboxes"][number];
      expect([waiting + leased >= 3, dead]).toEqual([true, 2]);
      watch.kill("SIGINT");
      expect((await once(watch, "exit"))[0]).toBe(0);
    }
    for (const n of [0, 1]) {
      expect(await json(n, "mailbox", "drop", "studio", `waits-${n}`, "--yes")).toMatchObject({ messages: 1 });
      expect(await json(n, "mailbox", "retry", "studio", `fails-${n}`, "--yes")).toMatchObject({ from: "worker" });
    }
    await until("what was sent again", () => has(0, { waiting: 3, dead: 0 }));
    expect(await json(1, "mailbox", "drop", "studio", "--all", "--yes")).toMatchObject({ messages: 3 });
    const gone = await at(0, "mailbox", "drop", "studio", "waits-2", "--yes");
    expect(gone.code).not.toBe(0);
    expect(gone.err).toContain("waits-2");
  }, 120_000);
});
