import { describe, expect, it } from "vitest";
import { readExposition } from "../../../test/fixtures/exposition.js";
import type { GatewayStatus } from "../../contracts/status.js";
import { type CallRecord, emptyRecord } from "../call-record.js";
import { CallMetrics } from "./call-metrics.js";
import type { CallRecords } from "./call-records.js";
import { EventMetrics } from "./event-metrics.js";
import { type ExpositionFormat, exposition } from "./exposition.js";
import { allMetrics, type GatewayFacts } from "./gateway-metrics.js";
import { ProcessGauges } from "./process-gauges.js";
import { Counter, Histogram } from "./series.js";
import { ServerLabels } from "./server-labels.js";

const read = (text: string) => readExposition(text);

const none = { counters: [], histograms: [], gauges: [] };

const names = {
  isListed: (server: string, tool: string) => server === "files" && tool !== "made-up",
  isRole: (role: string) => role === "reader",
  redacted: (_server: string, tool: string) => tool.replaceAll("hunter2", "[redacted]"),
};

function counting() {
  const servers = new ServerLabels();
  const eventMetrics = new EventMetrics(servers);
  return { metrics: new CallMetrics(names, servers, eventMetrics), eventMetrics };
}

function all(more: Partial<GatewayFacts> = {}, format: ExpositionFormat = "prometheus") {
  const { metrics, eventMetrics } = counting();
  const records = { metrics, eventMetrics, dropped: () => ({ log: 1, spans: 2 }) } as unknown as CallRecords;
  const gauges = new ProcessGauges();
  const write = () => {
    const facts = { status, runs: 3, outbox: undefined, ...more };
    return exposition(allMetrics(facts, records, gauges.read(), Date.UTC(2026, 0, 1, 0, 1)), format);
  };
  return { metrics, eventMetrics, write, gauges };
}

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
    const { metrics } = counting();
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
    const { metrics } = counting();
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
  servers: [
    {
      name: "files",
      state: "ready",
      inFlight: 3,
      waiting: 1,
      circuit: "open",
      quarantined: 2,
      credential: { state: "refused", needsLogin: true },
    },
  ],
  executors: [{ name: "lab", members: [{ state: "ready" }, { state: "lost" }] }],
  mailboxes: {
    waiting: 1,
    leased: 2,
    dead: 3,
    connections: 4,
    sharers: 1,
    oldest: { mailbox: "m", at: "2026-01-01T00:00:00.000Z" },
  },
  outbox: { waiting: 7, oldestAt: "2026-01-01T00:00:30.000Z", unknown: 2, held: [], heldCount: 1 },
} as unknown as GatewayStatus;

