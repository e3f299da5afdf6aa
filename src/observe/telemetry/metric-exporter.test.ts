// Metrics on their way to a real collector over HTTP: one that takes, is away, or never answers.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { systemClock } from "../../runtime/clock.js";
import type { MetricReader } from "../metrics/metric-reader.js";
import { Counter } from "../metrics/series.js";
import { openTelemetry } from "./telemetry.js";

const SOON = { timeout: 15_000, interval: 20 };
const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

interface Seen {
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly refused: number;
}

async function collector(answer: (res: ServerResponse) => void) {
  const seen: Seen[] = [];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      const { resourceMetrics } = JSON.parse(Buffer.concat(chunks).toString());
      const [{ sum }] = resourceMetrics[0].scopeMetrics[0].metrics;
      seen.push({ url: req.url, headers: req.headers, refused: sum.dataPoints[0].asDouble });
      answer(res);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUp.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function telemetry(otlp: string, more: { metrics?: boolean; everyMs?: number } = {}) {
  const log: string[] = [];
  const refused = new Counter("toolway_refused_total", "Refused.");
  const opened = await openTelemetry({
    config: { otlp, metrics: more.metrics },
    version: "0",
    clock: systemClock,
    env: {
      OTEL_METRIC_EXPORT_INTERVAL: String(more.everyMs ?? 100),
      OTEL_EXPORTER_OTLP_HEADERS: "x-both=1",
      OTEL_EXPORTER_OTLP_METRICS_HEADERS: "authorization=Bearer%20canary",
    },
    log: (level, text) => log.push(`${level} ${text}`),
  });
  const reader = { load: async () => () => ({ counters: [refused], histograms: [], gauges: [] }), close: () => {} };
  await opened?.takeMetrics(reader as unknown as MetricReader);
  const close = async () => {
    await opened?.endMetrics();
    await opened?.close();
  };
  cleanUp.push(close);
  return { log, close, add: (count: number) => refused.add([["rule", "role"]], count) };
}

it("are sent again and again, each time with all that was counted, and once more at the end [metrics-agree]", async () => {
  const { seen, url } = await collector((res) => res.end("{}"));
  const { add, close, log } = await telemetry(url);
  add(2);
  await vi.waitFor(() => expect(seen.at(-1)?.refused).toBe(2), SOON);
  add(3);
  await vi.waitFor(() => expect(seen.at(-1)?.refused).toBe(5), SOON);
  add(1);
  await close();
  expect(seen.at(-1)?.refused).toBe(6);
  const count = seen.length;
  expect(seen.every((one) => one.url === "/v1/metrics" && one.headers["content-type"] === "application/json")).toBe(
    true,
  );
  // Its own headers, and not those of both.
  expect(seen[0]?.headers["authorization"]).toBe("Bearer canary");
  expect(seen[0]?.headers["x-both"]).toBeUndefined();
  await new Promise((resolve) => setTimeout(resolve, 250));
  expect(seen).toHaveLength(count);
  expect(log).toEqual([]);
});

it("that do not get through are made good by the next ones; that is said once, and no secret with it [secrets-unseen]", async () => {
  let isAway = true;
  const { seen, url } = await collector((res) => (isAway ? res.writeHead(503).end() : res.end("{}")));
  const { add, close, log } = await telemetry(`${url}/v1/traces`);
  add(4);
  await vi.waitFor(() => expect(seen.length).toBeGreaterThan(2), SOON);
  isAway = false;
  add(1);
  await vi.waitFor(() => expect(log).toHaveLength(2), SOON);
  expect(seen.at(-1)?.refused).toBe(5);
  expect(log[0]).toContain("status 503");
  expect(log[1]).toContain("takes them again");
  expect(log.join()).not.toContain("canary");
  await close();
});

it("wait for no collector that never answers, neither while it runs nor at the end [bounded]", async () => {
  const { seen, url } = await collector(() => {});
  const { close, add } = await telemetry(url);
  add(1);
  await vi.waitFor(() => expect(seen).toHaveLength(1), SOON);
  const begun = Date.now();
  await close();
  expect(Date.now() - begun).toBeLessThan(10_000);
  // One was under way, and no second was begun beside it.
  expect(seen.length).toBeLessThanOrEqual(2);
});

it("are not sent where the config says so, and where its address is one for spans alone", async () => {
  const { seen, url } = await collector((res) => res.end("{}"));
  for (const made of [await telemetry(url, { metrics: false }), await telemetry(`${url}/spans`)]) {
    made.add(1);
    await new Promise((resolve) => setTimeout(resolve, 250));
    await made.close();
  }
  expect(seen).toEqual([]);
});
