// What `toolway run` prints: what it would do, and what was done.

import { join } from "node:path";
import { type AgentPlan, SECRET_VARIABLE } from "../../agents/run/plan.js";
import type { RunSummary } from "../../contracts/runs.js";
import { count } from "../text/print.js";

interface DryRun {
  readonly program: string;
  readonly plan: AgentPlan;
  /** Variables of the user's that the agent would not see. */
  readonly left: readonly string[];
  readonly folder: string;
  readonly isRunning: boolean;
}

const HIDDEN = "(hidden)";

/** Values of variables are not shown: what was merged into them is the user's. */
export function dryRunText({ program, plan, left, folder, isRunning }: DryRun): string {
  const gateway = isRunning ? "joins the one that runs" : "starts one for this run; PORT is any free one";
  return [
    `gateway: ${gateway}`,
    ...section("arguments", [program, ...plan.args]),
    ...section(
      "variables",
      [...Object.keys(plan.env), SECRET_VARIABLE].map((name) => `${name}=${HIDDEN}`),
    ),
    ...section("left out", left),
    ...section("files", [
      ...plan.files.map(({ path }) => join(folder, path)),
      ...(plan.home === undefined ? [] : [`${plan.home.to}/*  (links to ${plan.home.from})`]),
    ]),
    ...section("notes", plan.notes),
  ].join("\n");
}

/** What a run would do that Toolway has no part in. */
export function dryRunAsItIs(why: string, program: string, args: readonly string[]): string {
  return [why, ...section("arguments", [program, ...args])].join("\n");
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`${title}:`, ...lines.map((line) => `  ${line}`)];
}

/**
 * `run-1f…: 12 calls, 1 refused (role "reader": …), 1 write queued, 2 restarts of servers unseen`. `anew`: how often the
 * gateway itself was started again, whose last second is then not counted.
 */
export function closingLine(principal: string, { calls, refused, restarts, queued }: RunSummary, anew: number): string {
  const total = refused.reduce((sum, one) => sum + one.count, 0);
  const rules = refused.map(({ rule, count: times }) => (times === 1 ? rule : `${times} × ${rule}`)).join("; ");
  return [
    `${principal}: ${count(calls, "call")}`,
    total === 0 ? "none refused" : `${total} refused (${rules})`,
    ...(queued === 0 ? [] : [`${count(queued, "write")} queued`]),
    ...(restarts === 0 ? [] : [`${count(restarts, "restart")} of servers unseen`]),
    ...(anew === 0 ? [] : [`${count(anew, "restart")} of the gateway`]),
  ].join(", ");
}
