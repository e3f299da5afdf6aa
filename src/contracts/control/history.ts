// What the control routes about the past answer: `GET /history` and `GET /history/tools`.

/** `hour`: by 10 s; `day`: by 5 min. */
export type HistoryWindow = "hour" | "day";

/** One number for each step of the window, oldest first. Times are in milliseconds, and 0 where nothing was called. */
export interface HistoryLine {
  readonly calls: readonly number[];
  readonly errors: readonly number[];
  readonly p50: readonly number[];
  readonly p95: readonly number[];
}

export interface ServerHistoryLine extends HistoryLine {
  readonly server: string;
  readonly restarts: readonly number[];
}

/** A server in one row. `_other` stands for those that found no room of their own. */
export interface ServerSummary {
  readonly server: string;
  /** Of the window. */
  readonly calls: number;
  readonly errors: number;
  readonly restarts: number;
  /** The step of the window in which it was last started again. */
  readonly lastRestartAt: string | undefined;
  /** Of the last whole minute. */
  readonly callsAMinute: number;
  readonly errorsAMinute: number;
  /** Of the last five to ten minutes; 0 where nothing was called in them. */
  readonly p50: number;
  readonly p95: number;
}

/** `GET /history?window=hour|day`, and the lines of one server with `server=NAME`. */
export interface HistoryAnswer {
  readonly window: HistoryWindow;
  readonly stepMs: number;
  /** The end of the last step, which may not be over yet, in milliseconds since 1970. */
  readonly untilMs: number;
  readonly total: HistoryLine & { readonly ownP50: readonly number[]; readonly ownP95: readonly number[] };
  readonly now: Omit<ServerSummary, "server"> & { readonly ownP50: number; readonly ownP95: number };
  /** Those that were called most come first. */
  readonly servers: readonly ServerSummary[];
  /** What agents did not have to notice, by kind, in the last day or since that is counted, whatever the window. */
  readonly caught: { readonly since: string; readonly counts: Readonly<Record<string, number>> };
  /** Undefined where no server is asked for, or nothing is known of it. */
  readonly line: ServerHistoryLine | undefined;
}

/** A tool, since it was first called. */
export interface ToolSummary {
  readonly server: string;
  /** `_other` stands for those that found no room of their own. */
  readonly tool: string;
  readonly calls: number;
  readonly errors: number;
  readonly lastUsedAt: string;
  /** Of the last 24 hours, to the hour. */
  readonly day: { readonly calls: number; readonly errors: number };
  readonly p95: number;
  /** Of its results, in all. */
  readonly resultBytes: number;
}

/** `GET /history/tools`, of one server with `server=NAME`. */
export interface ToolsHistoryAnswer {
  /** Since when tools are counted; undefined where nothing was called yet. */
  readonly since?: string | undefined;
  /** Those that were called most come first. */
  readonly tools: readonly ToolSummary[];
}
