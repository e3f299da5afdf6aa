// How a server says that it has forgotten our session. The protocol has a status for it, 404, and the SDKs a code; this
// is what is left: SDKs that refuse with another status, and can be known by their words alone.

import { SESSION_NOT_FOUND } from "../../protocol/errors.js";

export interface LostSessionPhrase {
  readonly sdk: string;
  /** The versions that say it. */
  readonly versions: string;
  readonly status: 400 | 401;
  /** How the message of the JSON-RPC error begins, or the body where it is plain text. */
  readonly says: string;
}

/**
 * Servers are made from the examples of the TypeScript SDK, and add words of their own behind the phrase. That a header
 * is missing is not among these: a new session would not bring it back.
 */
export const LOST_SESSION_PHRASES: readonly LostSessionPhrase[] = [
  {
    sdk: "TypeScript SDK (@modelcontextprotocol/sdk)",
    versions: "1.10 and later",
    status: 400,
    says: "Bad Request: Server not initialized",
  },
  {
    sdk: "TypeScript SDK (@modelcontextprotocol/sdk), examples",
    versions: "1.10 and later",
    status: 400,
    says: "Bad Request: No valid session ID provided",
  },
  {
    sdk: "TypeScript SDK (@modelcontextprotocol/sdk), examples",
    versions: "1.10 and later",
    status: 400,
    says: "Invalid or missing session ID",
  },
  {
    sdk: "TypeScript SDK (@modelcontextprotocol/sdk), examples of HTTP+SSE",
    versions: "1.0 and later",
    status: 400,
    says: "No transport found for sessionId",
  },
  {
    sdk: "Python SDK (mcp)",
    versions: "1.8 to 1.25",
    status: 400,
    says: "Bad Request: No valid session ID provided",
  },
  { sdk: "Rust SDK (rmcp)", versions: "0.2 to 0.16", status: 401, says: "Unauthorized: Session not found" },
  { sdk: "mcp-go", versions: "0.30 to 0.43; HTTP+SSE in all", status: 400, says: "Invalid session ID" },
];

/**
 * To be asked of refusals of a request that carried a session, and that do not name that request: what carries its id
 * is an answer, and a tool's own complaint about some session must not restart the connection.
 */
export function saysSessionLost(status: number, code: number, complaint: string): boolean {
  if (status < 400 || status > 499) return false;
  if (code === SESSION_NOT_FOUND) return true;
  const said = complaint.toLowerCase();
  return LOST_SESSION_PHRASES.some((phrase) => phrase.status === status && beginsWith(said, phrase.says.toLowerCase()));
}

/** "Invalid session IDs are …" is another sentence. */
function beginsWith(said: string, phrase: string): boolean {
  return said.startsWith(phrase) && !/^[a-z0-9]/.test(said.slice(phrase.length));
}
