// Three nodes of NATS and three gateways on them. The node that leads is killed while agents make plain calls and kept writes at
// all gateways, each of which asks whichever is next, as behind a balancer. What was done is counted in the server's own file.

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import {
  type Gateway,
  sleep,
  startGateway,
  startHttpFixture,
  stdioFixture,
  temporaryDirectory,
  until,
} from "../e2e/harness.js";
import { callTool, hasTool } from "../e2e/operator.js";
import { effectsIn, ledgerLines } from "../fixtures/ledger.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { disorder, isReceipt, type MadeWrite } from "../fixtures/outbox/kept-writes.js";
import { figure, full } from "./length.js";
import { linux, report } from "./measure.js";
import { runSeed, seeded } from "./random.js";

const KILLS = figure(1, 5);
const WRITES = figure(40, 2_000);
const CALLS = figure(100, 5_000);
const WRITERS = figure(4, 8);
const CALLERS = figure(3, 6);
const LANES = 4;
const ANSWER_MS = 20;
/** Past it the outcome of a write is not waited for: it is unknown, and the journal is asked under the same key. */
const PATIENCE_MS = 25_000;

/** From this version on a kill -9 of a node loses no stream. Below it what was lost is said, and not asserted. */
const SAFE = [2, 10, 23] as const;
const isSafe = (version: string) => {
  const parts = version.split(".").map(Number);
  for (const [n, least] of SAFE.entries()) if (parts[n] !== least) return (parts[n] ?? 0) > least;
  return true;
};

const title = natsPrograms.length === 0 ? `a cluster whose leader dies, ${NO_NATS}` : "a cluster whose leader dies";

