// Methods that OpenTelemetry's convention for MCP knows: names of spans and labels are made of nothing else.

/** Anything else is one word, as the convention asks for. */
export const UNKNOWN = "_OTHER";

export const KNOWN_METHODS: ReadonlySet<string> = new Set([
  "completion/complete",
  "logging/setLevel",
  "prompts/get",
  "prompts/list",
  "resources/list",
  "resources/read",
  "resources/subscribe",
  "resources/templates/list",
  "resources/unsubscribe",
  "tasks/cancel",
  "tasks/get",
  "tasks/list",
  "tasks/result",
  "tasks/update",
  "tools/call",
  "tools/list",
]);
