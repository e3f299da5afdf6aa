// Calls on their way to a server, and what servers tell of their own accord. Implementations are in upstream/; how
// calls get back is in caller.ts, which servers there are in servers.ts.

import type { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import type { HopChanges, NotificationMessage, RequestMessage } from "../protocol/message.js";
import type { Era } from "../protocol/modern.js";
import type { Reply } from "../protocol/reply.js";
import type { Caller } from "./caller.js";
import type { OwnName } from "./names.js";
import type { WayNotes } from "./service.js";

/**
 * Says to a machine behind a mailbox which call this is: the machine writes down what it begins, and answers a repeat from
 * that. So the id of the message is the key of the call.
 */
export interface MessageKey {
  /** Of the message. It ends with a dash and the number. */
  readonly id: string;
  /** Of the request within it: the same at each repeat, since the reply that the machine has kept carries it. */
  readonly number: number;
  /** Tells a repeat from another call under the same id, however it is worded this time. */
  readonly digest: string;
  /** The one that writes it down: it goes to no other. */
  readonly journal: string;
  /** How long the machine has to know it. */
  readonly leftMs: number;
  /** It may have been sent before. */
  readonly isRepeat: boolean;
  /** Its agent took it back, and the machine is told. One that is merely not waited for any more goes on there. */
  isTakenBack: boolean;
}

/**
 * Of a write that is kept until its server has it: it may be the call by which a breaker is tried before its time. `unreached`:
 * only where nothing reached the server when it was last tried, since nobody could say what became of this one if it were lost.
 */
export type EarlyTrial = "always" | "unreached";

/** A request on its way to a server. Made by the pipeline; answered exactly once, by `reply`. */
export interface UpstreamCall {
  /** Undefined where the gateway itself asks (lists, levels, subscriptions). */
  readonly caller: Caller | undefined;
  readonly method: string;
  /** The tool, prompt, resource or task that it is about: for headers, logs and errors. */
  readonly subject: OwnName | undefined;
  /** What the agent gave, with the server's own name of the subject in it. `_meta` is not as it goes out. */
  readonly params: JsonObject | undefined;
  /** The progress token that the agent chose, if it chose one: JSON as it was written, since 1e3 is not 1000 to all. */
  readonly progressToken: string | undefined;
  /**
   * The message as it goes out, `id` as its id, and as its progress token where the agent chose one. `changes` are those of
   * the hop to the server: they are asked for here, since what is rendered is not read again.
   */
  render(id: number, changes?: HopChanges): string;
  reply(reply: Reply): void;
  /** Undefined where nobody wants to know of it. */
  readonly notes?: WayNotes | undefined;
  /** Undefined where a repeat is not known for one. */
  readonly messageKey?: MessageKey | undefined;
  /** Undefined where it waits as long as the breaker says. */
  readonly earlyTrial?: EarlyTrial | undefined;
  /** Its receipt says what came of it, so its answer is waited for a moment longer once it was taken back. */
  readonly isKept?: boolean;
  /** Is called when it is sent a second time, on a new connection. */
  repeated?(): void;
  /** It was sent before: that it has not left this time says nothing. */
  readonly wasSent?: boolean | undefined;
  /**
   * It was judged by the tools that the server had: on a new connection it waits until they have been read anew, and
   * `refusal` is asked.
   */
  readonly isOfTool?: boolean;
  /** Why it must not be sent after all. */
  refusal?(): Fault | undefined;
}

export interface Upstream {
  readonly server: string;
  /** Never throws: what goes wrong is a reply. The answer to `cancel` is a reply too. */
  send(call: UpstreamCall): void;
  /**
   * Takes a call back: the server is told, the caller gets `cancelled`, whose fault says so where the call never left. Unknown
   * calls are ignored.
   */
  cancel(call: UpstreamCall, reason: string | undefined): void;
  /** Sends an agent's notification if the server is connected; it is not kept for later. */
  notify(message: NotificationMessage, from: Caller): void;
  /** A request of the gateway's own. Rejects where the server refuses it, or there is no answer. */
  request(method: string, params: JsonObject): Promise<JsonObject>;
}

/** What a server said of itself at the handshake. */
export interface ServerIntro {
  /** It is absent for a legacy server. */
  readonly era?: "modern";
  /** Of the server itself, where another gateway speaks the modern era for it: its tasks are of this one. */
  readonly ownEra?: Era | undefined;
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject;
  readonly instructions: string | undefined;
  /** What else it said, its `_meta` too: members that nobody here knows. Absent where there is nothing. */
  readonly more?: JsonObject;
}

export type ListKind = "tools" | "prompts" | "resources" | "resourceTemplates";

/** One entry of a server's list: its JSON text as the server wrote it, and that text parsed. */
export interface Listed {
  readonly json: string;
  readonly value: JsonObject;
}

/** How long a list may be kept, and by whom, as a modern server says of it. */
export interface Freshness {
  readonly ttlMs: number;
  readonly cacheScope: "private" | "public";
}

/** What servers tell without being asked. The pipeline implements it. */
export interface UpstreamEvents {
  /** A connection is up and the server has introduced itself. `owner`: whose it is, where it is not shared. */
  onIntro(server: string, intro: ServerIntro, connection: Upstream, owner: Caller | undefined): void;
  /** A further session at the server is up, for agents of one profile; what the server is was said before. */
  onSession?(server: string, intro: ServerIntro, connection: Upstream): void;
  /** Why there is no room for a list that was read, as a sentence: then it is not told. Undefined where there is. */
  listRefusal?(server: string, kind: ListKind, items: readonly Listed[]): string | undefined;
  /** A list was read, after connecting or after list_changed; it may equal the one before. */
  onList(server: string, kind: ListKind, items: readonly Listed[], freshness?: Freshness): void;
  /** The server says that these lists have changed; they are read again. */
  onListChanged?(server: string, kinds: readonly ListKind[]): void;
  /**
   * A log message, resources/updated, or what we do not know. `caller`: for whom, where that can be told; `connection`:
   * where it came.
   */
  onNotification(
    server: string,
    message: NotificationMessage,
    caller: Caller | undefined,
    connection?: Upstream | undefined,
  ): void;
  /**
   * A message that names a task in its `_meta`, as this agent is to see it: it knows the task by another id. Undefined
   * where the task is not this agent's.
   */
  aboutTask?<M extends RequestMessage | NotificationMessage>(server: string, message: M, caller: Caller): M | undefined;
  onState(server: string): void;
}
