// The page under load: 500 servers, 10,000 calls a minute, Overview and Calls open. What it costs the browser, and what it
// costs the gateway that it is open.

import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, sleep, startGateway, until } from "../e2e/harness.js";
import { callTool, statusOfAll } from "../e2e/operator.js";
import { chromium, NO_BROWSER } from "../fixtures/browser.js";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";
import { BROWSER_MS, PageBrowser } from "../fixtures/page.js";
import { figure, full } from "./length.js";
import { linux, MB, report } from "./measure.js";

const SERVERS = figure(40, 500);
const CALLS_A_SECOND = figure(60, 10_000 / 60);
const MEASURED_MS = figure(2_000, 60_000);
/** The first view is drawn, and what is loaded once is loaded. */
const SETTLE_MS = figure(1_000, 10_000);
const STEP_MS = 50;
/**
 * Half of what a gateway lets in at a time. A process that was held up for some seconds would else send all that it has missed at
 * once, and hear that this is too much.
 */
const MAX_UNDER_WAY = 500;
/** Longer than the run. */
const KEPT_MS = 600_000;

/** The bounds of the full run: of a page that is left open all day. */
const TASK_MS = 200;
const MAIN_THREAD_SHARE = 0.25;
const BYTES_A_SECOND = 100_000;
const HEAP_BYTES = 20 * MB;
const GATEWAY_MS_A_SECOND = 30;
/** As many rows as the page of calls has at most, and some. */
const MAX_ROWS = 250;
/** Of a row that came and has none that went for it; and what else a page may have more of: a need, a number. */
const NODES_A_ROW = 40;
const MORE_NODES = 1_000;

const title = `the page under load${chromium === undefined ? ` (${NO_BROWSER})` : ""}`;

