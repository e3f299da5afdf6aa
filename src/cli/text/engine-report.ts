// What `toolway doctor --engine` found, as a person reads it.

import type { EngineReport, Times } from "../gateway/engine.js";
import { count, type Style, table } from "./print.js";

export function engineReportText(report: EngineReport, style: Style): string {
  const { facts, node, promises, problems, advice } = report;
  const parts: string[] = [];
  if (facts !== undefined) {
    parts.push(
      `${style.bold("engine")}  nats-server ${facts.version}, ${count(facts.nodes, "node")}, at ${node ?? report.address}`,
    );
  } else parts.push(`${style.bold("engine")}  ${report.address}`);
  const measured = [
    row("writes", report.writes),
    row("reads", report.reads),
    row("a lease renewed", report.leases),
  ].filter((one) => one !== undefined);
  if (measured.length > 0) parts.push(table(measured, "  "));
  const lines = [
    ...problems.map((text) => `${style.red("✗")} ${text}`),
    ...promises.map(({ holds, sentence }) => `${holds ? style.green("✓") : style.yellow("–")} ${sentence}`),
    ...advice.map((text) => `  ${text}`),
  ];
  parts.push(lines.join("\n"));
  return parts.join("\n\n");
}

function row(what: string, times: Times | undefined): string[] | undefined {
  if (times === undefined) return undefined;
  return [
    what,
    String(times.count),
    `median ${milliseconds(times.medianMs)}`,
    `slowest ${milliseconds(times.slowestMs)}`,
  ];
}

function milliseconds(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}
