// `toolway executor` at work: opens the door or dials the gateways, tells what happens, and ends when told to.

import { Exit, type ExitCode } from "./errors.js";
import { destinationsOf } from "./executor-destinations.js";
import type { RunPlan } from "./executor-plan.js";
import type { Io } from "./io.js";

export async function runExecutor(plan: RunPlan, how: { readonly json: boolean }, io: Io): Promise<ExitCode> {
  destinationsOf(plan.rules);
  void how;
  void io;
  return Exit.failure;
}
