// What a POST to /mcp means in the modern era: one request that stands for itself, or a notification.

import { ErrorCode } from "../../protocol/jsonrpc.js";
import type { Message, RequestMessage } from "../../protocol/message.js";
import { type AgentPost, refusePost } from "../http/agent-post.js";
import { accepted, sendJson } from "../http/write-reply.js";
import { idText } from "../session/call.js";
import { checkRequest } from "./checks.js";
import type { ModernEra } from "./era.js";
import { HttpOutlet, type ModernHttp } from "./http-outlet.js";

/** Answers the modern POSTs of one endpoint. */
export class ModernPosts {
  readonly #era: ModernEra;
  readonly #http: ModernHttp;

  constructor(era: ModernEra, http: ModernHttp) {
    this.#era = era;
    this.#http = http;
  }

  message(post: AgentPost, message: Message): void {
    if (message.kind === "request") this.#request(post, message);
    else if (message.kind === "notification") {
      accepted(post.res);
      this.#era.notified(message, post.principal, post.scope);
    } else {
      const why = "Responses are not sent in this version: answers go into a retry.";
      refusePost(post, ErrorCode.invalidRequest, why);
    }
  }

  batch(post: AgentPost): void {
    refusePost(post, ErrorCode.invalidRequest, "This version has no batches; send one message at a time.");
  }

  #request(post: AgentPost, message: RequestMessage): void {
    const { req, res, principal, scope, accepts } = post;
    const meta = checkRequest(message, req.headers);
    if ("code" in meta) {
      sendJson(res, 400, `{"jsonrpc":"2.0","id":${idText(message)},"error":${JSON.stringify(meta)}}`);
    } else if (message.method === "subscriptions/listen" && !accepts.events) {
      const why = "Accept must allow text/event-stream.";
      refusePost(post, ErrorCode.invalidRequest, why, 406, idText(message));
    } else this.#era.serve(new HttpOutlet(this.#http, principal.id, message, meta, res, accepts), principal, scope);
  }
}
