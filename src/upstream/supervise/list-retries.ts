// When lists that could not be read are tried again by themselves, since no call can ask for what is not listed. Pure.

import type { Target } from "../../contracts/server-spec.js";
import type { FaultCode } from "../../protocol/errors.js";

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
/** A machine behind a mailbox comes back when it likes, and an attempt is a question to a broker that is connected. */
const MAILBOX_RETRY_MS = 5_000;
/** Credentials do not mend themselves; other clients were seen to ask 8,600 times a day. */
const UNAUTHORIZED_RETRY_MS = 15 * 60_000;

/** `failures` are those since the lists were last read; `code` is of the last fault. */
export function listRetryMs(kind: Target["kind"], failures: number, code: FaultCode | undefined): number {
  if (code === "unauthorized") return UNAUTHORIZED_RETRY_MS;
  return Math.min(FIRST_RETRY_MS * 2 ** failures, kind === "mailbox" ? MAILBOX_RETRY_MS : LAST_RETRY_MS);
}
