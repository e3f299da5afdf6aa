// Who gets the records of calls: the metrics, the last calls and the past always, and the log where
// calls are to be written in it.

import type { AuditLog } from "../audit/audit-log.js";
import type { CallLines } from "../call-lines.js";
import { CallRecorder } from "../call-recorder.js";
import type { History } from "../calls/history.js";
import type { KeptCalls } from "../calls/kept-calls.js";
import type { CallMetrics } from "./call-metrics.js";
import type { EventMetrics } from "./event-metrics.js";

interface CallRecordsParts {
  readonly lines: CallLines;
  readonly metrics: CallMetrics;
  readonly kept: KeptCalls;
  readonly history: History;
  readonly audit: AuditLog | undefined;
  readonly eventMetrics: EventMetrics;
  readonly dropped: CallRecords["dropped"];
}

export class CallRecords {
  readonly recorder: CallRecorder;
  readonly metrics: CallMetrics;
  readonly kept: KeptCalls;
  readonly history: History;
  readonly eventMetrics: EventMetrics;
  /** What was not passed on since it came too fast, beside calls: lines of the log, spans. */
  readonly dropped: () => Readonly<Record<string, number>>;
  readonly #lines: CallLines;
  #areLogged: boolean | undefined;
  /** Undefined where no audit log is kept. */
  readonly audit: AuditLog | undefined;

  constructor({ lines, metrics, kept, history, audit, eventMetrics, dropped }: CallRecordsParts) {
    this.#lines = lines;
    this.kept = kept;
    this.history = history;
    this.audit = audit;
    this.eventMetrics = eventMetrics;
    this.dropped = dropped;
    this.metrics = metrics;
    this.recorder = new CallRecorder([metrics, kept, history]);
  }

  /** The level of the log is another now. */
  logChanged(): void {
    this.configure(this.#areLogged);
  }

  /** To be called with every config: its names and secrets may be others. */
  configure(areLogged: boolean | undefined): void {
    this.#areLogged = areLogged;
    const always = [this.metrics, this.kept, this.history, ...(this.audit === undefined ? [] : [this.audit])];
    this.recorder.setSinks(areLogged === true && this.#lines.isOn ? [...always, this.#lines] : always);
    this.#lines.forgetNames();
    this.audit?.forgetNames();
    this.metrics.forgetNames();
  }

  /** Counts and writes what waits. */
  flush(): void {
    this.recorder.flush();
  }
}
