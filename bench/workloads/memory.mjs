// Memory: resident, when idle, and what each open session adds: one that holds nothing, one with an open stream, and a
// modern agent's subscription.

import { request } from "node:http";
import { callOnce, openSession } from "../ask.mjs";
import { startTarget, stopping } from "../contest.mjs";
import { readRss } from "../cpu.mjs";
import { startLimit } from "../limits/index.mjs";
import { firstLine } from "../processes.mjs";
import { median } from "../ratios.mjs";
import { Connection } from "../replies.mjs";
import { anyRequest } from "../requests.mjs";
import { startHttpServer } from "../servers/index.mjs";
import { isToolway } from "../toolway.mjs";

const SESSIONS = 500;
const FIRST_SESSIONS = 100;
/** Each has a connection of its own, at both ends. */
const STREAMS = 200;
const QUICK_STREAMS = 20;
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
    (target) =>
      target.name === "bare" ||
      isToolway(target) ||
      (target.group !== "limit" && target.supports({ ...setup, workDir: "" })),
  );
  const found = new Map(measured.map((target) => [target, { idle: [], perSession: [], perStream: [], perListen: [] }]));
  const rounds = Math.min(context.rounds, MAX_ROUNDS);
  for (let round = 0; round < rounds; round++) {
    for (const target of measured) {
      const one = await stopping((mine) =>
        target.name === "bare" ? bare(mine, context) : used(mine, target, setup, context),
      );
      if (one === undefined) continue;
      found.get(target).idle.push(one.idle / MB);
      let each = "";
      for (const [key, word] of Object.entries(EACH)) {
        if (one[key] === undefined) continue;
        found.get(target)[key].push(one[key] / KB);
        each += `, ${(one[key] / KB).toFixed(1)} kB a ${word}`;
      }
      context.log(`  round ${round + 1}/${rounds}  ${target.name}: ${(one.idle / MB).toFixed(1)} MB${each}`);
    }
  }
  const measures = [];
  for (const [{ name, group }, { idle, perSession, perStream, perListen }] of found) {
    if (idle.length > 0) measures.push(measureOf("rssIdle", name, group, "MB", idle));
    for (const [measure, rounds] of Object.entries({
      rssPerSession: perSession,
      rssPerStream: perStream,
      rssPerListen: perListen,
    })) {
      if (rounds.length > 0) measures.push(measureOf(measure, name, group, "kB", rounds));
    }
  }
  return { measures };
}

/** What is counted for each, and its word. */
const EACH = { perSession: "session", perStream: "stream", perListen: "subscription" };

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
  const perSession = (readRss(pid) - before) / SESSIONS;
  if (!isToolway(target)) return { idle, perSession };
  const count = context.quick ? QUICK_STREAMS : STREAMS;
  const each = async (open) => {
    // The first of a kind load its code.
    for (let i = 0; i < FIRST_STREAMS; i++) mine(await open());
    await settle(context);
    const was = readRss(pid);
    for (let i = 0; i < count; i++) mine(await open());
    await settle(context);
    return (readRss(pid) - was) / count;
  };
  const perStream = await each(() => openStream(to));
  const perListen = await each(() => openListen({ ...to, era: "modern" }));
  return { idle, perSession, perStream, perListen };
}

const FIRST_STREAMS = 10;

/** A legacy session with its GET stream. Resolves when the stream stands; what it gives closes it. */
async function openStream(to) {
  const connection = await Connection.open(to.url);
  const session = await openSession(connection, to);
  connection.close();
  const headers = { ...to.headers, Accept: "text/event-stream", "Mcp-Session-Id": session };
  return await held(to.url, { method: "GET", headers: { ...headers, "Mcp-Protocol-Version": "2025-11-25" } });
}

/** A modern agent that wants to hear of changed tools. */
async function openListen(to) {
  const { bytes } = anyRequest(to, "subscriptions/listen", { notifications: { toolsListChanged: true } });
  const [head, body] = bytes.toString().split("\r\n\r\n");
  const lines = head.split("\r\n").slice(1);
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]),
  );
  return await held(to.url, { method: "POST", headers }, body);
}

/** An answer that goes on, on a connection of its own: until its first byte, then it is left open. */
function held(url, options, body) {
  return new Promise((done, fail) => {
    const asked = request(url, { ...options, agent: false }, (response) => {
      response.on("error", () => {});
      if (response.statusCode !== 200) fail(new Error(`A stream was answered with HTTP ${response.statusCode}.`));
      response.resume();
      done(() => asked.destroy());
    });
    asked.on("error", fail);
    asked.end(body);
  });
}

async function openSessions(to, count) {
  const connection = await Connection.open(to.url);
  for (let opened = 0; opened < count; opened++) await openSession(connection, to);
  connection.close();
}
