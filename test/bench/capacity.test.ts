// `npm run capacity`, over a run of the bench that is made up; and the bounds that it and docs/scale.md name, against the source.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DEFAULT_LIMITS, DEFAULT_SESSIONS } from "../../src/config/config.js";
import { MAX_MAILBOXES } from "../../src/mailbox/broker/limits.js";
import { KIB, MIB } from "../../src/runtime/sizes.js";
import { PARTITIONS } from "../../src/store/ownership/partitions.js";
import { root } from "../e2e/harness.js";
import { temporaryFolder } from "../fixtures/folders.js";

const row = (workload: string, variant: string, cpuUs: number) => ({ workload, variant, cpuUs, target: "toolway" });
const WHOLE = "delivered, handed out, acknowledged";

const MEASURES = ["rssPerSession", "rssPerStream", "rssIdle"].map((measure) => ({
  measure,
  value: 10,
  target: "toolway",
}));

function capacity(rows: object[], ...args: string[]): string {
  const file = join(temporaryFolder("toolway-capacity-"), "latest.json");
  writeFileSync(file, JSON.stringify({ rows, measures: MEASURES }));
  return execFileSync(process.execPath, ["scripts/capacity.mjs", "--from", file, ...args], { cwd: root }).toString();
}

const ROWS = [
  row("machines", "one gateway", 100),
  { ...row("machines", "kept, one gateway", 300), operations: 0.5, inFlight: 24 },
  row("mailbox", WHOLE, 100),
];

it("reckons mailboxes with brokers that are alone, and with those on one engine by what a message costs there", () => {
  const out = capacity([...ROWS, row("mailbox", `${WHOLE}, on an engine`, 1_000)], "--messages", "36");
  // A million messages an hour, 36 times: 10,000 a second.
  expect(out).toContain("= 10,000 a second × 100 µs / 0.5 = 2.00 cores");
  expect(out).toContain("100 brokers, each with mailboxes of its own");
  expect(out).toContain(
    "on an engine the most of 3, 20.00 cores and 10,000 / 16,000 peers: 20 brokers; 1,000,000 / 640,000 mailboxes = 2 engines",
  );
  expect(out).toContain("64 MiB / (400 + 2,048 bytes) = 27,413 small messages a broker");
});

it("says so where no engine was measured", () => {
  expect(capacity(ROWS)).toContain("the same on an engine  not measured: the bench found no nats-server");
});

it("a recorded run fills the page with what follows from it, where it is of the Node that the page shows", async () => {
  // @ts-expect-error the bench has no types
  const { record } = (await import("../../bench/report/record.mjs")) as {
    record(run: object, file: string, docs: object): void;
  };
  const dir = temporaryFolder("toolway-capacity-");
  const docs = { page: join(dir, "page.md"), chart: join(dir, "chart.svg"), capacity: join(dir, "scale.md") };
  writeFileSync(
    docs.page,
    "<!-- bench:begin --><!-- bench:end --><!-- bench-node24:begin --><!-- bench-node24:end -->",
  );
  const empty = "# Scale\n<!-- capacity:begin -->\nold\n<!-- capacity:end -->\nThe end.\n";
  writeFileSync(docs.capacity, empty);
  const run = (node: string) => ({ machine: { node }, rows: ROWS, measures: MEASURES, goals: [] });
  record(run("v24.1.0"), join(dir, "node24.json"), docs);
  expect(readFileSync(docs.capacity, "utf8")).toBe(empty);
  record(run("v20.1.0"), join(dir, "node20.json"), docs);
  const filled = readFileSync(docs.capacity, "utf8");
  expect(filled).toContain("Measured with node v20.1.0 on");
  expect(filled).toContain(`\n${capacity(ROWS)}\`\`\`\n<!-- capacity:end -->\nThe end.\n`);
  expect(filled).not.toContain("old");
});

interface Reckoning {
  readonly BOUNDS: Readonly<Record<string, { readonly most: number; readonly where: string }>>;
  readonly PEER_KB: number;
  readonly MAIL_BYTES: number;
  readonly KNOWN_BYTES: number;
}

// @ts-expect-error the bench has no types
const { BOUNDS, PEER_KB, MAIL_BYTES, KNOWN_BYTES } = (await import("../../bench/report/capacity.mjs")) as Reckoning;