describe("what is counted of calls and servers [metrics-agree]", () => {
  const counts = (histogram: Histogram) =>
    read(exposition({ ...none, histograms: [histogram] }, "prometheus"))
      .samples.filter(({ name }) => name.endsWith("_count"))
      .map(({ labels, value }) => [labels, value]);
  const sums = (counter: Counter) => [...counter.values()].map(([labels, count]) => [labels.map(([, v]) => v), count]);

  it("has what the server took and what was ours apart, and nothing at the server that was not sent", () => {
    const { metrics } = counting();
    metrics.take(record({ ms: 20, serverMs: 8, startingMs: 10, queuedMs: 1, transport: "pipe" }));
    metrics.take(record({ ms: 20, serverMs: 8, transport: "pipe", outcome: "timeout" }));
    metrics.take(record({ ms: 3, serverMs: 0, cache: "hit", transport: "pipe" }));
    metrics.take(record({ ms: 3, serverMs: 2, cache: "coalesced", transport: "pipe" }));
    const call = { toolway_server: "files", mcp_method_name: "tools/call", network_transport: "pipe" };
    expect(counts(metrics.serverDurations)).toEqual([
      [call, 1],
      [{ ...call, error_type: "timeout" }, 1],
    ]);
    const [own] = [...metrics.own.values()];
    expect(own?.[1].sum).toBeCloseTo(0.001 + 0.012 + 0.003 + 0.001);
  });

  it("names a failure by the server's code, by tool_error, or by our fault, and codes that are made up by one word", () => {
    const { metrics } = counting();
    metrics.take(record({ outcome: "rpc-error", errorCode: -32602 }));
    metrics.take(record({ outcome: "rpc-error", errorCode: 4711 }));
    metrics.take(record({ outcome: "tool-error" }));
    metrics.take(record({ outcome: "outcome-unknown" }));
    const types = counts(metrics.durations).map(([labels]) => (labels as Record<string, string>)["error_type"]);
    expect(types).toEqual(["-32602", "_OTHER", "tool_error", "outcome_unknown"]);
  });

  it("says what was refused by which rule, and what an agent did not have to notice, where its call succeeded", () => {
    const { metrics, eventMetrics } = counting();
    metrics.take(record({ mended: "restart" }));
    metrics.take(record({ mended: "token" }));
    metrics.take(record({ mended: "token", outcome: "timeout" }));
    metrics.take(record({ outcome: "denied", refusedBy: "menu" }));
    eventMetrics.refused("token");
    metrics.take(record({ method: "tools/list", server: undefined, tool: undefined }));
    metrics.take(record({ method: "tools/list", server: undefined, tool: undefined, mended: "menu" }));
    eventMetrics.outboxWriteEnded("files", "done", true);
    eventMetrics.outboxWriteEnded("files", "done", false);
    eventMetrics.outboxWriteEnded("files", "failed", true);
    eventMetrics.caught("pin", 2);
    expect(sums(eventMetrics.caughtCount)).toEqual([
      [["restart"], 1],
      [["token"], 1],
      [["menu"], 1],
      [["queued"], 1],
      [["pin"], 2],
    ]);
    expect(sums(eventMetrics.refusedCount)).toEqual([
      [["menu"], 1],
      [["token"], 1],
    ]);
    expect(sums(eventMetrics.outboxEnded)).toEqual([
      [["files", "done"], 2],
      [["files", "failed"], 1],
    ]);
  });

  it("has how long sessions and connections lasted, and versions that are made up by one word", () => {
    const { eventMetrics } = counting();
    eventMetrics.sessionOpened("a", 0, false);
    eventMetrics.sessionOpened("b", 0, true);
    eventMetrics.sessionClosed("a", "2025-11-25", 3_000);
    eventMetrics.sessionClosed("b", "made up", 3_000);
    eventMetrics.sessionClosed("c", "2025-11-25", 3_000);
    expect(counts(eventMetrics.agentSessions)).toEqual([
      [{ mcp_protocol_version: "2025-11-25" }, 1],
      [{ mcp_protocol_version: "_OTHER" }, 1],
    ]);
    eventMetrics.started("files", "first");
    eventMetrics.disconnected("files", 5, "unavailable");
    eventMetrics.disconnected("files", 5, undefined);
    expect(counts(eventMetrics.serverSessions)).toEqual([
      [{ toolway_server: "files", error_type: "unavailable" }, 1],
      [{ toolway_server: "files" }, 1],
    ]);
    expect(sums(eventMetrics.caughtCount)).toEqual([[["session"], 1]]);
  });

  it("counts as folded what a server with too many tools, and too many servers, have no label for [bounded]", () => {
    const { metrics } = counting();
    for (let i = 0; i < 250; i++) metrics.take(record({ tool: `tool ${i}` }));
    expect(metrics.folded).toBe(50);
    for (let i = 0; i < 250; i++) metrics.take(record({ tool: `tool ${i}`, outcome: "timeout" }));
    expect(metrics.folded).toBe(100);
    const others = counting().metrics;
    for (let i = 0; i < 510; i++)
      others.take(record({ server: `server ${i}`, tool: undefined, method: "prompts/get" }));
    expect(others.folded).toBe(10);
    // What has a label counts on as before, also after another config was applied.
    metrics.forgetNames();
    metrics.take(record({ tool: "tool 0" }));
    expect(metrics.folded).toBe(100);
  });

  it("counts what no server was asked for by its method, methods that are made up by one word, and failures apart", () => {
    const { metrics } = counting();
    const own = (more: Partial<CallRecord>) => metrics.take(record({ server: undefined, tool: undefined, ...more }));
    for (const ms of [1, 2, 4]) own({ method: "tools/list", ms });
    own({ method: "tools/list", outcome: "denied" });
    for (let i = 0; i < 2; i++) own({ method: `made/up-${i}` });
    const counted = [...metrics.durations.values()].map(([labels, { counts, sum }]) => [
      labels.flatMap(([, value]) => value ?? []),
      counts.reduce((total, count) => total + count, 0),
      sum,
    ]);
    expect(counted).toEqual([
      [["tools/list"], 3, expect.closeTo(0.007)],
      [["tools/list", "denied"], 1, expect.closeTo(0.003)],
      [[expect.any(String)], 2, expect.closeTo(0.006)],
    ]);
  });

  it("is the same whether a call finds its series made or not", () => {
    const { metrics } = counting();
    for (let i = 0; i < 3; i++) metrics.take(record({ cache: "hit" }));
    for (let i = 0; i < 5; i++) metrics.take(record({ serverMs: 1, transport: "tcp" }));
    for (let i = 0; i < 3; i++) metrics.take(record({ cache: "hit" }));
    expect(counts(metrics.durations)).toEqual([
      [{ toolway_server: "files", mcp_method_name: "tools/call", gen_ai_tool_name: "read" }, 11],
    ]);
    expect(counts(metrics.serverDurations).map(([, count]) => count)).toEqual([5]);
  });
});

