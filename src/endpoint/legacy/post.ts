// What a POST to /mcp means in the legacy era: initialize, then messages of a session, alone or in a batch.

import type { Homes } from "../../contracts/engine/homes.js";
import type { Service } from "../../contracts/service.js";
import { LIMIT, SESSION_NOT_FOUND } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import type { Message, RequestMessage, ResponseMessage } from "../../protocol/message.js";
import { isLegacyVersion, LEGACY_VERSIONS } from "../../protocol/versions.js";
import { passOn, tellToo } from "../http/pass-on.js";
import { type AgentPost, refusePost } from "../http/read-post.js";
import type { WaitingPosts } from "../http/waiting-posts.js";
import { accepted, sendJson } from "../http/write-reply.js";
import { answersItself, handOver, idText, NO_INITIALIZE } from "../session/call.js";
import { homeOf } from "../session/home.js";
import { hasBatches, initializeFacts, introduction } from "../session/initialize.js";
import { askersOf } from "../session/questions.js";
import { BatchCall, PostBatch } from "./batch.js";
import type { HttpSession } from "./http-session.js";
import { PostCall } from "./post-call.js";
import type { HttpSessions } from "./sessions.js";

export interface LegacyPostsOptions {
  readonly service: Service;
  readonly sessions: HttpSessions;
  readonly waiting: WaitingPosts;
  /** Milliseconds since 1970; a session remembers when it began. */
  wall(): number;
  /** Tells the operator that something inside went wrong. */
  readonly failed: (error: unknown) => void;
  /** Where there are several gateways. */
  readonly homes: Homes | undefined;
}

/** What a session holds at its home alone: what it wants to be told there, on its stream. */
const AT_HOME: ReadonlySet<string> = new Set(["logging/setLevel", "resources/subscribe", "resources/unsubscribe"]);
/** What may be about a call at any of the gateways. */
const ABOUT_CALLS: ReadonlySet<string> = new Set(["notifications/cancelled", "notifications/progress"]);

/** Answers the legacy POSTs of one endpoint. */
export class LegacyPosts {
  readonly #service: Service;
  readonly #sessions: HttpSessions;
  readonly #waiting: WaitingPosts;
  readonly #wall: () => number;
  readonly #failed: (error: unknown) => void;
  readonly #homes: Homes | undefined;

  constructor({ service, sessions, waiting, wall, failed, homes }: LegacyPostsOptions) {
    this.#homes = homes;
    this.#service = service;
    this.#sessions = sessions;
    this.#waiting = waiting;
    this.#wall = wall;
    this.#failed = failed;
  }