/** A constant that nobody else imports, as it stands in its file: numbers, `KIB` and `MIB`, with `*` and `/` between them. */
function constant(file: string, name: string): number {
  const text = new RegExp(`\\bconst ${name} = ([^;]+);`).exec(readFileSync(join(root, file), "utf8"))?.[1];
  if (text === undefined) throw new Error(`${file} has no ${name}.`);
  const [first = "", ...rest] = text.split(" ");
  const value = (word: string) => ({ KIB, MIB })[word] ?? Number(word.replaceAll("_", ""));
  let result = value(first);
  for (let n = 0; n < rest.length; n += 2) {
    const next = value(rest[n + 1] ?? "");
    result = rest[n] === "*" ? result * next : result / next;
  }
  return result;
}

const ofEngine = (name: string) => constant("src/store/nats/connection.ts", name);
const MAX_TOKENS = constant("src/tokens/tokens.ts", "MAX_TOKENS");
const MAX_MACHINES = constant("src/endpoint/http/mailbox-door.ts", "MAX_MAILBOX_CONNECTIONS");
const MAIL = DEFAULT_LIMITS.heldBytes * constant("src/gateway/mailboxes/shared-mailboxes.ts", "MAIL_TO_HELD");

it("reckons with the bounds that the source has", () => {
  expect(Object.fromEntries(Object.entries(BOUNDS).map(([name, { most }]) => [name, most]))).toEqual({
    tokens: MAX_TOKENS,
    sessions: DEFAULT_SESSIONS.max,
    connections: DEFAULT_LIMITS.connections,
    mailboxes: MAX_MAILBOXES,
    peers: MAX_MACHINES,
    partitions: PARTITIONS,
    engineMailboxes: PARTITIONS * MAX_MAILBOXES,
  });
  expect(MAIL_BYTES).toBe(MAIL);
  expect(KNOWN_BYTES).toBe(constant("src/mailbox/broker/queue.ts", "KNOWN_BYTES"));
  expect(PEER_KB * 1_000).toBe(constant("test/faults/mailbox-crowd.test.ts", "BYTES_EACH"));
});

it("the table of bounds in docs/scale.md has those of the source, and what a million comes to by them [documents-true]", () => {
  const page = readFileSync(join(root, "docs/scale.md"), "utf8");
  const table = page.slice(page.indexOf("| bound | of | a million needs |")).split("\n\n", 1)[0] ?? "";
  const rows = table.split("\n").slice(2);
  const n = (value: number) => value.toLocaleString("en-US");
  const mib = (bytes: number) => `${bytes / MIB} MiB`;
  const [million, tenth] = [1_000_000, 100_000];
  const streams = constant("src/store/nats/peer-streams.ts", "MAX_STREAMS");
  const questions = constant("src/store/nats/peers.ts", "MAX_ASKED");
  const expected: (readonly [bound: string, needs: string])[] = [
    [`${n(MAX_TOKENS)} tokens`, `${million / MAX_TOKENS} times as many`],
    [`${n(MAX_MAILBOXES)} mailboxes`, `${million / MAX_MAILBOXES} brokers that are alone`],
    [`${mib(MAIL)} of mail that waits`, ""],
    [`${n(DEFAULT_LIMITS.connections)} connections`, `${Math.ceil(tenth / DEFAULT_LIMITS.connections)} gateways`],
    [`${n(DEFAULT_SESSIONS.max)} sessions that are open`, `${Math.ceil(tenth / DEFAULT_SESSIONS.max)} gateways`],
    [`${n(MAX_MACHINES)} machines connected`, `${Math.ceil(10_000 / MAX_MACHINES)} broker`],
    [`${PARTITIONS} partitions`, ""],
    [`${n(streams)} streams and ${n(questions)} questions`, ""],
    [`${n(ofEngine("MAX_ASKED"))} requests and ${mib(ofEngine("MAX_ASKED_BYTES"))} under way`, ""],
  ];
  expect(rows).toHaveLength(expected.length);
  for (const [at, [bound, needs]] of expected.entries()) {
    const cells = (rows[at] ?? "").split(" | ");
    expect(cells[0]?.slice(2, 2 + bound.length)).toBe(bound);
    expect(cells[2]?.slice(0, needs.length)).toBe(needs);
  }
});
