// When lists that could not be read are tried again by themselves, since no call can ask for what is not listed. Pure.

import type { Supervision } from "../../contracts/server-spec.js";
import type { FaultCode } from "../../protocol/errors.js";
import { backoffCeiling } from "../../runtime/backoff.js";

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
/** Credentials do not mend themselves; other clients were seen to ask 8,600 times a day. */
const UNAUTHORIZED_RETRY_MS = 15 * 60_000;

/** `failures` are those since the lists were last read; `code` is of the last fault. */
export function listRetryMs(
  { listRetryMs: maxMs = LAST_RETRY_MS }: Pick<Supervision, "listRetryMs">,
  failures: number,
  code: FaultCode | undefined,
): number {
  if (code === "unauthorized") return UNAUTHORIZED_RETRY_MS;
  return backoffCeiling(failures, { baseMs: FIRST_RETRY_MS, maxMs });
}
