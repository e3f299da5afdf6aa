// The past as bytes, for the next start: one line of JSON that says what follows, then the numbers of all lines as they lie
// in memory. 500 servers are 7 MB, and take milliseconds. It is loaded when there is something to save or to read.

import { endianness } from "node:os";
import { isObject } from "../../protocol/jsonrpc.js";
import type { CaughtDay, SavedCaught } from "./caught-day.js";
import {
  DAY_HOURS,
  type History,
  type Lines,
  MAX_HISTORY_SERVERS,
  MAX_TOOLS_OF_SERVER,
  type ToolUse,
} from "./history.js";
import { BUCKETS, type LineArrays, TimeLine } from "./time-line.js";

/** Another form is not read: the past begins anew then. */
const FORM = 1;

interface SavedTool {
  readonly name: string;
  readonly calls: number;
  readonly errors: number;
  readonly lastUsedMs: number;
  readonly resultBytes: number;
  /** Hours of its last day in which it was called: the number of the hour since 1970, calls, errors. */
  readonly hours?: readonly (readonly [hour: number, calls: number, errors: number])[];
}

interface SavedLines {
  /** The steps that the lines were at. */
  readonly hour: number;
  readonly day: number;
}

interface Head {
  readonly form: number;
  readonly endian: string;
  /** Absent in what an earlier version has saved. */
  readonly sinceMs?: number | undefined;
  /** Absent in what an earlier version has saved. */
  readonly caught?: SavedCaught | undefined;
  readonly total: SavedLines;
  readonly own: SavedLines;
  readonly servers: readonly (SavedLines & { readonly name: string; readonly tools: readonly SavedTool[] })[];
}

export function historyBytes(history: History, caught?: CaughtDay): Buffer {
  const blocks: ArrayBufferView[] = [];
  const saved = (lines: Lines): SavedLines => {
    blocks.push(...blocksOf(lines.hour.arrays), ...blocksOf(lines.day.arrays));
    return { hour: lines.hour.now, day: lines.day.now };
  };
  const head: Head = {
    form: FORM,
    endian: endianness(),
    sinceMs: history.sinceMs,
    caught: caught?.saved,
    total: saved(history.total),
    own: saved(history.own),
    servers: [...history.servers].map(([name, { lines, tools }]) => ({
      name,
      ...saved(lines),
      tools: [...tools].map(([tool, use]): SavedTool => {
        blocks.push(use.buckets);
        const { calls, errors, lastUsedMs, resultBytes } = use;
        return { name: tool, calls, errors, lastUsedMs, resultBytes, hours: hoursOf(use) };
      }),
    })),
  };
  const bytes = blocks.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength));
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...bytes]);
}

function hoursOf({ hour, hourCalls, hourErrors }: ToolUse): [number, number, number][] {
  return Array.from({ length: DAY_HOURS }, (_, ago): [number, number, number] => {
    const at = (hour - ago + DAY_HOURS) % DAY_HOURS;
    return [hour - ago, hourCalls[at] as number, hourErrors[at] as number];
  }).filter(([, calls]) => calls > 0);
}

