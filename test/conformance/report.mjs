// What a conformance run prints: one table, what failed and why, or JSON.

import { reasonFor, score } from "./baseline.mjs";
import { tail } from "./processes.mjs";
import { SUITE } from "./suite.mjs";

const COLUMN = 7;

const out = (line) => void process.stdout.write(`${line}\n`);
const note = (line) => void process.stderr.write(`${line}\n`);

export function isGood(run, only) {
  const { failed, stale } = score(run, only);
  return failed.length === 0 && stale.length === 0;
}

export function printTable(runs, only) {
  const names = [...new Set(runs.flatMap(({ scored, scenarios }) => [...(only ? [] : scored), ...scenarios.keys()]))];
  const width = Math.max(...names.map((name) => name.length), 24);
  const isScored = (name) => runs.some(({ scored }) => scored.includes(name));
  const results = runs.map((run) => score(run, only));
  out("");
  for (const [at, { name, title, requirements }] of runs.entries())
    out(`${String(at + 1).padStart(2)}  ${name.padEnd(22)} ${requirements}, ${title}`);
  out("");
  out(`${"scenario".padEnd(width)}  ${runs.map((_, at) => String(at + 1).padEnd(COLUMN)).join("")}`.trimEnd());
  for (const name of [...names.filter(isScored), ...names.filter((name) => !isScored(name))]) {
    const cells = runs.map(({ scenarios }, at) => {
      const result = scenarios.get(name);
      if (result === undefined) return "-".padEnd(COLUMN);
      const word = result.passed ? "pass" : results[at].limits.includes(name) ? "limit" : "FAIL";
      return `${word}${result.passed && result.warnings.length ? " w" : ""}`.padEnd(COLUMN);
    });
    out(`${name.padEnd(width)}  ${cells.join("")}${isScored(name) ? "" : "not scored"}`.trimEnd());
  }
  const total = results.map(({ passed, total: all }) => (all === 0 ? "-" : `${passed}/${all}`).padEnd(COLUMN));
  out(`${"scored scenarios passed".padEnd(width)}  ${total.join("")}`.trimEnd());
  const checks = runs.map(({ scenarios }) => sum([...scenarios.values()].map((one) => one.checks)));
  out(`${"checks passed".padEnd(width)}  ${checks.map((count) => String(count).padEnd(COLUMN)).join("")}`.trimEnd());
  out("\npass w: with warnings. limit: the protocol cannot carry it, see below. FAIL: fails.");
  for (const { name, leg, scenarios } of runs.filter((run) => run.leg === "tasks")) {
    const passed = [...scenarios.values()].filter((one) => one.passed).length;
    out(`${name}: ${passed} of ${scenarios.size} ${leg}-* scenarios pass (not scored)`);
  }
}

export function printFailures(runs, only) {
  for (const run of runs) {
    const { name, scenarios, logs, baseline } = run;
    const { failed, limits, stale } = score(run, only);
    for (const limit of limits) out(`\n${name}: ${limit} is a limit: ${reasonFor(baseline, limit)}`);
    for (const line of stale) out(`\n${name}: the baseline is stale: ${line}`);
    for (const [scenario, { failures, warnings }] of scenarios) {
      if (limits.includes(scenario)) continue;
      for (const { id, error } of failures) out(`\n${name}: ${scenario} failed ${id}: ${error ?? "no message"}`);
      for (const { id, error } of warnings) out(`\n${name}: ${scenario} warns ${id}: ${error ?? "no message"}`);
    }
    for (const scenario of failed) if (!scenarios.has(scenario)) out(`\n${name}: ${scenario} did not run`);
    for (const log of failed.length > 0 ? logs : [])
      if (log.text) note(`\n--- ${name}: end of the ${log.name}'s log\n${tail(log.text)}`);
  }
}

export function printJson(runs, suite, only) {
  const report = {
    suite: SUITE,
    node: suite.version,
    runs: runs.map((run) => ({
      name: run.name,
      title: run.title,
      requirements: run.requirements,
      ...score(run, only),
      scenarios: Object.fromEntries(
        [...run.scenarios].map(([scenario, result]) => [
          scenario,
          { scored: run.scored.includes(scenario), ...result },
        ]),
      ),
    })),
  };
  out(JSON.stringify(report, null, 2));
}

function sum(numbers) {
  return numbers.reduce((all, one) => all + one, 0);
}
