// The answer of `GET /audit/verify`: the whole chain, followed beside calls. One at a time: it reads every file.

import type { AuditCheckAnswer, AuditHeadAnswer } from "../../contracts/control/audit.js";
import { ControlError } from "../../control/server.js";
import { verifyAudit } from "../../observe/audit/verify.js";

let isUnderWay = false;

/** `head` is where the log is, and the last line that is written in this moment. */
export async function auditCheck(head: () => AuditHeadAnswer, signal: AbortSignal): Promise<AuditCheckAnswer> {
  if (isUnderWay)
    throw new ControlError("busy", "The audit log is being checked for somebody already: ask again later.");
  isUnderWay = true;
  try {
    const { lines, first, last, wrong, notes } = await verifyAudit(head().path, [], { signal, written: head });
    return { lines, first, last, wrong, notes };
  } finally {
    isUnderWay = false;
  }
}
