// Agents write through two gateways on one engine, and the one that has their server in hand is killed; in the full form it is also
// frozen past its lease, and stopped. What was done is counted in the server's own file.

import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { type Gateway, sleep, startGateway, startHttpFixture, temporaryDirectory, until } from "../e2e/harness.js";
import { callTool, hasTool } from "../e2e/operator.js";
import { lookOn, spread } from "../fixtures/engine-look.js";
import { effectsIn, ledgerLines } from "../fixtures/ledger.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { begunWrite, disorder, isReceipt, type MadeWrite } from "../fixtures/outbox/kept-writes.js";
import { figure, full } from "./length.js";
import { linux, report } from "./measure.js";
import { runSeed, seeded } from "./random.js";

const AGENTS = 8;
const LANES = 4;
const ANSWER_MS = 30;
/** An agent that hears nothing for so long asks the other gateway, as it would behind a balancer. */
const PATIENCE_MS = 15_000;
/** What happens to the gateway that has the server in hand, one after the other. */
const EVENTS: readonly ("kill" | "freeze" | "stop")[] = full
  ? ["kill", "freeze", "stop", "kill", "freeze", "stop", "kill", "kill"]
  : ["kill"];
/** From the kill to the next that has the server in hand, where the engine has a leader. Short runs share their cores. */
const TAKEOVER_MS = 10_000;
const WRITES_BETWEEN = figure(12, 100);

const title = natsPrograms.length === 0 ? `gateways on one engine, ${NO_NATS}` : "gateways on one engine that die";

