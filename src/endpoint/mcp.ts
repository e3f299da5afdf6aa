// What is answered at the paths of MCP, once it is known who calls: what each path stands for, the methods and media types
// that it takes, and which era a POST is of. What the messages mean is in legacy/ and modern/.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal } from "../contracts/caller.js";
import type { Homes } from "../contracts/engine/homes.js";
import { ErrorCode } from "../protocol/jsonrpc.js";
import type { Message } from "../protocol/message.js";
import { type Accepts, accepts, isJsonType } from "./http/checks.js";
import { passOn } from "./http/pass-on.js";
import { type AgentPost, type BodyReading, type PostReceiver, readPost } from "./http/read-post.js";
import { refuse, refuseMethod } from "./http/write-reply.js";
import { endSession, listen } from "./legacy/get.js";
import type { LegacyPosts } from "./legacy/post.js";
import type { HttpSessions } from "./legacy/sessions.js";
import type { LegacySse } from "./legacy/sse.js";
import { isModernBatch, isModernPost, isModernVersion } from "./modern/checks.js";
import type { ModernPosts } from "./modern/post.js";

interface Route {
  readonly kind: "mcp" | "sse" | "messages";
  /** The server of `/mcp/<server>`. Undefined at `/mcp`, which has them all. */
  readonly scope: string | undefined;
}

const MCP: Route = { kind: "mcp", scope: undefined };
const SSE: Route = { kind: "sse", scope: undefined };
const MESSAGES: Route = { kind: "messages", scope: undefined };

/** What a path of the endpoint stands for. Undefined where nothing is. */
export function routeOf(path: string): Route | undefined {
  if (path === "/mcp" || path === "/mcp/") return MCP;
  if (path === "/sse" || path === "/sse/") return SSE;
  if (path === "/messages") return MESSAGES;
  const match = /^\/(mcp|sse)\/([^/]+)\/?$/.exec(path);
  if (match?.[2] === undefined) return undefined;
  try {
    return { kind: match[1] === "mcp" ? "mcp" : "sse", scope: decodeURIComponent(match[2]) };
  } catch {
    return undefined;
  }
}

/** Who answers POSTs, by their era. */
interface Eras {
  readonly legacy: LegacyPosts;
  readonly modern: ModernPosts;
}

interface McpParts {
  readonly eras: Eras;
  readonly sessions: HttpSessions;
  readonly sse: LegacySse;
  readonly reading: BodyReading;
  /** The other gateways that serve the same sessions, where there are any. */
  readonly homes: Homes | undefined;
}

/** A request whose sender is known. */
interface AgentRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly principal: Principal;
  /** Another gateway passed it on: it stays here. */
  readonly isPassed: boolean;
}

export class McpPaths {
  readonly #parts: McpParts;

  constructor(parts: McpParts) {
    this.#parts = parts;
  }

  answer({ kind, scope }: Route, request: AgentRequest, query: string): void {
    if (kind === "mcp") this.#mcp(request, scope);
    else if (kind === "sse") this.#oldStream(request, scope);
    else this.#oldMessage(request, query);
  }

  #mcp(request: AgentRequest, scope: string | undefined): void {
    const { req, res, principal, isPassed } = request;
    const { eras, sessions, reading } = this.#parts;
    if (req.method === "POST") {
      const accepted = accepts(req.headers.accept);
      if (!isJsonType(req.headers["content-type"])) refuseType(res);
      else if (!accepted.json && !accepted.events) refuseAccept(res, "application/json and text/event-stream");
      else readPost(new McpPost(eras, req, res, principal, scope, accepted, isPassed), reading);
    } else if (isModernVersion(req.headers["mcp-protocol-version"])) refuseMethod(res, "POST");
    else if (req.method === "GET") {
      if (!accepts(req.headers.accept).events) refuseAccept(res, "text/event-stream");
      else this.#listen(request, scope);
    } else if (req.method === "DELETE") {
      endSession(sessions, req, res, principal, scope, reading.failed);
    } else refuseMethod(res, "POST, GET, DELETE");
  }

  /** A session is told things where it wants to be told them: at its home. */
  #listen({ req, res, principal, isPassed }: AgentRequest, scope: string | undefined): void {
    const { sessions, homes } = this.#parts;
    const here = () => listen(sessions, req, res, principal, scope);
    const id = req.headers["mcp-session-id"];
    const isFree = homes !== undefined && typeof id === "string" && !isPassed;
    const home = isFree ? sessions.homeOf(id, homes) : undefined;
    if (homes === undefined || home === undefined || home === homes.self) here();
    else passOn(homes, home, req, res, undefined, here);
  }

  #oldStream({ req, res, principal }: AgentRequest, scope: string | undefined): void {
    // 405 to a POST is how clients that try both find out which transport this is.
    if (req.method !== "GET") refuseMethod(res, "GET");
    else if (!accepts(req.headers.accept).events) refuseAccept(res, "text/event-stream");
    else this.#parts.sse.open(res, principal, scope);
  }

  #oldMessage({ req, res, principal }: AgentRequest, query: string): void {
    if (req.method !== "POST") refuseMethod(res, "POST");
    else if (!isJsonType(req.headers["content-type"])) refuseType(res);
    else this.#parts.sse.post(req, res, principal, query);
  }
}

/** A POST to /mcp. What was read decides which era it is of; what it means there is legacy/post.ts and modern/post.ts. */
class McpPost implements AgentPost, PostReceiver {
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

function refuseType(res: ServerResponse): void {
  refuse(res, 415, ErrorCode.invalidRequest, "Content-Type must be application/json.");
}

function refuseAccept(res: ServerResponse, types: string): void {
  refuse(res, 406, ErrorCode.invalidRequest, `Accept must allow ${types}.`);
}
