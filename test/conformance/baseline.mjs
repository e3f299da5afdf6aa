// Holds a run against baseline.json: what the protocol cannot carry from one era to the other, scenario by scenario.
// It goes stale in both directions: a listed scenario that passes is as wrong as an unlisted one that fails.

import { readFileSync } from "node:fs";

/** `{ <baseline>: { <scenario>: { checks: [id], reason } } }` */
const BASELINE = JSON.parse(readFileSync(new URL("baseline.json", import.meta.url), "utf8"));

/** More than so many each way would be missing work, not limits of the protocol. */
const MOST_LIMITS = 4;

/** Which scored scenarios passed, failed, or are limits; and what is wrong with the baseline, of which there are `all`. */
export function score({ baseline, scored, scenarios }, only, all = BASELINE) {
  const wanted = only === undefined ? scored : [only];
  const known = baseline === undefined ? {} : (all[baseline] ?? {});
  const passed = [];
  const limits = [];
  const failed = [];
  const stale = [];
  for (const name of wanted) {
    const result = scenarios.get(name);
    const listed = known[name];
    // Within one era everything is carried, so that there is nothing to warn of either.
    const warns = baseline === undefined && result !== undefined && result.warnings.length > 0;
    if (result?.passed && !warns) {
      passed.push(name);
      if (listed) stale.push(`${name} passes, but is listed in the baseline`);
      continue;
    }
    const ids = [...new Set((result?.failures ?? []).map(({ id }) => id))];
    if (listed === undefined || result === undefined) failed.push(name);
    else if (ids.every((id) => listed.checks.includes(id))) {
      limits.push(name);
      for (const id of listed.checks) if (!ids.includes(id)) stale.push(`${name}: ${id} passes, but is listed`);
    } else failed.push(name);
  }
  for (const name of Object.keys(known)) {
    if (!scored.includes(name)) stale.push(`${name} is listed, but is no scored scenario`);
  }
  if (limits.length > MOST_LIMITS) stale.push(`${limits.length} limits; at most ${MOST_LIMITS} are believable`);
  return { total: wanted.length, passed: passed.length, failed, limits, stale };
}

export function reasonFor(baseline, scenario) {
  return BASELINE[baseline]?.[scenario]?.reason;
}
