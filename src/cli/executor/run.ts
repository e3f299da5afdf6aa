// `toolway executor` at work: opens its doors, tells what happens, and ends when told to; or says what it would do.

import type { ExecutorLog } from "../../executor/wire/types.js";
import { untilAborted } from "../../runtime/wait.js";
import { logOf } from "../gateway/log-of.js";
import { Exit, type ExitCode, UserError } from "../line/errors.js";
import { type Io, note, print, printJson, Stopped } from "../line/io.js";
import { executorBanner, executorFacts } from "./banner.js";
import type { DoorEvents, OpenDoors } from "./doors.js";
import type { DryRunPlan, RunPlan } from "./plan.js";

interface How {
  readonly json: boolean;
  /** How long requests under way have to end at a stop; undefined for the time that they have by default. */
  readonly drainMs?: number | undefined;
}

/** A line of `--json`. */
type Tell = (event: string, fields?: Readonly<Record<string, unknown>>) => void;

export async function runExecutor(plan: RunPlan, how: How, io: Io): Promise<ExitCode> {
  const { dialAll, listenAt } = await import("./doors.js");
  const tell: Tell = (event, fields) => {
    if (how.json) print(io, JSON.stringify({ event, time: new Date().toISOString(), ...fields }));
  };
  const options = { rules: plan.rules, token: plan.token, log: toldOf(io, tell), events: eventsOf(tell) };
  let doors: OpenDoors;
  try {
    doors = plan.kind === "listen" ? await listenAt(plan.address, options) : dialAll(plan.gateways, options);
  } catch (error) {
    const told = mended(plan, error);
    throw told === error ? error : await (await import("../gateway/taken-address.js")).namingWhoListens(told, io);
  }
  if (how.json) tell(plan.kind === "listen" ? "listening" : "dialling", executorFacts(plan, doors.url));
  else print(io, executorBanner(plan, doors.url, io));
  await untilStopped(io, options.log);
  await doors.finish(how.drainMs);
  await doors.close();
  tell("stopped");
  return Exit.ok;
}

/** Looks names up, and connects to nothing. */
export async function dryRun(plan: DryRunPlan, how: How, io: Io): Promise<ExitCode> {
  const { explainAll } = await import("./doors.js");
  const { found, lines } = await explainAll(plan.rules, plan.urls).catch((error: unknown) => {
    throw mended(plan, error);
  });
  if (how.json) printJson(io, found);
  else print(io, lines.join("\n\n"));
  return found.every(({ allowed }) => allowed) ? Exit.ok : Exit.failure;
}

function eventsOf(tell: Tell): DoorEvents {
  return {
    connected: (gateway) => tell("connected", { gateway }),
    disconnected: (why, gateway, nextTryInMs) => tell("disconnected", { gateway, why, nextTryInMs }),
  };
}

/** Warnings are events as well: a request or a connection that was refused. */
function toldOf(io: Io, tell: Tell): ExecutorLog {
  const log = logOf(io.env, { write: (line) => void io.stderr.write(line), isTerminal: io.isErrTTY });
  return {
    debug: log.debug,
    info: log.info,
    warn(text, fields) {
      log.warn(text, fields);
      tell("warning", { text, ...fields });
    },
  };
}

async function untilStopped(io: Io, log: ExecutorLog): Promise<void> {
  await untilAborted(io.signal);
  const { reason } = io.signal;
  if (io.isErrTTY) note(io, "\nStopping when the requests under way have ended; Ctrl-C again stops at once.");
  else {
    const by = reason instanceof Stopped ? reason.by : "stopped";
    log.info(`${by}: stopping; requests under way may end, for a while`);
  }
}

const UNBOUND: Readonly<Record<string, string>> = {
  EADDRINUSE: "Something else listens there. Choose another port, or 0 for any free one.",
  EACCES: "This port needs rights that the process does not have. Choose one above 1023.",
  EADDRNOTAVAIL: "This machine has no such address. Use 127.0.0.1, or one that it has.",
  ENOTFOUND: "There is no such host name. Use 127.0.0.1, or an address of this machine.",
};

/** Failures to listen that the user can mend, by another address. */
function mended(plan: RunPlan | DryRunPlan, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const hint = UNBOUND[(error as NodeJS.ErrnoException).code ?? ""];
  if (hint === undefined || plan.kind !== "listen") return error;
  return new UserError(`Cannot listen on ${plan.address.host}:${plan.address.port}.`, { hint, cause: error });
}
