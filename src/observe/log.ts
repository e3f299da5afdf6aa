// The gateway's log: one line an event, to stderr, as text for people or JSON for machines. Holds no state.

import { visible, visibleJson } from "../runtime/visible.js";

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface Log {
  debug(text: string, fields?: LogFields): void;
  info(text: string, fields?: LogFields): void;
  warn(text: string, fields?: LogFields): void;
  error(text: string, fields?: LogFields): void;
}

type LogFields = Readonly<Record<string, unknown>>;

export interface LogOptions {
  readonly write: (line: string) => void;
  readonly level?: LogLevel;
  readonly format?: "text" | "json";
  /** A person reads it there: what is hidden is made visible. Elsewhere control characters are taken out. */
  readonly isTerminal?: boolean;
  /** Gives the time of day, in ms. */
  readonly now?: () => number;
}

/** They are in order, from chatty to grave. */
export const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** A line longer than this is somebody's output, not an event. */
const MAX_LINE = 4_000;

export function createLog(options: LogOptions): Log {
  const { write, level = "info", format = "text", isTerminal = false, now = Date.now } = options;
  const clean = isTerminal ? visible : withoutControls;
  const json = isTerminal ? visibleJson : (line: string) => line;
  const lowest = LOG_LEVELS.indexOf(level);
  const logger = (at: LogLevel) => (text: string, fields?: LogFields) => {
    if (LOG_LEVELS.indexOf(at) < lowest) return;
    const time = new Date(now()).toISOString();
    const line = format === "json" ? json(jsonLine(time, at, text, fields)) : textLine(time, at, text, fields, clean);
    write(`${line}\n`);
  };
  return { debug: logger("debug"), info: logger("info"), warn: logger("warn"), error: logger("error") };
}

/** For those who embed the gateway and want to hear nothing. */
export const SILENT: Log = createLog({ write: () => {} });

/** Cut in its parts, so that it stays JSON; fields do not hide what every line has. */
function jsonLine(time: string, level: LogLevel, text: string, fields: LogFields | undefined): string {
  const own = { time, level, text: cut(text) };
  const shown = Object.entries(plain(fields)).map(([key, value]) => {
    const json = JSON.stringify(value) ?? "";
    return [key, json.length > MAX_LINE ? cut(json) : value];
  });
  return JSON.stringify({ ...own, ...Object.fromEntries(shown), ...own });
}

function textLine(
  time: string,
  level: LogLevel,
  text: string,
  fields: LogFields | undefined,
  clean: (text: string) => string,
): string {
  const shown = Object.entries(plain(fields)).map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
  return cut(`${time.slice(11, 23)} ${level.padEnd(5)} ${text}${shown.join("")}`, clean);
}

/** Errors have no members of their own to show; their stack says where. */
function plain(fields: LogFields | undefined): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields ?? {})) {
    out[key] = value instanceof Error ? (value.stack ?? value.message) : value;
  }
  return out;
}

/** What servers and agents say gets into the log: it must not forge lines or move a terminal's cursor. */
function withoutControls(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
  return line.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, " ");
}

function cut(line: string, clean = withoutControls): string {
  const whole = clean(line);
  return whole.length > MAX_LINE ? `${whole.slice(0, MAX_LINE)}…` : whole;
}
