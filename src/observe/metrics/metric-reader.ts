// Reads all metrics of a gateway, from its counters and its status. What works them out is loaded when somebody wants them for
// the first time.

import type { Clock } from "../../runtime/clock.js";
import type { CallRecords } from "./call-records.js";
import type { Metrics } from "./exposition.js";
import type { GatewayFacts } from "./gateway-metrics.js";
import type { ProcessGauges } from "./process-gauges.js";
import type { Histogram } from "./series.js";

export class MetricReader {
  readonly #records: CallRecords;
  readonly #facts: () => GatewayFacts;
  readonly #clock: Clock;
  /** Each reader has its own: the lag of the loop is since it was read last. */
  #ofProcess: ProcessGauges | undefined;
  #isClosed = false;

  constructor(records: CallRecords, facts: () => GatewayFacts, clock: Clock) {
    this.#records = records;
    this.#facts = facts;
    this.#clock = clock;
  }

  get histograms(): readonly Histogram[] {
    const { metrics, eventMetrics } = this.#records;
    return [...metrics.histograms, ...eventMetrics.histograms];
  }

  /** Resolves with what reads them at once. */
  async load(): Promise<() => Metrics> {
    const { allMetrics, ProcessGauges } = await import("./gateway-metrics.js");
    return () => {
      // Calls that have ended are counted, also those of the last moment.
      this.#records.flush();
      if (!this.#isClosed) this.#ofProcess ??= new ProcessGauges();
      return allMetrics(this.#facts(), this.#records, this.#ofProcess?.read() ?? [], this.#clock.wall());
    };
  }

  /** The gateway has ended, and the program may go on. */
  close(): void {
    this.#isClosed = true;
    this.#ofProcess?.close();
    this.#ofProcess = undefined;
  }
}
