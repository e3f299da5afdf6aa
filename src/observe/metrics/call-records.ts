// Who gets the records of calls: the metrics always, and the log where calls are to be written in it.

import type { CallLines } from "../call-lines.js";
import { CallRecorder } from "../call-recorder.js";
import type { CallMetrics } from "./call-metrics.js";

export class CallRecords {
  readonly recorder: CallRecorder;
  readonly metrics: CallMetrics;
  readonly #lines: CallLines;

  constructor(lines: CallLines, metrics: CallMetrics) {
    this.#lines = lines;
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
