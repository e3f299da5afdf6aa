// GET and DELETE of /mcp in the legacy era: a session's stream, one that is resumed, and the end of a session.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal } from "../../contracts/caller.js";
import { Fault, LIMIT, SESSION_NOT_FOUND, toRpcError } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import { EVENT_STREAM_HEADERS, messageEvent } from "../http/sse.js";
import { refuse } from "../http/write-reply.js";
import { type EventId, FINAL_SEQ, type HttpSession } from "./http-session.js";
import { FULL_MESSAGE, UNKNOWN_MESSAGE, versionRefusal } from "./post.js";
import type { HttpSessions } from "./sessions.js";

/** The session of a request without a body; undefined after it has been refused. */
function sessionOf(
  sessions: HttpSessions,
  req: IncomingMessage,
  res: ServerResponse,
  principal: Principal,
  scope: string | undefined,
): HttpSession | undefined {
  const id = req.headers["mcp-session-id"];
  const refusal =
    typeof id === "string" && id !== ""
      ? versionRefusal(req.headers["mcp-protocol-version"])
      : "Mcp-Session-Id is missing. Begin with a POST of initialize.";
  if (refusal !== undefined || typeof id !== "string") {
    refuse(res, 400, ErrorCode.invalidRequest, refusal ?? "");
    return undefined;
  }
  const found = sessions.find(id, principal, scope);
  if (found.kind === "session") return found.session;
  if (found.kind === "full") refuse(res, 503, LIMIT, FULL_MESSAGE);
  else refuse(res, 404, SESSION_NOT_FOUND, UNKNOWN_MESSAGE);
  return undefined;
}

export function listen(
  sessions: HttpSessions,
  req: IncomingMessage,
  res: ServerResponse,
  principal: Principal,
  scope: string | undefined,
): void {
  const session = sessionOf(sessions, req, res, principal, scope);
  if (session === undefined) return;
  const last = req.headers["last-event-id"];
  if (typeof last !== "string" || last === "") listenAnew(sessions, session, res);
  else resume(sessions, session, res, last);
}

function listenAnew(sessions: HttpSessions, session: HttpSession, res: ServerResponse): void {
  if (session.listen(res)) {
    if (session.mayHaveMissed) sessions.catchUp(session);
    return;
  }
  refuse(res, 429, LIMIT, `This session has ${session.limits.listenersPerSession} open streams, which is the limit.`);
}

function resume(sessions: HttpSessions, session: HttpSession, res: ServerResponse, last: string): void {
  const id = session.parseEventId(last);
  if (id === undefined) {
    refuse(res, 400, ErrorCode.invalidRequest, "Last-Event-ID is not of a stream of this session.");
    return;
  }
  const resumption = session.resume(res, id);
  if (resumption === "resumed") return;
  if (resumption === "gone" && id.kind === "listen") listenAnew(sessions, session, res);
  else if (resumption === "gone" && id.request !== undefined) replyLost(res, id, id.request);
  else {
    // Tells a client that reads events not to come back for more.
    res.writeHead(204);
    res.end();
  }
}

/** The reply cannot be had any more: better to say so than to let the agent wait for it. */
function replyLost(res: ServerResponse, id: EventId, request: string): void {
  const fault = new Fault(
    "outcome-unknown",
    "The stream of this request can no longer be resumed, and its reply is lost. The call may have taken effect.",
  );
  const error = JSON.stringify(toRpcError(fault));
  res.writeHead(200, EVENT_STREAM_HEADERS as string[]);
  res.end(messageEvent(`${id.key}-${FINAL_SEQ}`, `{"jsonrpc":"2.0","id":${request},"error":${error}}`));
}

const NOT_KEPT =
  "The session has ended, but that could not be written to disk: after a restart of the gateway its id may be good again.";

/** It is answered when the end is on disk. */
export function endSession(
  sessions: HttpSessions,
  req: IncomingMessage,
  res: ServerResponse,
  principal: Principal,
  scope: string | undefined,
  failed: (error: unknown) => void,
): void {
  const session = sessionOf(sessions, req, res, principal, scope);
  if (session === undefined) return;
  sessions.end(session, "The session was ended by the agent.").then(
    () => {
      if (res.destroyed) return;
      res.writeHead(200, ["Content-Length", "0"]);
      res.end();
    },
    (error: unknown) => {
      failed(error);
      refuse(res, 500, ErrorCode.internal, NOT_KEPT);
    },
  );
}