/** Adds what was saved to what was called since the start. Throws where the bytes are not whole: nothing is added then. */
export function joinHistory(history: History, bytes: Buffer, nowMs: number, caught?: CaughtDay): void {
  const end = bytes.indexOf(0x0a);
  const head = headOf(JSON.parse(bytes.toString("utf8", 0, Math.max(0, end))));
  let at = end + 1;
  const take = (into: LineArrays[keyof LineArrays]): void => {
    const view = Buffer.from(into.buffer, into.byteOffset, into.byteLength);
    if (bytes.copy(view, 0, at, at + view.length) !== view.length) throw new Error("it ends too early");
    at += view.length;
  };
  const acts: (() => void)[] = [];
  const read = (into: Lines, saved: SavedLines): void => {
    for (const window of ["hour", "day"] as const) {
      const line = into[window];
      const { arrays } = new TimeLine(line.stepMs, line.steps);
      for (const block of blocksOf(arrays)) take(block);
      acts.push(() => line.join(arrays, saved[window], nowMs));
    }
  };
  read(history.total, head.total);
  read(history.own, head.own);
  for (const { name, tools, ...saved } of head.servers.slice(0, MAX_HISTORY_SERVERS + 1)) {
    const server = history.server(name);
    read(server.lines, saved);
    for (const tool of tools.slice(0, MAX_TOOLS_OF_SERVER + 1)) {
      const buckets = new Uint16Array(BUCKETS);
      take(buckets);
      acts.push(() => {
        const use = history.toolUse(server, tool.name);
        if (use !== undefined) joinTool(use, tool, buckets, nowMs);
      });
    }
  }
  if (at !== bytes.length) throw new Error("it is longer than it says");
  for (const act of acts) act();
  if (head.caught !== undefined) caught?.join(head.caught, nowMs);
  const times = [head.sinceMs, history.sinceMs].filter((ms): ms is number => typeof ms === "number");
  if (times.length > 0) history.sinceMs = Math.min(...times);
}

function joinTool(use: ToolUse, saved: SavedTool, buckets: Uint16Array, nowMs: number): void {
  use.calls += saved.calls;
  use.errors += saved.errors;
  use.resultBytes += saved.resultBytes;
  use.lastUsedMs = Math.max(use.lastUsedMs, saved.lastUsedMs);
  // From the oldest on: each makes room before it.
  for (const [hour, calls, errors] of [...(saved.hours ?? [])].sort(([a], [b]) => a - b)) {
    // What is of a time to come was kept while the clock was wrong.
    if (hour * 3_600_000 <= nowMs) use.count(hour, calls, errors);
  }
  for (let i = 0; i < BUCKETS; i++) {
    use.buckets[i] = Math.min(65_535, (use.buckets[i] as number) + (buckets[i] as number));
  }
}

function areHours(hours: unknown): boolean {
  if (hours === undefined) return true;
  return Array.isArray(hours) && hours.length <= DAY_HOURS && hours.every((one) => areCounts(one, 3));
}

/** Kinds are a handful of fixed words. */
const MAX_CAUGHT_KINDS = 32;

function isCaught(caught: unknown): boolean {
  if (caught === undefined) return true;
  if (!isObject(caught) || !Number.isFinite(caught["sinceMs"]) || !isObject(caught["kinds"])) return false;
  const kinds = Object.values(caught["kinds"]);
  return (
    kinds.length <= MAX_CAUGHT_KINDS &&
    kinds.every((steps) => Array.isArray(steps) && steps.every((one) => areCounts(one, 2)))
  );
}

function areCounts(counts: unknown, length: number): boolean {
  return Array.isArray(counts) && counts.length === length && counts.every((n) => Number.isInteger(n) && n >= 0);
}

function headOf(value: unknown): Head {
  if (!isObject(value) || value["form"] !== FORM) throw new Error("it is of another form");
  if (value["endian"] !== endianness()) throw new Error("it is of another machine");
  const head = value as unknown as Head;
  const areLines = (saved: unknown) =>
    isObject(saved) && Number.isInteger(saved["hour"]) && Number.isInteger(saved["day"]);
  const areTools = (tools: unknown) =>
    Array.isArray(tools) &&
    tools.every(
      (tool) =>
        isObject(tool) &&
        typeof tool["name"] === "string" &&
        ["calls", "errors", "lastUsedMs", "resultBytes"].every((key) => Number.isFinite(tool[key])) &&
        areHours(tool["hours"]),
    );
  const areServers =
    Array.isArray(head.servers) &&
    head.servers.every((one: unknown) => areLines(one) && isObject(one) && areTools(one["tools"]));
  if (!areLines(head.total) || !areLines(head.own) || !areServers || !isCaught(head.caught))
    throw new Error("its head is wrong");
  return head;
}

function blocksOf({ calls, errors, restarts, p50, p95, buckets, bucketsBefore }: LineArrays) {
  return [calls, errors, restarts, p50, p95, buckets, bucketsBefore];
}
