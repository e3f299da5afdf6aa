// Three nodes of NATS, three gateways and two brokers on them. The node that leads is killed while agents make plain calls, kept writes
// and calls to machines that share by the brokers, at all gateways, each of which asks whichever is next, as behind a balancer. What was
// done is counted in the servers' own files.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
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
import { begunWrite, disorder, isReceipt, type MadeWrite } from "../fixtures/outbox/kept-writes.js";
import { figure, full } from "./length.js";
import { cut, effectsOf, endParts, Machine, startBroker, type Told, tellingOf } from "./mailbox-parts.js";
import { linux, report } from "./measure.js";
import { runSeed, seeded } from "./random.js";

const KILLS = figure(1, 5);
const WRITES = figure(40, 2_000);
const CALLS = figure(100, 5_000);
const WRITERS = figure(4, 8);
const CALLERS = figure(3, 6);
/** Of the calls, those to machines that share by a broker. */
const MAIL_CALLS = figure(20, 1_000);
const MAIL_CALLERS = 4;
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

afterEach(({ task }) => endParts(task.result?.state === "fail"));

describe.skipIf(natsPrograms.length === 0 || !linux)(title, () => {
  it.each(natsPrograms)(
    "$version: what was acknowledged is there, no effect is doubled and lanes keep their order [engine-outbox] [mail-anywhere] [ack-is-durable] [no-double-effect] [lane-order] [unknown-is-said]",
    async (program) => {
      const beganMs = performance.now();
      const random = seeded(runSeed());
      const nats = await startNats({ program, nodes: 3 });
      const folder = await temporaryDirectory();
      const ledger = join(folder, "ledger.jsonl");
      const server = await startHttpFixture("tracker", ["--ledger", ledger]);
      const key = { file: join(folder, "engine.key") };
      await writeFile(key.file, makeEngineKey(), { mode: 0o600 });
      const outbox = { lane: "arguments.project", key: "arguments.request_id" };
      const engine = { nats: nats.urls, key, replicas: 3 };
      const engineConfig = join(folder, "engine.json");
      await writeFile(engineConfig, JSON.stringify({ engine, mcpServers: {} }));
      const brokers = [];
      for (let n = 0; n < 2; n++) brokers.push(await startBroker(undefined, ["--engine", engineConfig]));
      // Each machine shares at one broker, and is called by way of the other.
      const machines = await Promise.all(brokers.map((broker, n) => Machine.start(broker, `box${n}`)));
      const boxes = brokers.map(({ url }, n) => [`box${1 - n}`, { mailbox: `box${1 - n}`, broker: url }] as const);
      const tracker = { ...server.entry, tools: { create_issue: { outbox } } };
      const mcpServers = { tracker, slow: stdioFixture("slow"), ...Object.fromEntries(boxes) };
      const gateways: Gateway[] = [];
      for (let n = 0; n < 3; n++) gateways.push(await startGateway({ names: "prefixed", engine, mcpServers } as never));
      for (const { url } of gateways) {
        for (const tool of ["tracker__create_issue", "slow__sleep", "box0__note", "box1__note"]) {
          await until(tool, () => hasTool(url, tool));
        }
      }

      const writes: MadeWrite[] = [];
      const sums = { results: 0, receipts: 0, refused: 0, unknown: 0, calls: 0, failed: 0 };
      let told = 0;
      const once = async (write: MadeWrite, n: number) => {
        const { lane: project, title: key } = write;
        const args = { project, title: key, ms: write.answerMs, request_id: key };
        const { url } = gateways[n % gateways.length] as Gateway;
        const late = sleep(PATIENCE_MS).then(() => "late" as const);
        return Promise.race([callTool(url, "tracker__create_issue", args), late]);
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
          const write = begunWrite(n, agent % LANES, random.int(ANSWER_MS), "create_issue");
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
          const reply = await callTool(url, "slow__sleep", { ms: random.int(ANSWER_MS), label: "call" });
          if (reply.error !== undefined || reply.result?.["isError"] === true) {
            sums.failed++;
            wrong.push(`call ${n}: ${JSON.stringify(reply.error ?? reply.result)}`);
          }
        }
      });
      // These need the engine: whoever is not answered is told whether it ran, or that nobody knows.
      const mailTold = new Map<string, Told>();
      const mailCallers = Array.from({ length: MAIL_CALLERS }, async () => {
        while (mailTold.size < MAIL_CALLS || told < WRITES) {
          const n = mailTold.size;
          const text = `mail-${n}`;
          mailTold.set(text, { kind: "cut" });
          const { url } = gateways[n % gateways.length] as Gateway;
          const outcome = await callTool(url, `box${n % 2}__note`, { text, ms: random.int(ANSWER_MS) }).then(
            tellingOf,
            cut,
          );
          mailTold.set(text, outcome);
          if (outcome.kind !== "result") await sleep(50);
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
      await Promise.all([...writers, ...callers, ...mailCallers]);

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
      const mail = { result: 0, unknown: 0, "not run": 0, cut: 0 };
      const noted = await effectsOf(machines);
      let lost = writes.filter(({ title: name }) => !counts.has(name)).length;
      const denied: string[] = [];
      for (const [text, outcome] of mailTold) {
        mail[outcome.kind]++;
        const count = noted.get(text) ?? 0;
        if (outcome.kind === "result" && count === 0) lost++;
        if (outcome.kind === "not run" && count > 0)
          denied.push(`${text} ran, and its caller was told: ${outcome.why}`);
      }
      const doubled = [...counts.values(), ...noted.values()].filter((count) => count > 1).length;
      const disordered: string[] = [];
      for (let lane = 0; lane < LANES; lane++) disordered.push(...disorder(`lane-${lane}`, writes, effects));
      report(
        "cluster",
        `nats ${nats.version}: leader killed ${KILLS} times under ${sums.calls} calls, ${writes.length} writes and ${mailTold.size} calls by two brokers at three gateways ` +
          `(seed ${random.seed}): writes went on after ${gaps.map((s) => s.toFixed(1)).join(", ")} s; ${sums.results} answered at once, ` +
          `${sums.receipts} by a receipt, ${sums.refused} refused and made again, ${sums.unknown} unknown after 25 s and found by their key; ` +
          `by brokers ${mail.result} answered, ${mail.unknown} unknown, ${mail["not run"]} not run, ${mail.cut} cut; ${lost} lost, ${doubled} doubled, ${disordered.length} out of order, ${sums.failed} calls failed; ` +
          `${ledgerLines(ledger).length - effects.length} came twice and were known by their key; ` +
          `${((performance.now() - beganMs) / 1_000).toFixed(0)} s`,
      );
      expect(wrong).toEqual([]);
      // One kill of one node of three is stood by any version; five in a row are not promised by the older ones.
      if (isSafe(nats.version) || !full) {
        expect({ lost, doubled, disordered, denied }).toEqual({ lost: 0, doubled: 0, disordered: [], denied: [] });
        expect(mail.cut).toBe(0);
      }
      expect(performance.now() - beganMs).toBeLessThan(600_000);
    },
    900_000,
  );
});
