// Sends a gateway's metrics to an OpenTelemetry collector now and then. They are cumulative: what does not get through is in
// what is sent next, so nothing waits and nothing is sent again.

import type { Metrics } from "../metrics/exposition.js";
import { Collector, type CollectorOptions } from "./collector.js";
import type { Origin } from "./json.js";
import { metricsBody } from "./json.js";

/** As every exporter of OpenTelemetry does, unless OTEL_METRIC_EXPORT_INTERVAL says otherwise. */
const EXPORT_MS = 60_000;
/** Less would be no measure of anything. More than a timer holds would be no time at all. */
const MIN_EXPORT_MS = 100;
const MAX_EXPORT_MS = 2_147_483_647;
/** How long closing waits for the last ones. */
const CLOSE_MS = 2_000;

export interface MetricExporterOptions extends CollectorOptions {
  readonly origin: Origin;
  readonly read: () => Promise<Metrics>;
  readonly everyMs: number;
  readonly wall: () => number;
  readonly log: (level: "info" | "warn", text: string) => void;
}

export class MetricExporter {
  readonly #options: MetricExporterOptions;
  readonly #collector: Collector;
  readonly #sinceMs: number;
  readonly #timer: NodeJS.Timeout;
  readonly #aborted = new AbortController();
  #sending: Promise<void> | undefined;
  /** A failure is told once, until one gets through again. */
  #troubled = false;

  constructor(options: MetricExporterOptions) {
    this.#options = options;
    this.#collector = new Collector(options);
    this.#sinceMs = options.wall();
    this.#timer = setInterval(() => void this.#send(), options.everyMs).unref();
  }

  /** With the numbers of the end. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const late = setTimeout(() => this.#aborted.abort(), CLOSE_MS);
    await this.#sending;
    await this.#send();
    clearTimeout(late);
    await this.#collector.close();
  }

  /** One at a time: a collector that is slow is not asked twice. */
  #send(): Promise<void> {
    this.#sending ??= this.#export().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #export(): Promise<void> {
    const { read, origin, wall, log } = this.#options;
    try {
      const body = metricsBody(await read(), origin, { sinceMs: this.#sinceMs, nowMs: wall() });
      const delivery = await this.#collector.post(body, this.#aborted.signal);
      if (delivery.kind !== "done") this.#trouble(delivery.why);
      else if (delivery.refused > 0) this.#trouble(`the collector refused ${delivery.refused} of them`);
      else {
        if (this.#troubled) log("info", "metrics: the collector takes them again");
        this.#troubled = false;
      }
    } catch (error) {
      this.#trouble(`they could not be read: ${(error as Error).message}`);
    }
  }

  #trouble(why: string): void {
    if (this.#troubled) return;
    this.#troubled = true;
    this.#options.log("warn", `metrics: ${why}. They are sent again with the next ones; calls are not affected.`);
  }
}

/** In milliseconds, as OTEL_METRIC_EXPORT_INTERVAL has them; what is no number is as if it were not there. */
export function exportInterval(text: string | undefined): number {
  const ms = Number(text);
  if (text === undefined || !/^\d+$/.test(text.trim()) || ms === 0) return EXPORT_MS;
  return Math.min(Math.max(ms, MIN_EXPORT_MS), MAX_EXPORT_MS);
}
