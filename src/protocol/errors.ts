// What can go wrong on a call's way, as a closed set of codes, and the one table that puts them on the wire.

import { ExpectedError, type ExpectedKind } from "../runtime/expected-error.js";
import { ErrorCode, type RpcError } from "./jsonrpc.js";

/** Codes say where the fault arose; `outcome` of the table says whether the server may have acted. */
export type FaultCode =
  /** The server could not be started or connected; the call never left. */
  | "unavailable"
  /** The server wants credentials that we do not have, or refused those we sent. */
  | "unauthorized"
  /** The connection ended after the call was sent: nobody knows whether it took effect. */
  | "outcome-unknown"
  /** The server did not answer in time. It may still be working. */
  | "timeout"
  /** The server broke the protocol: bad JSON, wrong framing, an HTTP status that means nothing here. */
  | "protocol"
  /** A named limit of ours was hit. */
  | "limit"
  /** The menu has no such tool, prompt or resource. */
  | "not-found"
  /** Policy says no. */
  | "denied"
  /** What the caller sent cannot be used. */
  | "invalid"
  /** The caller took the request back. */
  | "cancelled"
  /** The gateway is draining or closed. */
  | "closing"
  /** A server asked something of an agent, and it cannot be told of which, or that agent cannot answer. */
  | "no-caller";

export class Fault extends ExpectedError {
  override readonly name = "Fault";
  readonly code: FaultCode;
  readonly data: unknown;
  /** What is said to the operator, in status, log and doctor. `message` is for agents, and may say less. */
  readonly forOperator: string;

  constructor(code: FaultCode, message: string, options?: { cause?: unknown; data?: unknown; forOperator?: string }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.data = options?.data;
    this.forOperator = options?.forOperator ?? message;
  }

  override get kind(): ExpectedKind {
    return this.code === "cancelled" ? "cancelled" : "failed";
  }
}

/**
 * Fault → JSON-RPC code. Our own codes lie outside -32768…-32000, which JSON-RPC and MCP reserve.
 * `Record` makes the table exhaustive: a new code does not compile until it has a line here.
 */
const WIRE: Record<FaultCode, number> = {
  unavailable: -31001,
  unauthorized: -31002,
  "outcome-unknown": -31003,
  timeout: -31004,
  protocol: -31005,
  limit: -31006,
  denied: -31007,
  cancelled: -31008,
  closing: -31009,
  "no-caller": -31010,
  "not-found": ErrorCode.invalidParams,
  invalid: ErrorCode.invalidParams,
};

export function toRpcError(error: unknown): RpcError {
  if (error instanceof Fault) {
    const data = error.data === undefined ? { fault: error.code } : error.data;
    return { code: WIRE[error.code], message: error.message, data };
  }
  return { code: ErrorCode.internal, message: "Internal error of the gateway; its log has the details." };
}

/** Codes of refusals that are no reply of a server: by the table, for whoever answers before there is a call. */
export const UNAUTHORIZED = WIRE.unauthorized;
export const LIMIT = WIRE.limit;
export const DENIED = WIRE.denied;
export const CLOSING = WIRE.closing;
/** What SDKs call "session not found" in the legacy era. */
export const SESSION_NOT_FOUND = -32001;
