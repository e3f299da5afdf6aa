// Answers over HTTP that are no replies of the service: refusals with their reasons, and small bodies.

import type { ServerResponse } from "node:http";
import { ErrorCode } from "../../protocol/jsonrpc.js";

export function sendJson(res: ServerResponse, status: number, body: string, headers: readonly string[] = []): void {
  if (res.headersSent || res.destroyed) return;
  const bytes = Buffer.from(body);
  const length = String(bytes.length);
  res.writeHead(status, ["Content-Type", "application/json", "Content-Length", length, ...headers]);
  res.end(bytes);
}

/**
 * A short body of JSON, given a character a byte: it leaves together with the head, as one string in one write. Given to
 * end() it would be two pieces, of which one is empty, and Node would gather them anew.
 */
export function sendLatin1(res: ServerResponse, status: number, text: string): void {
  res.writeHead(status, ["Content-Type", "application/json", "Content-Length", String(text.length)]);
  res.cork();
  res.write(text, "latin1");
  res.uncork();
  res.end();
}

/** A JSON-RPC error; `id` is the JSON text of the request's id where there is one. */
export function refuse(
  res: ServerResponse,
  status: number,
  code: number,
  message: string,
  headers: readonly string[] = [],
  id = "null",
): void {
  const error = JSON.stringify({ code, message });
  sendJson(res, status, `{"jsonrpc":"2.0","id":${id},"error":${error}}`, headers);
}

export function refuseMethod(res: ServerResponse, allow: string): void {
  refuse(res, 405, ErrorCode.invalidRequest, `Use ${allow} here.`, ["Allow", allow]);
}

const ACCEPTED: string[] = ["Content-Length", "0"];

/** For notifications and responses: taken in, and there is nothing to say. */
export function accepted(res: ServerResponse): void {
  if (res.headersSent || res.destroyed) return;
  res.writeHead(202, ACCEPTED);
  res.end();
}
