// What is said of a kept write: to its agent where the disk has not taken it, and to the log.

import { Fault, SERVER_SAID } from "../protocol/errors.js";
import { faultReply, type Reply } from "../protocol/reply.js";
import { messageOf } from "../runtime/expected-error.js";
import type { KeptWrite } from "./lanes/lane.js";
import { COMMIT_MS, ENGINE_COMMIT_MS } from "./lanes/limits.js";
import type { Result } from "./lanes/step.js";
import { STATE_WORDS } from "./lanes/write.js";

export const NOT_QUEUED_YET =
  "Not queued so far: the disk has not taken the first call with this key. Make it again in a moment.";
export const NOT_ON_DISK =
  "It could not be written down, and a restart may undo it. It is written again until that succeeds: look at the disk.";

/** Of a call that could not be written down, for this reason. */
export function notTakenFault(error: unknown): Fault {
  const why = messageOf(error);
  if ((error as { code?: unknown }).code === "unknown") {
    return new Fault("outcome-unknown", `Whether it was queued is unknown: ${why}`);
  }
  return new Fault("unavailable", `Not sent, and not queued: it could not be written down. ${why}`);
}

/** `mayMove`: its lane is an engine's, and another gateway may have it by then, and whatever was written. */
export function commitMs(mayMove: boolean): number {
  return mayMove ? ENGINE_COMMIT_MS : COMMIT_MS;
}

/** Of a call that has not been written down for so long. */
export function lateFault(mayMove: boolean): Fault {
  const seconds = `${commitMs(mayMove) / 1000} s`;
  if (!mayMove)
    return new Fault("unavailable", `Not sent, and not queued: the disk did not take it within ${seconds}.`);
  const text = `Whether it was queued is unknown: the engine did not say so within ${seconds}.`;
  return new Fault("outcome-unknown", `${text} Ask for your receipts before you call again.`);
}

/** What whoever waits is told of a write that is over. What refused a repeat says nothing of an earlier try that may have happened. */
export function endReply({ state, why }: KeptWrite, { kind }: Result, reply: Reply | undefined): Reply | undefined {
  if (reply === undefined || state !== "unknown" || kind === "maybe" || kind === "taken-back") return reply;
  return faultReply(new Fault("outcome-unknown", `${why ?? ""} ${TRIED_BEFORE}`.trimStart()));
}

const TRIED_BEFORE =
  "It had been sent before that and was not answered: whether it took effect is unknown. It is not sent again; look before you repeat it.";

/** One line when it is queued, and one when it has ended. Never its arguments. */
export function logWrite(write: KeptWrite, log: (level: "info" | "warn", text: string) => void): void {
  const { state } = write;
  const why = write.why === undefined ? undefined : withoutServersWords(write.why);
  // What its agent is told as the result of its call was never kept from it: the log of calls has it.
  if (state === "done" || state === "failed") {
    if (!write.isQueueLogged && !write.isTold) return;
    if (state === "done") log("info", `outbox: ${named(write)} was delivered`);
    else log("warn", `outbox: ${named(write)} ${STATE_WORDS.failed}: ${why ?? ""}`);
  } else if (state === "queued") {
    // It is tried again and again while its server is away: that is one wait.
    if (!write.isQueueLogged) log("info", `outbox: ${named(write)} is queued: ${why ?? "others are before it"}`);
    write.isQueueLogged = true;
  } else if (write.isOver) log("warn", `outbox: ${named(write)} ${STATE_WORDS[state]}: ${why ?? ""}`);
}

/** A server may repeat what it was sent: its words are for whoever asks for the receipt. */
function withoutServersWords(why: string): string {
  const [own = ""] = why.split(SERVER_SAID, 1);
  return own;
}

function named({ facts }: KeptWrite): string {
  return `${facts.tool} of server "${facts.server}" (receipt ${facts.id})`;
}
