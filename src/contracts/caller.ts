// The way back to an agent. Progress, log messages, list_changed and a server's requests reach an agent
// through this and through nothing else; the endpoint implements it, upstreams and the pipeline call it.

import type { JsonObject } from "../protocol/jsonrpc.js";
import type { NotificationMessage, RequestMessage, ResponseMessage } from "../protocol/message.js";
import type { Era } from "../protocol/modern.js";

/** Who is calling: proved by a token, never by what the caller says of itself. */
export interface Principal {
  readonly id: string;
  readonly role: string;
  /** Of one that dials in, the names that it may come in under. Absent where that is the one that equals its id. */
  readonly names?: readonly string[] | undefined;
  /** The mailboxes that it may send to, by their ids. Absent where it may send to none. */
  readonly maySendTo?: readonly string[] | "any" | undefined;
  /** It opens mailboxes, and nothing else: whoever made it has no say in the rest. */
  readonly onlyMailboxes?: true | undefined;
  /** Of a run with `--role`: its role narrows it, and without an entry of that role it may use nothing. */
  readonly needsRole?: true | undefined;
  /** Of a run: what it has called so far. Absent where nobody counts. */
  readonly tally?: CallTally | undefined;
}

/** What one run of an agent has called, counted where calls begin and where they are refused. */
export interface CallTally {
  calls: number;
  /** Refusals by the rule that refused, in its own words. */
  readonly refused: Map<string, number>;
  /** Writes that were answered with a receipt in place of a result. */
  queued: number;
}

/**
 * What an agent declared that it can do. Agents that declared the same have the same one, so that it is compared by
 * identity.
 */
export interface AgentProfile {
  readonly capabilities: JsonObject;
}

/** A notification on its way to an agent: what it says, its whole JSON-RPC text as it goes out, and where its members stand. */
export type NotificationText = Omit<NotificationMessage, "kind">;

export type SubscribedUris = ReadonlyMap<string, ReadonlySet<string>>;

/** What is about to be sent to its server, past all that could refuse it. */
export interface CallStart {
  /** Undefined where it is not known yet: a call that is answered goes on where it was. */
  readonly server: string | undefined;
  /** The server's own name of the tool; undefined for what is none. */
  readonly tool: string | undefined;
  readonly message: RequestMessage;
  /** Whether twice is as good as once. */
  readonly mayRepeat: boolean;
}

export interface Caller {
  readonly principal: Principal;
  /** Names the session; equal for all calls of one session and for no other. */
  readonly sessionKey: string;
  /** A modern agent is never sent a request: `ask` becomes an `input_required` result, and its retry the answer. */
  readonly era: Era;
  /** The log level that a modern request asks for, or that a legacy session set. */
  readonly logLevel: string | undefined;
  /** Of a session: what it has subscribed to, URIs by server. One that was restored has it from before. */
  readonly subscribed?: SubscribedUris | undefined;
  /** Nobody hears what it is told: a program waits for its answer alone, and no server needs to log for it. */
  readonly hearsNothing?: true;
  /** The protocol version that the agent speaks. */
  readonly version: string;
  /** What the agent can be asked for: sampling, elicitation, roots. */
  readonly capabilities: JsonObject;
  /** Undefined where there is none to compare by, as of a program. */
  readonly profile?: AgentProfile | undefined;
  readonly clientInfo: JsonObject;
  /** A program takes a tool's structured output as the server gives it; a legacy agent's SDK takes objects alone. */
  readonly takesAnyOutput?: true | undefined;
  /** Another gateway, which passes on what its agents ask and are told: it has tasks under the server's own ids. */
  readonly passesOn?: true | undefined;
  /** Whom private answers are for, where that is not its principal: of one that stands for several agents. */
  readonly privateTo?: string | undefined;
  /**
   * Where it is there, a call is sent to its server when this has resolved, and refused where it rejects with a Fault:
   * whoever writes down what was begun does so before it begins.
   */
  readonly beforeSend?: ((start: CallStart) => Promise<void>) | undefined;
  /** logging/setLevel: kept for the legacy session. */
  setLogLevel(level: string): void;
  /** resources/subscribe and unsubscribe: kept for the legacy session, so that it has them when it is restored. */
  setSubscribed?(subscribed: SubscribedUris): void;
  /** Sends a notification, on the stream of the request that it belongs to. */
  notify(notification: NotificationText): void;
  /**
   * Carries a server's request to the agent, under an id of ours. Rejects with a Fault `no-caller` when the
   * agent cannot be asked this, `cancelled` when `signal` fires, `timeout` or `closing` when no answer comes.
   */
  ask(request: RequestMessage, signal: AbortSignal): Promise<ResponseMessage>;
}
