// All metrics of a gateway. It is loaded when somebody asks for the first time.

import type { OutboxView } from "../../contracts/outbox.js";
import type { GatewayStatus } from "../../contracts/status.js";
import type { CallRecords } from "./call-records.js";
import type { Metrics } from "./exposition.js";
import { type Gauge, gauge } from "./series.js";
import { outboxGauges, statusGauges } from "./status-gauges.js";

export { ProcessGauges } from "./process-gauges.js";

/** What is asked of a gateway when somebody wants its metrics. */
export interface GatewayFacts {
  readonly status: GatewayStatus;
  /** Agents that `toolway run` started and that are there. */
  readonly runs: number;
  /** Of its endpoint; undefined where it has none. */
  readonly endpoint?: { readonly streamsBy: Readonly<Record<string, number>>; readonly leftOut: number } | undefined;
  /** How many partitions of the engine are its own; undefined where it is alone. */
  readonly partitions?: number | undefined;
  /** Undefined where no calls are kept. */
  readonly outbox: OutboxView | undefined;
}

export function allMetrics(
  { status, runs, outbox, endpoint, partitions }: GatewayFacts,
  { metrics: calls, eventMetrics, dropped }: CallRecords,
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
    values: Object.entries({ metrics: calls.dropped, events: endpoint?.leftOut ?? 0, ...dropped() }).map(
      ([what, count]) => [[["what", what]], count],
    ),
  };
  return {
    counters: [calls.requests, calls.cache, calls.bytes, ...eventMetrics.counters],
    histograms: [...calls.histograms, ...eventMetrics.histograms],
    gauges: [
      build,
      folded,
      lost,
      gauge("toolway_runs", "Agents that `toolway run` started.", runs),
      ...(endpoint === undefined ? [] : [streams(endpoint.streamsBy)]),
      ...(status.engine === undefined ? [] : engineGauges(status.engine.state, partitions ?? 0)),
      ...auditGauges(status.audit),
      ...statusGauges(status, wallMs),
      ...(outbox === undefined ? [] : outboxGauges(outbox, wallMs)),
      ...ofProcess,
    ],
  };
}

function streams(byKind: Readonly<Record<string, number>>): Gauge {
  return {
    name: "toolway_streams",
    help: "Open event streams of agents: of legacy sessions, of the old HTTP+SSE, of modern requests.",
    values: Object.entries(byKind).map(([kind, count]) => [[["kind", kind]], count]),
  };
}

function engineGauges(state: string, partitions: number): Gauge[] {
  return [
    gauge("toolway_engine_up", "1 while the engine that gateways share is connected.", state === "connected" ? 1 : 0),
    gauge("toolway_partitions_owned", "Partitions of the engine that this gateway acts for.", partitions),
  ];
}

function auditGauges(audit: GatewayFacts["status"]["audit"]): Gauge[] {
  if (audit === undefined) return [];
  const values: Gauge["values"] = [
    [[["result", "written"]], audit.written],
    [[["result", "lost"]], audit.lost],
  ];
  return [{ name: "toolway_audit_lines_total", help: "Lines of the audit log.", kind: "counter", values }];
}
