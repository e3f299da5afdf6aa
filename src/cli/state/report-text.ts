// What became of a move, for people.

import type { MoveReport } from "../gateway/move.js";
import type { Io } from "../line/io.js";
import { count, fittedTable, heading, styleOf } from "../text/print.js";

/** So many are shown; the rest is counted. */
const CONFLICTS_SHOWN = 10;

export function moveReportText(report: MoveReport, isDryRun: boolean, target: "engine" | "local", io: Io): string {
  const { from, to, kinds, conflicts, moved } = report;
  const rows = kinds.map(({ kind, count: all, hash, written, removed }) => {
    const there = all - written;
    const notes = [
      ...(written > 0 ? [`${written} ${moved ? "written" : "to write"}`] : []),
      ...(there > 0 ? [`${there} there already`] : []),
      ...(removed > 0 ? [`${removed} ${moved ? "removed" : "to remove"}, gone since`] : []),
    ];
    return [kind, String(all), all === 0 ? "" : hash, notes.join(", ")];
  });
  const head = heading(styleOf(io), ["KIND", "COUNT", "HASH", ""]);
  const lines = [`From ${from}`, `to ${to}`, "", fittedTable([head, ...rows], io), ""];
  if (conflicts.length > 0) {
    lines.push(`Nothing was moved. ${count(conflicts.length, "conflict")}:`);
    for (const { kind, key, why } of conflicts.slice(0, CONFLICTS_SHOWN)) lines.push(`  ${kind} ${key} ${why}`);
    if (conflicts.length > CONFLICTS_SHOWN) lines.push(`  and ${conflicts.length - CONFLICTS_SHOWN} more`);
    lines.push(
      "What is at the target is not written over. Remove what is wrong there, or take a target that is empty: another",
      '"prefix" in "engine", or another --state.',
    );
  } else if (isDryRun) lines.push("Nothing was written: this was a dry run.");
  else lines.push(...movedLines(report, target));
  return lines.join("\n");
}

function movedLines({ from, kinds }: MoveReport, target: "engine" | "local"): string[] {
  const all = kinds.reduce((sum, kind) => sum + kind.count, 0);
  const moved = `Moved and verified: ${all === 1 ? "one entry" : `${all} entries`}. What is in ${from} stays, and is marked: nothing starts on it`;
  // An engine has nothing that is one machine's own, so on the way back there is nothing of it to tell.
  if (target === "local") return [moved, "any more, or what is queued would be sent a second time."];
  return [
    moved,
    "any more, or what is queued would be sent a second time. What is one machine's own stays there: its audit log, history and",
    "logs of servers, the logins of the operator's page, answers to inputs, and the journal of what it shares.",
  ];
}
