// What HTTP headers are made of (RFC 9110), and which are of one connection.

/** Of a name. */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Line breaks and other controls would end the header; beyond Latin-1 systems do not agree on what is sent. */
export const BAD_HEADER_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * Headers, in small letters, that are of one connection and not of what is sent over it: whoever passes a request or an answer
 * on has its own.
 */
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
