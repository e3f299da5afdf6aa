import { expect, it } from "vitest";
import type { EngineReport } from "../gateway/engine.js";
import { engineReportText } from "./engine-report.js";
import { styleOf } from "./print.js";

const plain = styleOf({ env: {}, isTTY: false });

const measured: EngineReport = {
  ok: true,
  address: "nats://a:4222, nats://b:4222, nats://c:4222",
  problems: [],
  facts: { version: "2.12.1", nodes: 3, replicas: 3, syncsAlways: true },
  node: "b:4222",
  promises: [
    { holds: true, sentence: "Acknowledged means on disk." },
    { holds: false, sentence: "An answer is no proof." },
  ],
  writes: { count: 41_234, medianMs: 1.84, slowestMs: 612.4 },
  reads: { count: 20_001, medianMs: 0.42, slowestMs: 9.96 },
  leases: { count: 48, medianMs: 2, slowestMs: 10 },
  failed: 0,
  advice: ["The slowest commit took 612 ms.", "The loss of a leader holds writes up."],
};

it("[engine-told] what was measured of an engine is a table, then what holds, what does not and what to set", () => {
  expect(engineReportText(measured, plain)).toBe(
    [
      "engine  nats-server 2.12.1, 3 nodes, at b:4222",
      "",
      "  writes           41234  median 1.8 ms  slowest 612 ms",
      "  reads            20001  median 0.4 ms  slowest 10.0 ms",
      "  a lease renewed  48     median 2.0 ms  slowest 10 ms",
      "",
      "✓ Acknowledged means on disk.",
      "– An answer is no proof.",
      "  The slowest commit took 612 ms.",
      "  The loss of a leader holds writes up.",
    ].join("\n"),
  );
});

it("[engine-told] what could not be tried of an engine is left out, and what to mend comes first", () => {
  const facts = { version: "2.9.10", nodes: 1, replicas: 3, syncsAlways: undefined };
  const untried = { ...measured, ok: false, facts, node: undefined, promises: [], advice: [] };
  const none = { writes: undefined, reads: undefined, leases: undefined };
  expect(engineReportText({ ...untried, ...none, problems: ["It cannot keep 3 copies."] }, plain)).toBe(
    `engine  nats-server 2.9.10, 1 node, at ${measured.address}\n\n✗ It cannot keep 3 copies.`,
  );
  expect(engineReportText({ ...untried, ...none, facts: undefined, problems: ["a", "b"] }, plain)).toBe(
    `engine  ${measured.address}\n\n✗ a\n✗ b`,
  );
  expect(engineReportText({ ...untried, ...none, reads: measured.reads, problems: ["c"] }, plain)).toBe(
    `engine  nats-server 2.9.10, 1 node, at ${measured.address}\n\n  reads  20001  median 0.4 ms  slowest 10.0 ms\n\n✗ c`,
  );
});
