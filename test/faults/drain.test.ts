// SIGTERM under load: whoever was let in is served, and streams get their end.

import { Agent, request } from "node:http";
import { describe, expect, it } from "vitest";
import { isAlive, sleep, startGateway, startHttpFixture, stdioFixture, until } from "../e2e/harness.js";
import { eventsOf, initialize, openHttpWire, post } from "../e2e/wire.js";
import { callText } from "./gateway.js";
import { figure } from "./length.js";
import { report } from "./measure.js";

const AGENTS = figure(60, 300);
/** The longest call: within the drain limit of 22 s. */
const LONGEST_MS = figure(2_500, 20_000);
/** The longest that begins after SIGTERM, perhaps when the longest before it has just ended. */
const LATE_MS = 2_000;
/** However long calls are: a service manager kills what is there after 30 s as a rule. */
const GONE_MS = 30_000;
/** Before SIGTERM. */
const LOAD_MS = figure(1_500, 5_000);
/** One agent in so many holds a GET stream open. */
const LISTENERS = 5;

type Outcome = "answered" | "refused" | "failed";

interface Tally {
  /** Calls sent before SIGTERM, and after it on a connection that was there. */
  readonly before: Record<Outcome, number>;
  readonly after: Record<Outcome, number>;
  readonly failures: string[];
}

describe("SIGTERM under load", () => {
  it("fails no call that ends within the drain limit, and ends streams [drain]", async () => {
    const overHttp = await startHttpFixture("slow");
    const gateway = await startGateway({
      names: "prefixed",
      mcpServers: { pipe: stdioFixture("slow"), http: overHttp.entry },
    });
    const wire = await openHttpWire(gateway.url);
    await until("both servers", async () => {
      return (await callText(wire, "pipe__sleep", { ms: 1 })) && (await callText(wire, "http__sleep", { ms: 1 }));
    });
    const tally: Tally = {
      before: { answered: 0, refused: 0, failed: 0 },
      after: { answered: 0, refused: 0, failed: 0 },
      failures: [],
    };
    const state = { terminated: false };
    const sessions = await Promise.all(Array.from({ length: AGENTS }, () => session(gateway.url)));
    const listeners = sessions.filter((_, n) => n % LISTENERS === 0);
    const streams = await Promise.all(listeners.map((id) => listen(gateway.url, id)));
    const agents = sessions.map((id, n) => load(gateway.port, id, n, state, tally));
    await sleep(LOAD_MS);
    state.terminated = true;
    const asked = performance.now();
    gateway.signal("SIGTERM");
    await Promise.all(agents);
    await gateway.exited;
    const tookMs = performance.now() - asked;
    const ends = await Promise.all(streams.map(({ end }) => end));
    report(
      "SIGTERM under load",
      `${AGENTS} agents: ${tally.before.answered} of ${total(tally.before)} calls sent before it answered, of those after ` +
        `it ${tally.after.answered} answered and ${tally.after.refused} refused at the door; ${tally.failures.length} failed; ` +
        `${ends.filter((end) => end === "ended").length} of ${ends.length} streams ended cleanly; gone after ` +
        `${(tookMs / 1000).toFixed(1)} s [drain]`,
    );
    expect(tally.failures).toEqual([]);
    expect(tally.before.refused).toBe(0);
    expect(ends).toEqual(ends.map(() => "ended"));
    expect(isAlive(gateway.pid)).toBe(false);
    expect(tookMs).toBeLessThan(GONE_MS);
  }, 120_000);
});

const total = (outcomes: Record<Outcome, number>) => outcomes.answered + outcomes.refused + outcomes.failed;

async function session(url: string): Promise<string> {
  return (await post(url, initialize("0"))).headers.get("mcp-session-id") ?? "";
}

/** Resolves when the stream is open; `end` when it is over. */
async function listen(url: string, id: string): Promise<{ readonly end: Promise<string> }> {
  const headers = { accept: "text/event-stream", "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" };
  const response = await fetch(url, { headers });
  const end = response.text().then(
    () => "ended",
    () => "broken",
  );
  return { end };
}

/** An agent that calls again as soon as it has its answer, on a connection that it keeps, until it is let in no more. */
async function load(
  port: number,
  id: string,
  agent: number,
  state: { terminated: boolean },
  tally: Tally,
): Promise<void> {
  const connections = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let n = 0; ; n++) {
    // Most are quick; some are still at work when the drain is nearly over.
    const ms = Math.round(Math.random() ** 4 * (state.terminated ? LATE_MS : LONGEST_MS));
    const label = `${agent}.${n}`;
    const which = n % 2 === 0 ? "pipe" : "http";
    const params = {
      name: `${which}__sleep`,
      arguments: { ms, label, everyMs: 500 },
      // Every third is answered with a stream, if it takes long enough.
      ...(n % 3 === 0 ? { _meta: { progressToken: n } } : {}),
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: n, method: "tools/call", params });
    const when = state.terminated ? tally.after : tally.before;
    const [outcome, why] = await send(port, id, connections, body, JSON.stringify({ slept: ms, label }));
    when[outcome]++;
    if (outcome === "failed")
      tally.failures.push(`${label}, ${ms} ms, ${which}, after SIGTERM: ${when === tally.after}: ${why}`);
    if (outcome !== "answered") break;
  }
  connections.destroy();
}

function send(port: number, id: string, agent: Agent, body: string, wanted: string): Promise<[Outcome, string]> {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-session-id": id,
    "content-length": Buffer.byteLength(body),
  };
  return new Promise((resolve) => {
    const req = request({ host: "127.0.0.1", port, path: "/mcp", method: "POST", headers, agent }, (res) => {
      let text = "";
      res.setEncoding("utf8");
      res.on("data", (chunk: string) => {
        text += chunk;
      });
      res.on("error", (error) => resolve(["failed", String(error)]));
      res.on("end", () => {
        // Nobody whose connection was there is told so.
        const isNew = res.statusCode === 503 && res.headers["retry-after"] !== undefined && !req.reusedSocket;
        if (isNew) return resolve(["refused", text]);
        const last = res.headers["content-type"] === "text/event-stream" ? eventsOf(text).at(-1) : text;
        resolve([
          last?.includes(JSON.stringify(wanted)) ? "answered" : "failed",
          `${res.statusCode} ${text.slice(0, 300)}`,
        ]);
      });
    });
    req.on("error", (error: NodeJS.ErrnoException) => {
      resolve([error.code === "ECONNREFUSED" ? "refused" : "failed", String(error)]);
    });
    req.end(body);
  });
}