describe.skipIf(natsPrograms.length === 0 || !linux)(title, () => {
  it.each(natsPrograms)(
    "$version: what was acknowledged is there, no effect is doubled and lanes keep their order [engine-outbox] [ack-is-durable] [no-double-effect] [lane-order] [unknown-is-said]",
    async (program) => {
      const beganMs = performance.now();
      const random = seeded(runSeed());
      const nats = await startNats({ program, nodes: 3 });
      const ledger = join(await temporaryDirectory(), "ledger.jsonl");
      const server = await startHttpFixture("tracker", ["--ledger", ledger]);
      const env = { ...process.env, ENGINE_KEY: makeEngineKey() } as Record<string, string>;
      const outbox = { lane: "arguments.project", key: "arguments.request_id" };
      const engine = { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 3 };
      const tracker = { ...server.entry, tools: { create_issue: { outbox } } };
      const config = { engine, mcpServers: { tracker, slow: stdioFixture("slow") } };
      const gateways: Gateway[] = [];
      for (let n = 0; n < 3; n++) gateways.push(await startGateway(config, { env }));
      for (const { url } of gateways)
        await until("the tools", async () => (await hasTool(url, "create_issue")) && hasTool(url, "sleep"));

      const writes: MadeWrite[] = [];
      const sums = { results: 0, receipts: 0, refused: 0, unknown: 0, calls: 0, failed: 0 };
      let told = 0;
      const once = async (write: MadeWrite, n: number) => {
        const { lane: project, title: key } = write;
        const args = { project, title: key, ms: write.answerMs, request_id: key };
        const { url } = gateways[n % gateways.length] as Gateway;
        const late = sleep(PATIENCE_MS).then(() => "late" as const);
        return Promise.race([callTool(url, "create_issue", args), late]);
      };
      /** Under its key it may be made again: whoever has it in hand knows what became of it. */
      const settled = async (write: MadeWrite, first: number) => {
        for (let n = first; ; n++) {
          const reply = await once(write, n).catch(() => undefined);
          if (reply === "late") sums.unknown++;
          else if (reply?.error !== undefined) sums.refused++;
          else if (reply?.result?.["isError"] === true) sums.refused++;
          else if (reply !== undefined) return reply;
          await sleep(50);
        }
      };
      const writers = Array.from({ length: WRITERS }, async (_, agent) => {
        while (writes.length < WRITES) {
          const n = writes.length;
          const write: MadeWrite = {
            tool: "create_issue",
            lane: `lane-${agent % LANES}`,
            title: `write-${n}`,
            answerMs: random.int(ANSWER_MS),
            beganMs: performance.now(),
            toldMs: 0,
          };
          writes.push(write);
          const { result } = await settled(write, n);
          write.toldMs = performance.now();
          told++;
          if (isReceipt(result)) sums.receipts++;
          else sums.results++;
        }
      });
      // Plain calls need nothing of the engine: none of them may fail, whatever is elected.
      const wrong: string[] = [];
      const callers = Array.from({ length: CALLERS }, async (_, agent) => {
        while (sums.calls < CALLS) {
          const n = sums.calls++;
          const { url } = gateways[(n + agent) % gateways.length] as Gateway;
          const reply = await callTool(url, "sleep", { ms: random.int(ANSWER_MS), label: "call" });
          if (reply.error !== undefined || reply.result?.["isError"] === true) {
            sums.failed++;
            wrong.push(`call ${n}: ${JSON.stringify(reply.error ?? reply.result)}`);
          }
        }
      });
      const gaps: number[] = [];
      for (let kill = 0; kill < KILLS; kill++) {
        const goal = Math.floor(((kill + 1) * WRITES) / (KILLS + 2));
        await until("some writes", () => told >= goal, 300_000);
        const leader = await nats.streamLeader("tw_state");
        const killedMs = performance.now();
        await leader.kill();
        const [before, beforeMs] = [told, performance.now()];
        await until("writes after it", () => told >= Math.min(WRITES, before + LANES * 2), 120_000);
        gaps.push((performance.now() - Math.min(killedMs, beforeMs)) / 1_000);
        leader.start();
        await nats.ready();
      }
      await Promise.all([...writers, ...callers]);

      // The same key once more finds what became of it, and does nothing.
      for (const write of writes) {
        await until(`the end of ${write.title}`, async () => {
          const { result } = await settled(write, 0);
          const receipt = result?.["structuredContent"] as { state?: string } | undefined;
          return !isReceipt(result) || receipt?.state === "done";
        });
      }
      const effects = effectsIn(ledger);
      const counts = new Map<string, number>();
      for (const { title: name } of effects) counts.set(name, (counts.get(name) ?? 0) + 1);
      const lost = writes.filter(({ title: name }) => !counts.has(name)).length;
      const doubled = [...counts.values()].filter((count) => count > 1).length;
      const disordered: string[] = [];
      for (let lane = 0; lane < LANES; lane++) disordered.push(...disorder(`lane-${lane}`, writes, effects));
      report(
        "cluster",
        `nats ${nats.version}: leader killed ${KILLS} times under ${sums.calls} calls and ${writes.length} writes at three gateways ` +
          `(seed ${random.seed}): writes went on after ${gaps.map((s) => s.toFixed(1)).join(", ")} s; ${sums.results} answered at once, ` +
          `${sums.receipts} by a receipt, ${sums.refused} refused and made again, ${sums.unknown} unknown after 25 s and found by their key; ` +
          `${lost} lost, ${doubled} doubled, ${disordered.length} out of order, ${sums.failed} calls failed; ` +
          `${ledgerLines(ledger).length - effects.length} came twice and were known by their key; ` +
          `${((performance.now() - beganMs) / 1_000).toFixed(0)} s`,
      );
      expect(wrong).toEqual([]);
      // One kill of one node of three is stood by any version; five in a row are not promised by the older ones.
      if (isSafe(nats.version) || !full)
        expect({ lost, doubled, disordered }).toEqual({ lost: 0, doubled: 0, disordered: [] });
      expect(performance.now() - beganMs).toBeLessThan(600_000);
    },
    900_000,
  );
});
