// All metrics of a gateway, as one text. It is loaded when somebody asks for the first time.

import type { OutboxView } from "../../contracts/outbox.js";
import type { GatewayStatus } from "../../contracts/status.js";
import type { CallRecords } from "./call-records.js";
import { type ExpositionFormat, exposition, type Metrics } from "./exposition.js";
import type { Gauge } from "./series.js";
import { outboxGauges, statusGauges } from "./status-gauges.js";

export { ProcessGauges } from "./process-gauges.js";

/** What is asked of a gateway when somebody wants its metrics. */
export interface GatewayFacts {
  readonly status: GatewayStatus;
  /** Agents that `toolway run` started and that are there. */
  readonly runs: number;
  /** Undefined where no calls are kept. */
  readonly outbox: OutboxView | undefined;
}

export function gatewayMetrics(
  facts: GatewayFacts,
  records: CallRecords,
  ofProcess: readonly Gauge[],
  wallMs: number,
  format: ExpositionFormat,
): string {
  return exposition(allMetrics(facts, records, ofProcess, wallMs), format);
}

function allMetrics(
  { status, runs, outbox }: GatewayFacts,
  { metrics: calls, happenings, dropped }: CallRecords,
  ofProcess: readonly Gauge[],
  wallMs: number,
): Metrics {
  const build: Gauge = {
    name: "toolway_build_info",
    help: "1; the labels say which program it is.",
    values: [
      [
        [
          ["version", status.toolway],
          ["node", process.versions.node],
        ],
        1,
      ],
    ],
  };
  const folded: Gauge = {
    name: "toolway_metrics_folded_total",
    help: "Observations that found no room for labels of their own.",
    kind: "counter",
    values: [[[], calls.folded]],
  };
  const lost: Gauge = {
    name: "toolway_dropped_total",
    help: "What was not kept, since it came too fast.",
    kind: "counter",
    values: Object.entries({ metrics: calls.dropped, ...dropped() }).map(([what, count]) => [[["what", what]], count]),
  };
  return {
    counters: [calls.requests, calls.cache, calls.bytes, ...happenings.counters],
    histograms: [calls.durations, calls.serverDurations, calls.own, ...happenings.histograms],
    gauges: [
      build,
      folded,
      lost,
      { name: "toolway_runs", help: "Agents that `toolway run` started.", values: [[[], runs]] },
      ...auditGauges(status.audit),
      ...statusGauges(status, wallMs),
      ...(outbox === undefined ? [] : outboxGauges(outbox, wallMs)),
      ...ofProcess,
    ],
  };
}

function auditGauges(audit: GatewayFacts["status"]["audit"]): Gauge[] {
  if (audit === undefined) return [];
  const values: Gauge["values"] = [
    [[["result", "written"]], audit.written],
    [[["result", "lost"]], audit.lost],
  ];
  return [{ name: "toolway_audit_lines_total", help: "Lines of the audit log.", kind: "counter", values }];
}
