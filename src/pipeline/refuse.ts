// What an agent is told where its request could not be handled: the fault, or that there was one inside.

import type { AgentCall } from "../contracts/service.js";
import { Fault } from "../protocol/errors.js";
import { ErrorCode } from "../protocol/jsonrpc.js";
import { faultReply } from "../protocol/reply.js";

/** `log`: for what was not foreseen; the agent learns nothing of it. */
export function refuse(call: AgentCall, error: unknown, log: (text: string) => void): void {
  if (error instanceof Fault) {
    call.reply(faultReply(error));
    return;
  }
  log(`${call.message.method} failed inside the gateway`);
  call.reply({
    kind: "error",
    error: { code: ErrorCode.internal, message: "Internal error of the gateway; its log has the details." },
  });
}
