// The goals of the gateway's speed, and whether a run met them. Pure; what a run did not measure has no verdict.

import { median, ratios } from "./ratios.mjs";
import { RESULT_TOOLS, titleOf } from "./servers/results.mjs";
import { LIMIT_OF } from "./target.mjs";

const ERAS = ["legacy", "modern"];
const GATEWAY = "toolway";
/** A modern call has no session to look up. */
const SMALL_HTTP = { legacy: 1, modern: 0.9 };

/**
 * @param {Pick<import("./target.mjs").Results, "rows" | "measures">} results
 * @returns {import("./target.mjs").Goal[]}
 */
export function goalsOf({ rows, measures }) {
  const row = (wanted) => rows.find((one) => Object.entries(wanted).every(([key, value]) => one[key] === value));
  const small = (upstream, era, more = {}) =>
    row({ workload: "small", upstream, era, inFlight: 32, answers: "json", target: GATEWAY, ...more });
  const value = (measure, target = GATEWAY) =>
    measures.find((one) => one.measure === measure && one.target === target)?.value;

  return [
    ...ERAS.map((era) =>
      goal(
        `small call, HTTP→HTTP, 32 in flight, ${era}: CPU against pass-through`,
        SMALL_HTTP[era],
        small("http", era)?.ratio,
      ),
    ),
    ...ERAS.map((era) =>
      goal(
        `small call, HTTP→HTTP, 32 in flight, ${era}: CPU against the best peer`,
        0.1,
        bestPeer(rows, small("http", era)),
      ),
    ),
    ...ERAS.map((era) =>
      goal(`small call, HTTP→stdio, 32 in flight, ${era}: CPU against bridge`, 1.15, small("stdio", era)?.ratio),
    ),
    ...ERAS.flatMap((era) => {
      const [own, bridge] = [small("stdio", era), small("stdio", era, { target: LIMIT_OF.stdio })];
      return [
        goal(
          `small call, HTTP→stdio, 32 in flight, ${era}: median time against bridge`,
          1.15,
          quotient(own?.p50Ms, bridge?.p50Ms),
        ),
        goal(
          `small call, HTTP→stdio, 32 in flight, ${era}: the bridge's calls a second against it`,
          1.15,
          quotient(bridge?.callsPerSec, own?.callsPerSec),
        ),
        goal(
          `small call, HTTP→stdio, 1 in flight, ${era}: CPU against bridge`,
          1.15,
          small("stdio", era, { inFlight: 1 })?.ratio,
        ),
      ];
    }),
    ...ERAS.map((era) =>
      goal(
        `small call, HTTP→HTTP, 32 in flight, ${era}: CPU of SSE answers against JSON`,
        1.2,
        against(small("http", era, { answers: "sse" }), small("http", era)),
      ),
    ),
    ...[
      ["http", "json", 1.15],
      ["http", "sse", 1.25],
      ["stdio", "json", 1.25],
    ].map(([upstream, answers, limit]) =>
      goal(
        `1 MiB result, ${wayOf(upstream)}${answers === "sse" ? ", SSE answers" : ""}: CPU against ${LIMIT_OF[upstream]}`,
        limit,
        row({ workload: "big", upstream, answers, target: GATEWAY })?.ratio,
      ),
    ),
    // Rows with ids are judged by nobody: each id in them must be looked at.
    ...["http", "stdio"].flatMap((upstream) =>
      RESULT_TOOLS.filter((tool) => !tool.startsWith("rows")).map((tool) =>
        goal(
          `${titleOf(tool)}, ${wayOf(upstream)}: CPU against ${LIMIT_OF[upstream]}`,
          tool.endsWith("1024") && upstream === "stdio" ? 1.25 : 1.15,
          row({ workload: titleOf(tool), upstream, target: GATEWAY })?.ratio,
        ),
      ),
    ),
    ...ERAS.map((era) =>
      goal(
        `merged list, ${era}: CPU against the list from memory`,
        1.25,
        row({ workload: "list", era, target: GATEWAY })?.ratio,
      ),
    ),
    goal(
      "start to listening, against a bare server",
      2,
      measures.find((one) => one.measure === "start" && one.target === GATEWAY)?.ratio,
    ),
    goal(
      "start to the first call, against pass-through",
      2,
      measures.find((one) => one.measure === "firstCall" && one.target === GATEWAY)?.ratio,
    ),
    goal("RSS idle, above a bare server", 20, difference(value("rssIdle"), value("rssIdle", "bare")), "MB"),
    goal("RSS for each open session", 60, value("rssPerSession"), "kB"),
    goal("RSS for each session with an open stream", 90, value("rssPerStream"), "kB"),
    goal("RSS for each modern subscription", 90, value("rssPerListen"), "kB"),
    ...rows
      .filter((one) => one.workload.startsWith("scale-") && one.variant !== one.against)
      .map((one) =>
        goal(
          `small call with ${one.variant}: CPU against ${one.against}`,
          one.variant === "100 servers" ? 1.1 : 1.2,
          one.ratio,
        ),
      ),
    // With the rules as they ship; what trouble costs that nothing contains is shown beside it.
    goal(
      "healthy call with 10 servers, 5 in trouble: CPU against 5 servers",
      1.1,
      row({ workload: "ten", variant: "10 servers, 5 in trouble", target: GATEWAY })?.ratio,
    ),
    goal(
      "small call with roles, budget, cache and telemetry: CPU against none of them",
      1.5,
      row({ workload: "equipped", variant: "roles, budget, cache, telemetry", target: GATEWAY })?.ratio,
    ),
    ...[
      ["metrics, records, history", 1.02],
      ["with audit", 1.05],
      ["with audit, hmac", 1.1],
    ].map(([variant, limit]) =>
      goal(
        `small call, ${variant}: CPU against an empty recorder`,
        limit,
        row({ workload: "observe", variant, target: GATEWAY })?.ratio,
      ),
    ),
    goal(
      "bodies through an executor, 64 KiB pieces: CPU of both ends against a bare WebSocket tunnel",
      1.5,
      row({ upstream: "executor", unit: "MiB", target: GATEWAY })?.ratio,
    ),
    ...[
      ["delivered", 2],
      ["delivered, handed out, acknowledged", 4],
    ].map(([variant, limit]) =>
      goal(
        `mailbox, 32 writers, ${variant}: a bare LMDB's appends a second against it`,
        limit,
        row({ workload: "mailbox", variant, target: GATEWAY })?.slower,
      ),
    ),
    goal(
      "mailbox, 32 writers, delivered: CPU against a bare WebSocket echo and a bare LMDB append together",
      2,
      row({ workload: "mailbox", variant: "delivered", target: GATEWAY })?.ratio,
    ),
    goal(
      "small call through gateway, broker and sharer, 32 in flight: CPU against gateway and stdio",
      4,
      row({ workload: "mailbox", variant: "call, gateway, broker and sharer", target: GATEWAY })?.ratio,
    ),
    // Seven tenths of its writes.
    goal(
      "outbox, 16 writers: a bare loop's writes a second, with the same two commits around the call, against it",
      1 / 0.7,
      row({ workload: "outbox", variant: "kept", target: GATEWAY })?.slower,
    ),
    goal(
      "outbox: CPU of a tool without, in a gateway whose config has one, against a gateway without",
      1.03,
      row({ workload: "outbox", variant: "a tool without outbox, beside one that has it", target: GATEWAY })?.ratio,
    ),
    ...[
      ["one gateway", 1.05, "a gateway on an engine: CPU of a small call against the local store"],
      ["three gateways", 1.15, "three gateways on an engine: CPU of a small call against one"],
      ["kept, one gateway", 1.5, "a kept write on an engine: CPU against the call without and bare publishes together"],
    ].map(([variant, limit, name]) =>
      goal(name, limit, row({ workload: "machines", variant, target: GATEWAY })?.ratio),
    ),
    goal(
      "a kept write on an engine: operations at the engine",
      4,
      row({ workload: "machines", variant: "kept, one gateway", target: GATEWAY })?.operations,
      "",
    ),
  ];
}

function goal(name, limit, value, unit = "×") {
  const measured = value === undefined || Number.isNaN(value) ? undefined : value;
  return { goal: name, limit, value: measured, unit, met: measured === undefined ? undefined : measured <= limit };
}

const wayOf = (upstream) => `HTTP→${upstream === "http" ? "HTTP" : upstream}`;

function against(one, other) {
  if (one === undefined || other === undefined) return undefined;
  return median(ratios(one.cpuRounds, other.cpuRounds));
}

/** Against the cheapest peer in the same case. */
function bestPeer(rows, own) {
  if (own === undefined) return undefined;
  const same = ["workload", "upstream", "answers", "era", "inFlight"];
  const peers = rows.filter((one) => one.group === "peer" && same.every((key) => one[key] === own[key]));
  if (peers.length === 0) return undefined;
  // Both against the limit of their own rounds, which may be of two runs.
  return Math.max(...peers.map((peer) => own.ratio / peer.ratio));
}

function quotient(one, other) {
  return one === undefined || other === undefined ? undefined : one / other;
}

function difference(one, other) {
  return one === undefined || other === undefined ? undefined : one - other;
}
