// The metrics of a gateway for whoever asks: made from its counters and its status, and the same text for a moment. What
// makes the text is loaded when somebody asks for the first time.

import type { GatewayStatus } from "../../contracts/status.js";
import type { Clock } from "../../runtime/clock.js";
import type { CallRecords } from "./call-records.js";
import type { ExpositionFormat } from "./exposition.js";
import type { ProcessGauges } from "./process-gauges.js";

/** Two who ask at once, or one who asks without a pause, cost one text. */
const KEPT_MS = 1_000;

export class Scrapes {
  readonly #records: CallRecords;
  readonly #status: () => GatewayStatus;
  readonly #clock: Clock;
  #ofProcess: ProcessGauges | undefined;
  /** One for each format. */
  readonly #kept = new Map<ExpositionFormat, { readonly atMs: number; readonly text: string }>();

  constructor(records: CallRecords, status: () => GatewayStatus, clock: Clock) {
    this.#records = records;
    this.#status = status;
    this.#clock = clock;
  }

  async text(format: ExpositionFormat): Promise<string> {
    const { gatewayMetrics, ProcessGauges } = await import("./gateway-metrics.js");
    const atMs = this.#clock.now();
    const kept = this.#kept.get(format);
    if (kept !== undefined && atMs - kept.atMs < KEPT_MS) return kept.text;
    // Calls that have ended are counted, also those of the last moment.
    this.#records.flush();
    const status = this.#status();
    this.#ofProcess ??= new ProcessGauges(Date.parse(status.startedAt));
    const text = gatewayMetrics(status, this.#records.metrics, this.#ofProcess.read(), this.#clock.wall(), format);
    this.#kept.set(format, { atMs, text });
    return text;
  }
}
