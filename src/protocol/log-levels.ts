// The levels of MCP's log messages, and whether a message is grave enough for whoever asked. The gateway's own log has
// other levels, see observe/log.ts.

/** From chatty to grave, as MCP has them. */
export const LOGGING_LEVELS = [
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency",
] as const;

export type LoggingLevel = (typeof LOGGING_LEVELS)[number];

export function isLoggingLevel(value: unknown): value is LoggingLevel {
  return (LOGGING_LEVELS as readonly unknown[]).includes(value);
}

/**
 * A level that nobody knows passes: better one message too many than a warning lost. Many libraries write theirs in
 * capitals, and mean the same.
 */
export function isAtLeast(level: unknown, wanted: string): boolean {
  const meant = typeof level === "string" ? level.toLowerCase() : level;
  return (
    !isLoggingLevel(meant) || LOGGING_LEVELS.indexOf(meant) >= (LOGGING_LEVELS as readonly string[]).indexOf(wanted)
  );
}