describe.skipIf(chromium === undefined || !linux)(title, () => {
  let browser: PageBrowser;
  let gateway: Gateway;
  let upstream: Server;
  let calls = 0;
  const failures: string[] = [];

  beforeAll(async () => {
    upstream = createServer((request, response) => {
      let text = "";
      request.on("data", (piece) => {
        text += piece;
      });
      request.on("end", () => {
        const reply = request.method === "POST" ? replyTo(JSON.parse(text), request.url ?? "") : undefined;
        if (reply === undefined) response.writeHead(request.method === "POST" ? 202 : 405).end();
        else response.setHeader("content-type", "application/json").end(JSON.stringify(reply));
      });
    });
    // Calls of one server are seconds apart. This is no test of connections that end in the moment in which they are used, and on
    // a machine without a free core this process may hear of a call only after it has ended what it came on.
    upstream.keepAliveTimeout = KEPT_MS;
    const port = await listenOnLoopback(upstream);
    const mcpServers = Object.fromEntries(
      Array.from({ length: SERVERS }, (_, n) => [`s${n}`, { url: `http://127.0.0.1:${port}/s${n}/mcp` }]),
    );
    [browser, gateway] = await Promise.all([PageBrowser.launch(), startGateway({ mcpServers })]);
    const areReady = async () => (await statusOfAll(gateway)).servers.every(({ state }) => state === "ready");
    await until("all servers", areReady, 120_000);
  }, 180_000);

  afterAll(async () => {
    await browser?.close();
    if (upstream !== undefined) await closeHttp(upstream);
  });

  /** Calls at a steady rate for so long, all over the servers. */
  const load = async (ms: number) => {
    const under = new Set<Promise<unknown>>();
    const begunMs = performance.now();
    let sent = 0;
    while (performance.now() - begunMs < ms) {
      const due = Math.floor(((performance.now() - begunMs) / 1_000) * CALLS_A_SECOND);
      for (; sent < due && under.size < MAX_UNDER_WAY; sent++) {
        calls++;
        const one = callTool(gateway.url, `do${calls % SERVERS}`, {})
          .then(({ error }) => {
            if (error !== undefined) failures.push(JSON.stringify(error));
          })
          .finally(() => under.delete(one));
        under.add(one);
      }
      await sleep(STEP_MS);
    }
    await Promise.all(under);
  };

  /** CPU of the gateway in a second of load, in milliseconds. */
  const gatewayCost = async () => {
    const [before, begunMs] = [cpuMs(gateway.pid), performance.now()];
    await load(MEASURED_MS);
    return ((cpuMs(gateway.pid) - before) * 1_000) / (performance.now() - begunMs);
  };

  it(
    "costs the browser and the gateway little, however many servers and calls there are [bounded]",
    async () => {
      await load(SETTLE_MS);
      const without = await gatewayCost();
      const overview = await browser.open(gateway);
      const listed = await overview.context().newPage();
      await listed.goto(new URL("/calls", overview.url()).href);
      await listed.locator("tbody tr").first().waitFor();
      const watched = await Promise.all([watch(overview), watch(listed)]);
      await load(SETTLE_MS);
      const before = await Promise.all(watched.map((one) => one.look()));
      // What is collected for the looks is not in it.
      const tracing = overview.context().browser();
      await tracing?.startTracing(listed, { categories: ["toplevel"] });
      const withPages = await gatewayCost();
      const { longestMs, busiestMs } = tasksIn(await tracing?.stopTracing());
      const after = await Promise.all(watched.map((one) => one.look()));
      const seconds = MEASURED_MS / 1_000;
      const figures = after.map((now, n) => {
        const then = before[n] as typeof now;
        return {
          share: (now.taskSeconds - then.taskSeconds) / seconds,
          bytes: (now.bytes - then.bytes) / seconds,
          heap: now.heapBytes - then.heapBytes,
          longest: Math.max(0, ...now.tasks.slice(then.counted)),
          rows: now.rows,
          // What has left the page is not kept by it.
          nodes: now.nodes - then.nodes - NODES_A_ROW * Math.max(0, now.rows - then.rows),
        };
      });
      const more = withPages - without;
      const said = figures.map(
        ({ share, bytes, heap, longest, rows }, n) =>
          `${["Overview", "Calls"][n]} ${(share * 100).toFixed(1)} % of a main thread, longest task ${longest.toFixed(0)} ms, ` +
          `${(bytes / 1_000).toFixed(1)} kB a second, heap ${(heap / MB).toFixed(1)} MB more, ${rows} rows`,
      );
      report(
        "page under load",
        `${SERVERS} servers, ${(CALLS_A_SECOND * 60).toFixed(0)} calls a minute for ${seconds} s: ${said.join("; ")}; ` +
          `of CPU the busiest main thread had ${((busiestMs / MEASURED_MS) * 100).toFixed(1)} %, the longest task ${longestMs.toFixed(0)} ms; gateway ${without.toFixed(0)} ms of CPU a second without pages, ${more.toFixed(0)} more with both [bounded]`,
      );
      expect([failures.length, failures[0]]).toEqual([0, undefined]);
      expect(browser.complaints).toEqual([]);
      for (const { bytes, rows, nodes } of figures) {
        expect(bytes).toBeLessThan(BYTES_A_SECOND);
        expect(rows).toBeLessThan(MAX_ROWS);
        expect(nodes).toBeLessThan(MORE_NODES);
      }
      // What depends on who else uses the machine is asserted where nobody does.
      if (!full) return;
      expect(longestMs).toBeLessThan(TASK_MS);
      expect(busiestMs / MEASURED_MS).toBeLessThan(MAIN_THREAD_SHARE);
      for (const { heap } of figures) expect(heap).toBeLessThan(HEAP_BYTES);
      expect(more).toBeLessThan(GATEWAY_MS_A_SECOND);
    },
    300_000 + BROWSER_MS,
  );
});

/**
 * Of the main threads of all pages, by the CPU that it had: on two cores with a load of 20 a task of 20 ms stands 216 ms on the
 * clock, ten times out of eleven waiting for a core.
 */
