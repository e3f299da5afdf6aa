// The metrics of a gateway for whoever asks: made from its counters and its status, and the same text for a moment. What
// makes the text is loaded when somebody asks for the first time.

import type { Clock } from "../../runtime/clock.js";
import type { CallRecords } from "./call-records.js";
import type { ExpositionFormat } from "./exposition.js";
import type { GatewayFacts } from "./gateway-metrics.js";
import type { ProcessGauges } from "./process-gauges.js";

/** Two who ask at once, or one who asks without a pause, cost one text. */
const KEPT_MS = 1_000;

export class Scrapes {
  readonly #records: CallRecords;
  readonly #facts: () => GatewayFacts;
  readonly #clock: Clock;
  #ofProcess: ProcessGauges | undefined;
  #isClosed = false;
  /** One for each format. */
  readonly #kept = new Map<ExpositionFormat, { readonly atMs: number; readonly text: string }>();

  constructor(records: CallRecords, facts: () => GatewayFacts, clock: Clock) {
    this.#records = records;
    this.#facts = facts;
    this.#clock = clock;
  }

  async text(format: ExpositionFormat): Promise<string> {
    const { gatewayMetrics, ProcessGauges } = await import("./gateway-metrics.js");
    const atMs = this.#clock.now();
    const kept = this.#kept.get(format);
    if (kept !== undefined && atMs - kept.atMs < KEPT_MS) return kept.text;
    // Calls that have ended are counted, also those of the last moment.
    this.#records.flush();
    if (!this.#isClosed) this.#ofProcess ??= new ProcessGauges();
    const ofProcess = this.#ofProcess?.read() ?? [];
    const text = gatewayMetrics(this.#facts(), this.#records, ofProcess, this.#clock.wall(), format);
    this.#kept.set(format, { atMs, text });
    return text;
  }

  /** The gateway has ended, and the program may go on. */
  close(): void {
    this.#isClosed = true;
    this.#ofProcess?.close();
    this.#ofProcess = undefined;
  }
}
