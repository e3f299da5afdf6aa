// A POST of an agent to /mcp, whose sender is known and whose body has been read. Both eras answer it by this.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal } from "../../contracts/caller.js";
import type { Accepts } from "./checks.js";
import { refuse } from "./write-reply.js";

export interface AgentPost {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly principal: Principal;
  /** The server of `/mcp/<server>`. Undefined at `/mcp`, which has them all. */
  readonly scope: string | undefined;
  readonly accepts: Accepts;
  /** Another gateway passed it on: it stays here. */
  readonly isPassed: boolean;
}

/** Answers with a JSON-RPC error. `id` is the JSON text of the request's id, where there is one. */
export function refusePost({ res }: AgentPost, code: number, message: string, status = 400, id?: string): void {
  refuse(res, status, code, message, [], id);
}
