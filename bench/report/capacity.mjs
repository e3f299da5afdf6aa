// What a number of agents and mailboxes needs, from the measured costs of a call, a session, a queued write and a message, with the
// arithmetic and every bound of ours that it meets; and the part of docs/scale.md that shows it. Pure.

import { majorOf } from "../../scripts/node-versions.mjs";
import { PAGE_MAJOR } from "./doc.mjs";

const MARKS = ["<!-- capacity:begin -->", "<!-- capacity:end -->"];

/** What is reckoned unless it is told otherwise. */
export const A_MILLION = {
  agents: 1_000_000,
  mailboxes: 1_000_000,
  /** Of an agent, in an hour. */
  calls: 12,
  /** Part of the calls that are kept in an outbox, in hundredths. */
  kept: 5,
  /** Part of the agents that have a connection open at a time, in hundredths. */
  open: 10,
  /** To a mailbox, in an hour; and the part of the mailboxes whose machine is connected, in hundredths. */
  messages: 1,
  connected: 1,
};

/** A core that is busier has queues; what is left is for bursts and for the loss of a gateway. */
const BUSY = 0.5;

/** Bounds of ours, with where they stand and what makes them larger. test/bench/capacity.test.ts holds them against the source. */
export const BOUNDS = {
  tokens: { most: 10_000, where: "src/tokens/tokens.ts", option: undefined },
  sessions: { most: 10_000, where: '"sessions.max"', option: "sessions.max" },
  connections: { most: 12_000, where: '"limits.connections"', option: "limits.connections" },
  mailboxes: { most: 10_000, where: "src/mailbox/broker/limits.ts", option: undefined },
  peers: { most: 16_000, where: "src/endpoint/http/mailbox-door.ts", option: undefined },
  partitions: { most: 64, where: "src/store/ownership/partitions.ts", option: undefined },
  engineMailboxes: { most: 640_000, where: "64 partitions, each with a broker's 10,000", option: undefined },
};
/** An idle peer of a broker has at most so much: test/faults/mailbox-crowd.test.ts asserts it. */
export const PEER_KB = 30;
/** What one broker on an engine takes in of mail that waits, and what it counts for a message beside its text. */
export const MAIL_BYTES = 64 * 1024 * 1024;
export const KNOWN_BYTES = 2 * 1024;
/** A small call with its arguments, as it is measured. */
const MESSAGE_BYTES = 400;

/** @param {string} page docs/scale.md @param {object} results a record of the bench @returns {string} the page with what they come to */
export function fillCapacity(page, results) {
  // The page shows one machine's costs.
  if (majorOf(results.machine?.node) !== PAGE_MAJOR) return page;
  const [first, last] = MARKS;
  const begin = page.indexOf(first);
  const end = page.indexOf(last);
  if (begin < 0 || end < begin) throw new Error(`The page has no ${first} … ${last} to fill.`);
  const { node, cpus, kernel } = results.machine;
  const head = `Measured with node ${node ?? "?"} on ${cpus ?? "?"}, ${kernel ?? "?"}:`;
  const text = `${head}\n\n\`\`\`\n${capacityText([results])}\`\`\``;
  return `${page.slice(0, begin + first.length)}\n${text}\n${page.slice(end)}`;
}

/**
 * @param {object[]} runs results of the bench; those of several are taken together
 * @param {typeof A_MILLION} input
 * @returns {string} throws where one of the costs was not measured
 */
