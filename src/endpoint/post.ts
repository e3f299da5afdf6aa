// A POST to /mcp. What was read decides which era it is of; what it means there is legacy/post.ts and modern/post.ts.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal } from "../contracts/caller.js";
import type { Message } from "../protocol/message.js";
import type { AgentPost } from "./http/agent-post.js";
import type { Accepts } from "./http/checks.js";
import type { PostReceiver } from "./http/read-post.js";
import type { LegacyPosts } from "./legacy/post.js";
import { isModernBatch, isModernPost } from "./modern/checks.js";
import type { ModernPosts } from "./modern/post.js";

/** Who answers POSTs, by their era. */
export interface Eras {
  readonly legacy: LegacyPosts;
  readonly modern: ModernPosts;
}

export class McpPost implements AgentPost, PostReceiver {
  readonly #eras: Eras;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly principal: Principal;
  readonly scope: string | undefined;
  readonly accepts: Accepts;
  readonly isPassed: boolean;

  constructor(
    eras: Eras,
    req: IncomingMessage,
    res: ServerResponse,
    principal: Principal,
    scope: string | undefined,
    accepts: Accepts,
    isPassed: boolean,
  ) {
    this.#eras = eras;
    this.req = req;
    this.res = res;
    this.principal = principal;
    this.scope = scope;
    this.accepts = accepts;
    this.isPassed = isPassed;
  }

  onMessage(message: Message): void {
    const { legacy, modern } = this.#eras;
    if (isModernPost(message, this.req.headers)) modern.message(this, message);
    else legacy.message(this, message);
  }

  onBatch(messages: readonly Message[]): void {
    const { legacy, modern } = this.#eras;
    if (isModernBatch(messages, this.req.headers)) modern.batch(this);
    else legacy.batch(this, messages);
  }
}
