// Where what belongs to one modern request goes: a POST's answer, or a pipe under the request's id.

import type { Caller } from "../../contracts/caller.js";
import type { AgentCall } from "../../contracts/service.js";
import type { RpcError } from "../../protocol/jsonrpc.js";
import type { RequestMessage } from "../../protocol/message.js";
import type { RequestMeta } from "../../protocol/modern.js";
import type { ParamHeader } from "../../protocol/param-headers.js";
import type { Reply } from "../../protocol/reply.js";

export interface Outlet {
  readonly message: RequestMessage;
  readonly meta: RequestMeta;
  /** Headers of the HTTP request, where it is one. */
  readonly traceHeaders?: AgentCall["traceHeaders"];
  /** The error where the headers do not agree with the arguments. Absent where a request has no headers. */
  headerMismatch?(declared: readonly ParamHeader[]): RpcError | undefined;
  /** As of a Caller. */
  readonly beforeSend?: Caller["beforeSend"];
  /** It is one that listens: whoever is between must see at once that it is open. Absent where nobody is. */
  opened?(): void;
  /** Sends a notification of this request. */
  notify(text: string): void;
  /** Sends the answer, which is already as a modern agent reads it. Later ones are ignored. */
  reply(reply: Reply): void;
  /** Called once when the agent no longer wants the answer; not after the reply. */
  onGone: ((reason: string | undefined) => void) | undefined;
}
