// What a broker says to the senders of messages that it does not take, or that ended without an answer.

import { ExpectedError } from "../../runtime/expected-error.js";
import type { NoSharedRoom, SharedRoom } from "../../runtime/memory/shared-room.js";
import { MIB } from "../../runtime/sizes.js";
import { QUEUE_LIMITS } from "./limits.js";
import type { Ended, NoRoom } from "./queue-terms.js";

/** A message that is not taken: why, in words for whoever sent it. */
export class DeliveryRefusal extends ExpectedError {
  override readonly name = "DeliveryRefusal";
  override readonly kind = "failed";
}

/** `room` is what several brokers hold together, where that is bounded. */
export function refusalOf(noRoom: NoRoom, to: string, sender: string, room: SharedRoom | undefined): string {
  const { maxMessages, maxBytes, maxKinds } = QUEUE_LIMITS;
  if (noRoom === "messages") return `the mailbox "${to}" is full: it holds ${maxMessages} messages at most`;
  if (noRoom === "bytes") return `the mailbox "${to}" is full: it holds ${maxBytes} bytes at most`;
  if (noRoom === "kinds") return `${maxKinds} kinds of messages wait in the mailbox "${to}" already`;
  if (noRoom === "own-kinds")
    return `${maxKinds / 2} kinds of your messages are in the mailbox "${to}" already, and no sender gets more`;
  if (noRoom !== "share") return brokerRefusal(noRoom, sender, room);
  return `half of the mailbox "${to}" is yours already, and no sender gets more`;
}

function brokerRefusal(noRoom: NoSharedRoom, sender: string, room: SharedRoom | undefined): string {
  const [used, limit] = noRoom === "room" ? [room?.used, room?.limit] : [room?.usedBy(sender), room?.half];
  const what = noRoom === "room" ? "mail" : `mail that "${sender}" sent`;
  return `the broker holds ${mib(used)} of ${what}, limit ${mib(limit)}: send it later`;
}

function mib(bytes = 0): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}

export function endText(mailbox: string, why: Ended["why"], mayHaveRun: boolean, reason: string | undefined): string {
  const outcome = mayHaveRun ? "its outcome is unknown" : "it was not run";
  if (why === "dropped") return `dropped by the operator; ${mayHaveRun ? outcome : "not run"}`;
  if (why === "expired") return `"${mailbox}" did not answer before the end of the message; ${outcome}`;
  const last = reason === undefined ? "" : `, the last time with: ${reason}`;
  return `"${mailbox}" failed with it ${QUEUE_LIMITS.maxFailures} times${last}; ${outcome}`;
}