function tasksIn(trace: Buffer | undefined): { readonly longestMs: number; readonly busiestMs: number } {
  const { traceEvents } = JSON.parse(String(trace)) as { traceEvents: readonly TraceEvent[] };
  const spentMs = new Map<string, number>();
  for (const { name, pid, tid, args } of traceEvents) {
    if (name === "thread_name" && args?.name === "CrRendererMain") spentMs.set(`${pid} ${tid}`, 0);
  }
  let longestMs = 0;
  for (const { name, pid, tid, tdur = 0 } of traceEvents) {
    const spent = spentMs.get(`${pid} ${tid}`);
    if (spent === undefined || !name.endsWith("RunTask")) continue;
    longestMs = Math.max(longestMs, tdur / 1_000);
    spentMs.set(`${pid} ${tid}`, spent + tdur / 1_000);
  }
  expect(longestMs).toBeGreaterThan(0);
  return { longestMs, busiestMs: Math.max(...spentMs.values()) };
}

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  /** In microseconds, of the thread's own clock. */
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

interface Seen {
  readonly taskSeconds: number;
  readonly heapBytes: number;
  /** That came over the network since it is watched. */
  readonly bytes: number;
  /** Tasks of 50 ms and more, each as long as it was, in milliseconds. */
  readonly tasks: readonly number[];
  /** How many of these there were when the look was over. */
  readonly counted: number;
  readonly rows: number;
  /** Of its document, and those that something still holds. */
  readonly nodes: number;
}

/** More than the collector takes for a page of a few MB. */
const OWN_TASK_MS = 500;

function metricOf(metrics: readonly { readonly name: string; readonly value: number }[], name: string): number {
  return metrics.find((one) => one.name === name)?.value ?? 0;
}

async function watch(page: Page): Promise<{ look(): Promise<Seen> }> {
  const cdp: CDPSession = await page.context().newCDPSession(page);
  let bytes = 0;
  cdp.on("Network.dataReceived", ({ dataLength, encodedDataLength }) => {
    // A stream that goes on has no encoded length yet.
    bytes += encodedDataLength > 0 ? encodedDataLength : dataLength;
  });
  await cdp.send("Network.enable");
  await cdp.send("Performance.enable");
  await page.evaluate(
    "globalThis.tasks = []; new PerformanceObserver((list) => list.getEntries().forEach((one) => tasks.push(one.duration))).observe({ type: 'longtask' }); 0",
  );
  return {
    async look() {
      const { metrics } = await cdp.send("Performance.getMetrics");
      const tasks = await page.evaluate<number[]>("tasks");
      const rows = await page.locator("main tr, main li").count();
      // A task of ours, which is told a little later: it is not among those that are counted.
      await cdp.send("HeapProfiler.collectGarbage");
      // At once: rows go on to come and to leave.
      const after = (await cdp.send("Performance.getMetrics")).metrics;
      await sleep(OWN_TASK_MS);
      return {
        taskSeconds: metricOf(metrics, "TaskDuration"),
        heapBytes: metricOf(after, "JSHeapUsedSize"),
        bytes,
        tasks,
        counted: await page.evaluate<number>("tasks.length"),
        rows,
        nodes: metricOf(after, "Nodes"),
      };
    },
  };
}

/** A server with one tool, whose name is another at each path: `/s7/mcp` has `do7`. */
function replyTo(
  { id, method, params }: { id?: unknown; method: string; params?: { protocolVersion?: string } },
  url: string,
) {
  if (id === undefined) return undefined;
  const result = resultOf(method, params?.protocolVersion, /\d+/.exec(url)?.[0] ?? "");
  if (result === undefined) return { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } };
  return { jsonrpc: "2.0", id, result };
}

function resultOf(method: string, version: string | undefined, number: string): object | undefined {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: version ?? "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: `s${number}`, version: "1" },
      };
    case "ping":
      return {};
    case "tools/list":
      return { tools: [{ name: `do${number}`, description: "Does it.", inputSchema: { type: "object" } }] };
    case "tools/call":
      return { content: [{ type: "text", text: "done" }] };
    default:
      return undefined;
  }
}

/** User and system time of a process, to a hundredth of a second. */
function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
