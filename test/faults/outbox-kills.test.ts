// Agents write through a gateway to a server, and both are killed at random moments. What was done is counted in the
// server's own file, and compared with what the agents were told.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Gateway, sleep, startGateway, startHttpFixture, temporaryDirectory, until } from "../e2e/harness.js";
import { callTool, hasTool, statusOfAll, toolway } from "../e2e/operator.js";
import { effectsIn, ledgerLines } from "../fixtures/ledger.js";
import { begunWrite, disorder, isReceipt, type MadeWrite } from "../fixtures/outbox/kept-writes.js";
import { figure } from "./length.js";
import { linux, report } from "./measure.js";
import { runSeed, seeded } from "./random.js";

const AGENTS = 8;
const LANES = 4;
/** Of the gateway, and as many of the server. */
const KILLS = figure(3, 20);
const WRITES = figure(120, 2_000);
/** An answer comes up to so long after its effect: kills fall in between. */
const ANSWER_MS = 50;
/** A server is away for up to so long, beside the time that it takes to start. */
const AWAY_MS = figure(100, 500);
/** Every fifth write goes to a tool whose server knows no keys. */
const COMMENT_EVERY = 5;

describe.skipIf(!linux)("kills of gateway and server", () => {
  const ends: (() => Promise<void>)[] = [];
  afterAll(async () => void (await Promise.allSettled(ends.map((end) => end()))));

  it(`${KILLS} of each, lose none of ${WRITES} writes, double none, keep the order of every lane, and leave unknown only what nobody can tell [ack-is-durable] [no-double-effect] [lane-order] [unknown-is-said]`, async () => {
    const random = seeded(runSeed());
    const ledger = join(await temporaryDirectory(), "ledger.jsonl");
    const answers = join(await temporaryDirectory(), "answers");
    const files = ["--ledger", ledger, "--answers", answers];
    let server = await startHttpFixture("tracker", files);
    const outbox = { lane: "arguments.project" };
    const tools = { create_issue: { outbox: { ...outbox, key: "arguments.request_id" } }, add_comment: { outbox } };
    // It is killed more often here than a server may be that is not left alone for a while.
    const tracker = { ...server.entry, tools, restarts: { max: 1_000 }, breaker: { failures: 1_000 } };
    let gateway: Gateway = await startGateway({ mcpServers: { tracker } });
    const { url } = gateway;
    let gatewayUp: Promise<unknown> = Promise.resolve();
    await until("the tools", () => hasTool(url, "create_issue"));

    const writes: MadeWrite[] = [];
    const sums = { cut: 0, receipts: 0, results: 0 };
    let told = 0;
    /** When the gateway was gone and when it was there again, by the calendar that the server writes down. */
    const outages: Outage[] = [];

    /** The same write by the same key until somebody answers, as an agent does whose connection was cut. */
    async function settled(write: MadeWrite) {
      const { tool, lane: project, title } = write;
      const args = { project, title, ms: write.answerMs, request_id: title };
      for (;;) {
        await gatewayUp;
        try {
          return await callTool(url, tool, args, undefined, { "toolway/idempotencyKey": title });
        } catch {
          sums.cut++;
          await sleep(20);
        }
      }
    }

    const agents = Array.from({ length: AGENTS }, async (_, agent) => {
      while (writes.length < WRITES) {
        const n = writes.length;
        const tool = n % COMMENT_EVERY === 0 ? "add_comment" : "create_issue";
        const write = begunWrite(n, agent % LANES, random.int(ANSWER_MS), tool);
        writes.push(write);
        const { result } = await settled(write);
        write.toldMs = performance.now();
        told++;
        if (isReceipt(result)) sums.receipts++;
        else if (result !== undefined) sums.results++;
      }
    });

    const turns = Array.from({ length: 2 * KILLS }, (_, n) => (n % 2 === 0 ? "gateway" : "server"));
    for (const [turn, who] of turns.entries()) {
      await until("some writes", () => told >= Math.floor((turn * WRITES) / (turns.length + 1)));
      await sleep(random.int(60));
      if (who === "gateway") {
        let goneMs = 0;
        const back = gateway.stop("SIGKILL").then(() => {
          goneMs = Date.now();
          return gateway.again();
        });
        gatewayUp = back.catch(() => {});
        gateway = await back;
        outages.push({ goneMs, backMs: Date.now() });
      } else {
        await server.kill();
        await sleep(random.int(AWAY_MS));
        server = await startHttpFixture("tracker", files, server.port);
      }
    }
    await Promise.all(agents);
    await until("the end of each write", async () => (await statusOfAll(gateway)).outbox?.waiting === 0);

    const effects = effectsIn(ledger);
    const counts = new Map<string, number>();
    for (const { title } of effects) counts.set(title, (counts.get(title) ?? 0) + 1);
    const wrong: string[] = [];
    const unknown: string[] = [];
    for (const write of writes) {
      const { tool, title } = write;
      const count = counts.get(title) ?? 0;
      // The same key once more finds what became of it, and does nothing.
      const { result, error } = await settled(write);
      const isDone = error === undefined && !isReceipt(result) && result?.["isError"] !== true;
      const said = JSON.stringify(error ?? result);
      const isUnknown = tool === "add_comment" && /unknown/.test(said);
      if (isUnknown) unknown.push(title);
      if (isUnknown ? count > 1 : !(isDone && count === 1)) wrong.push(`${title}: ${count} effects, and told ${said}`);
    }
    // What the server's journal has no answer of, nobody can tell of: all of that is unknown. Of all else nothing is, but the one
    // write of a lane whose answer a kill of the gateway may have met on its way.
    const met = answersMetBy(outages, answers, writes);
    const answered = new Set(journalOf(answers).map(({ title }) => title));
    const unanswered = writes.filter(({ title }) => !answered.has(title)).map(({ title }) => title);
    const undecided = new Set([...unanswered, ...unknown.filter((title) => met.has(title))]);
    expect(new Set(unknown), "unknown, against what the server's journal cannot decide").toEqual(undecided);
    const shown = await toolway(gateway, "outbox", "list", "--only", "unknown", "--limit", "1000", "--json");
    const known = (JSON.parse(shown.out) as { writes: { idempotencyKey: string }[] }).writes;
    expect(new Set(known.map(({ idempotencyKey }) => idempotencyKey))).toEqual(new Set(unknown));
    for (let lane = 0; lane < LANES; lane++) wrong.push(...disorder(`lane-${lane}`, writes, effects));
    const repeats = ledgerLines(ledger).length - effects.length;
    const lost = writes.filter(({ tool, title }) => tool === "create_issue" && !counts.has(title)).length;
    const doubled = [...counts.values()].filter((count) => count > 1).length;
    report(
      "outbox",
      `${KILLS} kills of the gateway and ${KILLS} of the server, ${writes.length} writes of ${AGENTS} agents in ${LANES} ` +
        `lanes (seed ${random.seed}): ${sums.results} answered at once, ${sums.receipts} by a receipt, ${sums.cut} ` +
        `connections cut; ${lost} lost, ${doubled} doubled; ${repeats} came twice and were known by their key; ` +
        `${unknown.length} without a key said to be unknown: ${unanswered.length} that the server's journal has no answer of, and ` +
        `${unknown.length - unanswered.length} whose answer met a kill of the gateway [ack-is-durable] [no-double-effect] [lane-order]`,
    );
    expect(wrong).toEqual([]);
    expect(effectsIn(ledger)).toHaveLength(effects.length);
    expect(sums.receipts).toBeGreaterThan(0);
  }, 900_000);
});

interface Answered {
  readonly title: string;
  readonly atMs: number;
}

/** What the server wrote down before each of its answers. */
function journalOf(file: string): Answered[] {
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => {
    const [title = "", atMs] = line.split(" ");
    return { title, atMs: Number(atMs) };
  });
}

interface Outage {
  readonly goneMs: number;
  readonly backMs: number;
}

/**
 * A lane sends one write at a time, so that of each lane a kill meets at most the last that was answered before it; and what
 * was answered while nobody was there.
 */
function answersMetBy(outages: readonly Outage[], file: string, writes: readonly MadeWrite[]): Set<string> {
  const laneOf = new Map(writes.map(({ title, lane }) => [title, lane]));
  const journal = journalOf(file);
  const met = new Set<string>();
  for (const { goneMs, backMs } of outages) {
    const last = new Map<string, string>();
    for (const { title, atMs } of journal) {
      if (atMs <= goneMs) last.set(laneOf.get(title) ?? "", title);
      else if (atMs <= backMs) met.add(title);
    }
    for (const title of last.values()) met.add(title);
  }
  return met;
}
