// The servers as the pipeline sees them: which there are, what each has said of itself, and where calls to it go. This
// is the seam for every kind of server; those of the config are in upstream/.

import type { NotificationMessage } from "../protocol/message.js";
import type { Caller } from "./caller.js";
import type { OwnName } from "./names.js";
import type { Isolation } from "./server-spec.js";
import type { ListKind, ServerIntro, Upstream } from "./upstream.js";

export interface Servers {
  readonly names: readonly string[];
  readonly all: Iterable<ServerHandle>;
  /** Those of `names`, in that order. It is another array once one of them is another. */
  readonly handles: readonly ServerHandle[];
  /**
   * Counts what can make another answer of `renew` than time does. Where it is absent, each server is asked with each list.
   */
  readonly listEvents?: ListEvents | undefined;
  get(name: string): ServerHandle | undefined;
  /** What was kept for this session alone is closed. */
  sessionClosed(sessionKey: string): void;
}

/** Calls of agents that ended, changes that were announced, readings that began and ended: of all servers together. */
export interface ListEvents {
  readonly count: number;
}

export interface ServerHandle {
  readonly name: string;
  readonly isolation: Isolation;
  /** Undefined until a connection has been up. */
  readonly intro: ServerIntro | undefined;
  /** The lists were read from the server since the gateway started, and are good. */
  readonly listed: boolean;
  /** Resolves when the first attempt to read its lists has ended, either way. */
  readonly firstTry: Promise<void>;
  /**
   * Somebody asks for a list, or for what it does not have. The reading that is worth a short wait; undefined where what
   * is known is as good as it gets. It never rejects, and starts no server. `nowMs` is given where many are asked at once.
   */
  renew?(kind: ListKind, why: "asked" | "missed", nowMs?: number): Promise<void> | undefined;
  /** Whether a request may be sent twice: it reads, or somebody vouches that twice is once. Where it is absent, none may. */
  mayRepeat?(method: string, subject: OwnName | undefined): boolean;
  /** Why it is not up, or has not shown what it has. */
  readonly trouble: string | undefined;
  /** Stopped by will, until somebody starts it. */
  readonly isStopped?: boolean;
  /** Where a call of this caller goes. Throws a Fault where no connection can be had for it. */
  upstream(caller: Caller): Upstream;
  /** The connections that are there now, for what goes to all of them. */
  readonly connections: Iterable<ServerConnection>;
  /** The connection that this session's calls go out on, if there is one. */
  sessionConnection(session: Caller): ServerConnection | undefined;
}

export interface ServerConnection extends Upstream {
  readonly isReady: boolean;
  /** Where the machine behind it writes down what it is sent, so that a repeat runs once. Undefined where none does, or several. */
  readonly journal?: string | undefined;
  /** Progress of what the server asked the agent for; true where that question came by this connection. */
  agentProgress(sessionKey: string, message: NotificationMessage): boolean;
}
