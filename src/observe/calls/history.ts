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
/** So many tools of a server, and of all servers, are counted by themselves, at 400 bytes. */
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

export class ToolUse {
  calls = 0;
  errors = 0;
  lastUsedMs = 0;
  resultBytes = 0;
  readonly buckets = new Uint16Array(BUCKETS);

  add(record: CallRecord, bucket: number, isError: boolean): void {
    this.calls++;
    if (isError) this.errors++;
    this.lastUsedMs = record.endedAt;
    this.resultBytes += record.bytes ?? 0;
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
