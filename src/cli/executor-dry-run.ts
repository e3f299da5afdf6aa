// `toolway executor --dry-run URL`: would it be reached, and why? Looks names up, and connects to nothing.

import { explain, explanationLines } from "../executor/explain-destination.js";
import { Exit, type ExitCode } from "./errors.js";
import { destinationsOf } from "./executor-destinations.js";
import type { DryRunPlan } from "./executor-plan.js";
import { type Io, print, printJson } from "./io.js";

export async function dryRun(plan: DryRunPlan, how: { readonly json: boolean }, io: Io): Promise<ExitCode> {
  const destinations = destinationsOf(plan.rules);
  const found = [];
  for (const url of plan.urls) {
    io.signal.throwIfAborted();
    found.push(await explain(url, destinations));
  }
  if (how.json) printJson(io, found);
  else print(io, found.map((one) => explanationLines(one).join("\n")).join("\n\n"));
  return found.every(({ allowed }) => allowed) ? Exit.ok : Exit.failure;
}
