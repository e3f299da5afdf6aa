// What a gateway's status says, as metrics: nothing of it is counted twice. Pure.

import type { GatewayStatus, ServerStatus } from "../../contracts/status.js";
import { label, MAX_SERVERS } from "./call-metrics.js";
import type { Gauge, Labels } from "./series.js";

export function statusGauges(status: GatewayStatus, nowMs: number): Gauge[] {
  const servers = status.servers.slice(0, MAX_SERVERS);
  const each = (value: (server: ServerStatus) => number | undefined): [Labels, number][] =>
    servers.flatMap((server) => {
      const known = value(server);
      const labels: Labels = [["toolway_server", label(server.name)]];
      return known === undefined ? [] : [[labels, known] as [Labels, number]];
    });
  const one = (name: string, help: string, value: number): Gauge => ({ name, help, values: [[[], value]] });
  const { memory, mailboxes, outbox, executors, config } = status;
  return [
    one(
      "toolway_config_ok",
      "1 unless an edit of the config could not be applied.",
      config.error === undefined ? 1 : 0,
    ),
    one("toolway_sessions", "Open sessions of legacy agents.", status.sessions),
    one("toolway_presences", "Modern agents that called lately.", status.presences),
    one("toolway_held_bytes", "Bytes of bodies, replies and streams that are held.", memory.heldBytes),
    one("toolway_held_limit_bytes", "So many may be.", memory.limitBytes),
    { name: "toolway_in_flight", help: "Calls under way.", values: each(({ inFlight }) => inFlight) },
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
      name: "toolway_server_restarts_total",
      help: "Starts of a server after its first.",
      kind: "counter",
      values: each(({ restarts }) => restarts),
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
    ...(outbox === undefined ? [] : outboxGauges(outbox, nowMs)),
  ];
}

function outboxGauges(outbox: NonNullable<GatewayStatus["outbox"]>, nowMs: number): Gauge[] {
  const { waiting, unknown, heldCount, oldestAt } = outbox;
  const age = oldestAt === undefined ? 0 : Math.max(0, (nowMs - Date.parse(oldestAt)) / 1_000);
  return [
    { name: "toolway_outbox_waiting", help: "Kept calls that wait or are being sent.", values: [[[], waiting]] },
    { name: "toolway_outbox_oldest_seconds", help: "The age of the oldest kept call.", values: [[[], age]] },
    {
      name: "toolway_outbox_unknown",
      help: "Kept calls whose outcome a person has to settle.",
      values: [[[], unknown]],
    },
    { name: "toolway_outbox_lanes_held", help: "Lanes that do not go on by themselves.", values: [[[], heldCount]] },
  ];
}

/** Never by mailbox: there may be many thousand. */
function mailboxGauges(mailboxes: NonNullable<GatewayStatus["mailboxes"]>, nowMs: number): Gauge[] {
  const { waiting, leased, dead, connections, oldest } = mailboxes;
  const age = oldest === undefined ? 0 : Math.max(0, (nowMs - Date.parse(oldest.at)) / 1_000);
  return [
    {
      name: "toolway_mailbox_messages",
      help: "Messages in mailboxes.",
      values: Object.entries({ waiting, leased, dead }).map(([state, count]) => [[["state", state]], count]),
    },
    { name: "toolway_mailbox_oldest_seconds", help: "The age of the oldest message.", values: [[[], age]] },
    { name: "toolway_mailbox_connections", help: "Connections of sharers and workers.", values: [[[], connections]] },
  ];
}
