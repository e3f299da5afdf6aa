// The load: a process of its own that makes calls on raw sockets and checks every answer. It is told by its parent, over
// IPC, where to call and when to begin; it knows neither targets nor CPU.

import { openSession } from "./ask.mjs";
import { Connection } from "./replies.mjs";
import { callRequest, FIRST_ID, LAST_ID, listRequest, setId } from "./requests.mjs";
import { verifier } from "./verify.mjs";

/** Sessions are opened on so many connections at once. */
const OPENERS = 8;
const MAX_CALLS = 1_000_000;

/**
 * @typedef {{
 *   key: string, url: string, headers: Record<string, string>, era: "legacy" | "modern",
 *   sessions: number, names: string[], expected: { kind: "echo" | "big" } | { kind: "result", tool: string } | { kind: "list", tools: number },
 *   inFlight: number,
 * }} Job
 */

const jobs = new Map();
const latencies = new Float64Array(MAX_CALLS);
let nextId = FIRST_ID;
let go = () => {};

process.on("message", (message) => {
  if (message.do === "go") return go();
  const done = message.do === "open" ? open(message.job) : round(message);
  done.then(
    (result) => process.send({ did: message.do, ...result }),
    (error) => process.send({ did: "fail", message: error.message }),
  );
});
process.on("disconnect", () => process.exit(0));

/** @param {Job} job */
async function open(job) {
  const { url, headers, era, names, expected } = job;
  const ids = await sessions(job);
  const requests = [];
  for (let i = 0; i < Math.max(names.length, ids.length); i++) {
    const session = ids.length === 0 ? undefined : ids[i % ids.length];
    const to = { url, headers, era, session };
    const name = names[i % names.length];
    if (expected.kind === "list") requests.push(listRequest(to));
    else requests.push(callRequest(to, name, expected.kind === "echo" ? undefined : {}));
  }
  jobs.set(job.key, { job, requests, next: 0, verify: verifier(expected) });
  return {};
}

/** Opens the sessions of a job, and returns their ids; none where the target gives none. */
async function sessions({ url, headers, era, sessions: count }) {
  const ids = [];
  let begun = 0;
  await Promise.all(
    Array.from({ length: Math.min(count, OPENERS) }, async () => {
      const connection = await Connection.open(url);
      while (begun++ < count) ids.push(await openSession(connection, { url, headers, era }));
      connection.close();
    }),
  );
  return ids.filter((id) => id !== undefined);
}

/** Connects, warms up, says that it is ready, and makes the calls when it is told to go. */
async function round({ key, warm, calls, maxMs }) {
  const one = jobs.get(key);
  const { url, inFlight } = one.job;
  const connections = await Promise.all(Array.from({ length: inFlight }, () => Connection.open(url)));
  try {
    await run(one, connections, warm, Number.POSITIVE_INFINITY);
    const told = new Promise((resolve) => {
      go = resolve;
    });
    process.send({ did: "ready" });
    await told;
    return await run(one, connections, calls, maxMs);
  } finally {
    for (const connection of connections) connection.close();
  }
}

function run(one, connections, calls, maxMs) {
  const { requests, verify } = one;
  const begin = performance.now();
  let started = 0;
  let ended = 0;
  return new Promise((resolve, reject) => {
    const send = (connection) => {
      const request = requests[one.next];
      one.next = one.next + 1 === requests.length ? 0 : one.next + 1;
      if (++nextId > LAST_ID) nextId = FIRST_ID + 1;
      setId(request, nextId);
      connection.id = nextId;
      started += 1;
      connection.startedAt = performance.now();
      connection.send(request.bytes);
    };
    const faultOf = (connection) => {
      try {
        return verify(connection);
      } catch (error) {
        return `An answer that cannot be read: ${error.message}`;
      }
    };
    const onReply = (connection) => {
      const now = performance.now();
      const fault = faultOf(connection);
      if (fault !== undefined) return reject(new Error(fault));
      latencies[ended++] = now - connection.startedAt;
      if (started < calls && now - begin < maxMs) send(connection);
      else if (ended === started) resolve(summary(ended, now - begin));
    };
    for (const connection of connections) {
      connection.onReply = onReply;
      connection.onFault = reject;
      if (started < calls) send(connection);
    }
  });
}

function summary(calls, ms) {
  const sorted = latencies.subarray(0, calls).sort();
  return {
    calls,
    verified: calls,
    callsPerSec: (calls / ms) * 1000,
    p50Ms: sorted[Math.floor(calls / 2)],
    p99Ms: sorted[Math.min(calls - 1, Math.floor(calls * 0.99))],
  };
}
