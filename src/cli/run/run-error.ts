// Why a run was not begun, for the user to put right.

import { UserError } from "../line/errors.js";

export class RunError extends UserError {
  constructor(message: string, { hint, isUsage = false }: { hint?: string | undefined; isUsage?: boolean } = {}) {
    super(message, { kind: isUsage ? "usage" : "failed", ...(hint === undefined ? {} : { hint }) });
  }
}
