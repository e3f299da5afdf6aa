import { describe, expect, it } from "vitest";
import type { GatewayStatus } from "../../contracts/status.js";
import { type CallRecord, emptyRecord } from "../call-record.js";
import { CallMetrics } from "./call-metrics.js";
import { exposition } from "./exposition.js";
import { gatewayMetrics } from "./gateway-metrics.js";
import { ProcessGauges } from "./process-gauges.js";
import { Counter, Histogram } from "./series.js";

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A strict reader of the older text form: what it does not know, it refuses. */
function read(text: string): { samples: Sample[]; types: Map<string, string> } {
  expect(text.endsWith("\n")).toBe(true);
  const samples: Sample[] = [];
  const types = new Map<string, string>();
  for (const line of text.slice(0, -1).split("\n")) {
    const type = /^# TYPE ([a-zA-Z_:][\w:]*) (counter|gauge|histogram)$/.exec(line);
    if (type !== null) {
      expect(types.has(type[1] as string), line).toBe(false);
      types.set(type[1] as string, type[2] as string);
      continue;
    }
    if (/^# HELP [a-zA-Z_:][\w:]* \S/.test(line)) continue;
    const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (NaN|[+-]Inf|-?[\d.]+(?:e[+-]?\d+)?)$/.exec(line);
    if (sample === null) throw new Error(`not a sample: ${line}`);
    const labels: Record<string, string> = {};
    let rest = sample[2] ?? "";
    while (rest !== "") {
      const pair = /^([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/.exec(rest);
      if (pair === null) throw new Error(`not labels: ${line}`);
      expect(labels[pair[1] as string], line).toBeUndefined();
      labels[pair[1] as string] = (pair[2] as string).replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
      rest = rest.slice(pair[0].length);
    }
    samples.push({ name: sample[1] as string, labels, value: Number(sample[3]?.replace("Inf", "Infinity")) });
  }
  return { samples, types };
}

const none = { counters: [], histograms: [], gauges: [] };

const names = {
  isListed: (server: string, tool: string) => server === "files" && tool !== "made-up",
  isRole: (role: string) => role === "reader",
  redacted: (_server: string, tool: string) => tool.replaceAll("hunter2", "[redacted]"),
};

const record = (more: Partial<CallRecord>): CallRecord => ({
  ...emptyRecord(),
  principal: { id: "secret-principal", role: "reader" },
  method: "tools/call",
  server: "files",
  tool: "read",
  ms: 3,
  ...more,
});

describe("counters and histograms", () => {
  it("are written as a strict reader wants them, whatever stands in their labels", () => {
    const counter = new Counter("a_total", 'A "help" with \\ and\na second line.');
    const odd = 'quote " back \\ line\nend';
    counter.add([["who", odd]], 2);
    counter.add([["who", undefined]]);
    const histogram = new Histogram("h_seconds", "How long.", [0.1, 1]);
    for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe([["s", "x"]], value);
    const { samples, types } = read(
      exposition({ ...none, counters: [counter], histograms: [histogram] }, "prometheus"),
    );
    expect([...types]).toEqual([
      ["a_total", "counter"],
      ["h_seconds", "histogram"],
    ]);
    expect(samples.slice(0, 2)).toEqual([
      { name: "a_total", labels: { who: odd }, value: 2 },
      { name: "a_total", labels: {}, value: 1 },
    ]);
    const buckets = samples.filter(({ name }) => name === "h_seconds_bucket");
    expect(buckets.map(({ labels, value }) => [labels["le"], value])).toEqual([
      ["0.1", 2],
      ["1", 3],
      ["+Inf", 4],
    ]);
    expect(samples.find(({ name }) => name === "h_seconds_sum")?.value).toBeCloseTo(7.65);
    expect(samples.find(({ name }) => name === "h_seconds_count")?.value).toBe(4);
  });

  it("in OpenMetrics have the ending at the sample alone, and an end", () => {
    const counter = new Counter("a_total", "A.");
    counter.add([]);
    const text = exposition({ ...none, counters: [counter] }, "openmetrics");
    expect(text).toBe("# HELP a A.\n# TYPE a counter\na_total 1\n# EOF\n");
  });

  it("fold what has no room, and count it [bounded]", () => {
    const counter = new Counter("a_total", "A.", 3);
    for (let i = 0; i < 10; i++) counter.add([["n", String(i)]]);
    expect([...counter.values()].map(([[pair], count]) => [pair?.[1], count])).toEqual([
      ["0", 1],
      ["1", 1],
      ["2", 1],
      ["_other", 7],
    ]);
    expect(counter.folded).toBe(7);
  });
});

describe("what is counted of calls", () => {
  it("has no principal, and no name that an agent made up [calls-recorded]", () => {
    const metrics = new CallMetrics(names);
    metrics.take(record({ clientInfo: { name: "claude-code", version: "2" } }));
    metrics.take(record({ tool: "made-up", outcome: "not-found", clientInfo: { name: "evil\nname" } }));
    metrics.take(record({ server: undefined, tool: "made-up", method: "x/y", outcome: "cancelled" }));
    metrics.take(record({ principal: { id: "p", role: "made-up-role" } }));
    const { samples } = read(
      exposition({ ...none, counters: [metrics.requests], histograms: [metrics.durations] }, "prometheus"),
    );
    const text = JSON.stringify(samples);
    for (const word of ["secret-principal", "made-up", "evil", "x/y"]) expect(text).not.toContain(word);
    const counts = samples.filter(({ name }) => name.endsWith("_count")).map(({ labels, value }) => [labels, value]);
    const call = { mcp_method_name: "tools/call", toolway_server: "files" };
    expect(counts).toEqual([
      [{ ...call, gen_ai_tool_name: "read" }, 2],
      [{ ...call, error_type: "not_found" }, 1],
      // Taking a call back is no error.
      [{ mcp_method_name: "_OTHER" }, 1],
    ]);
    expect(samples.filter(({ name }) => name === "toolway_requests_total").map(({ labels }) => labels)).toEqual([
      { client: "claude", role: "reader" },
      { client: "other", role: "reader" },
      { client: "other", role: "_OTHER" },
    ]);
  });

  it("shows a tool without what its server keeps secret, and at most 200 of a server [secrets-unseen] [bounded]", () => {
    const metrics = new CallMetrics(names);
    metrics.take(record({ tool: "say-hunter2" }));
    for (let i = 0; i < 300; i++) metrics.take(record({ tool: `tool ${i}` }));
    const { samples } = read(exposition({ ...none, histograms: [metrics.durations] }, "prometheus"));
    const tools = new Set(samples.map(({ labels }) => labels["gen_ai_tool_name"]));
    expect(tools).toContain("say-[redacted]");
    expect(tools.size).toBe(201);
    expect(tools).toContain("_other");
    expect(JSON.stringify(samples)).not.toContain("hunter2");
  });
});

const status = {
  toolway: "9.9.9",
  startedAt: "2026-01-01T00:00:00.000Z",
  config: { error: undefined },
  sessions: 2,
  presences: 1,
  memory: { heldBytes: 5, limitBytes: 10 },
  servers: [{ name: "files", state: "ready", inFlight: 3, restarts: 1, circuit: "open", quarantined: 2 }],
  executors: [{ name: "lab", members: [{ state: "ready" }, { state: "lost" }] }],
  mailboxes: {
    waiting: 1,
    leased: 2,
    dead: 3,
    connections: 4,
    oldest: { mailbox: "m", at: "2026-01-01T00:00:00.000Z" },
  },
  outbox: { waiting: 7, oldestAt: "2026-01-01T00:00:30.000Z", unknown: 2, held: [], heldCount: 1 },
} as unknown as GatewayStatus;

describe("the metrics of a gateway", () => {
  it("say what its status says, and what Node says of itself", () => {
    const text = gatewayMetrics(
      status,
      new CallMetrics(names),
      new ProcessGauges(0).read(),
      Date.UTC(2026, 0, 1, 0, 1),
      "prometheus",
    );
    const { samples } = read(text);
    const value = (name: string, labels: object = {}) =>
      samples.find((one) => one.name === name && JSON.stringify(one.labels) === JSON.stringify(labels))?.value;
    const server = { toolway_server: "files" };
    expect(value("toolway_server_state", { ...server, state: "ready" })).toBe(1);
    expect(value("toolway_in_flight", server)).toBe(3);
    expect(value("toolway_breaker_open", server)).toBe(1);
    expect(value("toolway_server_restarts_total", server)).toBe(1);
    expect(value("toolway_pins_quarantined", server)).toBe(2);
    expect(value("toolway_executor_connections", { executor: "lab" })).toBe(1);
    expect(value("toolway_mailbox_messages", { state: "dead" })).toBe(3);
    expect(value("toolway_mailbox_oldest_seconds")).toBe(60);
    expect(value("toolway_outbox_waiting")).toBe(7);
    expect(value("toolway_outbox_oldest_seconds")).toBe(30);
    expect(value("toolway_outbox_unknown")).toBe(2);
    expect(value("toolway_outbox_lanes_held")).toBe(1);
    expect(value("toolway_config_ok")).toBe(1);
    expect(value("process_resident_memory_bytes")).toBeGreaterThan(1_000_000);
    expect(text).not.toContain('mailbox="');
  });

  it("are the same for programs that read JSON", () => {
    const calls = new CallMetrics(names);
    calls.take(record({}));
    const all = JSON.parse(gatewayMetrics(status, calls, [], 0, "json")) as { name: string; samples: object[] }[];
    const durations = all.find(({ name }) => name === "mcp_server_operation_duration_seconds");
    expect(durations?.samples).toMatchObject([{ count: 1, sum: 0.003, labels: { gen_ai_tool_name: "read" } }]);
  });
});
