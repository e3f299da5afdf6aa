// `npm run capacity`, over a run of the bench that is made up.

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../e2e/harness.js";
import { temporaryFolder } from "../fixtures/folders.js";

const row = (workload: string, variant: string, cpuUs: number) => ({ workload, variant, cpuUs, target: "toolway" });
const WHOLE = "delivered, handed out, acknowledged";

function capacity(rows: object[], ...args: string[]): string {
  const file = join(temporaryFolder("toolway-capacity-"), "latest.json");
  const measures = ["rssPerSession", "rssPerStream", "rssIdle"].map((measure) => ({
    measure,
    value: 10,
    target: "toolway",
  }));
  writeFileSync(file, JSON.stringify({ rows, measures }));
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