export function capacityText(runs, input = A_MILLION) {
  const costs = costsOf(runs);
  const out = [];
  const say = (text = "") => out.push(text);
  const n = (value, digits = 0) =>
    value.toLocaleString("en-US", { maximumFractionDigits: digits, minimumFractionDigits: digits });

  say("Measured (npm run bench machines memory mailbox):");
  say(`  a call                 ${n(costs.callUs)} µs of CPU at a gateway on an engine`);
  say(
    `  a queued write         ${n(costs.writeUs)} µs of CPU, ${n(costs.operations, 2)} messages at the engine with ${costs.writers} writers at once`,
  );
  say(`  a session              ${n(costs.sessionKb, 1)} kB of RSS; with an open stream ${n(costs.streamKb, 1)} kB`);
  say(`  a gateway that idles   ${n(costs.idleMb)} MB of RSS`);
  say(
    `  a message to a mailbox ${n(costs.messageUs)} µs of CPU at its broker, delivered, handed out and acknowledged; a peer that idles at most ${PEER_KB} kB`,
  );
  say(
    costs.engineMessageUs === undefined
      ? "  the same on an engine  not measured: the bench found no nats-server"
      : `  the same on an engine  ${n(costs.engineMessageUs)} µs of CPU at its broker`,
  );
  say();

  const callsPerSec = (input.agents * input.calls) / 3_600;
  const writesPerSec = (callsPerSec * input.kept) / 100;
  const plainCores = ((callsPerSec - writesPerSec) * costs.callUs) / 1e6;
  const writeCores = (writesPerSec * costs.writeUs) / 1e6;
  const cores = (plainCores + writeCores) / BUSY;
  const streams = (input.agents * input.open) / 100;
  const streamGb = (streams * costs.streamKb) / 1e6;
  const byConnections = Math.ceil(streams / BOUNDS.connections.most);
  const gateways = Math.max(3, Math.ceil(cores), byConnections);
  say(
    `${n(input.agents)} agents, ${input.calls} calls an hour each, ${input.kept} % of them kept, ${input.open} % connected:`,
  );
  say(
    `  calls        ${n(input.agents)} × ${input.calls} / 3,600 = ${n(callsPerSec)} a second, ${n(writesPerSec)} of them kept`,
  );
  say(
    `  CPU          (${n(callsPerSec - writesPerSec)} × ${n(costs.callUs)} µs + ${n(writesPerSec)} × ${n(costs.writeUs)} µs) / ${BUSY} = ${n(cores, 1)} cores at gateways`,
  );
  say(
    `  memory       ${n(streams)} open streams × ${n(costs.streamKb, 1)} kB = ${n(streamGb, 1)} GB, and ${n(costs.idleMb)} MB a gateway`,
  );
  say(
    `  connections  ${n(streams)} / ${n(BOUNDS.connections.most)} = ${byConnections} gateways at the default of "limits.connections"`,
  );
  say(
    `  gateways     the most of 3, ${Math.ceil(cores)} (a core each) and ${byConnections} (connections): ${gateways}`,
  );
  say(
    `  engine       ${n(writesPerSec)} × ${n(Math.max(costs.operations, 2), 2)} = at most ${n(writesPerSec * Math.max(costs.operations, 2))} messages a second`,
  );
  say();

  const messagesPerSec = (input.mailboxes * input.messages) / 3_600;
  const peers = (input.mailboxes * input.connected) / 100;
  const coresOf = (us) => (messagesPerSec * us) / 1e6 / BUSY;
  const brokers = Math.ceil(
    Math.max(input.mailboxes / BOUNDS.mailboxes.most, peers / BOUNDS.peers.most, coresOf(costs.messageUs)),
  );
  say(`${n(input.mailboxes)} mailboxes, ${input.messages} message an hour each, ${input.connected} % connected:`);
  say(
    `  messages     ${n(input.mailboxes)} × ${input.messages} / 3,600 = ${n(messagesPerSec)} a second × ${n(costs.messageUs)} µs / ${BUSY} = ${n(coresOf(costs.messageUs), 2)} cores`,
  );
  say(`  memory       ${n(peers)} peers × ${PEER_KB} kB = ${n((peers * PEER_KB) / 1e6, 2)} GB at most`);
  say(
    `  alone        the most of ${n(input.mailboxes)} / ${n(BOUNDS.mailboxes.most)} mailboxes, ${n(peers)} / ${n(BOUNDS.peers.most)} peers and the cores: ${brokers} brokers, each with mailboxes of its own`,
  );
  sayEngine(say, n, { input, peers, coresOf, costs });
  say();

  say("Bounds of ours that it meets, the first to break first:");
  const met = [
    ["tokens", input.agents, "a token each; all gateways on one engine have them together"],
    ["mailboxes", input.mailboxes, "of one broker that is alone"],
    ["engineMailboxes", input.mailboxes, "of all brokers on one engine"],
    ["connections", streams, "of one gateway"],
    ["sessions", streams, "of one gateway, legacy agents"],
    ["peers", peers, "of one broker"],
    ["partitions", gateways, "more gateways than that have no writes in hand"],
  ];
  const ordered = met
    .map(([name, needed, what]) => [name, needed, what, needed / BOUNDS[name].most])
    .sort((a, b) => b[3] - a[3]);
  for (const [name, needed, what, times] of ordered) {
    const { most, where, option } = BOUNDS[name];
    const how =
      times <= 1
        ? "within it"
        : option === undefined
          ? `${n(times, 1)} times over, and no option`
          : `${n(times, 1)} times over: ${Math.ceil(times)} of them, or a larger "${option}"`;
    const words = name === "engineMailboxes" ? "on an engine" : name;
    say(`  ${words.padEnd(12)} ${n(needed).padStart(11)} of ${n(most).padStart(6)} (${where}), ${what}: ${how}`);
  }
  return `${out.join("\n")}\n`;
}

