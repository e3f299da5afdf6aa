// The bridge to the embedding program's meter, against an API of the same shape that records.

import { expect, it } from "vitest";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import type { Metrics } from "../metrics/exposition.js";
import type { MetricReader } from "../metrics/metric-reader.js";
import { Counter, type Gauge, Histogram } from "../metrics/series.js";
import { ApiMeterBridge, type ApiMetrics } from "./opentelemetry-meter.js";

type Told = readonly [number, Record<string, string>];

function recordingApi() {
  const recorded = new Map<string, Told[]>();
  const options = new Map<string, { unit: string; kind: string; bounds?: number[] | undefined }>();
  const callbacks = new Map<string, Set<(result: { observe(value: number, attributes: Told[1]): void }) => void>>();
  const observable =
    (kind: string) =>
    (name: string, { unit }: { unit: string }) => {
      const own = new Set<(result: { observe(value: number, attributes: Told[1]): void }) => void>();
      callbacks.set(name, own);
      options.set(name, { unit, kind });
      return {
        addCallback: (one: (result: { observe(value: number, attributes: Told[1]): void }) => void) =>
          void own.add(one),
        removeCallback: (one: (result: { observe(value: number, attributes: Told[1]): void }) => void) =>
          void own.delete(one),
      };
    };
  const api: ApiMetrics = {
    getMeter: () => ({
      createHistogram(name, { unit, advice }) {
        const told: Told[] = [];
        recorded.set(name, told);
        options.set(name, { unit, kind: "histogram", bounds: advice?.explicitBucketBoundaries });
        return { record: (value, attributes) => void told.push([value, attributes]) };
      },
      createObservableCounter: observable("counter"),
      createObservableGauge: observable("gauge"),
    }),
  };
  const collect = () => {
    const all: Record<string, Told[]> = {};
    for (const [name, own] of callbacks) {
      const told: Told[] = [];
      for (const one of own) one({ observe: (value, attributes) => void told.push([value, attributes]) });
      if (told.length > 0) all[name] = told;
    }
    return all;
  };
  return { api, recorded, options, collect };
}

it("tells each observation, and is asked for the rest, under OpenTelemetry's names, until it is closed [metrics-agree]", async () => {
  const { api, recorded, options, collect } = recordingApi();
  const own = new Histogram("toolway_own_seconds", "Ours.", [0.1, 1]);
  const durations = new Histogram("mcp_server_operation_duration_seconds", "As seen.", [1]);
  // Made before anybody was told of it, as the one of our own share is.
  const made = own.own([]);
  const refused = new Counter("toolway_refused_total", "Refused.");
  const gauges: Gauge[] = [{ name: "toolway_held_bytes", help: "Held.", values: [[[], 12]] }];
  let readings = 0;
  const read = (): Metrics => {
    readings++;
    return { counters: [refused], histograms: [own, durations], gauges };
  };
  const clock = new TestClock();
  const bridge = new ApiMeterBridge(api, "0", clock);
  await bridge.begin({ histograms: [own, durations], load: async () => read } as unknown as MetricReader);

  made?.add(0.5);
  durations.observe(
    [
      ["toolway_server", "files"],
      ["error_type", undefined],
    ],
    2,
  );
  expect(recorded.get("toolway.own")).toEqual([[0.5, {}]]);
  expect(recorded.get("mcp.server.operation.duration")).toEqual([[2, { "toolway.server": "files" }]]);
  expect(options.get("toolway.own")).toEqual({ unit: "s", kind: "histogram", bounds: [0.1, 1] });

  refused.add([["rule", "role"]], 3);
  clock.advance(2_000);
  readings = 0;
  expect(collect()).toEqual({ "toolway.refused": [[3, { rule: "role" }]], "toolway.held": [[12, {}]] });
  expect(readings).toBe(1);
  expect(options.get("toolway.refused")?.kind).toBe("counter");

  gauges.push({ name: "toolway_mailbox_messages", help: "Messages.", values: [[[["state", "dead"]], 1]] });
  clock.advance(2_000);
  collect();
  expect(collect()["toolway.mailbox_messages"]).toEqual([[1, { state: "dead" }]]);

  bridge.close();
  clock.advance(2_000);
  expect(collect()).toEqual({});
});
