// The alert rules and the Grafana dashboard of examples/operate: each metric and label that they name is in what a real gateway
// tells, and each alert says what to do.

import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { findGateway } from "../../src/control/client.js";
import { MetricReader } from "../../src/observe/metrics/metric-reader.js";
import { systemClock } from "../../src/runtime/clock.js";
import { startOnEngine } from "../fixtures/engine-gateways.js";
import { readExposition, type Sample } from "../fixtures/exposition.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { startScripted } from "../fixtures/scripted-mcp.js";
import { connect } from "./eras.js";
import { type Gateway, root, startGateway, temporaryDirectory, until } from "./harness.js";
import { callTool, hasTool } from "./operator.js";

const example = (file: string) => readFileSync(join(root, "examples/operate", file), "utf8");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly description: string };
}

const rules = (parse(example("toolway.rules.yml")) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const dashboard = JSON.parse(example("grafana.json")) as {
  panels: { title: string; targets?: { expr: string; legendFormat: string }[] }[];
  templating: { list: { name: string; query: string | { query: string } }[] };
};

interface Query {
  readonly of: string;
  readonly expr: string;
  /** Labels that the words beside its result name. */
  readonly told: readonly string[];
}

const queries: readonly Query[] = [
  ...rules.map(({ alert, expr, annotations }) => ({
    of: alert,
    expr,
    told: [
      ...Object.values(annotations)
        .join(" ")
        .matchAll(/\$labels\.(\w+)/g),
    ].map(([, label = ""]) => label),
  })),
  ...dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({
      of: title,
      expr,
      told: [...legendFormat.matchAll(/\{\{\s*(\w+)\s*\}\}/g)].map(([, label = ""]) => label),
    })),
  ),
  ...dashboard.templating.list.flatMap(({ name, query }) => {
    const text = typeof query === "string" ? query : query.query;
    return [...text.matchAll(/^label_values\((.+), *(\w+)\)$/g)].map(([, expr = "", label = ""]) => ({
      of: `$${name}`,
      expr,
      told: [label],
    }));
  }),
];

/** Names of metrics in an expression, each with the labels that are asked of it. */
function namesIn(expr: string): { name: string; labels: string[] }[] {
  // Labels in the parentheses of an aggregation may look like metrics.
  return [
    ...expr.replaceAll(GROUPED, "$1 ()").matchAll(/\b((?:toolway|mcp|process|nodejs)_[a-z0-9_]+)(?:\{([^}]*)\})?/g),
  ].map(([, name = "", inner = ""]) => ({
    name,
    labels: [...inner.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label),
  }));
}

const GROUPED = /\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;

const labelsIn = (list: string) => list.split(",").map((label) => label.trim());

/** The labels of each `by (…)` and its like, with what they are asked of: the operand behind it, or all of the expression. */
function groupsIn(expr: string): { labels: string[]; operand: string }[] {
  return [...expr.matchAll(GROUPED)].map(({ 0: all, 2: list = "", index }) => {
    const rest = expr.slice(index + all.length);
    return { labels: labelsIn(list), operand: /^\s*\(/.test(rest) ? inParentheses(rest) : expr };
  });
}

function inParentheses(text: string): string {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "(") depth++;
    else if (text[i] === ")" && --depth === 0) return text.slice(0, i + 1);
  }
  throw new Error(`Not closed: ${text}`);
}

/** Which labels the result has: those that its first aggregation leaves, or all where there is none. Undefined for all. */
function labelsLeft(expr: string): string[] | undefined {
  if (!/\b(sum|max|min|avg|count)\b/.test(expr)) return undefined;
  const first = /\b(?:sum|max|min|avg|count)\s*(?:by\s*\(([^)]*)\))?/.exec(expr)?.[1];
  // A quantile is of all buckets.
  return first === undefined ? [] : labelsIn(first).filter((label) => label !== "le");
}

/** What Prometheus adds to each sample by itself. */
const ADDED = new Set(["instance", "job"]);
const ENGINE = new Set(["toolway_engine_up", "toolway_partitions_owned"]);

