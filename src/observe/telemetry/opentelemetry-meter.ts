// Metrics of the meter that the embedding program has registered: histograms are told of each observation, everything else is
// read when the program's SDK asks. The parts of the API that we use are described here, as those of its tracer are.

import type { Clock } from "../../runtime/clock.js";
import type { Metrics } from "../metrics/exposition.js";
import type { MetricReader } from "../metrics/metric-reader.js";
import type { Labels } from "../metrics/series.js";
import { otelAttributes, otelName } from "./metric-names.js";

export interface ApiMetrics {
  getMeter(name: string, version?: string): ApiMeter;
}

interface ApiMeter {
  createHistogram(name: string, options: ApiMetricOptions): ApiHistogram;
  createObservableCounter(name: string, options: ApiMetricOptions): ApiObservable;
  createObservableGauge(name: string, options: ApiMetricOptions): ApiObservable;
}

interface ApiMetricOptions {
  description: string;
  unit: string;
  advice?: { explicitBucketBoundaries: number[] };
}

interface ApiHistogram {
  record(value: number, attributes: Record<string, string>): void;
}

interface ApiObservable {
  addCallback(callback: (result: ApiResult) => void): void;
  removeCallback(callback: (result: ApiResult) => void): void;
}

interface ApiResult {
  observe(value: number, attributes: Record<string, string>): void;
}

/** An SDK asks instrument by instrument: they are read once for all of them. */
const SAME_READING_MS = 1_000;

interface Observed {
  readonly name: string;
  readonly help: string;
  readonly isCounter: boolean;
  readonly values: readonly (readonly [Labels, number])[];
}

export class ApiMeterBridge {
  readonly #meter: ApiMeter;
  readonly #clock: Clock;
  readonly #remove: (() => void)[] = [];
  /** Those that the program knows; their names are ours, and a few dozen. */
  readonly #made = new Set<string>();
  #read: (() => Metrics) | undefined;
  #reading: { readonly atMs: number; readonly all: ReadonlyMap<string, Observed> } | undefined;
  #isClosed = false;

  constructor(metrics: ApiMetrics, version: string, clock: Clock) {
    this.#meter = metrics.getMeter("toolway", version);
    this.#clock = clock;
  }

  async begin(reader: MetricReader): Promise<void> {
    for (const histogram of reader.histograms) {
      const { name, unit } = otelName(histogram.name);
      const advice = { explicitBucketBoundaries: [...histogram.bounds] };
      const instrument = this.#meter.createHistogram(name, { description: histogram.help, unit, advice });
      histogram.tell((labels) => {
        const attributes = otelAttributes(labels);
        return (value) => instrument.record(value, attributes);
      });
    }
    this.#read = await reader.load();
    if (!this.#isClosed) this.#observe();
  }

  close(): void {
    this.#isClosed = true;
    for (const remove of this.#remove.splice(0)) remove();
    this.#read = undefined;
  }

  /** What appears later, with an edit of the config, is made known when the others are asked for. */
  #observe(): ReadonlyMap<string, Observed> {
    const atMs = this.#clock.now();
    if (this.#reading !== undefined && atMs - this.#reading.atMs < SAME_READING_MS) return this.#reading.all;
    const metrics = this.#read?.();
    const all = metrics === undefined ? new Map<string, Observed>() : observedOf(metrics);
    this.#reading = { atMs, all };
    for (const one of all.values()) if (!this.#made.has(one.name)) this.#make(one);
    return all;
  }

  #make({ name, help, isCounter }: Observed): void {
    this.#made.add(name);
    const { name: otel, unit } = otelName(name);
    const options = { description: help, unit };
    const instrument = isCounter
      ? this.#meter.createObservableCounter(otel, options)
      : this.#meter.createObservableGauge(otel, options);
    const told = (result: ApiResult) => {
      for (const [labels, value] of this.#observe().get(name)?.values ?? []) {
        result.observe(value, otelAttributes(labels));
      }
    };
    instrument.addCallback(told);
    this.#remove.push(() => instrument.removeCallback(told));
  }
}

function observedOf({ counters, gauges }: Metrics): Map<string, Observed> {
  const all = new Map<string, Observed>();
  for (const one of counters) {
    all.set(one.name, { name: one.name, help: one.help, isCounter: true, values: [...one.values()] });
  }
  for (const { name, help, kind, values } of gauges) {
    all.set(name, { name, help, isCounter: kind === "counter", values });
  }
  return all;
}
