// Headers that are of one connection, not of what is sent over it: whoever passes a request or an answer on has its own.

/** In small letters. */
export const OF_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
