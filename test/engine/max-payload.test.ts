// An engine that takes messages of 64 KiB: what fits goes whole, in pieces where there are several; what does not is refused by name,
// and nothing else is lost by it.

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EngineSettings } from "../../src/contracts/settings.js";
import { moveState } from "../../src/gateway/move/move.js";
import { openState } from "../../src/gateway/state/state.js";
import { startHttpFixture } from "../e2e/harness.js";
import { callTool } from "../e2e/operator.js";
import { type EngineGateway, engineKey, startOnEngine } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { effectsIn } from "../fixtures/ledger.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `an engine of small messages, ${NO_NATS}` : "an engine of small messages";
const MAX_PAYLOAD = 64 * 1024;

describe.skipIf(natsPrograms.length === 0)(title, () => {
  const gateways: EngineGateway[] = [];
  const ledger = `${temporaryFolder("toolway-payload-")}/ledger.jsonl`;

  beforeAll(async () => {
    const nats = await startNats({ maxPayload: MAX_PAYLOAD });
    const tracker = await startHttpFixture("tracker", ["--ledger", ledger]);
    const fidelity = await startHttpFixture("fidelity");
    const kept = { outbox: { lane: "arguments.project", key: "arguments.request_id" } } as const;
    const config = {
      mailboxes: {},
      mcpServers: {
        tracker: { type: "http", url: tracker.url, tools: { create_issue: kept } },
        fidelity: { type: "http", url: fidelity.url, tools: { big: { outbox: {} } } },
      },
    } as const;
    for (let n = 0; n < 2; n++) gateways.push(await startOnEngine(nats, { ...config, names: "plain" }));
    for (const { gateway } of gateways) {
      await until("the tools", () => gateway.status().servers.every(({ state }) => state === "ready"));
      await until("half of the partitions", () => {
        const seen = gateway.state.engine?.partitions.gateways();
        return seen?.length === 2 && seen.every(({ partitions }) => partitions === 32);
      });
    }
  });
  afterAll(async () => {
    closeBareClients();
    for (const { gateway } of gateways) await gateway.close({ drainMs: 0 });
  });

  const peersOf = (n: number) => {
    const engine = gateways[n]?.gateway.state.engine;
    if (engine === undefined) throw new Error("no engine");
    return engine;
  };
  const create = (n: number, id: string, bytes: number) => {
    const { url, gateway } = gateways[n] as EngineGateway;
    const args = { project: "p", title: "x".repeat(bytes), request_id: id };
    return callTool(url, "create_issue", args, gateway.token);
  };

  it("carries questions, answers and streams between gateways in pieces that fit [peers-answer]", async () => {
    const [a, b] = [peersOf(0), peersOf(1)];
    b.peers.answer("echo", async (_, body) => body);
    b.peers.accept("pipe", (stream) => {
      stream.on("error", () => {});
      stream.pipe(stream);
    });
    for (const size of [0, MAX_PAYLOAD - 4_097, MAX_PAYLOAD, 1_000_000]) {
      const body = randomBytes(size);
      const answer = await a.peers.ask(b.self, "echo", body, { timeoutMs: 10_000 });
      expect(Buffer.compare(answer, body)).toBe(0);
      const stream = await a.peers.connect(b.self, "pipe");
      stream.end(body);
      const parts: Buffer[] = [];
      for await (const part of stream) parts.push(part as Buffer);
      expect(Buffer.compare(Buffer.concat(parts), body)).toBe(0);
    }
    // Why there is no answer is told too, however long that is.
    b.peers.answer("fail", async () => {
      throw new Error("e".repeat(MAX_PAYLOAD));
    });
    const failed = a.peers.ask(b.self, "fail", Buffer.alloc(0), { timeoutMs: 10_000 });
    await expect(failed).rejects.toMatchObject({ code: "failed", message: expect.stringMatching(/^e+$/) });
  });

  it("refuses a write that is too large by name at both gateways, and keeps those before and after it [ack-is-durable]", async () => {
    for (const n of [0, 1]) {
      expect((await create(n, `before-${n}`, 10)).error).toBeUndefined();
      const refused = JSON.stringify(await create(n, `large-${n}`, 2 * MAX_PAYLOAD));
      expect(refused).toContain("max_payload");
      expect((await create(n, `half-${n}`, MAX_PAYLOAD / 2)).error).toBeUndefined();
    }
    const ids = () => effectsIn(ledger).map(({ key }) => key);
    await until("four of them", () => ids().length >= 4);
    expect(new Set(ids()).size).toBe(4);
  });

  it("does not make a write twice whose result is too large to be kept, and says what became of it [no-double-effect] [unknown-is-said]", async () => {
    const { url, gateway } = gateways[0] as EngineGateway;
    const answer = JSON.stringify(await callTool(url, "big", { bytes: 3 * MAX_PAYLOAD }, gateway.token));
    // The result itself, which its caller waited for; or, where it is read later, that it is not kept.
    expect(answer.length).toBeGreaterThan(2 * MAX_PAYLOAD);
    const kept = (await gateway.outbox?.list({ server: "fidelity", limit: 10 })) ?? [];
    expect(kept.map(({ state, attempts }) => [state, attempts])).toEqual([["done", 1]]);
    expect((await create(0, "after", 10)).error).toBeUndefined();
  });

  it("refuses a message to a mailbox that is too large by name, and hands out those before and after it [mail-anywhere]", async () => {
    const { gateway } = gateways[0] as EngineGateway;
    const urlOf = (n: number) => (gateways[n] as EngineGateway).url.replace("http", "ws").replace("/mcp", "/mailboxes");
    for (const id of ["studio", "barn"]) {
      const machineToken = await gateway.state.tokens.create({ id, role: "sharer" }, Date.now());
      const workerToken = await gateway.state.tokens.create(
        { id: `w-${id}`, role: "dev", maySendTo: [id] },
        Date.now(),
      );
      const worker = await until("the token", () =>
        BareClient.connect(urlOf(1), `w-${id}`, workerToken).catch(() => undefined),
      );
      worker.deliver(id, "before", "x");
      expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered" });
      worker.deliver(id, "large", "x".repeat(2 * MAX_PAYLOAD));
      const refused = await worker.next("delivered", "error");
      expect(refused["kind"]).toBe("error");
      expect(refused["reason"]).toContain("max_payload");
      worker.deliver(id, "after", "x".repeat(MAX_PAYLOAD / 2));
      expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered" });
      const machine = await BareClient.connect(urlOf(0), id, machineToken);
      machine.send({ kind: "subscribe" });
      const got: string[] = [];
      for (let n = 0; n < 2; n++) {
        const { id: handed } = await machine.message();
        got.push(handed);
        machine.send({ kind: "ack", id: handed });
      }
      expect(got).toEqual(["before", "after"]);
    }
  });

  it("takes a state of many small writes, takes away what is there of it, and gives it back [engine-move]", async () => {
    const stateDir = temporaryFolder("toolway-payload-move-");
    const within = async (act: (put: (n: number, title: string) => Promise<void>) => Promise<unknown>) => {
      const state = await openState(stateDir, {});
      const [records, messages] = [state.store?.map("outbox"), state.store?.map("outbox-messages")];
      await act(async (n, name) => {
        const key = String(n).padStart(15, "0");
        await records?.put(key, { v: 1, id: `r-${n}`, server: "tracker", takenMs: n, state: "done", title: name });
        await messages?.put(key, { title: name });
      });
      await state.close();
    };
    const { engine } = (gateways[0] as EngineGateway).gateway.config;
    const move = async (to: "engine" | "local") => {
      const { moved, kinds } = await moveState({
        to,
        stateDir,
        engine: { ...(engine as EngineSettings), prefix: "payload-move" },
        env: { ENGINE_KEY: engineKey },
        signal: new AbortController().signal,
        dryRun: false,
        progress: () => {},
        warn: () => {},
      });
      const { count, written, removed } = kinds.find(({ kind }) => kind === "kept writes") ?? {};
      return { moved, count, written, removed };
    };
    const numbers = Array.from({ length: 600 }, (_, n) => n + 1);
    await within((put) => Promise.all(numbers.map((n) => put(n, "first"))));
    expect(await move("engine")).toEqual({ moved: true, count: 600, written: 600, removed: 0 });
    expect(await move("local")).toEqual({ moved: true, count: 600, written: 0, removed: 0 });
    // The first of them is another now: all behind it go, and come again.
    await within((put) => put(1, "second"));
    expect(await move("engine")).toEqual({ moved: true, count: 600, written: 600, removed: 600 });
  });
});
