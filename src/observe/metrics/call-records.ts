// Who gets the records of calls: the metrics always, and the log where calls are to be written in it.

import type { CallLines } from "../call-lines.js";
import { CallRecorder } from "../call-recorder.js";
import type { CallMetrics } from "./call-metrics.js";
import type { Happenings } from "./happenings.js";

export class CallRecords {
  readonly recorder: CallRecorder;
  readonly metrics: CallMetrics;
  readonly happenings: Happenings;
  /** What was not passed on since it came too fast, beside calls: lines of the log, spans. */
  readonly dropped: () => Readonly<Record<string, number>>;
  readonly #lines: CallLines;

  constructor(lines: CallLines, metrics: CallMetrics, happenings: Happenings, dropped: CallRecords["dropped"]) {
    this.#lines = lines;
    this.happenings = happenings;
    this.dropped = dropped;
    this.metrics = metrics;
    this.recorder = new CallRecorder([metrics]);
  }

  /** To be called with every config: its names and secrets may be others. */
  configure(areLogged: boolean | undefined): void {
    const { metrics } = this;
    this.recorder.setSinks(areLogged === true && this.#lines.isOn ? [metrics, this.#lines] : [metrics]);
    this.#lines.forgetNames();
    metrics.forgetNames();
  }

  /** Counts and writes what waits. */
  flush(): void {
    this.recorder.flush();
  }
}
