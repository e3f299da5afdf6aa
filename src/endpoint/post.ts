// A POST to /mcp, of either era: the body says which. What a legacy one means is legacy-post.ts.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal } from "../contracts/caller.js";
import { ErrorCode, type RpcError } from "../protocol/jsonrpc.js";
import type { Message, NotificationMessage, RequestMessage } from "../protocol/message.js";
import { accepted, sendJson } from "./http/answers.js";
import type { Accepts } from "./http/checks.js";
import { LegacyPost, type PostContext } from "./legacy/post.js";
import { checkRequest, isModernPost, isModernVersion, paramMismatch, saysModern } from "./modern/checks.js";
import type { ModernEra } from "./modern/era.js";
import { HttpOutlet, type ModernHttp } from "./modern/http-outlet.js";
import { idText } from "./session/call.js";

export interface McpPostContext extends PostContext {
  readonly modern: ModernEra;
  readonly http: ModernHttp;
}

export class McpPost extends LegacyPost {
  readonly #context: McpPostContext;
  readonly #principal: Principal;
  readonly #scope: string | undefined;
  readonly #accepts: Accepts;

  constructor(
    context: McpPostContext,
    req: IncomingMessage,
    res: ServerResponse,
    principal: Principal,
    scope: string | undefined,
    accepts: Accepts,
  ) {
    super(context, req, res, principal, scope, accepts);
    this.#context = context;
    this.#principal = principal;
    this.#scope = scope;
    this.#accepts = accepts;
  }

  protected override onMessage(message: Message): void {
    if (!isModernPost(message, this.req.headers)) super.onMessage(message);
    else if (message.kind === "request") this.#request(message);
    else if (message.kind === "notification") this.#notification(message);
    else this.refuse(ErrorCode.invalidRequest, "Responses are not sent in this version: answers go into a retry.");
  }

  #request(message: RequestMessage): void {
    const { headers } = this.req;
    const meta = checkRequest(message, headers);
    if ("code" in meta) {
      this.#refuse(meta, idText(message));
      return;
    }
    const mismatch = this.#paramMismatch(message);
    if (mismatch !== undefined) {
      this.#refuse(mismatch, idText(message));
    } else if (message.method === "subscriptions/listen" && !this.#accepts.events) {
      this.refuse(ErrorCode.invalidRequest, "Accept must allow text/event-stream.", 406, idText(message));
    } else {
      const outlet = new HttpOutlet(this.#context.http, message, meta, this.res, this.#accepts);
      this.#context.modern.serve(outlet, this.#principal, this.#scope);
    }
  }

  #paramMismatch({ method, params }: RequestMessage): RpcError | undefined {
    const name = params?.["name"];
    if (method !== "tools/call" || typeof name !== "string") return undefined;
    const declared = this.#context.service.paramHeaders?.(this.#principal, this.#scope, name) ?? [];
    return declared.length === 0 ? undefined : paramMismatch(declared, params?.["arguments"], this.req.headers);
  }

  #notification(message: NotificationMessage): void {
    accepted(this.res);
    this.#context.modern.notified(message, this.#principal, this.#scope);
  }

  #refuse(error: RpcError, id: string): void {
    sendJson(this.res, 400, `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}`);
  }

  protected override onBatch(messages: readonly Message[]): void {
    const { headers } = this.req;
    const named = headers["mcp-session-id"] === undefined && isModernVersion(headers["mcp-protocol-version"]);
    if (named || messages.some(saysModern)) {
      this.refuse(ErrorCode.invalidRequest, "This version has no batches; send one message at a time.");
    } else super.onBatch(messages);
  }
}
