// Makes the log of a process, with the level and format that its environment asks for.

import { createLog, LOG_LEVELS, type Log, type LogLevel, type LogOptions } from "../../observe/log.js";

/** Where it goes to. `usual` is how much is logged where TOOLWAY_LOG_LEVEL says nothing. */
interface LogTarget {
  readonly write: LogOptions["write"];
  readonly isTerminal: boolean;
  readonly usual?: LogLevel;
}

export function logOf(
  env: Readonly<Record<string, string | undefined>>,
  { write, isTerminal, usual = "info" }: LogTarget,
): Log {
  const wanted = env["TOOLWAY_LOG_LEVEL"] ?? "";
  const level = LOG_LEVELS.find((one) => one === wanted.toLowerCase());
  const format = env["TOOLWAY_LOG_FORMAT"] === "json" ? "json" : "text";
  const log = createLog({ write, isTerminal, level: level ?? usual, format });
  if (wanted !== "" && level === undefined)
    log.warn(`TOOLWAY_LOG_LEVEL is one of ${LOG_LEVELS.join(", ")}; info is used`);
  return log;
}
