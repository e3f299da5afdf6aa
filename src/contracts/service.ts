// What stands behind an endpoint: the endpoint speaks HTTP or stdio and knows sessions; a Service knows MCP's
// methods. pipeline.ts implements it.

import type { Fault } from "../protocol/errors.js";
import type { JsonObject, RpcError } from "../protocol/jsonrpc.js";
import type { NotificationMessage, RequestMessage } from "../protocol/message.js";
import type { ParamHeader } from "../protocol/param-headers.js";
import type { Reply } from "../protocol/reply.js";
import type { Caller, Principal } from "./caller.js";
import type { EarlyTrial, MessageKey } from "./upstream.js";

/** What a `traceparent` may stand in, and anything else: `_meta`, or the headers of a request. */
export type TraceCarrier = Readonly<Record<string, unknown>>;

/** A call's own place in a trace, for the server that it goes to. */
export interface TracePlace {
  /** Goes into `_meta` of what is sent to the server. */
  readonly metaTraceparent: string;
  /** Goes with it; undefined where there is none, and one in `_meta` belongs to a parent that we do not have. */
  readonly metaTracestate: string | undefined;
}

/**
 * Where the time of a call goes. `own`: we are at it. `queued`: it waits for a place or in a lane. `starting`: its server is
 * started or met anew, or its lists are read. `credential`: a token is fetched. `server`: from the first byte out to the last
 * byte in. `returning`: the reply is on its way back through us.
 */
export type CallPhase = "own" | "queued" | "starting" | "credential" | "server" | "returning";

/**
 * What was mended on the way of a call: its server was started again, its token was renewed, or a server was away and its
 * tools were in the list all the same.
 */
export type Mending = "restart" | "token" | "menu";

/** What those between the pipeline and the server note of a call. */
export interface WayNotes {
  /** From now on its time goes to this. `nowMs` is for who knows the time anyway. */
  enter(phase: CallPhase, nowMs?: number): void;
  /** It is about to be sent to its server: what is rendered after this has the place of this sending in a trace. */
  sent(nowMs: number): void;
  /** It is told where it is done, and counts where the call then succeeds. */
  mended(by: Mending): void;
}

/** What becomes known of a call on its way, for the record of it. */
export interface CallNotes extends WayNotes {
  /** Its server is known, and whether it may is asked next. `tool` is the server's own name; undefined for what is none. */
  reaches(server: string, tool: string | undefined): void;
  /** Undefined where the call is not traced, or its server is not known yet. */
  readonly trace: TracePlace | undefined;
  /** It is sent again; `error` is what became of the sending before, as `error.type` says it. */
  repeated(error: string): void;
  /** Undefined where the cache was not asked. */
  cache: "hit" | "miss" | "coalesced" | "off" | undefined;
  /** The id of the receipt that its agent is given in place of a result; undefined where it gets its result. */
  receipt: string | undefined;
}

/** One request of an agent. The endpoint makes it; the service answers it exactly once, by `reply`. */
export interface AgentCall {
  /** The way back for what belongs to this request: its own stream where the transport has one. */
  readonly caller: Caller;
  readonly message: RequestMessage;
  /** The server of `/mcp/<server>`; undefined at `/mcp`, which has them all. */
  readonly scope: string | undefined;
  /** Headers of the HTTP request that brought it, where one did: for trace context that `_meta` does not have. */
  readonly traceHeaders?: TraceCarrier | undefined;
  /** Undefined where calls are neither recorded nor traced. */
  readonly notes?: CallNotes | undefined;
  /** By which a machine behind a mailbox knows it when it comes again. Calls of agents have none. */
  readonly messageKey?: MessageKey | undefined;
  /** Undefined where it waits as long as the breaker of its server says, as calls of agents do. */
  readonly earlyTrial?: EarlyTrial | undefined;
  /** Its receipt says what came of it, so its answer is waited for a moment longer once it was taken back. */
  readonly isKept?: boolean;
  /**
   * Asked once the tool is known and allowed: `declared` is what its schema wants in headers. The error where the
   * headers of the request do not agree with its arguments. Absent where a call has no headers that matter.
   */
  headerMismatch?(declared: readonly ParamHeader[]): RpcError | undefined;
  /** Later replies to the same call are ignored. */
  reply(reply: Reply): void;
  /** The service sets it while something can be taken back; the endpoint calls it when the agent cancels. */
  onCancel: ((reason: string | undefined) => void) | undefined;
}

/** Where a call goes that a server refused for want of a login: its agent may send whoever uses it to the page. */
export interface LoginHandler {
  /**
   * False where the refusal is the answer. Else one of the two is called later, once: `again` when somebody has logged
   * in, `giveUp` when nobody will. A call that is taken back meanwhile is answered here.
   */
  take(call: AgentCall, server: string, again: () => void, giveUp: () => void): boolean;
}

/** Who wanted a login: an operator, or the agent whose call was refused for want of one. */
export type LoginWantedBy =
  | { readonly by: "operator" }
  | { readonly by: "call"; readonly principal: Pick<Principal, "id" | "role"> };

/** `timeout`: nobody came back from its page; `cancelled`: nobody waited for it any more. */
export type LoginOutcome = "ok" | "failed" | "timeout" | "cancelled";

/** A login at a server that ended, well or not. */
export type EndedLogin = { readonly server: string; readonly outcome: LoginOutcome } & LoginWantedBy;

/** What an agent is told at initialize. */
export interface Introduction {
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject;
  readonly instructions: string | undefined;
  /** At `/mcp/<server>`, what that server said of itself, as far as it is known. */
  readonly own: { readonly serverInfo: JsonObject; readonly more?: JsonObject } | undefined;
}

export interface Service {
  /** True where `/mcp/<server>` exists. */
  hasScope(server: string): boolean;
  introduce(caller: Caller, scope: string | undefined): Introduction;
  /**
   * Never throws. `initialize` and `ping` never arrive here, nor do requests that the endpoint refused;
   * everything else does, unknown methods included.
   */
  handle(call: AgentCall): void;
  /** Why a call that was let through, and has waited for its agent since, would be refused by now. */
  refusal(call: AgentCall): Fault | undefined;
  /** `session` is the session's own way back. `notifications/cancelled` and `initialized` stay in the endpoint. */
  handleNotification(session: Caller, message: NotificationMessage, scope: string | undefined): void;
  /**
   * `session.notify` reaches the agent outside any request, for as long as the session is open. `isFromBefore`: it was
   * begun at a gateway that has ended since.
   */
  sessionOpened(session: Caller, scope: string | undefined, isFromBefore?: boolean): void;
  /** An open session listens again and may have missed what changed: it is told that all it knows may be old. */
  catchUp(session: Caller, scope: string | undefined): void;
  /** `fault` is the code of what ended it; undefined where it was its agent, time or room. */
  sessionClosed(session: Caller, fault?: string): void;
}

/** Told of sessions as they come and go; `fault` is the code of what ended one. */
export type SessionWatch = (
  what: "opened" | "resumed" | "closed",
  session: Caller,
  scope?: string,
  fault?: string,
) => void;
