// The gateway's log: one line an event, to stderr, as text for people or JSON for machines. What a reader that is stuck
// has no room for is dropped and counted.

import type { Writable } from "node:stream";
import { stackOf } from "../runtime/expected-error.js";
import { visible, visibleJson } from "../runtime/visible.js";

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface Log {
  debug(text: string, fields?: LogFields): void;
  info(text: string, fields?: LogFields): void;
  warn(text: string, fields?: LogFields): void;
  error(text: string, fields?: LogFields): void;
  /** Has a log of our own: for those who write many lines at once. */
  readonly lines?: LogLines;
}

/** Lines that are made when there is time, and written together. */
export interface LogLines {
  readonly format: "text" | "json";
  readonly level: LogLevel;
  /** Which lines are written from now on. */
  setLevel(level: LogLevel): void;
  isOn(level: LogLevel): boolean;
  /** One line with its end. `atMs`: when it happened, in milliseconds since 1970. Fields that are undefined are left out. */
  line(level: LogLevel, atMs: number, text: string, fields?: LogFields): string;
  write(text: string, lines: number): void;
  /** How many lines were dropped since the start. */
  readonly dropped: number;
}

export type LogFields = Readonly<Record<string, unknown>>;

export interface LogOptions {
  /** False where there is no room: the lines are dropped and counted, and the next that is written says how many. */
  readonly write: (text: string) => unknown;
  readonly level?: LogLevel;
  readonly format?: "text" | "json";
  /** A person reads it there: what is hidden is made visible. Elsewhere controls are taken out of text. */
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
  const json = isTerminal ? visibleJson : withControlsEscaped;
  let lowest = LOG_LEVELS.indexOf(level);
  const isOn = (at: LogLevel) => LOG_LEVELS.indexOf(at) >= lowest;
  const line: LogLines["line"] = (at, atMs, text, fields) => {
    const time = timeOf(atMs);
    return `${format === "json" ? json(jsonLine(time, at, text, fields)) : textLine(time, at, text, fields, clean)}\n`;
  };
  let dropped = 0;
  let allDropped = 0;
  const timeOf = isoTimes();
  const writeLines: LogLines["write"] = (text, lines) => {
    const said = dropped === 0 ? "" : line("warn", now(), droppedText(dropped), { dropped });
    if (write(said + text) === false) {
      dropped += lines;
      allDropped += lines;
    } else dropped = 0;
  };
  const logger = (at: LogLevel) => (text: string, fields?: LogFields) => {
    if (isOn(at)) writeLines(line(at, now(), text, fields), 1);
  };
  return {
    debug: logger("debug"),
    info: logger("info"),
    warn: logger("warn"),
    error: logger("error"),
    lines: {
      format,
      get level() {
        return LOG_LEVELS[lowest] as LogLevel;
      },
      setLevel: (now) => {
        lowest = LOG_LEVELS.indexOf(now);
      },
      isOn,
      line,
      write: writeLines,
      get dropped() {
        return allDropped;
      },
    },
  };
}

/** Facts that the text of a line says already: fields of their own for a program, and nothing for people. */
export function factsFor(log: Log, facts: LogFields | undefined): LogFields | undefined {
  return log.lines?.format === "text" ? undefined : facts;
}

function droppedText(lines: number): string {
  return `${lines} ${lines === 1 ? "line of the log was" : "lines of the log were"} dropped: whoever reads it did not keep up`;
}

/** So much of the log may wait for its reader. A reader that is stuck must cost neither memory nor time. */
const MAX_WAITING_BYTES = 1024 * 1024;

/** Writes a log to a stream, and drops what its reader has no room for. */
export function boundedWrite(stream: Writable, maxBytes: number = MAX_WAITING_BYTES): LogOptions["write"] {
  return (text) => {
    if (stream.writableLength > maxBytes) return false;
    stream.write(text);
    return true;
  };
}

/** For those who embed the gateway and want to hear nothing. */
export const SILENT: Log = createLog({ write: () => {} });

/** Cut in its parts, so that it stays JSON; fields do not hide what every line has. */
function jsonLine(time: string, level: LogLevel, text: string, fields: LogFields | undefined): string {
  const own = { time, level, text: cut(text) };
  if (fields === undefined) return JSON.stringify(own);
  const all: Record<string, unknown> = own;
  for (const key in fields) {
    const value = plain(fields[key]);
    if (value === undefined || key === "time" || key === "level" || key === "text") continue;
    all[key] = isShort(value) ? value : shortened(value);
  }
  return JSON.stringify(all);
}

function textLine(
  time: string,
  level: LogLevel,
  text: string,
  fields: LogFields | undefined,
  clean: (text: string) => string,
): string {
  const line = `${time.slice(11, 23)} ${level.padEnd(5)} ${text}`;
  return cut(fields === undefined ? line : line + fieldsText(fields), clean);
}

/** Fields as they stand behind the text of a line. Those that are undefined are left out. */
export function fieldsText(fields: LogFields): string {
  let text = "";
  for (const key in fields) {
    const value = plain(fields[key]);
    if (value !== undefined) text += ` ${key}=${typeof value === "number" ? value : JSON.stringify(value)}`;
  }
  return text;
}

/** Errors have no members of their own to show; their stack says where. */
function plain(value: unknown): unknown {
  return value instanceof Error ? stackOf(value) : value;
}

/** Known without making its text. */
function isShort(value: unknown): boolean {
  return typeof value === "string" ? value.length < MAX_LINE / 2 : typeof value !== "object";
}

function shortened(value: unknown): unknown {
  const json = JSON.stringify(value) ?? "";
  return json.length > MAX_LINE ? cut(json) : value;
}

/** Many lines are of one moment, and the text of it costs more than the rest of them. */
export function isoTimes(): (atMs: number) => string {
  let lastMs = Number.NaN;
  let last = "";
  return (atMs) => {
    if (atMs !== lastMs) {
      lastMs = atMs;
      last = new Date(atMs).toISOString();
    }
    return last;
  };
}

/**
 * What servers and agents say gets into the log: it must not forge lines, move a terminal's cursor, or change the direction
 * in which the rest of its line is read.
 */
function withoutControls(line: string): string {
  // Most have none, and a test makes no copy.
  return HAS_CONTROL.test(line) ? line.replace(CONTROLS, " ") : line;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
const HAS_CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const CONTROLS = new RegExp(HAS_CONTROL, "g");

/** JSON leaves some controls as they are, of which one begins a terminal's commands: who looks at the file is safe too. */
function withControlsEscaped(json: string): string {
  if (!HAS_CONTROL.test(json)) return json;
  return json.replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function cut(line: string, clean = withoutControls): string {
  const whole = clean(line);
  return whole.length > MAX_LINE ? `${whole.slice(0, MAX_LINE)}…` : whole;
}
