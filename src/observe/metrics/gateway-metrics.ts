// All metrics of a gateway, as one text. It is loaded when somebody asks for the first time.

import type { GatewayStatus } from "../../contracts/status.js";
import type { CallMetrics } from "./call-metrics.js";
import { type ExpositionFormat, exposition } from "./exposition.js";
import type { Gauge } from "./series.js";
import { statusGauges } from "./status-gauges.js";

export { ProcessGauges } from "./process-gauges.js";

export function gatewayMetrics(
  status: GatewayStatus,
  calls: CallMetrics,
  ofProcess: readonly Gauge[],
  wallMs: number,
  format: ExpositionFormat,
): string {
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
  return exposition(
    {
      counters: [calls.requests, calls.cache, calls.bytes, calls.dropped],
      histograms: [calls.durations],
      gauges: [build, folded, ...statusGauges(status, wallMs), ...ofProcess],
    },
    format,
  );
}
