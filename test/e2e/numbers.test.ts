// All numbers of a gateway come from one record of each call: after many calls of every kind the text for Prometheus, what a
// collector was sent, the log, the audit log, the past that the page shows and the status say the same.

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import type { HistoryAnswer, ToolsHistoryAnswer } from "../../src/contracts/control/history.js";
import { findGateway } from "../../src/control/client.js";
import { MAX_KEPT_CALLS } from "../../src/observe/calls/kept-calls.js";
import { figure } from "../faults/length.js";
import { chromium } from "../fixtures/browser.js";
import { type Exposition, readExposition } from "../fixtures/exposition.js";
import { startCollector } from "../fixtures/metric-collector.js";
import { PageBrowser } from "../fixtures/page.js";
import { startScripted } from "../fixtures/scripted-mcp.js";
import { modernRequest } from "./eras.js";
import { type Gateway, startGateway, until } from "./harness.js";
import { callTool, createToken, hasTool, statusOf, statusOfAll } from "./operator.js";
import { INITIALIZED, initialize, post } from "./wire.js";

const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

const has = (program: string) => spawnSync(program, ["--version"]).status === 0;
const CALLS = figure(560, 5_000);
/** As many agents call at once. */
const AGENTS = 16;

/** Of the OTLP. */
const [SERVER_SPAN, CLIENT_SPAN] = [2, 3];
const ofCall = (name: string) => name.startsWith("tools/call");

const text = (value: string) => ({ content: [{ type: "text", text: value }] });

async function control({ stateDir }: Gateway) {
  const found = await findGateway(stateDir);
  if (found === undefined) throw new Error("no gateway");
  return found;
}

async function scrape(gateway: Gateway, format: "prometheus" | "openmetrics" = "prometheus"): Promise<string> {
  return (await (await control(gateway)).get<{ text: string }>(`/metrics?format=${format}`)).text;
}

