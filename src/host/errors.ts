// Why a hosted server, or the host for it, gave no result: which server, what went wrong, and how the server is.

import type { ServerState } from "../contracts/status.js";
import { CallError } from "../gateway/program-call.js";
import { type Fault, type FaultCode, toRpcError } from "../protocol/errors.js";
import { isObject, type RpcError } from "../protocol/jsonrpc.js";

/** How a server is when a call to it fails. */
export interface CallState {
  readonly state: ServerState;
  readonly nextTryInMs: number | undefined;
}

/** Faults that last as long as the server's state does. */
const HELD_BY_STATE: ReadonlySet<FaultCode | undefined> = new Set(["unavailable", "unauthorized"] as const);

export class HostCallError extends CallError {
  override readonly name = "HostCallError";
  readonly server: string;
  /** Undefined where no such server is hosted. */
  readonly state: ServerState | undefined;
  /** When trying again makes sense: the server's next start, the end of an open breaker, a budget's reset. */
  readonly retryInMs: number | undefined;

  constructor(server: string, error: RpcError, fault: FaultCode | undefined, state: CallState | undefined) {
    super(error, fault);
    this.server = server;
    const data = isObject(error.data) ? error.data : {};
    const said = fault === undefined ? undefined : (data["nextTryInMs"] ?? data["resetsInMs"]);
    this.state = state?.state;
    this.retryInMs = typeof said === "number" ? said : HELD_BY_STATE.has(fault) ? state?.nextTryInMs : undefined;
  }
}

export function hostError(server: string, fault: Fault, state: CallState | undefined): HostCallError {
  return new HostCallError(server, toRpcError(fault), fault.code, state);
}
