// What an answer means for a write: whether the server had it, whether it may have acted, and whether it is to be sent
// again. It goes by the facts that a fault carries, never by the words of its message.

import { type Fault, faultBehind, notSentBehind } from "../../protocol/errors.js";
import { isObject, type RpcError } from "../../protocol/jsonrpc.js";
import { type Reply, responseOf } from "../../protocol/reply.js";

export type WriteOutcome =
  /** The server answered this call. `failed`: it says that it did not do it. */
  | { readonly kind: "answered"; readonly failed: boolean }
  /** Nothing reached the server. `heldForMs`: our breaker held it back, and does so for so long. */
  | { readonly kind: "not-sent"; readonly why: string; readonly heldForMs?: number | undefined }
  /** The server says that it did nothing, and may be asked again. `isReply`: it is what it answers to this message, however often that comes. */
  | NotDone
  /** It wants credentials that are not good any more, or never were. */
  | { readonly kind: "login"; readonly why: string }
  | { readonly kind: "forbidden"; readonly why: string }
  /** A changed tool, which an operator has to accept. */
  | { readonly kind: "quarantine"; readonly why: string }
  /** Nobody can tell whether it took effect. `isFinal`: nor could the journal that was asked by the message's id. */
  | { readonly kind: "maybe"; readonly why: string; readonly isFinal?: boolean | undefined }
  /** The server knows the key and is still at it, or says that something is in the way. */
  | { readonly kind: "conflict"; readonly why: string }
  /** It was refused for its own sake: sent again, it would be refused again. */
  | { readonly kind: "refused"; readonly why: string }
  /** The agent took it back after it had left. */
  | { readonly kind: "taken-back"; readonly why: string }
  /** It was taken back before a byte left. */
  | { readonly kind: "withdrawn"; readonly why: string };

interface NotDone {
  readonly kind: "not-done";
  readonly why: string;
  readonly retryAfterMs: number | undefined;
  readonly isReply?: boolean | undefined;
}

/** Statuses by which a server says that it did nothing, whatever else it says. */
const NOT_DONE: ReadonlySet<number> = new Set([425, 429]);
/** Those of which nobody knows, besides all from 500 on. */
const REQUEST_TIMEOUT = 408;
const CONFLICT = 409;

export function classify(reply: Reply): WriteOutcome {
  const fault = reply.kind === "error" ? reply.fault : undefined;
  if (fault !== undefined) return ofFault(fault);
  if (asksFirst(reply)) return ASKED;
  const failure = failureIn(reply);
  return ofGateway(failure) ?? { kind: "answered", failed: failure !== false };
}

/**
 * A server that is a gateway itself, or a machine at a mailbox, may not have sent the call on, which is no fault of the call's; or
 * lost it behind it, and to ask it again tells no more.
 */
function ofGateway(failure: RpcError | boolean): WriteOutcome | undefined {
  if (typeof failure !== "object") return undefined;
  const notSent = notSentBehind(failure);
  if (notSent !== undefined)
    return { kind: "not-done", why: notSent.why, retryAfterMs: notSent.againMs, isReply: true };
  const fault = faultBehind(failure);
  const outcome = fault === undefined ? undefined : ofFault(fault);
  return outcome?.kind === "maybe" ? { ...outcome, isFinal: true } : undefined;
}

function ofFault(fault: Fault): WriteOutcome {
  const { message: why, wire, code } = fault;
  const status = wire?.status;
  if (code === "unauthorized") return status === 403 ? { kind: "forbidden", why } : { kind: "login", why };
  if (status !== undefined) return ofStatus(status, wire?.retryAfterMs, fault);
  switch (code) {
    case "unavailable":
    case "closing":
      return wire?.left === true ? { kind: "maybe", why } : { kind: "not-sent", why, heldForMs: wire?.heldForMs };
    case "limit":
      return wire?.left === true ? { kind: "maybe", why } : { kind: "not-sent", why };
    case "denied":
      return { kind: "quarantine", why };
    case "cancelled":
      return { kind: wire?.left === false ? "withdrawn" : "taken-back", why };
    case "outcome-unknown":
    case "timeout":
      return { kind: "maybe", why, isFinal: wire?.final };
    case "protocol":
      // An address that is not followed did nothing; any other answer that cannot be read hides what was done.
      return fault.reason === "redirect" ? { kind: "refused", why } : { kind: "maybe", why };
    case "not-found":
    case "invalid":
    case "no-caller":
      return { kind: "refused", why };
  }
}

function ofStatus(status: number, retryAfterMs: number | undefined, { message: why, code }: Fault): WriteOutcome {
  if (NOT_DONE.has(status) || (status === 503 && retryAfterMs !== undefined)) {
    return { kind: "not-done", why, retryAfterMs };
  }
  if (status === REQUEST_TIMEOUT || status >= 500) return { kind: "maybe", why };
  if (status === CONFLICT) return { kind: "conflict", why };
  // A session that the server forgot: it refused the call for that.
  if (code === "unavailable") return { kind: "not-sent", why };
  // An answer of success that is no reply hides what was done.
  if (status < 400) return { kind: "maybe", why };
  return { kind: "refused", why };
}

/** An error of the server's, or true for a result that says that the tool failed. What is too large to be read is a result. */
function failureIn(reply: Reply): RpcError | boolean {
  if (reply.kind === "error") return reply.error;
  if (reply.kind === "stream") return false;
  if (reply.kind === "result") return isObject(reply.result) && reply.result["isError"] === true;
  // Somebody has looked at all of it.
  if (reply.succeeded === true) return false;
  const isError = reply.errorCode !== undefined;
  // Nothing is parsed where neither can be in it.
  if (!isError && !reply.bytes.includes(IS_ERROR) && !reply.bytes.includes(ERROR)) return false;
  const message = responseOf(reply);
  if (message === undefined) return isError;
  return message.error ?? (isObject(message.result) && message.result["isError"] === true);
}

/** A modern server wants to know something of the agent before it does anything. */
function asksFirst(reply: Reply): boolean {
  if (reply.kind === "result") return isObject(reply.result) && reply.result["resultType"] === "input_required";
  if (reply.kind !== "bytes" || !(reply.latin1?.includes(ASKS) ?? reply.bytes.includes(ASKS))) return false;
  const result = responseOf(reply)?.result;
  return isObject(result) && result["resultType"] === "input_required";
}

const ASKED: WriteOutcome = {
  kind: "refused",
  why: "the server asked its agent for more before it did anything: the agent's answer is a call of its own",
};
const ASKS = '"input_required"';
const IS_ERROR = '"isError"';
const ERROR = '"error"';