/** Brokers on one engine have all mailboxes together: any of them serves any, so that they are reckoned by their work. */
function sayEngine(say, n, { input, peers, coresOf, costs }) {
  const engines = Math.ceil(input.mailboxes / BOUNDS.engineMailboxes.most);
  const cores = costs.engineMessageUs === undefined ? undefined : coresOf(costs.engineMessageUs);
  const brokers = Math.max(3, Math.ceil(cores ?? 0), Math.ceil(peers / BOUNDS.peers.most));
  const held = Math.floor(MAIL_BYTES / (MESSAGE_BYTES + KNOWN_BYTES));
  const work = cores === undefined ? "its cores were not measured" : `${n(cores, 2)} cores`;
  say(
    `  on an engine the most of 3, ${work} and ${n(peers)} / ${n(BOUNDS.peers.most)} peers: ${brokers} brokers; ${n(input.mailboxes)} / ${n(BOUNDS.engineMailboxes.most)} mailboxes = ${engines} ${engines === 1 ? "engine" : "engines"}`,
  );
  say(
    `  mail waiting on an engine, 64 MiB / (${MESSAGE_BYTES} + ${n(KNOWN_BYTES)} bytes) = ${n(held)} small messages a broker, ${n(held * brokers)} at ${brokers}; a sender has half of a broker's`,
  );
}

function costsOf(runs) {
  const rows = runs.flatMap((run) => run.rows);
  const measures = runs.flatMap((run) => run.measures);
  const row = (workload, variant) => {
    const found = rows.find((one) => one.workload === workload && one.variant === variant && one.target === "toolway");
    if (found === undefined)
      throw new Error(
        `There is no "${variant}" of the workload ${workload}: run npm run bench machines memory mailbox.`,
      );
    return found;
  };
  const measure = (name) => {
    const found = measures.find((one) => one.measure === name && one.target === "toolway");
    if (found === undefined) throw new Error(`There is no ${name}: run npm run bench machines memory mailbox.`);
    return found.value;
  };
  const kept = row("machines", "kept, one gateway");
  return {
    callUs: row("machines", "one gateway").cpuUs,
    writeUs: kept.cpuUs,
    operations: kept.operations,
    writers: kept.inFlight,
    sessionKb: measure("rssPerSession"),
    streamKb: measure("rssPerStream"),
    idleMb: measure("rssIdle"),
    messageUs: row("mailbox", "delivered, handed out, acknowledged").cpuUs,
    engineMessageUs: rows.find(
      (one) => one.workload === "mailbox" && one.variant === "delivered, handed out, acknowledged, on an engine",
    )?.cpuUs,
  };
}
