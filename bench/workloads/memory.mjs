// Memory: resident, when idle, and what each open session adds.

import { callOnce, openSession } from "../ask.mjs";
import { startTarget, stopping } from "../contest.mjs";
import { readRss } from "../cpu.mjs";
import { startLimit } from "../limits/index.mjs";
import { firstLine } from "../processes.mjs";
import { median } from "../ratios.mjs";
import { Connection } from "../replies.mjs";
import { startHttpServer } from "../servers/index.mjs";

const SESSIONS = 500;
const FIRST_SESSIONS = 100;
/** Memory differs little from start to start. */
const MAX_ROUNDS = 5;
/** Node gives memory back and ends its start-up work within a few seconds. */
const SETTLE_MS = 3000;
const QUICK_SETTLE_MS = 500;
const MB = 1_000_000;
const KB = 1000;
const SERVER = "tiny";

export const memory = {
  name: "memory",
  summary: `resident memory, idle and for each of ${SESSIONS} open sessions`,
  run: (context) => stopping((own) => memories(context, own)),
};

async function memories(context, own) {
  const server = await startHttpServer({ era: "legacy", answers: "json" });
  own(server.stop);
  const setup = { upstream: "http", answers: "json", era: "legacy", servers: [server.entry(SERVER)], names: ["echo"] };
  const measured = context.targets.filter(
    (target) => target.name === "bare" || (target.group !== "limit" && target.supports({ ...setup, workDir: "" })),
  );
  const found = new Map(measured.map((target) => [target, { idle: [], perSession: [] }]));
  const rounds = Math.min(context.rounds, MAX_ROUNDS);
  for (let round = 0; round < rounds; round++) {
    for (const target of measured) {
      const one = await stopping((mine) =>
        target.name === "bare" ? bare(mine, context) : used(mine, target, setup, context),
      );
      if (one === undefined) continue;
      found.get(target).idle.push(one.idle / MB);
      if (one.perSession !== undefined) found.get(target).perSession.push(one.perSession / KB);
      const each = one.perSession === undefined ? "" : `, ${(one.perSession / KB).toFixed(1)} kB a session`;
      context.log(`  round ${round + 1}/${rounds}  ${target.name}: ${(one.idle / MB).toFixed(1)} MB${each}`);
    }
  }
  const measures = [];
  for (const [{ name, group }, { idle, perSession }] of found) {
    if (idle.length > 0) measures.push(measureOf("rssIdle", name, group, "MB", idle));
    if (perSession.length > 0) measures.push(measureOf("rssPerSession", name, group, "kB", perSession));
  }
  return { measures };
}

const measureOf = (measure, target, group, unit, rounds) => ({
  measure,
  target,
  group,
  value: median(rounds),
  unit,
  rounds,
});

const settle = ({ quick }) => new Promise((resolve) => setTimeout(resolve, quick ? QUICK_SETTLE_MS : SETTLE_MS));

async function bare(mine, context) {
  const started = startLimit("bare", [], 0);
  mine(started.stop);
  await firstLine(started, "bare");
  await settle(context);
  return { idle: readRss(started.child.pid) };
}

async function used(mine, target, setup, context) {
  const started = await startTarget(target, setup, mine, context);
  if (started === undefined) return undefined;
  const { url, headers, pid, toolName, sessions } = started.running;
  await settle(context);
  const idle = readRss(pid);
  if (!sessions) return { idle };
  const to = { url, headers, era: "legacy" };
  // What the first ones load once, and the room that the heap takes for work of this kind, is not a session's.
  await callOnce(to, toolName(SERVER, "echo"), true);
  await openSessions(to, FIRST_SESSIONS);
  await settle(context);
  const before = readRss(pid);
  await openSessions(to, SESSIONS);
  await settle(context);
  return { idle, perSession: (readRss(pid) - before) / SESSIONS };
}

async function openSessions(to, count) {
  const connection = await Connection.open(to.url);
  for (let opened = 0; opened < count; opened++) await openSession(connection, to);
  connection.close();
}
