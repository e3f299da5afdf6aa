// What a gateway's status says, as metrics: nothing of it is counted twice. Pure.

import type { OutboxView } from "../../contracts/outbox.js";
import type { GatewayStatus, ServerStatus } from "../../contracts/status.js";
import { type Gauge, gauge, type Labels } from "./series.js";
import { label, MAX_SERVERS } from "./server-labels.js";

export function statusGauges(status: GatewayStatus, nowMs: number): Gauge[] {
  const servers = status.servers.slice(0, MAX_SERVERS);
  const each = (value: (server: ServerStatus) => number | undefined): [Labels, number][] =>
    servers.flatMap((server) => {
      const known = value(server);
      const labels: Labels = [["toolway_server", label(server.name)]];
      return known === undefined ? [] : [[labels, known] as [Labels, number]];
    });
  const { memory, mailboxes, outbox, executors, config } = status;
  return [
    gauge(
      "toolway_config_ok",
      "1 unless an edit of the config could not be applied.",
      config.error === undefined ? 1 : 0,
    ),
    gauge("toolway_store_ok", "1 unless what has to be kept cannot be written.", isStoreOk(status) ? 1 : 0),
    {
      name: "toolway_sessions",
      help: "Open sessions of legacy agents, and modern agents that called lately.",
      values: [
        [[["era", "legacy"]], status.sessions],
        [[["era", "modern"]], status.presences],
      ],
    },
    gauge("toolway_held_bytes", "Bytes of bodies, replies and streams that are held.", memory.heldBytes),
    gauge("toolway_held_limit_bytes", "So many may be.", memory.limitBytes),
    { name: "toolway_in_flight", help: "Calls under way.", values: each(({ inFlight }) => inFlight) },
    {
      name: "toolway_waiting",
      help: "Of those, calls that wait for their server to come up.",
      values: each(({ waiting }) => waiting),
    },
    {
      name: "toolway_server_state",
      help: "1 for the state that a server is in.",
      values: servers.map(({ name, state }) => [
        [
          ["toolway_server", label(name)],
          ["state", state],
        ],
        1,
      ]),
    },
    {
      name: "toolway_breaker_open",
      help: "1 while calls to a server are held back.",
      values: each(({ circuit }) => (circuit === "open" ? 1 : 0)),
    },
    {
      name: "toolway_pins_quarantined",
      help: "Tools that no agent may use, since their definition changed.",
      values: each(({ quarantined }) => quarantined),
    },
    {
      name: "toolway_needs_login",
      help: "1 while somebody has to log in for a server: `toolway login`.",
      values: each(({ credential }) =>
        credential?.needsLogin === undefined ? undefined : credential.needsLogin ? 1 : 0,
      ),
    },
    {
      name: "toolway_credential_missing",
      help: "1 while a server's credential is refused or cannot be had.",
      values: each(({ credential }) =>
        credential === undefined ? undefined : credential.state === "refused" || credential.state === "failed" ? 1 : 0,
      ),
    },
    {
      name: "toolway_executor_connections",
      help: "Connections of an executor.",
      values: executors.map(({ name, members }) => [
        [["executor", label(name)]],
        members.filter(({ state }) => state === "ready").length,
      ]),
    },
    ...(mailboxes === undefined ? [] : mailboxGauges(mailboxes, nowMs)),
    ...(outbox === undefined ? [] : [heldLanes(outbox)]),
  ];
}

/** An engine that is away has a metric of its own; one that is connected and has a problem takes no writes. */
function isStoreOk({ store, engine }: GatewayStatus): boolean {
  return store === undefined && (engine?.state !== "connected" || engine.problem === undefined);
}

function heldLanes({ heldCount }: NonNullable<GatewayStatus["outbox"]>): Gauge {
  return gauge("toolway_outbox_lanes_held", "Lanes that do not go on by themselves.", heldCount);
}

/** What is kept for each server, from the outbox itself. */
export function outboxGauges(outbox: OutboxView, wallMs: number): Gauge[] {
  const waiting = new Map<string, number>();
  const oldestMs = new Map<string, number>();
  for (const { server, depth, oldestMs: ofLane } of outbox.lanes()) {
    waiting.set(server, (waiting.get(server) ?? 0) + depth);
    if (depth > 0 && ofLane !== undefined) oldestMs.set(server, Math.min(oldestMs.get(server) ?? ofLane, ofLane));
  }
  const unknown = new Map<string, number>();
  for (const { server } of outbox.list({ state: "unknown", limit: MAX_UNKNOWN })) {
    unknown.set(server, (unknown.get(server) ?? 0) + 1);
  }
  const states = (counts: ReadonlyMap<string, number>, state: string): [Labels, number][] =>
    [...counts].slice(0, MAX_SERVERS).map(([server, count]) => [
      [
        ["toolway_server", label(server)],
        ["state", state],
      ],
      count,
    ]);
  return [
    {
      name: "toolway_outbox_writes",
      help: "Kept calls: those that wait or are being sent, and those whose outcome a person has to settle.",
      values: [...states(waiting, "waiting"), ...states(unknown, "unknown")],
    },
    {
      name: "toolway_outbox_oldest_seconds",
      help: "The age of the oldest kept call.",
      values: [...oldestMs]
        .slice(0, MAX_SERVERS)
        .map(([server, ms]) => [[["toolway_server", label(server)]], Math.max(0, (wallMs - ms) / 1_000)]),
    },
  ];
}

/** Whoever has more has one cause for them: a count that stays here says so. */
const MAX_UNKNOWN = 1_000;

/** Never by mailbox: there may be many thousand. */
function mailboxGauges(mailboxes: NonNullable<GatewayStatus["mailboxes"]>, nowMs: number): Gauge[] {
  const { waiting, leased, dead, connections, sharers = 0, oldest } = mailboxes;
  const age = oldest === undefined ? 0 : Math.max(0, (nowMs - Date.parse(oldest.at)) / 1_000);
  return [
    {
      name: "toolway_mailbox_messages",
      help: "Messages in mailboxes.",
      values: Object.entries({ waiting, leased, dead }).map(([state, count]) => [[["state", state]], count]),
    },
    gauge("toolway_mailbox_oldest_seconds", "The age of the oldest message.", age),
    {
      name: "toolway_mailbox_connections",
      help: "Connections of machines that share, and of those that use them.",
      values: [
        [[["side", "sharer"]], sharers],
        [[["side", "worker"]], connections - sharers],
      ],
    },
  ];
}
