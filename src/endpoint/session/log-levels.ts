// The levels of log messages, and whether a message is grave enough for who asked.

/** From chatty to grave, as MCP has them. */
const LEVELS: readonly unknown[] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

export function isLogLevel(value: unknown): value is string {
  return LEVELS.includes(value);
}

/** A level that nobody knows passes: better one message too many than a warning lost. */
export function isAtLeast(level: unknown, wanted: string): boolean {
  return !isLogLevel(level) || LEVELS.indexOf(level) >= LEVELS.indexOf(wanted);
}
