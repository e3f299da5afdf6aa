// What can go wrong on a call's way, as a closed set of codes, and the one table that puts them on the wire.

import { ExpectedError, type ExpectedKind, kindOfCode } from "../runtime/expected-error.js";
import { sentence } from "../runtime/words/sentence.js";
import { ErrorCode, isObject, type RpcError } from "./jsonrpc.js";

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

/** The rule of ours by which a call is refused. What hits a named limit is refused by `limit`, which its code says. */
export type RefusalRule = "token" | "role" | "menu" | "guard" | "pin" | "budget" | "breaker" | "limit";

/** Why a server cannot be had, where that is known: `doctor` advises by it, and never by the words of a message. */
export type FaultReason =
  /** The program of a child is not on the PATH, or not where its path says. */
  | "command-unknown"
  | "command-missing"
  /** "command" holds a whole line. */
  | "command-line"
  | "cwd-missing"
  | "not-executable"
  /** It is there and may be executed, and is no program: a directory, or a script without its interpreter. */
  | "not-a-program"
  /** The system has no more processes, memory or open files to give, or the arguments are too long. */
  | "no-resources"
  /** The child started and ended. */
  | "exited"
  | "nothing-listens"
  | "unknown-host"
  | "unreachable"
  | "not-tls"
  | "certificate"
  /** What answers does not speak HTTP, or hangs up. */
  | "not-http"
  | "redirect"
  /** It wants credentials, and the entry has none; it wants those of OAuth; it knows ours, and does not accept them. */
  | "no-credentials"
  | "oauth"
  | "credentials-refused"
  | "wrong-path"
  | "overloaded"
  /** It answered with an error of its own, or with something that is no reply. */
  | "server-error"
  /** The entry names an era or a transport that the server does not speak. */
  | "wrong-era"
  | "wrong-type"
  | "no-executor"
  | "executor-refuses"
  /** It knows our session no longer. */
  | "session-gone"
  /** Another gateway runs it by now. */
  | "moved";

/** Before the server's own words in what a call is told: they may repeat what it was sent. */
export const SERVER_SAID = " It said: ";

/** What a call is told that may have been acted on. */
export const OUTCOME_UNKNOWN = "Whether the call took effect is unknown.";

export interface FaultOptions {
  readonly cause?: unknown;
  readonly data?: unknown;
  /** What happened, as the operator may read it, where agents read less. */
  readonly forOperator?: string | undefined;
  readonly reason?: FaultReason | undefined;
  /** Whether the server may have acted: a sentence for whoever made a call, which the start of a server is not. */
  readonly outcome?: string | undefined;
  /** What to do about it, as a sentence of its own. */
  readonly remedy?: string | undefined;
  readonly wire?: WireFacts | undefined;
  readonly rule?: RefusalRule | undefined;
}

/** What is known of how far a call came, for whoever decides by it: never the words of a message. */
export interface WireFacts {
  /** The HTTP status that the server answered with. */
  readonly status?: number | undefined;
  /** How long the server asks to be left alone. */
  readonly retryAfterMs?: number | undefined;
  /** How long our breaker holds such calls back, where it did so with this one. */
  readonly heldForMs?: number | undefined;
  /** A byte of the call may have reached the server; where it is false, none did, and none will. Where it is absent, the code says so. */
  readonly left?: boolean | undefined;
  /** Whoever could have known the outcome does not, and would not if it were asked again. */
  readonly final?: true | undefined;
}

/** `message` is for agents: what happened, whether it took effect, and what to do. */
export class Fault extends ExpectedError {
  override readonly name = "Fault";
  readonly code: FaultCode;
  readonly data: unknown;
  readonly reason: FaultReason | undefined;
  readonly outcome: string | undefined;
  readonly remedy: string | undefined;
  readonly wire: WireFacts | undefined;
  /** Undefined where no rule refused anything. */
  readonly rule: RefusalRule | undefined;
  /** What happened, and nothing else: for agents, and for the operator, who may read more. */
  readonly plain: string;
  readonly fact: string;

  constructor(code: FaultCode, plain: string, options: FaultOptions = {}) {
    super(joined(plain, options), options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.data = options.data;
    this.reason = options.reason;
    this.outcome = options.outcome;
    this.remedy = options.remedy;
    this.wire = options.wire;
    this.rule = options.rule ?? (code === "limit" ? "limit" : undefined);
    this.plain = plain;
    this.fact = options.forOperator ?? plain;
  }

  /** What is said to the operator, in status and log. */
  get forOperator(): string {
    return joined(this.fact, this);
  }

  /** The same, for what could have no effect: the start of a server, or a question of the gateway's own. */
  withoutOutcome(): Fault {
    if (this.outcome === undefined) return this;
    const { cause, data, fact, reason, remedy, wire } = this;
    return new Fault(this.code, this.plain, { cause, data, forOperator: fact, reason, remedy, wire });
  }

  override get kind(): ExpectedKind {
    return kindOfCode(this.code);
  }
}

function joined(what: string, { outcome, remedy }: Pick<FaultOptions, "outcome" | "remedy">): string {
  if (outcome === undefined && remedy === undefined) return what;
  return [sentence(what), outcome, remedy].filter((part) => part !== undefined).join(" ");
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

export function isFaultCode(word: string): word is FaultCode {
  return Object.hasOwn(WIRE, word);
}

export function toRpcError(error: unknown): RpcError {
  if (error instanceof Fault) {
    const data = error.data === undefined ? { fault: error.code } : error.data;
    return { code: WIRE[error.code], message: error.message, data };
  }
  return { code: ErrorCode.internal, message: "Internal error of the gateway; its log has the details." };
}

/**
 * What a server that is a gateway itself says of a call that it lost: whatever became of it, nobody knows. Undefined for any other
 * error, and for codes of ours without our word beside them.
 */
export function faultBehind({ code, message, data }: RpcError): Fault | undefined {
  if (!isObject(data)) return undefined;
  const { fault, status } = data;
  if (fault !== "outcome-unknown" && fault !== "timeout" && fault !== "protocol") return undefined;
  if (code !== WIRE[fault]) return undefined;
  return new Fault(fault, message, typeof status === "number" ? { wire: { status } } : {});
}

/**
 * What a server that is a gateway itself says of a call that it did not send on: the server behind it is not there, or a budget is
 * spent. Undefined for any other error. `againMs`: when it may be asked again, where it says so.
 */
export function notSentBehind({
  code,
  message,
  data,
}: RpcError): { why: string; againMs: number | undefined } | undefined {
  if (!isObject(data)) return undefined;
  // It names the server only where that is told in place of the call.
  const isAway = data["fault"] === "unavailable" && code === WIRE.unavailable && typeof data["server"] === "string";
  const isSpent = data["fault"] === "budget" && code === WIRE.limit;
  if (!isAway && !isSpent) return undefined;
  const againMs = data[isAway ? "nextTryInMs" : "resetsInMs"];
  return { why: message, againMs: typeof againMs === "number" && againMs >= 0 ? againMs : undefined };
}

/** Codes of refusals that are no reply of a server: by the table, for whoever answers before there is a call. */
export const UNAVAILABLE = WIRE.unavailable;
export const UNAUTHORIZED = WIRE.unauthorized;
export const LIMIT = WIRE.limit;
export const DENIED = WIRE.denied;
export const CLOSING = WIRE.closing;
/** What SDKs call "session not found" in the legacy era. */
export const SESSION_NOT_FOUND = -32001;
