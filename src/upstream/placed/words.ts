// What two gateways say to each other on the stream that carries a server's words from the one that runs it to the other. The one
// that runs it says which calls it did not begin, and how far it has read: such a line begins with a secret of the stream, which
// whoever asked for the server drew, and which no server ever sees: none can say it. The other says whose session a request is of.

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

/**
 * Whose session a request is of: a server that does not say which call makes it ask is answered by the one session that is
 * calling, so sessions must be told apart where it runs. It stands last in the request, beside its `params`, and the server
 * never sees it.
 */
const SESSION = "toolway/session";
const SESSION_MARK = new RegExp(`,"${SESSION}":"([^"\\\\]{1,1024})"\\}$`);
/** Where the mark is looked for. */
const MAX_MARK_CHARS = 1_100;

export function withSession(text: string, sessionKey: string): string {
  return `${text.slice(0, text.lastIndexOf("}"))},"${SESSION}":"${encodeURIComponent(sessionKey)}"}`;
}

/** The request as it was, and whose it is. Undefined where nobody said that. */
export function takeSession(text: string): { readonly text: string; readonly sessionKey: string } | undefined {
  const found = SESSION_MARK.exec(text.slice(-MAX_MARK_CHARS));
  if (found === null) return undefined;
  const [whole, sessionKey = ""] = found;
  return { text: `${text.slice(0, text.length - whole.length)}}`, sessionKey: decodeURIComponent(sessionKey) };
}

export function isSessionMark(member: string): boolean {
  return member === SESSION;
}
