// The exporter against a real collector over HTTP: one that takes, refuses, breaks off or is not there.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../runtime/clock.js";
import { emptyRecord } from "../call-record.js";
import { OwnTracer } from "../traces.js";
import { OtlpExporter, type OtlpOptions } from "./span-exporter.js";
import { openTelemetry } from "./telemetry.js";

const SOON = { timeout: 15_000, interval: 20 };
const origin = { serviceName: "toolway", version: "0", instanceId: "test" };
const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

interface Request {
  readonly headers: IncomingMessage["headers"];
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly spans: { spanId: string }[];
}

async function collector(answer: (res: ServerResponse, nth: number) => void = (res) => void res.end("{}")) {
  const requests: Request[] = [];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString());
      const spans = body.resourceSpans[0].scopeSpans[0].spans as { spanId: string }[];
      requests.push({ headers: req.headers, method: req.method, url: req.url, spans });
      answer(res, requests.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUp.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces` };
}

function exporter(url: string, options: Partial<OtlpOptions> = {}) {
  const log: string[] = [];
  const made = new OtlpExporter({
    url,
    origin,
    log: (level, text) => log.push(`${level} ${text}`),
    batchAfterMs: 10,
    backoff: { baseMs: 10, maxMs: 20 },
    ...options,
  });
  cleanUp.push(() => made.close());
  const tracer = new OwnTracer({ sink: made, clock: systemClock });
  const call = (times = 1) => {
    for (let i = 0; i < times; i++) {
      const params = undefined;
      tracer.begin({ name: "tools/call t", params })?.end(emptyRecord());
    }
  };
  return { exporter: made, log, call };
}

describe("the exporter", () => {
  it("sends what comes together as one batch, with the headers it was given", async () => {
    const { requests, url } = await collector();
    const { exporter: own, call, log } = exporter(url, { headers: { "x-key": "secret" } });
    call(3);
    await vi.waitFor(() => expect(own.stats).toEqual({ sent: 3, dropped: 0, queued: 0 }), SOON);
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({ method: "POST", url: "/v1/traces" });
    expect(requests[0]?.headers).toMatchObject({ "x-key": "secret", "content-type": "application/json" });
    expect(log).toEqual([]);
  });

  it("sends each span once, in bounded batches", async () => {
    const { requests, url } = await collector();
    const { exporter: own, call } = exporter(url);
    call(2_000);
    await vi.waitFor(() => expect(own.stats.sent).toBe(2_000), SOON);
    expect(Math.max(...requests.map(({ spans }) => spans.length))).toBeLessThanOrEqual(512);
    expect(new Set(requests.flatMap(({ spans }) => spans.map(({ spanId }) => spanId))).size).toBe(2_000);
  });

  it("lets what comes while a batch is on its way wait for a batch of its own", async () => {
    const answers: ServerResponse[] = [];
    const { requests, url } = await collector((res) => answers.push(res));
    const { exporter: own, call } = exporter(url, { batchAfterMs: 300 });
    call(1);
    await vi.waitFor(() => expect(answers).toHaveLength(1), SOON);
    call(1);
    answers[0]?.end("{}");
    await vi.waitFor(() => expect(own.stats).toEqual({ sent: 1, dropped: 0, queued: 1 }), SOON);
    call(2);
    await vi.waitFor(() => expect(answers).toHaveLength(2), SOON);
    expect(requests.map(({ spans }) => spans.length)).toEqual([1, 3]);
    answers[1]?.end("{}");
    await vi.waitFor(() => expect(own.stats).toEqual({ sent: 4, dropped: 0, queued: 0 }), SOON);
  });

  it("sends a batch again that the collector could not take, and says so once", async () => {
    const { requests, url } = await collector((res, nth) => {
      if (nth === 1) res.destroy();
      else if (nth === 2) res.writeHead(503, { "retry-after": "0" }).end();
      else res.end("{}");
    });
    const { exporter: own, call, log } = exporter(url);
    call(2);
    await vi.waitFor(() => expect(own.stats).toEqual({ sent: 2, dropped: 0, queued: 0 }), SOON);
    expect(new Set(requests.map(({ spans }) => JSON.stringify(spans))).size).toBe(1);
    expect(log.map((line) => line.slice(0, 4))).toEqual(["warn", "info"]);
  });

  it("drops and counts what the collector refuses", async () => {
    const { requests, url } = await collector((res, nth) => {
      if (nth === 1) res.writeHead(400).end("no");
      else res.end('{"partialSuccess":{"rejectedSpans":"1"}}');
    });
    const { exporter: own, call } = exporter(url);
    call(2);
    await vi.waitFor(() => expect(own.stats).toEqual({ sent: 0, dropped: 2, queued: 0 }), SOON);
    call(3);
    await vi.waitFor(() => expect(own.stats).toEqual({ sent: 2, dropped: 3, queued: 0 }), SOON);
    expect(requests).toHaveLength(2);
  });

  it("holds a bounded number of spans for a collector that hangs, and closes all the same [bounded]", async () => {
    const { url } = await collector(() => {});
    const { exporter: own, call } = exporter(url, { maxQueued: 100 });
    call(1_000);
    expect(own.stats).toMatchObject({ queued: 100, dropped: 900 });
    await own.close();
    expect(own.stats).toEqual({ sent: 0, dropped: 1_000, queued: 0 });
    call();
    expect(own.stats).toEqual({ sent: 0, dropped: 1_001, queued: 0 });
  });

  it("gives up a batch that nobody takes; no address or header is in the log", async () => {
    const {
      exporter: own,
      call,
      log,
    } = exporter("http://user:hunter2@127.0.0.1:1/v1/traces", {
      headers: { authorization: "Bearer hunter2" },
    });
    call(5);
    await vi.waitFor(() => expect(own.stats).toEqual({ sent: 0, dropped: 5, queued: 0 }), SOON);
    expect(log).toHaveLength(1);
    expect(log.join()).not.toContain("hunter2");
  });

  it("sends the last spans when it is closed", async () => {
    const { requests, url } = await collector();
    const { exporter: own, call } = exporter(url, { batchAfterMs: 60_000 });
    call(4);
    await own.close();
    expect(requests.flatMap(({ spans }) => spans)).toHaveLength(4);
  });
});

describe("openTelemetry", () => {
  const parts = { version: "0", clock: systemClock, env: {}, log: () => {} };

  it("is nothing unless it is configured", async () => {
    expect(await openTelemetry({ ...parts, config: undefined })).toBeUndefined();
  });

  it("takes headers from the environment, as other exporters do", async () => {
    const { requests, url } = await collector();
    const env = { OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20x, B = x%3Dy ,=z,c,d=\u0001,e%=f" };
    const telemetry = await openTelemetry({ ...parts, env, config: { otlp: url } });
    const params = undefined;
    telemetry?.tracer.begin({ name: "m", params })?.end(emptyRecord());
    await telemetry?.close();
    expect(telemetry?.stats()).toEqual({ sent: 1, dropped: 0, queued: 0 });
    expect(requests[0]?.headers).toMatchObject({ authorization: "Bearer x", b: "x=y", "e%": "f" });
    // What is no header is left out.
    expect(requests[0]?.headers).not.toHaveProperty("c");
    expect(requests[0]?.headers).not.toHaveProperty("d");
  });
});
