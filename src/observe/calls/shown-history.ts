// What the operator is shown of the past, worked out from its counts. It is loaded when somebody asks.

import type {
  HistoryAnswer,
  HistoryLine,
  HistoryWindow,
  ServerHistoryLine,
  ServerSummary,
  ToolSummary,
  ToolsHistoryAnswer,
} from "../../contracts/control/history.js";
import type { CaughtDay } from "./caught-day.js";
import type { History, Lines } from "./history.js";
import { quantile, type TimeLine } from "./time-line.js";

/** Steps of the hour's line in a minute. */
const MINUTE_STEPS = 6;

export function historyAnswer(query: URLSearchParams, history: History, nowMs: number): Omit<HistoryAnswer, "caught"> {
  const window: HistoryWindow = query.get("window") === "day" ? "day" : "hour";
  const total = history.total[window];
  const own = history.own[window].read(nowMs);
  const server = query.get("server");
  const found = server === null ? undefined : history.servers.get(server);
  return {
    window,
    stepMs: total.stepMs,
    untilMs: (Math.floor(nowMs / total.stepMs) + 1) * total.stepMs,
    total: { ...lineOf(total, nowMs), ownP50: rounded(own.p50), ownP95: rounded(own.p95) },
    now: {
      ...summaryOf(history.total, window, nowMs),
      ownP50: round(lately(history.own, 0.5, nowMs)),
      ownP95: round(lately(history.own, 0.95, nowMs)),
    },
    servers: [...history.servers]
      .map(([name, { lines }]): ServerSummary => ({ server: name, ...summaryOf(lines, window, nowMs) }))
      .sort((a, b) => b.calls - a.calls || (a.server < b.server ? -1 : 1)),
    line: server === null || found === undefined ? undefined : serverLine(server, found.lines[window], nowMs),
  };
}

export function caughtOf(caught: CaughtDay, nowMs: number): HistoryAnswer["caught"] {
  const { sinceMs, counts } = caught.read(nowMs);
  return { since: new Date(sinceMs).toISOString(), counts };
}

export function toolsAnswer(query: URLSearchParams, history: History, nowMs: number): ToolsHistoryAnswer {
  const server = query.get("server");
  const tools: ToolSummary[] = [];
  for (const [name, one] of history.servers) {
    if (server !== null && server !== name) continue;
    for (const [tool, use] of one.tools) {
      const { calls, errors, lastUsedMs, resultBytes, buckets } = use;
      const lastUsedAt = new Date(lastUsedMs).toISOString();
      const p95 = round(quantile(0.95, buckets));
      tools.push({ server: name, tool, calls, errors, day: use.day(nowMs), lastUsedAt, p95, resultBytes });
    }
  }
  const since = history.sinceMs === undefined ? undefined : new Date(history.sinceMs).toISOString();
  return { since, tools: tools.sort((a, b) => b.calls - a.calls) };
}

function summaryOf(lines: Lines, window: HistoryWindow, nowMs: number): Omit<ServerSummary, "server"> {
  const line = lines[window];
  const { calls, errors, restarts, restartedStepsAgo } = line.totals(nowMs);
  const stepBeganMs = Math.floor(nowMs / line.stepMs) * line.stepMs;
  const minute = lines.hour.within(nowMs, MINUTE_STEPS);
  return {
    calls,
    errors,
    restarts,
    // To a step: its beginning, and not later than now.
    lastRestartAt:
      restartedStepsAgo === undefined
        ? undefined
        : new Date(stepBeganMs - restartedStepsAgo * line.stepMs).toISOString(),
    callsAMinute: minute.calls,
    errorsAMinute: minute.errors,
    p50: round(lately(lines, 0.5, nowMs)),
    p95: round(lately(lines, 0.95, nowMs)),
  };
}

/** Of the last five to ten minutes: the steps of the day's line. */
function lately({ day }: Lines, share: number, nowMs: number): number {
  day.advance(nowMs);
  return day.lately(share);
}

function lineOf(line: TimeLine, nowMs: number): HistoryLine & { readonly restarts: readonly number[] } {
  const { calls, errors, restarts, p50, p95 } = line.read(nowMs);
  return {
    calls: [...calls],
    errors: [...errors],
    p50: rounded(p50),
    p95: rounded(p95),
    restarts: [...restarts],
  };
}

function serverLine(server: string, line: TimeLine, nowMs: number): ServerHistoryLine {
  return { server, ...lineOf(line, nowMs) };
}

function rounded(ms: Float32Array): number[] {
  return Array.from(ms, round);
}

/** Tenths and three digits are more than the buckets know. */
function round(ms: number): number {
  return ms < 10 ? Math.round(ms * 100) / 100 : Math.round(ms);
}
