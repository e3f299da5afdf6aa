// Makes the log of a process, with the level and format that its environment asks for.

import { createLog, LOG_LEVELS, type Log, type LogLevel } from "../../observe/log.js";

/** `usual` is how much is logged where TOOLWAY_LOG_LEVEL says nothing. */
export function logOf(
  env: Readonly<Record<string, string | undefined>>,
  write: (line: string) => void,
  usual: LogLevel = "info",
): Log {
  const wanted = env["TOOLWAY_LOG_LEVEL"] ?? "";
  const level = LOG_LEVELS.find((one) => one === wanted.toLowerCase());
  const format = env["TOOLWAY_LOG_FORMAT"] === "json" ? "json" : "text";
  const log = createLog({ write, level: level ?? usual, format });
  if (wanted !== "" && level === undefined)
    log.warn(`TOOLWAY_LOG_LEVEL is one of ${LOG_LEVELS.join(", ")}; info is used`);
  return log;
}
