// A server's last hour as a picture: its calls, those that failed, when it was started again and while its breaker was
// open. It decides only, and knows no browser.

import type { HistoryAnswer } from "../../src/contracts/control/history.js";
import type { ServerEventsAnswer } from "../../src/contracts/control/server-events.js";
import { joinedSteps } from "../steps.js";

export const HOUR_WIDTH = 600;
export const HOUR_HEIGHT = 60;
/** Steps of 10 s are noise: a point is a minute. */
const STEPS_A_POINT = 6;

export interface HourPicture {
  /** Of a polyline; empty where nothing was called. */
  readonly calls: string;
  readonly failed: string;
  /** Where it was started again. */
  readonly restarts: readonly { readonly x: number; readonly count: number }[];
  /** While the breaker was open. */
  readonly open: readonly { readonly x: number; readonly width: number }[];
  readonly words: string;
}

type Line = NonNullable<HistoryAnswer["line"]>;

export function hourPicture(
  { line, stepMs, untilMs }: { line: Line | undefined; stepMs: number; untilMs: number },
  turns: ServerEventsAnswer["breaker"],
): HourPicture {
  const steps = line?.calls.length ?? 360;
  const fromMs = untilMs - steps * stepMs;
  const xOf = (atMs: number) => Math.min(1, Math.max(0, (atMs - fromMs) / (untilMs - fromMs))) * HOUR_WIDTH;
  const calls = joinedSteps(line?.calls ?? [], STEPS_A_POINT, "sum");
  const failed = joinedSteps(line?.errors ?? [], STEPS_A_POINT, "sum");
  const most = Math.max(...calls, 0);
  const restarts = (line?.restarts ?? []).flatMap((count, i) =>
    count === 0 ? [] : [{ x: xOf(fromMs + (i + 0.5) * stepMs), count }],
  );
  const spans = openSpans(turns, fromMs, untilMs);
  const sum = (counts: readonly number[]) => counts.reduce((all, one) => all + one, 0);
  const started = sum(line?.restarts ?? []);
  const openMs = spans.reduce((all, { from, to }) => all + to - from, 0);
  return {
    calls: pointsOf(calls, most),
    failed: sum(failed) === 0 ? "" : pointsOf(failed, most),
    restarts,
    open: spans.map(({ from, to }) => ({ x: xOf(from), width: Math.max(2, xOf(to) - xOf(from)) })),
    words: [
      `In the last hour: ${counted(sum(calls), "call")}, ${sum(failed)} failed`,
      started === 0 ? "not started again" : `started again ${times(started)}`,
      spans.length === 0
        ? "its breaker stayed closed"
        : `its breaker was open ${times(spans.length)}, ${Math.max(1, Math.round(openMs / 1_000))} s in all`,
    ].join("; "),
  };
}

/** From each opening to the closing after it; what is still open, to now. */
function openSpans(
  turns: ServerEventsAnswer["breaker"],
  fromMs: number,
  untilMs: number,
): { readonly from: number; readonly to: number }[] {
  const spans: { from: number; to: number }[] = [];
  let openedMs: number | undefined;
  for (const { at, circuit } of turns) {
    const atMs = Date.parse(at);
    if (circuit === "open") openedMs ??= atMs;
    else if (openedMs !== undefined) {
      spans.push({ from: openedMs, to: atMs });
      openedMs = undefined;
    }
  }
  if (openedMs !== undefined) spans.push({ from: openedMs, to: untilMs });
  return spans
    .filter(({ to }) => to >= fromMs)
    .map(({ from, to }) => ({ from: Math.max(from, fromMs), to: Math.min(to, untilMs) }));
}

function pointsOf(values: readonly number[], most: number): string {
  if (most === 0 || values.length < 2) return "";
  return values
    .map((value, i) => {
      const x = (i / (values.length - 1)) * HOUR_WIDTH;
      return `${x.toFixed(1)},${(HOUR_HEIGHT - 2 - (value / most) * (HOUR_HEIGHT - 14)).toFixed(1)}`;
    })
    .join(" ");
}

function counted(count: number, what: string): string {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}