describe("the metrics of a gateway", () => {
  it("say what its status says, and what Node says of itself", () => {
    const told = { isServerHeld: false, isOrdered: true };
    const lanes = () => [
      { server: "mail", lane: "a", depth: 4, oldestMs: Date.UTC(2026, 0, 1, 0, 0, 30), heldFor: undefined, ...told },
      { server: "mail", lane: "b", depth: 3, oldestMs: Date.UTC(2026, 0, 1, 0, 0, 40), heldFor: undefined, ...told },
    ];
    const list = () => [{ server: "mail" }, { server: "mail" }] as never;
    const { write, gauges } = all({ outbox: { lanes, list } });
    const text = write();
    gauges.close();
    const { samples } = read(text);
    const value = (name: string, labels: object = {}) =>
      samples.find((one) => one.name === name && JSON.stringify(one.labels) === JSON.stringify(labels))?.value;
    const server = { toolway_server: "files" };
    expect(value("toolway_server_state", { ...server, state: "ready" })).toBe(1);
    expect(value("toolway_in_flight", server)).toBe(3);
    expect(value("toolway_breaker_open", server)).toBe(1);
    expect(value("toolway_waiting", server)).toBe(1);
    expect(value("toolway_needs_login", server)).toBe(1);
    expect(value("toolway_sessions", { era: "legacy" })).toBe(2);
    expect(value("toolway_sessions", { era: "modern" })).toBe(1);
    expect(value("toolway_runs")).toBe(3);
    expect(value("toolway_dropped_total", { what: "log" })).toBe(1);
    expect(value("toolway_dropped_total", { what: "spans" })).toBe(2);
    expect(value("toolway_dropped_total", { what: "metrics" })).toBe(0);
    expect(value("toolway_mailbox_connections", { side: "sharer" })).toBe(1);
    expect(value("toolway_mailbox_connections", { side: "worker" })).toBe(3);
    const mail = { toolway_server: "mail" };
    expect(value("toolway_outbox_writes", { ...mail, state: "waiting" })).toBe(7);
    expect(value("toolway_outbox_writes", { ...mail, state: "unknown" })).toBe(2);
    expect(value("toolway_outbox_oldest_seconds", mail)).toBe(30);
    expect(value("process_start_time_seconds")).toBe(performance.timeOrigin / 1_000);
    expect(value("toolway_pins_quarantined", server)).toBe(2);
    expect(value("toolway_executor_connections", { executor: "lab" })).toBe(1);
    expect(value("toolway_mailbox_messages", { state: "dead" })).toBe(3);
    expect(value("toolway_mailbox_oldest_seconds")).toBe(60);
    expect(value("toolway_outbox_lanes_held")).toBe(1);
    expect(value("toolway_config_ok")).toBe(1);
    expect(value("process_resident_memory_bytes")).toBeGreaterThan(1_000_000);
    expect(text).not.toContain('mailbox="');
  });

  it.each([
    [{}, 1],
    [{ store: { problem: "No room left" } }, 0],
    [{ engine: { state: "connected", problem: undefined } }, 1],
    [{ engine: { state: "connected", problem: "The engine has no room." } }, 0],
    [{ engine: { state: "away", problem: "It is away." } }, 1],
  ])("say whether what has to be kept can be written: %j", (more, expected) => {
    const { write, gauges } = all({ status: { ...status, ...more } as GatewayStatus });
    const { samples } = read(write());
    gauges.close();
    expect(samples.find(({ name }) => name === "toolway_store_ok")?.value).toBe(expected);
  });

  it("have the buckets of the convention with three faster ones before them, and finer ones for our own share", () => {
    const { metrics, eventMetrics, write, gauges } = all();
    for (const ms of [0.9, 1, 3, 4_000, 400_000]) metrics.take(record({ ms, serverMs: ms / 2, transport: "pipe" }));
    eventMetrics.sessionOpened("a", 0, false);
    eventMetrics.sessionClosed("a", "2025-11-25", 45_000);
    eventMetrics.disconnected("files", 7_000, "unavailable");
    const { samples, types } = read(write());
    gauges.close();
    const buckets = (histogram: string) =>
      samples
        .filter(({ name }) => name === `${histogram}_bucket`)
        .map(({ labels, value }) => [labels["le"], value] as const);
    const convention = ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "30", "60", "120", "300"];
    const bounds = ["0.001", "0.0025", "0.005", ...convention, "+Inf"];
    // Each bucket has those of the ones before it.
    const counted = (from: readonly (readonly [bound: string, count: number])[]) =>
      bounds.map((bound, at) => [
        bound,
        Math.max(0, ...from.map(([one, count]) => (bounds.indexOf(one) <= at ? count : 0))),
      ]);
    // A time that is a bound is in its bucket.
    expect(buckets("mcp_server_operation_duration_seconds")).toEqual(
      counted([
        ["0.001", 2],
        ["0.005", 3],
        ["5", 4],
        ["+Inf", 5],
      ]),
    );
    expect(buckets("mcp_client_operation_duration_seconds")).toEqual(
      counted([
        ["0.001", 2],
        ["0.0025", 3],
        ["2", 4],
        ["300", 5],
      ]),
    );
    expect(buckets("mcp_server_session_duration_seconds")).toEqual(counted([["60", 1]]));
    expect(buckets("mcp_client_session_duration_seconds")).toEqual(counted([["10", 1]]));
    expect(buckets("toolway_own_seconds")).toEqual([
      ...[
        ["0.00005", 0],
        ["0.0001", 0],
        ["0.00025", 0],
        ["0.0005", 2],
        ["0.001", 2],
        ["0.0025", 3],
      ],
      ...[
        ["0.005", 3],
        ["0.01", 3],
        ["0.025", 3],
        ["0.05", 3],
        ["0.1", 3],
        ["+Inf", 5],
      ],
    ]);
    const labelsOf = (name: string) => samples.find((one) => one.name === name)?.labels;
    expect(labelsOf("mcp_server_session_duration_seconds_sum")).toEqual({ mcp_protocol_version: "2025-11-25" });
    expect(labelsOf("mcp_client_session_duration_seconds_sum")).toEqual({
      toolway_server: "files",
      error_type: "unavailable",
    });
    for (const [name, type] of types)
      if (name.endsWith("_seconds") && name.startsWith("mcp_")) expect(type).toBe("histogram");
  });

  it("have the bytes of requests, and of replies whose length is known, each way, and the open files of the process", () => {
    const { metrics, write, gauges } = all();
    metrics.take(record({ bytesIn: 300, bytes: 4_000 }));
    metrics.take(record({ bytesIn: 20, bytes: undefined }));
    metrics.take(record({ bytesIn: 5, bytes: 70, outcome: "rpc-error", errorCode: -32602 }));
    const { samples, types } = read(write());
    gauges.close();
    expect(types.get("toolway_bytes_total")).toBe("counter");
    const bytes = samples.filter(({ name }) => name === "toolway_bytes_total");
    expect(Object.fromEntries(bytes.map(({ labels, value }) => [labels["direction"], value]))).toEqual({
      from_agent: 325,
      to_agent: 4_070,
    });
    const value = (wanted: string) => samples.find(({ name }) => name === wanted)?.value;
    if (process.platform !== "linux") return;
    // Standard input, output and error at least, and not more than there may be.
    expect(value("process_open_fds")).toBeGreaterThan(2);
    expect(value("process_open_fds")).toBeLessThanOrEqual(value("process_max_fds") ?? 0);
  });

  it("are the same for programs that read JSON", () => {
    const { metrics, write, gauges } = all({}, "json");
    metrics.take(record({}));
    const found = JSON.parse(write()) as { name: string; samples: object[] }[];
    gauges.close();
    const durations = found.find(({ name }) => name === "mcp_server_operation_duration_seconds");
    expect(durations?.samples).toMatchObject([{ count: 1, sum: 0.003, labels: { gen_ai_tool_name: "read" } }]);
  });
});
