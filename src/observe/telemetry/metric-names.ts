// Metrics and labels under the names that OpenTelemetry has for them. A collector that writes them out for Prometheus makes
// the names of our own text of them again: unit and `_total` come back by its rules. Pure.

export interface OtelName {
  readonly name: string;
  readonly unit: "s" | "By" | "";
}

const UNITS = [
  ["_seconds", "s"],
  ["_bytes", "By"],
] as const;

/** `mcp_server_operation_duration_seconds` is `mcp.server.operation.duration` in `s`. */
export function otelName(prometheus: string): OtelName {
  const whole = prometheus.endsWith("_total") ? prometheus.slice(0, -"_total".length) : prometheus;
  const [suffix, unit] = UNITS.find(([ending]) => whole.endsWith(ending)) ?? ["", ""];
  const base = whole.slice(0, whole.length - suffix.length);
  // What is nothing without its unit keeps it.
  const text = base.includes("_") ? base : whole;
  return { name: text.startsWith("mcp_") ? text.replaceAll("_", ".") : text.replace("_", "."), unit };
}

/** Those of the convention; ours are the same, but for the server's. */
const LABELS: ReadonlyMap<string, string> = new Map([
  ["toolway_server", "toolway.server"],
  ["mcp_method_name", "mcp.method.name"],
  ["mcp_protocol_version", "mcp.protocol.version"],
  ["gen_ai_tool_name", "gen_ai.tool.name"],
  ["network_transport", "network.transport"],
  ["error_type", "error.type"],
]);

export function otelAttributes(
  labels: readonly (readonly [name: string, value: string | undefined])[],
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [label, value] of labels) if (value !== undefined) found[LABELS.get(label) ?? label] = value;
  return found;
}