  message(post: AgentPost, message: Message): void {
    if (message.kind === "request" && message.method === "initialize") {
      this.#initialize(post, message);
      return;
    }
    // Another gateway told everybody, and it is nothing of what is here.
    if (
      post.isPassed &&
      message.kind !== "request" &&
      !this.#sessions.has(String(post.req.headers["mcp-session-id"]))
    ) {
      if (message.kind === "response") refusePost(post, ErrorCode.invalidParams, NOBODY_ASKS);
      else accepted(post.res);
      return;
    }
    const session = this.#session(post, message);
    if (session === undefined) return;
    if (message.kind === "request") {
      if (this.#homes === undefined || post.isPassed) this.#request(post, session, message);
      else this.#requestAtHome(this.#homes, post, session, message);
    } else {
      const isHere = this.#take(session, message);
      if (this.#homes === undefined || isHere) accepted(post.res);
      else if (message.kind === "response") void this.#answerElsewhere(this.#homes, post, message);
      else {
        if (!post.isPassed) void tell(others(this.#homes), this.#homes, post, message.text);
        accepted(post.res);
      }
    }
  }

  /** Most requests are answered wherever they come to: their answers go back the way they came. */
  #requestAtHome(homes: Homes, post: AgentPost, session: HttpSession, message: RequestMessage): void {
    const { method, params } = message;
    const home =
      AT_HOME.has(method) || homes.isOfSession(method, params, post.scope)
        ? homeOf(session.madeAt, session.sessionKey, homes)
        : homes.self;
    if (home === homes.self) this.#request(post, session, message);
    else passOn(homes, home, post.req, post.res, message.text, () => this.#request(post, session, message));
  }

  /** An agent whose answer reaches nobody is told so: the call that asked is gone with its gateway, or over. */
  async #answerElsewhere(homes: Homes, post: AgentPost, { id, text }: ResponseMessage): Promise<void> {
    const told = post.isPassed ? [] : tell(askersOf(id, others(homes)), homes, post, text);
    const isTaken = await Promise.any(told.map(async (one) => (await one) || Promise.reject())).catch(() => false);
    if (post.res.destroyed) return;
    if (isTaken) accepted(post.res);
    else refusePost(post, ErrorCode.invalidParams, NOBODY_ASKS);
  }

  /** The session that the request names, or undefined after the request has been refused. */
  #session(post: AgentPost, message: Message | undefined): HttpSession | undefined {
    const { headers } = post.req;
    const id = headers["mcp-session-id"];
    const rpcId = message?.kind === "request" ? idText(message) : undefined;
    if (typeof id !== "string" || id === "") {
      refusePost(post, ErrorCode.invalidRequest, NO_SESSION, 400, rpcId);
      return undefined;
    }
    const refusal = versionRefusal(headers["mcp-protocol-version"]);
    if (refusal !== undefined) {
      refusePost(post, ErrorCode.invalidRequest, refusal, 400, rpcId);
      return undefined;
    }
    const found = this.#sessions.find(id, post.principal, post.scope);
    if (found.kind === "session") return found.session;
    if (found.kind === "full") refusePost(post, LIMIT, FULL_MESSAGE, 503, rpcId);
    else refusePost(post, SESSION_NOT_FOUND, UNKNOWN_MESSAGE, 404, rpcId);
    return undefined;
  }

  #initialize({ res, principal, scope, accepts }: AgentPost, message: RequestMessage): void {
    const sessions = this.#sessions;
    const home = this.#homes?.self;
    const facts = { ...initializeFacts(message, principal.id, scope, this.#wall()), home };
    const introduced = this.#service.introduce(sessions.transient(principal, facts), scope);
    const result = introduction(facts.version, introduced);
    const body = `{"jsonrpc":"2.0","id":${idText(message)},"result":${JSON.stringify(result)}}`;
    const id = sessions.seal(facts);
    if (accepts.json) {
      sendJson(res, 200, body, ["Mcp-Session-Id", id]);
      return;
    }
    res.writeHead(200, ["Content-Type", "text/event-stream", "Mcp-Session-Id", id]);
    res.end(`event: message\ndata: ${body}\n\n`);
  }

  #request(post: AgentPost, session: HttpSession, message: RequestMessage): void {
    const { res, accepts } = post;
    if (message.method === "ping" && accepts.json) {
      sendJson(res, 200, `{"jsonrpc":"2.0","id":${idText(message)},"result":{}}`);
      return;
    }
    const call = new PostCall(this.#waiting, session, message, res, accepts);
    const refusal = session.begin(call);
    if (refusal !== undefined) {
      call.dismiss();
      refusePost(post, ErrorCode.invalidRequest, refusal, 400, idText(message));
    } else if (message.method === "ping") call.reply({ kind: "result", result: {} });
    else handOver(this.#service, call, this.#failed);
  }

  /** False where it may be about something at another gateway. */
  #take(session: HttpSession, message: Exclude<Message, RequestMessage>): boolean {
    if (message.kind === "response") return session.answered(message);
    const isOfCall = message.method === "notifications/cancelled" && session.hasCall(message.params?.["requestId"]);
    session.notified(message, this.#service);
    return isOfCall || !ABOUT_CALLS.has(message.method);
  }

  batch(post: AgentPost, messages: readonly Message[]): void {
    const session = this.#session(post, undefined);
    if (session === undefined) return;
    if (!hasBatches(session.version)) {
      const why = `Version ${session.version} has no batches; send one message at a time.`;
      refusePost(post, ErrorCode.invalidRequest, why);
      return;
    }
    const requests = messages.filter((message) => message.kind === "request");
    if (requests.some((message) => message.method === "initialize")) {
      refusePost(post, ErrorCode.invalidRequest, NO_INITIALIZE);
      return;
    }
    if (requests.length === 0) {
      for (const message of messages) if (message.kind !== "request") this.#take(session, message);
      accepted(post.res);
      return;
    }
    const batch = new PostBatch(this.#waiting, session, post.res, post.accepts, requests.length);
    for (const message of messages) {
      if (message.kind === "request") this.#batchRequest(session, batch, message);
      else this.#take(session, message);
    }
  }

  #batchRequest(session: HttpSession, batch: PostBatch, message: RequestMessage): void {
    const call = new BatchCall(batch, message);
    if (!answersItself(call, session.begin(call))) handOver(this.#service, call, this.#failed);
  }
}

/** Those that may have a call of the agent's: one that leaves has those that it lets end. */
function others(homes: Homes): string[] {
  return [...homes.gateways(), ...homes.left()].filter((gateway) => gateway !== homes.self);
}

/** Whether each of these gateways took it, in time. */
function tell(gateways: readonly string[], homes: Homes, { req }: AgentPost, text: string): Promise<boolean>[] {
  return gateways.map((gateway) => tellToo(homes, gateway, req, text));
}

/** The protocol has an error status for an answer that is not accepted. */
const NOBODY_ASKS =
  "Nobody waits for this answer: the call that asked is over, or its gateway is gone. Repeat the call.";
export const UNKNOWN_MESSAGE = "No such session, or it has ended. Send initialize to begin a new one.";
export const FULL_MESSAGE = "All sessions that this endpoint can hold are in use. Try again later.";

export function versionRefusal(header: string | string[] | undefined): string | undefined {
  if (header === undefined || (typeof header === "string" && isLegacyVersion(header))) return undefined;
  const shown = JSON.stringify(String(header).slice(0, 32));
  return `MCP-Protocol-Version ${shown} is not spoken here. Supported: ${LEGACY_VERSIONS.join(", ")}.`;
}

const NO_SESSION =
  "Mcp-Session-Id is missing. Send initialize first, and repeat the id from its answer; or send a request of 2026-07-28, which needs none.";
