// Server-sent events as bytes. Knows no sessions and no JSON-RPC beyond that a JSON text may stand on one line.

import { oneLine } from "../session/one-line.js";

/** A client that honours `retry` waits so long before it comes back, so that it comes soon and does not hammer. */
const RETRY_MS = 1000;

export const KEEP_ALIVE = ": keep-alive\n\n";

export const EVENT_STREAM_HEADERS: readonly string[] = [
  "Content-Type",
  "text/event-stream",
  "Cache-Control",
  "no-cache, no-transform",
  // Tells nginx not to gather events before it passes them on.
  "X-Accel-Buffering",
  "no",
];

/** What stands before a message in its event; EVENT_END stands behind it. */
export function eventHead(id: string | undefined): string {
  return id === undefined ? "event: message\ndata: " : `event: message\nid: ${id}\ndata: `;
}

export const EVENT_END = "\n\n";

export function messageEvent(id: string | undefined, text: string): string {
  return eventHead(id) + oneLine(text) + EVENT_END;
}

/** The event that makes a stream resumable before its first message. */
export function primingEvent(id: string): string {
  return `id: ${id}\nretry: ${RETRY_MS}\ndata: \n\n`;
}
