// What names and values of HTTP headers are made of (RFC 9110).

export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Line breaks and other controls would end the header; beyond Latin-1 systems do not agree on what is sent. */
export const BAD_HEADER_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
