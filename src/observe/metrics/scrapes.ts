// The metrics of a gateway as text for whoever asks, and the same text for a moment. What makes the text is loaded when
// somebody asks for the first time.

import type { Clock } from "../../runtime/clock.js";
import type { ExpositionFormat } from "./exposition.js";
import type { MetricReader } from "./metric-reader.js";

/** Two who ask at once, or one who asks without a pause, cost one text. */
const KEPT_MS = 1_000;

export class Scrapes {
  readonly #reader: MetricReader;
  readonly #clock: Clock;
  /** One for each format. */
  readonly #kept = new Map<ExpositionFormat, { readonly atMs: number; readonly text: string }>();

  constructor(reader: MetricReader, clock: Clock) {
    this.#reader = reader;
    this.#clock = clock;
  }

  async text(format: ExpositionFormat): Promise<string> {
    const [read, { exposition }] = await Promise.all([this.#reader.load(), import("./exposition.js")]);
    const atMs = this.#clock.now();
    const kept = this.#kept.get(format);
    if (kept !== undefined && atMs - kept.atMs < KEPT_MS) return kept.text;
    const text = exposition(read(), format);
    this.#kept.set(format, { atMs, text });
    return text;
  }
}