describe("alert rules and the dashboard", () => {
  let gateway: Gateway;
  let samples: readonly Sample[];
  /** A line for each time that the token of a server was fetched. */
  let fetched: string;
  const closing: (() => void)[] = [];
  afterAll(() => {
    for (const close of closing) close();
  });

  beforeAll(async () => {
    const text = { content: [{ type: "text", text: "yes" }], ttlMs: 600_000, cacheScope: "public" };
    const server = await startScripted([{ name: "read" }, { name: "fail" }, { name: "write" }], (tool) =>
      tool === "fail" ? { error: { code: -32602, message: "no" } } : { result: text },
    );
    closing.push(server.close);
    fetched = join(await temporaryDirectory(), "fetched");
    const fetchToken = ["/bin/sh", "-c", `echo once >> '${fetched}'; echo token`];
    const kept = { ...server.entry, tools: { write: { outbox: true } } };
    const config = {
      names: "prefixed",
      mcpServers: {
        some: { ...server.entry, tools: { read: { cache: true } }, auth: { bearer: { command: fetchToken } } },
        other: { ...server.entry, auth: "oauth" },
        kept,
      },
      roles: { default: { deny: ["some/write"] } },
      executors: { office: {} },
      mailboxes: {},
      audit: {},
    };
    gateway = await startGateway(config as never);
    closing.push(() => void gateway.stop());
    for (const name of ["some__read", "kept__write"]) await until(name, () => hasTool(gateway.url, name));
    const control = await findGateway(gateway.stateDir);
    // Each once: what was cached, refused and kept, and what a restart of the server is caught for.
    for (const name of ["some__read", "some__read", "some__fail", "some__write"]) await callTool(gateway.url, name);
    await control?.post("/servers/kept/stop", {});
    await callTool(gateway.url, "kept__write");
    const read = async () => {
      const { text: told } = (await control?.get<{ text: string }>("/metrics")) ?? { text: "" };
      return readExposition(told).samples;
    };
    // While a write waits, and when it has been delivered. The lag of the loop is there from the second time on.
    const waiting = await read();
    await control?.post("/servers/kept/start", {});
    samples = await until("all that happens", async () => {
      const now = [...(await read()), ...waiting];
      const seen = new Set(now.map(({ name }) => name));
      return ["toolway_caught_total", "nodejs_eventloop_lag_p99_seconds"].every((one) => seen.has(one)) && now;
    });
  });

  it("name metrics and labels that a gateway tells [metrics-agree]", () => {
    const labelsOf = new Map<string, Set<string>>();
    for (const { name, labels } of samples) {
      const known = labelsOf.get(name) ?? new Set();
      labelsOf.set(name, known);
      for (const label of Object.keys(labels)) known.add(label);
    }
    /** What is asked of the metrics of an expression that they do not have. */
    const missingOf = (expr: string, more: readonly string[]) =>
      namesIn(expr)
        .filter(({ name }) => !ENGINE.has(name))
        .flatMap(({ name, labels }) => {
          const known = labelsOf.get(name);
          if (known === undefined) return [name];
          return [...labels, ...more]
            .filter((label) => !ADDED.has(label) && !known.has(label))
            .map((label) => `${name}{${label}}`);
        });
    const missing = queries.flatMap(({ of, expr, told }) => {
      const left = labelsLeft(expr);
      return [
        ...missingOf(expr, left === undefined ? told : []),
        ...groupsIn(expr).flatMap(({ labels, operand }) => missingOf(operand, labels)),
        ...told.filter((label) => left?.includes(label) === false).map((label) => `{{${label}}} of ${expr}`),
      ].map((what) => `${of}: ${what}`);
    });
    expect(missing).toEqual([]);
    expect(queries.flatMap(({ expr }) => namesIn(expr)).length).toBeGreaterThan(40);
    expect(queries.flatMap(({ expr }) => groupsIn(expr)).length).toBeGreaterThan(20);
    expect(queries.flatMap(({ told }) => told).length).toBeGreaterThan(20);
  });

  it("count each token that was fetched, and the streams that are open and no others [metrics-agree]", async () => {
    const control = await findGateway(gateway.stateDir);
    const valuesOf = async (metric: string) => {
      const { text } = (await control?.get<{ text: string }>("/metrics")) ?? { text: "" };
      return readExposition(text).samples.filter(({ name }) => name === metric);
    };
    const fetches = await valuesOf("toolway_credential_refreshes_total");
    const lines = readFileSync(fetched, "utf8").trim().split("\n");
    expect(fetches.filter(({ labels }) => labels["toolway_server"] === "some")).toEqual([
      expect.objectContaining({ labels: { toolway_server: "some", result: "ok" }, value: lines.length }),
    ]);
    // What was scraped stands for a second.
    const streams = (legacy: number, modern: number) =>
      until(`${legacy} and ${modern} streams`, async () => {
        const open = new Map((await valuesOf("toolway_streams")).map(({ labels, value }) => [labels["kind"], value]));
        return open.get("legacy") === legacy && open.get("modern") === modern && open.get("sse") === 0;
      });
    await streams(0, 0);
    const [legacy, modern] = [await connect("legacy", gateway), await connect("modern", gateway)];
    const listening = await modern.listen({ lists: true });
    await streams(1, 1);
    await listening.close();
    await streams(1, 0);
    await legacy.client.close();
    await streams(0, 0);
  });

  const title =
    natsPrograms.length === 0
      ? `name what a gateway on an engine tells, ${NO_NATS}`
      : "name what a gateway on an engine tells";
  it.skipIf(natsPrograms.length === 0)(`${title} [metrics-agree]`, async () => {
    const nats = await startNats();
    const { gateway: onEngine } = await startOnEngine(nats, { mcpServers: {} });
    try {
      const reader = new MetricReader(onEngine.diagnostics.records, () => onEngine.metricFacts(), systemClock);
      const read = await reader.load();
      const of = (name: string) => read().gauges.find((gauge) => gauge.name === name)?.values[0]?.[1];
      expect(of("toolway_engine_up")).toBe(1);
      await until("its partitions", () => (of("toolway_partitions_owned") ?? 0) > 0);
      await nats.nodes[0]?.kill();
      await until("the engine to be away", () => of("toolway_engine_up") === 0);
      reader.close();
    } finally {
      await onEngine.close({ drainMs: 0 });
    }
  });

  it("have an alert for each of what needs a person, with a sentence of what to do", () => {
    for (const { alert, annotations } of rules) {
      expect(annotations.description, alert).toMatch(/`|look|make room/i);
      expect(annotations.summary, alert).not.toBe("");
      for (const [, verb = ""] of annotations.description.matchAll(/`toolway ([a-z-]+)/g)) {
        expect(readFileSync(join(root, "docs/cli.md"), "utf8"), alert).toContain(`## ${verb}`);
      }
    }
    // One that went would be missed by nobody else.
    expect(rules.map(({ alert }) => alert)).toEqual([
      "ToolwayServerNotReady",
      "ToolwayCallsFail",
      "ToolwaySlowItself",
      "ToolwayOutboxStuck",
      "ToolwayUnknownOutcome",
      "ToolwayDeadLetters",
      "ToolwayToolQuarantined",
      "ToolwayNeedsLogin",
      "ToolwayAuditGap",
      "ToolwayNothingKept",
      "ToolwayLoopStalls",
      "ToolwayEngineAway",
      "ToolwayConfigNotApplied",
    ]);
  });

  const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;
  it.skipIf(!hasPromtool)(`are taken by promtool${hasPromtool ? "" : ", which is not here"}`, () => {
    execFileSync("promtool", ["check", "rules", join(root, "examples/operate/toolway.rules.yml")], { stdio: "pipe" });
    // Grafana's own variables have no meaning to it.
    const asked = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    const groups = [
      {
        name: "dashboard",
        rules: asked.map((expr, nth) => ({
          record: `panel:query:${nth}`,
          expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*"),
        })),
      },
    ];
    const path = join(gateway.stateDir, "..", "dashboard.yml");
    execFileSync("tee", [path], { input: JSON.stringify({ groups }), stdio: ["pipe", "ignore", "pipe"] });
    execFileSync("promtool", ["check", "rules", path], { stdio: "pipe" });
  });
});