describe.skipIf(natsPrograms.length === 0 || !linux)(title, () => {
  const ends: (() => Promise<unknown>)[] = [];
  afterAll(async () => void (await Promise.allSettled(ends.map((end) => end()))));

  it("lose no kept write, double none and keep the order of every lane, whoever has them in hand [engine-outbox] [takeover] [one-owner] [ack-is-durable] [no-double-effect] [lane-order]", async () => {
    const random = seeded(runSeed());
    const nats = await startNats();
    const ledger = join(await temporaryDirectory(), "ledger.jsonl");
    const server = await startHttpFixture("tracker", ["--ledger", ledger]);
    const env = { ENGINE_KEY: makeEngineKey() };
    const outbox = { lane: "arguments.project" };
    const tools = { create_issue: { outbox: { ...outbox, key: "arguments.request_id" } }, add_comment: { outbox } };
    const engine = { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 1 };
    const config = { engine, mcpServers: { tracker: { ...server.entry, tools } } };
    const look = await lookOn(nats.nodes[0]?.port ?? 0, env.ENGINE_KEY);
    ends.push(() => look.close());
    const { partitions } = look;
    const place = partitions.of("tracker");
    const names = () => partitions.gateways().map(({ gateway }) => gateway);

    const running = new Map<string, Gateway>();
    /** Which of the names is this one's is seen by its coming. */
    const started = async (start: () => Promise<Gateway>) => {
      const before = new Set(names());
      const gateway = await start();
      const name = await until("a gateway to come", () => names().find((one) => !before.has(one)));
      running.set(name, gateway);
      await until("the tools", () => hasTool(gateway.url, "create_issue"));
      return gateway;
    };
    for (let n = 0; n < 2; n++) await started(() => startGateway(config, { env: { ...process.env, ...env } }));
    await spread(partitions, place);

    const writes: MadeWrite[] = [];
    const sums = { cut: 0, receipts: 0, results: 0 };
    const refused: string[] = [];
    let told = 0;
    let isOver = false;

    async function settled(write: MadeWrite, first: number) {
      const { tool, lane: project, title: key } = write;
      const args = { project, title: key, ms: write.answerMs, request_id: key };
      for (let n = first; ; n++) {
        const all = [...running.values()];
        const { url } = all[n % all.length] as Gateway;
        try {
          const late = sleep(PATIENCE_MS).then(() => Promise.reject(new Error("It says nothing.")));
          const reply = await Promise.race([
            callTool(url, tool, args, undefined, { "toolway/idempotencyKey": key }),
            late,
          ]);
          // It was told that nothing was sent: nobody had it in hand, or the one that had it lost it before it was written down.
          if (!/Not sent|Call again|closing/.test(JSON.stringify(reply.error ?? ""))) return reply;
        } catch {
          sums.cut++;
        }
        await sleep(20);
      }
    }

    const agents = Array.from({ length: AGENTS }, async (_, agent) => {
      while (!isOver) {
        const n = writes.length;
        const tool = n % 5 === 0 ? "add_comment" : "create_issue";
        const write = begunWrite(n, agent % LANES, random.int(ANSWER_MS), tool);
        writes.push(write);
        const { result, error } = await settled(write, n);
        if (error !== undefined) refused.push(`${write.title}: ${JSON.stringify(error)}`);
        write.toldMs = performance.now();
        told++;
        if (isReceipt(result)) sums.receipts++;
        else if (result !== undefined) sums.results++;
      }
    });

    const takeovers: string[] = [];
    const afterKillsMs: number[] = [];
    for (const [turn, event] of EVENTS.entries()) {
      const goal = told + WRITES_BETWEEN;
      await until("some writes", () => told >= goal);
      const owner = partitions.ownerOf(place) as string;
      const gateway = running.get(owner) as Gateway;
      const beganMs = performance.now();
      // A balancer that looks at them leaves it out; what was under way there waits for its patience.
      running.delete(owner);
      if (event === "freeze") gateway.signal("SIGSTOP");
      else await gateway.stop(event === "kill" ? "SIGKILL" : "SIGTERM");
      const goneMs = event === "freeze" ? beganMs : performance.now();
      await until("another to have it in hand", () => ![owner, undefined].includes(partitions.ownerOf(place)));
      const tookMs = performance.now() - (event === "stop" ? goneMs : beganMs);
      takeovers.push(`${event} ${(tookMs / 1000).toFixed(1)} s`);
      if (event === "kill") afterKillsMs.push(tookMs);
      // It answers for the server by then.
      const next = told + WRITES_BETWEEN;
      await until("writes after it", () => told >= next);
      if (event === "freeze") {
        gateway.signal("SIGCONT");
        running.set(owner, gateway);
      } else if (turn < EVENTS.length - 1) await started(() => gateway.again());
      if (turn < EVENTS.length - 1) await spread(partitions, place);
    }
    isOver = true;
    await Promise.all(agents);

    // The same key once more finds what became of it, and does nothing.
    const wrong: string[] = [];
    let unknown = 0;
    for (const write of writes) {
      await until(`the end of ${write.title}`, async () => {
        const { result, error } = await settled(write, 0);
        const said = JSON.stringify(error ?? result);
        const isUnknown = write.tool === "add_comment" && /unknown/.test(said);
        if (isReceipt(result) && !isUnknown) return false;
        if (isUnknown) unknown++;
        else if (error !== undefined || result?.["isError"] === true) wrong.push(`${write.title} was told ${said}`);
        return true;
      });
    }
    const effects = effectsIn(ledger);
    const counts = new Map<string, number>();
    for (const { title: name } of effects) counts.set(name, (counts.get(name) ?? 0) + 1);
    const lost = writes.filter(({ tool, title: name }) => tool === "create_issue" && !counts.has(name)).length;
    const doubled = [...counts.values()].filter((count) => count > 1).length;
    for (let lane = 0; lane < LANES; lane++) wrong.push(...disorder(`lane-${lane}`, writes, effects));
    report(
      "engine",
      `${writes.length} writes of ${AGENTS} agents at two gateways (seed ${random.seed}), takeovers: ${takeovers.join(", ")}; ` +
        `${sums.results} answered at once, ${sums.receipts} by a receipt, ${sums.cut} connections cut; ${lost} lost, ${doubled} doubled; ` +
        `${ledgerLines(ledger).length - effects.length} came twice and were known by their key; ${unknown} without a key said to be unknown`,
    );
    expect([...refused, ...wrong]).toEqual([]);
    if (full) expect(Math.max(...afterKillsMs)).toBeLessThan(TAKEOVER_MS);
    expect({ lost, doubled }).toEqual({ lost: 0, doubled: 0 });
  }, 600_000);
});
