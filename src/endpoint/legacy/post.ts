// What a POST to /mcp means in the legacy era: initialize, then messages of a session, alone or in a batch.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal } from "../../contracts/caller.js";
import type { Service } from "../../contracts/service.js";
import { LIMIT, SESSION_NOT_FOUND } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import type { Message, RequestMessage } from "../../protocol/message.js";
import { isLegacyVersion, LEGACY_VERSIONS } from "../../protocol/versions.js";
import { accepted, sendJson } from "../http/answers.js";
import type { Accepts } from "../http/checks.js";
import type { Flight } from "../http/flights.js";
import { Post } from "../http/post.js";
import { handOver, idText } from "../session/call.js";
import { hasBatches, initializeFacts, introduction } from "../session/initialize.js";
import type { EndpointLimits } from "../session/limits.js";
import { Batch, BatchCall } from "./batch.js";
import { Exchange } from "./exchange.js";
import type { HttpSession } from "./http-session.js";
import type { Sessions } from "./sessions.js";

/** What the POSTs of one endpoint share. */
export interface PostContext {
  readonly service: Service;
  readonly sessions: Sessions;
  readonly flight: Flight;
  readonly limits: EndpointLimits;
  wall(): number;
  /** For the operator: something inside went wrong. */
  readonly failed: (error: unknown) => void;
}

export class LegacyPost extends Post {
  readonly #context: PostContext;
  readonly #principal: Principal;
  readonly #scope: string | undefined;
  readonly #accepts: Accepts;

  constructor(
    context: PostContext,
    req: IncomingMessage,
    res: ServerResponse,
    principal: Principal,
    scope: string | undefined,
    accepts: Accepts,
  ) {
    super(req, res, context.limits, context.failed);
    this.#context = context;
    this.#principal = principal;
    this.#scope = scope;
    this.#accepts = accepts;
  }

  protected onMessage(message: Message): void {
    if (message.kind === "request" && message.method === "initialize") {
      this.#initialize(message);
      return;
    }
    const session = this.#session(message);
    if (session === undefined) return;
    if (message.kind === "request") this.#request(session, message);
    else {
      this.#take(session, message);
      accepted(this.res);
    }
  }

  /** The session that the request names, or undefined after the request has been refused. */
  #session(message: Message | undefined): HttpSession | undefined {
    const { headers } = this.req;
    const id = headers["mcp-session-id"];
    const rpcId = message?.kind === "request" ? idText(message) : undefined;
    if (typeof id !== "string" || id === "") {
      this.refuse(ErrorCode.invalidRequest, NO_SESSION, 400, rpcId);
      return undefined;
    }
    const refusal = versionRefusal(headers["mcp-protocol-version"]);
    if (refusal !== undefined) {
      this.refuse(ErrorCode.invalidRequest, refusal, 400, rpcId);
      return undefined;
    }
    const found = this.#context.sessions.find(id, this.#principal, this.#scope);
    if (found.kind === "session") return found.session;
    if (found.kind === "full") this.refuse(LIMIT, FULL_MESSAGE, 503, rpcId);
    else this.refuse(SESSION_NOT_FOUND, UNKNOWN_MESSAGE, 404, rpcId);
    return undefined;
  }

  #initialize(message: RequestMessage): void {
    const { service, sessions } = this.#context;
    const facts = initializeFacts(message, this.#principal.id, this.#scope, this.#context.wall());
    const introduced = service.introduce(sessions.transient(this.#principal, facts), this.#scope);
    const result = introduction(facts.version, introduced);
    const body = `{"jsonrpc":"2.0","id":${idText(message)},"result":${JSON.stringify(result)}}`;
    const id = sessions.seal(facts);
    if (this.#accepts.json) {
      sendJson(this.res, 200, body, ["Mcp-Session-Id", id]);
      return;
    }
    this.res.writeHead(200, ["Content-Type", "text/event-stream", "Mcp-Session-Id", id]);
    this.res.end(`event: message\ndata: ${body}\n\n`);
  }

  #request(session: HttpSession, message: RequestMessage): void {
    if (message.method === "ping" && this.#accepts.json) {
      sendJson(this.res, 200, `{"jsonrpc":"2.0","id":${idText(message)},"result":{}}`);
      return;
    }
    const exchange = new Exchange(this.#context.flight, session, message, this.res, this.#accepts);
    const refusal = session.begin(exchange);
    if (refusal !== undefined) {
      exchange.dismiss();
      this.refuse(ErrorCode.invalidRequest, refusal, 400, idText(message));
    } else if (message.method === "ping") exchange.reply({ kind: "result", result: {} });
    else handOver(this.#context.service, exchange, this.#context.failed);
  }

  #take(session: HttpSession, message: Exclude<Message, RequestMessage>): void {
    if (message.kind === "response") session.answered(message);
    else session.notified(message, this.#context.service);
  }

  protected onBatch(messages: readonly Message[]): void {
    const session = this.#session(undefined);
    if (session === undefined) return;
    if (!hasBatches(session.version)) {
      this.refuse(ErrorCode.invalidRequest, `Version ${session.version} has no batches; send one message at a time.`);
      return;
    }
    const requests = messages.filter((message) => message.kind === "request");
    if (requests.some((message) => message.method === "initialize")) {
      this.refuse(ErrorCode.invalidRequest, "initialize cannot be part of a batch.");
      return;
    }
    if (requests.length === 0) {
      for (const message of messages) if (message.kind !== "request") this.#take(session, message);
      accepted(this.res);
      return;
    }
    const batch = new Batch(this.#context.flight, session, this.res, this.#accepts, requests.length);
    for (const message of messages) {
      if (message.kind === "request") this.#batchRequest(session, batch, message);
      else this.#take(session, message);
    }
  }

  #batchRequest(session: HttpSession, batch: Batch, message: RequestMessage): void {
    const call = new BatchCall(batch, message);
    const refusal = session.begin(call);
    if (refusal !== undefined) {
      call.reply({ kind: "error", error: { code: ErrorCode.invalidRequest, message: refusal } });
    } else if (message.method === "ping") call.reply({ kind: "result", result: {} });
    else handOver(this.#context.service, call, this.#context.failed);
  }
}

export const UNKNOWN_MESSAGE = "No such session, or it has ended. Send initialize to begin a new one.";
export const FULL_MESSAGE = "All sessions that this endpoint can hold are in use. Try again later.";

export function versionRefusal(header: string | string[] | undefined): string | undefined {
  if (header === undefined || (typeof header === "string" && isLegacyVersion(header))) return undefined;
  const shown = JSON.stringify(String(header).slice(0, 32));
  return `MCP-Protocol-Version ${shown} is not spoken here. Supported: ${LEGACY_VERSIONS.join(", ")}.`;
}

const NO_SESSION =
  "Mcp-Session-Id is missing. Send initialize first, and repeat the id from its answer; or send a request of 2026-07-28, which needs none.";
