// What a POST to /mcp means in the modern era: one request that stands for itself, or a notification.

import type { Homes } from "../../contracts/engine/homes.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import type { Message, RequestMessage } from "../../protocol/message.js";
import { passOn } from "../http/pass-on.js";
import { type AgentPost, refusePost } from "../http/read-post.js";
import { accepted, sendJson } from "../http/write-reply.js";
import { idText } from "../session/call.js";
import { homeOf } from "../session/home.js";
import { checkRequest } from "./checks.js";
import type { ModernEra } from "./era.js";
import { HttpOutlet, type ModernHttp } from "./http-outlet.js";

/** Answers the modern POSTs of one endpoint. */
export class ModernPosts {
  readonly #era: ModernEra;
  readonly #http: ModernHttp;
  readonly #homes: Homes | undefined;

  constructor(era: ModernEra, http: ModernHttp, homes: Homes | undefined) {
    this.#era = era;
    this.#http = http;
    this.#homes = homes;
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

  /** The other gateway that a request belongs at. */
  #homeOf({ principal, scope, isPassed }: AgentPost, message: RequestMessage): string | undefined {
    const homes = this.#homes;
    if (homes === undefined || isPassed) return undefined;
    const { method, params } = message;
    const home =
      this.#era.homeOf(message) ??
      (homes.isOfSession(method, params, scope)
        ? homeOf(undefined, `${principal.id}\n${scope ?? ""}`, homes)
        : undefined);
    return home === homes.self ? undefined : home;
  }

  #request(post: AgentPost, message: RequestMessage): void {
    const { req, res, principal, scope, accepts } = post;
    // Closing takes a call back, also while its body waited to be read.
    if (res.destroyed) return;
    const meta = checkRequest(message, req.headers);
    if ("code" in meta) {
      sendJson(res, 400, `{"jsonrpc":"2.0","id":${idText(message)},"error":${JSON.stringify(meta)}}`);
    } else if (message.method === "subscriptions/listen" && !accepts.events) {
      const why = "Accept must allow text/event-stream.";
      refusePost(post, ErrorCode.invalidRequest, why, 406, idText(message));
    } else {
      const serve = () =>
        this.#era.serve(new HttpOutlet(this.#http, principal.id, message, meta, res, accepts), principal, scope);
      const home = this.#homeOf(post, message);
      if (this.#homes === undefined || home === undefined) serve();
      else passOn(this.#homes, home, req, res, message.text, serve);
    }
  }
}
