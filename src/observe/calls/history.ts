// What was called in the last hour and the last day: lines of the gateway, of each server, and sums of each tool. A record
// adds a few numbers; what is shown of them is worked out when somebody looks.

import { type CallRecord, ownMs } from "../call-record.js";
import type { CallSink } from "../call-recorder.js";
import { isFailure } from "../outcome.js";
import { BUCKETS, bucketOf, TimeLine } from "./time-line.js";

const HOUR = { stepMs: 10_000, steps: 360 };
const DAY = { stepMs: 300_000, steps: 288 };

/** So many servers have lines of their own, at 13 kB; the others are one. */
export const MAX_HISTORY_SERVERS = 500;
/** So many tools of a server, and of all servers, are counted by themselves, at 600 bytes. */
export const MAX_TOOLS_OF_SERVER = 200;
export const MAX_TOOLS = 5_000;
/** What found no room of its own. */
export const OTHER_NAME = "_other";

/** Counts of a tool's buckets are halved where one would not fit: the newer calls count more then. */
const MAX_COUNT = 65_535;

export class Lines {
  readonly hour = new TimeLine(HOUR.stepMs, HOUR.steps);
  readonly day = new TimeLine(DAY.stepMs, DAY.steps);

  add(atMs: number, bucket: number, isError: boolean): void {
    this.hour.add(atMs, bucket, isError);
    this.day.add(atMs, bucket, isError);
  }

  restarted(atMs: number): void {
    this.hour.restarted(atMs);
    this.day.restarted(atMs);
  }
}

const AN_HOUR_MS = 3_600_000;
/** Hours of the last day, the one that is now included. */
export const DAY_HOURS = 24;

export class ToolUse {
  calls = 0;
  errors = 0;
  lastUsedMs = 0;
  resultBytes = 0;
  readonly buckets = new Uint16Array(BUCKETS);
  /** By hours, each at its number since 1970 modulo a day. */
  readonly hourCalls = new Uint32Array(DAY_HOURS);
  readonly hourErrors = new Uint32Array(DAY_HOURS);
  /** The hour that was counted last. */
  hour = 0;

  /** Calls of an hour, which is given by its number since 1970. What is older than a day before the newest is left out. */
  count(hour: number, calls: number, errors: number): void {
    if (hour <= this.hour - DAY_HOURS) return;
    this.#advance(hour);
    const at = hour % DAY_HOURS;
    this.hourCalls[at] = (this.hourCalls[at] as number) + calls;
    this.hourErrors[at] = (this.hourErrors[at] as number) + errors;
  }

  /** Of the last 24 hours, the one that is now included. */
  day(nowMs: number): { readonly calls: number; readonly errors: number } {
    const now = Math.floor(nowMs / AN_HOUR_MS);
    let [calls, errors] = [0, 0];
    for (let hour = Math.max(now - DAY_HOURS + 1, this.hour - DAY_HOURS + 1); hour <= this.hour; hour++) {
      if (hour < 0) continue;
      calls += this.hourCalls[hour % DAY_HOURS] as number;
      errors += this.hourErrors[hour % DAY_HOURS] as number;
    }
    return { calls, errors };
  }

  #forgetDay(hour: number): void {
    this.hourCalls.fill(0);
    this.hourErrors.fill(0);
    this.hour = hour;
  }

  #advance(hour: number): void {
    if (hour <= this.hour) return;
    for (let n = Math.max(this.hour + 1, hour - DAY_HOURS + 1); n <= hour; n++) {
      this.hourCalls[n % DAY_HOURS] = 0;
      this.hourErrors[n % DAY_HOURS] = 0;
    }
    this.hour = hour;
  }

  add(record: CallRecord, bucket: number, isError: boolean): void {
    this.calls++;
    if (isError) this.errors++;
    this.lastUsedMs = record.endedAt;
    this.resultBytes += record.bytes ?? 0;
    const hour = Math.floor(record.endedAt / AN_HOUR_MS);
    // The clock was set back: what it said before was wrong, and would hide what comes.
    if (hour <= this.hour - DAY_HOURS) this.#forgetDay(hour);
    this.count(hour, 1, isError ? 1 : 0);
    const { buckets } = this;
    if ((buckets[bucket] as number) >= MAX_COUNT) {
      for (let i = 0; i < BUCKETS; i++) buckets[i] = (buckets[i] as number) >> 1;
    }
    buckets[bucket] = (buckets[bucket] as number) + 1;
  }
}

export class ServerHistory {
  readonly lines = new Lines();
  readonly tools = new Map<string, ToolUse>();
}

/** The name of a tool as it may be shown; undefined where its server does not list it. */
export type NameTool = (server: string, tool: string) => string | undefined;

export class History implements CallSink {
  readonly total = new Lines();
  /** What of all calls was ours. */
  readonly own = new Lines();
  readonly servers = new Map<string, ServerHistory>();
  readonly #toolName: NameTool;
  readonly #maxServers: number;
  #tools = 0;
  /** Since when tools are counted; undefined before the first call. */
  sinceMs: number | undefined;
  /** Whether there is something to save. */
  isChanged = false;

  constructor(toolName: NameTool, maxServers = MAX_HISTORY_SERVERS) {
    this.#toolName = toolName;
    this.#maxServers = maxServers;
  }

  take(record: CallRecord): void {
    const { endedAt, server, tool, outcome } = record;
    const bucket = bucketOf(record.ms);
    const isError = isFailure(outcome);
    this.isChanged = true;
    this.sinceMs ??= endedAt;
    this.total.add(endedAt, bucket, isError);
    this.own.add(endedAt, bucketOf(ownMs(record)), false);
    if (server === undefined) return;
    const history = this.server(server);
    history.lines.add(endedAt, bucket, isError);
    if (tool !== undefined) this.#tool(history, server, tool)?.add(record, bucket, isError);
  }

  batchEnded(): void {}

  restarted(server: string, atMs: number): void {
    this.isChanged = true;
    this.total.restarted(atMs);
    this.server(server).lines.restarted(atMs);
  }

  /** Of the others where there is no room. */
  server(name: string): ServerHistory {
    let history = this.servers.get(name);
    if (history !== undefined) return history;
    if (this.servers.size >= this.#maxServers && name !== OTHER_NAME) return this.server(OTHER_NAME);
    history = new ServerHistory();
    this.servers.set(name, history);
    return history;
  }

  /** One that is shown under this name; undefined where the bound is reached also for `_other`. */
  toolUse(history: ServerHistory, name: string): ToolUse | undefined {
    const known = history.tools.get(name);
    if (known !== undefined) return known;
    const hasRoom = history.tools.size < MAX_TOOLS_OF_SERVER && this.#tools < MAX_TOOLS;
    if (!hasRoom && name !== OTHER_NAME) return this.toolUse(history, OTHER_NAME);
    // `_other` of each server comes on top of both bounds.
    const use = new ToolUse();
    history.tools.set(name, use);
    this.#tools++;
    return use;
  }

  /** What a server does not list is made up by an agent, and counted for its server alone. */
  #tool(history: ServerHistory, server: string, tool: string): ToolUse | undefined {
    const name = this.#toolName(server, tool);
    return name === undefined ? undefined : this.toolUse(history, name);
  }
}
