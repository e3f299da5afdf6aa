// What the gateway that runs a server says itself on the stream that carries the server's words to another gateway: which calls
// it did not begin, and how far it has read. Such a line begins with a secret of the stream, which whoever asked for the server
// drew, and which no server ever sees: none can say it.

import type { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { Fault } from "../../protocol/errors.js";

/** As many as nobody guesses. */
const SECRET_BYTES = 24;

export type GatewayWord =
  /** Nothing of the request with this id was begun, and nothing will be: whoever passed it on passes it to the next. */
  | { readonly moved: number }
  /** The last word: so many of the lines that were sent were read. What was in those behind them was never begun. */
  | { readonly taken: number };

export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}

export function wordLine(secret: string, word: GatewayWord): string {
  return secret + JSON.stringify(word);
}

/** Undefined for a line of the server's. */
export function wordIn(line: Buffer, secret: Buffer): GatewayWord | undefined {
  if (line.length <= secret.length || !line.subarray(0, secret.length).equals(secret)) return undefined;
  return JSON.parse(line.toString("utf8", secret.length)) as GatewayWord;
}

/** What a call is answered with inside of the gateway that did not begin it. */
export const MOVED = new Fault("unavailable", "Another gateway runs this server by now.", { reason: "moved" });