function auditLines({ stateDir }: Gateway): Record<string, unknown>[] {
  const dir = join(stateDir, "audit");
  return readdirSync(dir)
    .sort()
    .flatMap((name) => readFileSync(join(dir, name), "utf8").trimEnd().split("\n"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function counts(values: readonly unknown[]): Record<string, number> {
  const all: Record<string, number> = {};
  for (const value of values) all[String(value)] = (all[String(value)] ?? 0) + 1;
  return all;
}

/** The sum of all samples of this name whose labels have these values. */
function total(
  { samples }: Pick<Exposition, "samples">,
  name: string,
  labels: Readonly<Record<string, string | undefined>> = {},
): number {
  return samples
    .filter((one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0);
}

/** One call that its agent takes back by going away. */
async function takeBack(url: string, token: string, hasBegun: () => boolean): Promise<void> {
  const gone = new AbortController();
  const { text: body, headers } = modernRequest({
    method: "tools/call",
    params: { name: "hang", arguments: {} },
    headers: { authorization: `Bearer ${token}` },
  });
  const sent = { ...headers, "content-type": "application/json", accept: "application/json, text/event-stream" };
  const asked = fetch(url, { method: "POST", headers: sent, body, signal: gone.signal }).then(
    (response) => response.text(),
    () => undefined,
  );
  await until("the call at its server", hasBegun);
  gone.abort();
  await asked.catch(() => undefined);
}

it("after calls of every kind, metrics, collector, log, audit log, past and status say the same [metrics-agree] [calls-recorded]", async () => {
  const collector = await startCollector();
  closing.push(collector.close);
  let hanging = 0;
  const answer = (tool: string) => {
    if (tool === "fail") return { result: { ...text("no"), isError: true } };
    if (tool === "break") return { error: { code: -32602, message: "no" } };
    if (tool === "hang") return void hanging++;
    return { result: { ...text("yes"), ttlMs: 600_000, cacheScope: "public" } };
  };
  const tools = ["ok", "fail", "break", "hang", "cached", "secret", "write"].map((name) => ({ name }));
  const mixed = await startScripted(tools.slice(0, -1), answer);
  const kept = await startScripted(tools.slice(-1), answer);
  closing.push(mixed.close, kept.close);
  const config = {
    mcpServers: {
      mixed: { ...mixed.entry, tools: { cached: { cache: true } } },
      kept: { ...kept.entry, tools: { write: { outbox: true } } },
    },
    roles: { dev: { deny: ["mixed/secret"] } },
    audit: {},
    telemetry: { otlp: collector.url },
  };
  const env = { TOOLWAY_LOG_FORMAT: "json", OTEL_METRIC_EXPORT_INTERVAL: "500" };
  const gateway = await startGateway(config, { auth: true, env });
  closing.push(() => gateway.stop());
  const token = await createToken(gateway, "ann", "dev");
  for (const name of ["ok", "write"]) await until(name, () => hasTool(gateway.url, name, token));
  const operator = await control(gateway);
  await operator.post("/servers/kept/stop", {});

  const KINDS = ["ok", "ok", "ok", "fail", "break", "secret", "cached", "cached", "write", "hang"] as const;
  const asked: Record<string, number> = {};
  let next = 0;
  // The first is sent, and all others are answered by it.
  await callTool(gateway.url, "cached", {}, token);
  asked["cached"] = 1;
  const agent = async () => {
    for (let nth = ++next; nth <= CALLS; nth = ++next) {
      const kind = KINDS[nth % KINDS.length] as (typeof KINDS)[number];
      // A call that is taken back waits for its server: every tenth of them is enough.
      const name = kind === "hang" && nth % 100 !== KINDS.indexOf("hang") ? "ok" : kind;
      asked[name] = (asked[name] ?? 0) + 1;
      const before = hanging;
      if (name === "hang") await takeBack(gateway.url, token, () => hanging > before);
      else await callTool(gateway.url, name, {}, token);
    }
  };
  await Promise.all(Array.from({ length: AGENTS }, agent));
  await operator.post("/servers/kept/start", {});
  const writes = asked["write"] ?? 0;
  await until("the kept writes to be delivered", async () => {
    return total(readExposition(await scrape(gateway)), "toolway_outbox_ended_total", { outcome: "done" }) === writes;
  });

  const outcomes = {
    ok: (asked["ok"] ?? 0) + (asked["cached"] ?? 0) + writes,
    "tool-error": asked["fail"],
    "rpc-error": asked["break"],
    denied: asked["secret"],
    cancelled: asked["hang"],
  };
  const all = CALLS + 1;
  const failed = (asked["fail"] ?? 0) + (asked["break"] ?? 0) + (asked["secret"] ?? 0);

  const logged = () =>
    gateway
      .log()
      .split("\n")
      .flatMap((line) => (line.startsWith("{") && line.includes('"text":"call"') ? [JSON.parse(line)] : []))
      .filter(({ method }) => method === "tools/call");
  await until("the last line of the log", () => logged().length >= all);
  expect(counts(logged().map(({ outcome }) => outcome))).toEqual(outcomes);

  const audited = () => auditLines(gateway).filter(({ method }) => method === "tools/call");
  await until("the last line of the audit log", () => audited().length >= all);
  expect(counts(audited().map(({ outcome }) => outcome))).toEqual(outcomes);
  expect(counts(audited().map(({ rule }) => rule))["role"]).toBe(asked["secret"]);
  expect(auditLines(gateway).filter(({ kind, outcome }) => kind === "write" && outcome === "ok")).toHaveLength(writes);

  // Of what was scraped a moment ago the same text is given.
  await until("a text that has them all", async () => {
    const read = readExposition(await scrape(gateway));
    const name = "mcp_server_operation_duration_seconds_count";
    return total(read, name, { mcp_method_name: "tools/call" }) === all;
  });
  const told = readExposition(await scrape(gateway));
  const byError = (error: string | undefined) =>
    total(told, "mcp_server_operation_duration_seconds_count", { mcp_method_name: "tools/call", error_type: error });
  expect(byError(undefined)).toBe(outcomes.ok + (asked["hang"] ?? 0));
  expect(byError("tool_error")).toBe(asked["fail"]);
  expect(byError("-32602")).toBe(asked["break"]);
  expect(byError("denied")).toBe(asked["secret"]);
  expect(total(told, "toolway_refused_total", { rule: "role" })).toBe(asked["secret"]);
  expect(total(told, "toolway_cache_total", { result: "hit" })).toBe((asked["cached"] ?? 0) - 1);
  expect(total(told, "toolway_caught_total", { kind: "queued" })).toBe(writes);
  // A server was sent all but what was refused, what the cache had and what was kept for it.
  const sentToServers = all - (asked["secret"] ?? 0) - ((asked["cached"] ?? 0) - 1) - writes;
  const ofServers = { mcp_method_name: "tools/call", toolway_server: "mixed" };
  expect(total(told, "mcp_client_operation_duration_seconds_count", ofServers)).toBe(sentToServers);
  // What was asked for is in the same sums as the calls: agents also ask for lists here.
  expect(total(told, "toolway_requests_total")).toBe(total(told, "mcp_server_operation_duration_seconds_count"));
  expect(total(told, "toolway_own_seconds_count")).toBe(total(told, "toolway_requests_total"));
  for (const what of ["metrics", "log", "spans"]) expect(total(told, "toolway_dropped_total", { what })).toBe(0);

  const sent = { "mcp.method.name": "tools/call" };
  await until("a collector that has them all", () => collector.total("mcp.server.operation.duration", sent) === all);
  const ofCollector = (error: string | undefined) =>
    collector.total("mcp.server.operation.duration", { ...sent, "error.type": error });
  expect(ofCollector(undefined)).toBe(byError(undefined));
  for (const error of ["tool_error", "-32602", "denied"]) expect(ofCollector(error)).toBe(byError(error));
  expect(collector.total("toolway.cache", { result: "hit" })).toBe((asked["cached"] ?? 0) - 1);
  expect(collector.total("mcp.client.operation.duration", { ...sent, "toolway.server": "mixed" })).toBe(sentToServers);
  // Of spans the same: one of what the agent asked, and one of each send to a server below it, none of the cache. What was kept
  // was sent when its call had ended.
  const spansOf = (kind: number) => collector.spans().filter((span) => span.kind === kind && ofCall(span.name));
  await until(
    "the last span",
    () => spansOf(SERVER_SPAN).length >= all && spansOf(CLIENT_SPAN).length >= sentToServers + writes,
  );
  expect(spansOf(SERVER_SPAN)).toHaveLength(all);
  expect(counts(spansOf(CLIENT_SPAN).map(({ name }) => name))).toEqual({
    "tools/call ok": asked["ok"],
    "tools/call fail": asked["fail"],
    "tools/call break": asked["break"],
    "tools/call hang": asked["hang"],
    "tools/call write": writes,
    "tools/call cached": 1,
  });

  // The page and `toolway top` have these.
  const { tools: past } = await operator.get<ToolsHistoryAnswer>("/history/tools");
  const ofTools = past.filter(({ server }) => server === "mixed" || server === "kept");
  expect(ofTools.reduce((sum, { calls }) => sum + calls, 0)).toBe(all);
  expect(ofTools.reduce((sum, { errors }) => sum + errors, 0)).toBe(failed);
  const { now, servers } = await operator.get<HistoryAnswer>("/history?window=day");
  expect(servers.reduce((sum, { errors }) => sum + errors, 0)).toBe(failed);
  expect(now.errors).toBe(failed);

  const status = await statusOfAll(gateway);
  expect((await statusOf(gateway, "mixed")).cache).toMatchObject({ hits: (asked["cached"] ?? 0) - 1, misses: 1 });
  // The lines of the log itself, which begin a file, are not counted as written.
  const ofLog = new Set(["file", "resumed"]);
  await until("the count of the lines", async () => {
    const lines = auditLines(gateway).filter(({ kind }) => !ofLog.has(String(kind)));
    return (await statusOfAll(gateway)).audit?.written === lines.length;
  });
  expect(status.audit?.lost).toBe(0);

  // Where there is a browser, the page is read as a person reads it.
  if (chromium === undefined) return;
  const browser = await PageBrowser.launch();
  closing.push(() => browser.close());
  const page = await browser.open(gateway);
  const says = async (name: string, value: string) => {
    const figure = page.locator(".figures > div").filter({ has: page.getByText(name, { exact: true }) });
    return (await figure.locator("dd").textContent())?.startsWith(`${value} `);
  };
  await until("the figures of the Overview", async () => {
    const hour = (await operator.get<HistoryAnswer>("/history?window=hour")).now;
    const share = hour.callsAMinute === 0 ? 0 : (100 * hour.errorsAMinute) / hour.callsAMinute;
    const percent = `${share.toFixed(share > 0 && share < 10 ? 1 : 0)} %`;
    return (await says("calls a minute", String(hour.callsAMinute))) && (await says("failed", percent));
  });
  // It is about those that are kept, which are not all of a long run.
  if (all > MAX_KEPT_CALLS) return;
  await page.goto(new URL("/calls?failed=true&group=reason", page.url()).href);
  await page.locator(".grouped tbody tr").nth(2).waitFor();
  const rows = await page.locator(".grouped tbody tr").allInnerTexts();
  const often = Object.fromEntries(
    rows.map((row) => {
      const [why = "", count] = row.split("\t");
      return [why.split(" ")[0], Number(count)];
    }),
  );
  expect(often).toEqual({ "tool-error": asked["fail"], "rpc-error": asked["break"], denied: asked["secret"] });
});

async function openSession(url: string, token: string): Promise<Record<string, string>> {
  const headers = { authorization: `Bearer ${token}` };
  const opened = await post(url, initialize("0"), headers);
  const session = {
    ...headers,
    "mcp-session-id": opened.headers.get("mcp-session-id") ?? "",
    "mcp-protocol-version": "2025-11-25",
  };
  await post(url, INITIALIZED, session);
  return session;
}

/** What an agent, a server and a config may hold that must be nowhere. */
const CANARY = {
  argument: "canary-argument-4711",
  header: "canary-header-4711",
  env: "canary-env-4711",
  url: "canary-url-4711",
};

it("a server with 5,000 tools, hostile names and codes stays in the bounds, and no secret is in any number, span or line [bounded] [secrets-unseen] [metrics-agree]", async () => {
  const collector = await startCollector();
  closing.push(collector.close);
  const hostile = [
    'quote"back\\slash',
    "line\nbreak\r\u2028",
    "\u202egnp.exe\u0000\u001b[31m",
    `long${"g".repeat(300)}`,
    `secret-${CANARY.header}`,
    'emoji-💥-{le="1"} 7',
    "__proto__",
  ];
  const names = [...Array.from({ length: 5_000 - hostile.length }, (_, i) => `tool_${i}`), ...hostile];
  let code = 0;
  const server = await startScripted(
    names.map((name) => ({ name })),
    () => ({ error: { code: ++code * 7, message: `no ${CANARY.header} ${CANARY.argument}` } }),
  );
  closing.push(server.close);
  const entry = {
    ...server.entry,
    url: `${server.entry.url}?key=${CANARY.url}`,
    headers: { Authorization: `Bearer ${CANARY.header}` },
  };
  const config = {
    mcpServers: { many: entry },
    audit: { arguments: "redacted" },
    telemetry: { otlp: collector.url },
  };
  const env = { TOOLWAY_LOG_FORMAT: "json", OTEL_METRIC_EXPORT_INTERVAL: "500", CANARY: CANARY.env };
  const gateway = await startGateway(config, { auth: true, env, args: ["--log-level", "debug"] });
  closing.push(() => gateway.stop());
  const token = await createToken(gateway, "ann", "default");
  await until("its tools", async () => (await statusOf(gateway, "many")).counts.tools > 4_900);

  const operator = await control(gateway);
  const { tools } = await operator.get<{ tools: { name: string; own?: string }[] }>("/tools");
  const called = [...tools.slice(0, 400), ...tools.slice(-20)].map(({ name }) => name);
  const made = Array.from({ length: 50 }, (_, i) => `made_up_${i}`);
  // Of the legacy era: a modern request has its tool's name in a header, which does not take them all.
  const session = await openSession(gateway.url, token);
  const waiting = [...called, ...made];
  const agent = async () => {
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
      const params = { name, arguments: { text: "plain", password: CANARY.argument } };
      const id = waiting.length;
      await post(gateway.url, JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params }), session);
    }
  };
  await Promise.all(Array.from({ length: AGENTS }, agent));
  await until("the last of them", async () => {
    const read = readExposition(await scrape(gateway));
    const count = total(read, "mcp_server_operation_duration_seconds_count", { mcp_method_name: "tools/call" });
    return count === called.length + made.length;
  });
  const forPrometheus = await scrape(gateway);
  const read = readExposition(forPrometheus);
  const labels = new Set(read.samples.map((one) => one.labels["gen_ai_tool_name"]));
  // 200, the one of all others, and none.
  expect(labels.size).toBeLessThanOrEqual(202);
  expect(labels.size).toBeGreaterThan(100);
  expect(labels).toContain("_other");
  for (const { labels: own } of read.samples) {
    for (const value of Object.values(own)) expect(value.length).toBeLessThanOrEqual(128);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none
    for (const value of Object.values(own)) expect(value).not.toMatch(/[\u0000-\u001f\u202e\u2028]/);
  }
  const errors = new Set(read.samples.map((one) => one.labels["error_type"]));
  expect([...errors].filter((error) => /^-?\d+$/.test(error ?? "") && Number(error) > -32_000)).toEqual([]);
  expect(errors).toContain("_OTHER");
  const sets = read.samples.filter(({ name }) => name === "mcp_server_operation_duration_seconds_count");
  expect(sets.length).toBeLessThanOrEqual(1_001);
  expect(total(read, "toolway_metrics_folded_total")).toBeGreaterThan(0);
  readExposition(await scrape(gateway, "openmetrics"), "openmetrics");

  if (has("promtool")) {
    const checked = spawnSync("promtool", ["check", "metrics"], { input: forPrometheus, encoding: "utf8" });
    expect(checked.stderr + checked.stdout).toBe("");
    expect(checked.status).toBe(0);
  }

  const lines = () => auditLines(gateway).filter(({ method }) => method === "tools/call");
  await until("the last line of the audit log", () => lines().length === called.length + made.length);
  expect(lines()[0]).toMatchObject({ arguments: { text: "plain" } });
  await until("spans", () => collector.text().includes("resourceSpans") && collector.exports() > 0);
  const past = JSON.stringify(await operator.get("/history/tools"));
  await gateway.stop();
  const where = {
    metrics: forPrometheus,
    collector: collector.text(),
    audit: JSON.stringify(auditLines(gateway)),
    log: gateway.log(),
    past,
  };
  for (const [place, all] of Object.entries(where)) {
    for (const [kind, canary] of Object.entries({ ...CANARY, token })) {
      expect(all.includes(canary), `${kind} in ${place}`).toBe(false);
    }
  }
});
