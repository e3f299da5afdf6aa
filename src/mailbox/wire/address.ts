// Addresses: of a mailbox, which is the id of a token, and behind a `#` which of its inboxes (a token's id has no `#`); and
// of the broker that keeps it.

import { FrameError } from "./frame-error.js";
import { MAX_ID_BYTES, MAX_ID_CHARS } from "./limits.js";

/** What the inbox of a gateway that uses a machine's tools begins with; what it draws for itself follows. */
export const WORKER_INBOX = "#mcp-";

/**
 * The address that a hello means: a worker knows its token, and not always whose it is, so what begins with # is behind the
 * token's own id. Throws a FrameError where both together are too long: every message to it would be refused.
 */
export function wholeAddress(id: string, given: string): string {
  if (!given.startsWith("#")) return given;
  const address = id + given;
  if (!isTooLong(address)) return address;
  const room = MAX_ID_CHARS - given.length;
  throw new FrameError(
    `the address of this mailbox has ${[...address].length} characters (the id of the token, and "${given}"), of ${MAX_ID_CHARS} ` +
      `and ${MAX_ID_BYTES} bytes: make a token with an id of ${room} at most`,
  );
}

/** Characters are counted as people do: what UTF-16 writes in two is one. Only what has few bytes is taken apart for that. */
export function isTooLong(id: string): boolean {
  if (id.length <= MAX_ID_CHARS) return false;
  return Buffer.byteLength(id) > MAX_ID_BYTES || [...id].length > MAX_ID_CHARS;
}

/** The id of the token whose address it is. */
export function ownerOf(address: string): string {
  const end = address.indexOf("#");
  return end < 0 ? address : address.slice(0, end);
}

/** Where a broker is reached, from where its gateway listens: `ws://127.0.0.1:7440`, of the endpoint `http://127.0.0.1:7440/mcp`. */
export function brokerUrlOf(endpoint: string): string {
  return endpoint.replace(/^http/, "ws").replace(/\/mcp$/, "");
}
