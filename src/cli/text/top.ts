// The overview of `toolway top` as text: a sentence, four numbers, the hour as a line, servers in a table, calls under way.

import type { CallUnderWay } from "../../contracts/control/calls.js";
import type { HistoryAnswer, ServerSummary } from "../../contracts/control/history.js";
import type { GatewayStatus, ServerStatus } from "../../contracts/status.js";
import { percent } from "../../runtime/words/amounts.js";
import type { Io } from "../line/io.js";
import { count, duration, fittedTable, heading, longDuration, type Style, screenLines, styleOf } from "./print.js";
import { needsSomebody, stateText } from "./status.js";

export interface TopFacts {
  readonly status: GatewayStatus;
  readonly history: HistoryAnswer;
  readonly underWay: readonly CallUnderWay[];
}

/** So many rows where nobody says how many fit. */
const USUAL_ROWS = 40;
/** What stands around the two tables: sentence, numbers, line, headings, empty lines. */
const FRAME_ROWS = 9;
/** So many of the rows are for calls under way. */
const UNDER_WAY_ROWS = 5;
/** So many servers are shown on the smallest terminal. */
const LEAST_ROWS = 3;

/** `rows` is how many lines fit; what does not is told as a number. */
export function topText({ status, history, underWay }: TopFacts, io: Io, nowMs: number, rows = USUAL_ROWS): string {
  const style = styleOf(io);
  const { now, total } = history;
  const inFlight = status.servers.reduce((sum, server) => sum + server.inFlight, 0);
  const own = `p95 ${ms(now.p95)}, of which ${ms(now.ownP95)} Toolway's own`;
  const failed = now.callsAMinute === 0 ? 0 : (100 * now.errorsAMinute) / now.callsAMinute;
  const numbers = [
    `${count(now.callsAMinute, "call")} a minute`,
    `${percent(failed)} failed`,
    own,
    `${inFlight} in flight`,
  ];
  const since = longDuration(Math.max(0, nowMs - Date.parse(status.startedAt)));
  const parts = [
    `${style.bold(sentenceOf(status.servers))} ${style.dim(`Up for ${since}.`)}`,
    numbers.join("   "),
    `${style.dim("last hour")} ${sparkline(byMinute(total.calls))}`,
  ];
  const whole = (servers: number, calls: number) =>
    [
      ...parts,
      "",
      serversTable(status.servers, history.servers, servers, style, io),
      ...underWayParts(underWay, calls, style, io),
    ].join("\n");
  let calls = Math.min(UNDER_WAY_ROWS, underWay.length);
  let servers = Math.max(LEAST_ROWS, rows - FRAME_ROWS - calls);
  let text = whole(servers, calls);
  // Names are never cut: lines with a long one take more than one of the screen.
  while ((servers > LEAST_ROWS || calls > 0) && screenLines(text, io) > rows) {
    if (servers > LEAST_ROWS) servers--;
    else calls--;
    text = whole(servers, calls);
  }
  return text;
}

function underWayParts(underWay: readonly CallUnderWay[], room: number, style: Style, io: Io): string[] {
  if (underWay.length === 0) return [];
  if (room === 0) return ["", style.dim(`${count(underWay.length, "call")} under way`)];
  const shown = underWay.slice(0, room);
  const more = underWay.length - shown.length;
  const lines = shown.map((call) => [duration(call.ms), call.principal, nameOf(call), phaseText(call)]);
  const head = heading(style, ["UNDER WAY", "WHO", "WHAT", "WHERE"]);
  const parts = ["", fittedTable([head, ...lines], io, { whole: ["UNDER WAY", "WHO", "WHAT"] })];
  if (more > 0) parts.push(style.dim(`and ${more} more`));
  return parts;
}

/** `11 of 12 servers are fine; not so: github`. */
function sentenceOf(servers: readonly ServerStatus[]): string {
  const bad = servers.filter(needsSomebody);
  if (servers.length === 0) return "There are no servers.";
  if (bad.length === 0) return `All is well with ${count(servers.length, "server")}.`;
  const names = bad.slice(0, 3).map(({ name }) => name);
  const more = bad.length > names.length ? ` and ${bad.length - names.length} more` : "";
  const fine = servers.length - bad.length;
  if (fine === 0)
    return `${count(bad.length, "server")} ${bad.length === 1 ? "needs" : "need"} you: ${names.join(", ")}${more}.`;
  return `${fine} of ${count(servers.length, "server")} are fine; not so: ${names.join(", ")}${more}.`;
}

function serversTable(
  servers: readonly ServerStatus[],
  summaries: readonly ServerSummary[],
  room: number,
  style: Style,
  io: Io,
): string {
  const past = new Map(summaries.map((one) => [one.server, one]));
  const calls = ({ name }: ServerStatus) => past.get(name)?.calls ?? 0;
  // Bad ones first, then those that are used most.
  const sorted = [...servers].sort(
    (a, b) => Number(needsSomebody(b)) - Number(needsSomebody(a)) || calls(b) - calls(a),
  );
  const head = ["SERVER", "STATE", "CALLS/MIN", "IN AN HOUR", "FAILED", "P50", "P95", "IN FLIGHT", "RESTARTS"];
  const rows = sorted.slice(0, room).map((server) => row(server, past.get(server.name), style));
  const more = sorted.length - rows.length;
  const text = fittedTable([heading(style, head), ...rows], io, { whole: ["SERVER", "STATE"] });
  return more > 0 ? `${text}\n${style.dim(`and ${more} more`)}` : text;
}

function row(server: ServerStatus, past: ServerSummary | undefined, style: Style): string[] {
  const failed = past === undefined || past.calls === 0 ? 0 : (100 * past.errors) / past.calls;
  const failedText = percent(failed);
  return [
    server.name,
    `${stateText(server, style)}${needText(server)}`,
    String(past?.callsAMinute ?? 0),
    String(past?.calls ?? 0),
    failed > 0 ? style.red(failedText) : failedText,
    ms(past?.p50 ?? 0),
    ms(past?.p95 ?? 0),
    String(server.inFlight),
    String(past?.restarts ?? 0),
  ];
}

/** What a person has to do about a server that answers. */
function needText({ quarantined, credential }: ServerStatus): string {
  if (credential?.needsLogin === true) return ", needs a login";
  return quarantined === 0 ? "" : `, ${count(quarantined, "tool")} held back`;
}

function nameOf({ server, tool, method }: CallUnderWay): string {
  return [server, tool ?? method].filter((part) => part !== undefined).join("/");
}

function phaseText({ phase }: CallUnderWay): string {
  switch (phase) {
    case "own":
      return "in the gateway";
    case "server":
      return "at its server";
    case "starting":
      return "waits for its server to start";
    case "credential":
      return "waits for a token";
    default:
      return phase;
  }
}

const BARS = [..." ▁▂▃▄▅▆▇█"];

/** One letter a number, as high as it is among them; what is not nothing is seen. */
export function sparkline(counts: readonly number[]): string {
  const highest = Math.max(1, ...counts);
  return counts.map((one) => BARS[Math.ceil((one / highest) * (BARS.length - 1))]).join("");
}

/** Six steps of the hour's line are a minute. */
function byMinute(calls: readonly number[]): number[] {
  const minutes: number[] = [];
  for (let i = 0; i < calls.length; i += 6) minutes.push(calls.slice(i, i + 6).reduce((sum, one) => sum + one, 0));
  return minutes;
}

/** `-` where nothing was called. */
function ms(value: number): string {
  if (value === 0) return "-";
  return value < 10 ? `${value.toFixed(1)} ms` : duration(value);
}
