// The requests of the load, as bytes that are made once: only the id in them changes from call to call. Pure.

const MODERN = "2026-07-28";
const LEGACY = "2025-11-25";
/** All ids have seven digits, so that a prepared request stays as long as it is. */
export const FIRST_ID = 1_000_000;
export const LAST_ID = 9_999_999;
const ID_DIGITS = 7;
/** A small call is about as long as those that agents make. */
const FILLING = "of the bench; the quick brown fox jumps over the lazy dog";

/** What `echo` is asked to say. */
export const echoText = (id) => `call ${id} ${FILLING}`;

/**
 * @typedef {{ bytes: Buffer, idsAt: number[] }} Prepared
 * @typedef {{ url: string, headers: Record<string, string>, era: "legacy" | "modern", session?: string }} To
 */

/** @param {To} to @param {string} name @returns {Prepared} */
export function callRequest(to, name, args = { text: echoText(FIRST_ID) }) {
  return prepared(to, "tools/call", { name, arguments: args }, name);
}

/** @param {To} to @returns {Prepared} */
export function listRequest(to) {
  return anyRequest(to, "tools/list", {});
}

/** @param {To} to @returns {Prepared} */
export function anyRequest(to, method, params) {
  return prepared(to, method, params, undefined);
}

/** @param {To} to @returns {Prepared} */
export function initializeRequest(to) {
  const clientInfo = { name: "bench", version: "1" };
  return anyRequest(to, "initialize", { protocolVersion: LEGACY, capabilities: {}, clientInfo });
}

/** @param {To} to */
export function initializedNotification(to) {
  return bytesOf(to, '{"jsonrpc":"2.0","method":"notifications/initialized"}', "notifications/initialized", undefined);
}

function prepared(to, method, params, name) {
  const modern = to.era === "modern" && method !== "initialize";
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1" },
  };
  const message = { jsonrpc: "2.0", id: FIRST_ID, method, params: modern ? { ...params, _meta } : params };
  const bytes = bytesOf(to, JSON.stringify(message), method, name);
  const mark = String(FIRST_ID);
  const idsAt = [];
  const body = bytes.indexOf("\r\n\r\n");
  for (let at = bytes.indexOf(mark, body); at >= 0; at = bytes.indexOf(mark, at + 1)) idsAt.push(at);
  return { bytes, idsAt };
}

function bytesOf(to, body, method, name) {
  const { host, pathname } = new URL(to.url);
  const lines = [
    `POST ${pathname} HTTP/1.1`,
    `Host: ${host}`,
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  if (to.era === "modern") {
    lines.push(`MCP-Protocol-Version: ${MODERN}`, `Mcp-Method: ${method}`);
    if (name !== undefined) lines.push(`Mcp-Name: ${name}`);
  } else if (method !== "initialize") lines.push(`MCP-Protocol-Version: ${LEGACY}`);
  if (to.session !== undefined) lines.push(`Mcp-Session-Id: ${to.session}`);
  for (const [key, value] of Object.entries(to.headers)) lines.push(`${key}: ${value}`);
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

/** Writes the id into a prepared request, in all its places. */
export function setId({ bytes, idsAt }, id) {
  let rest = id;
  for (let digit = ID_DIGITS - 1; digit >= 0; digit--) {
    const code = 48 + (rest % 10);
    rest = (rest / 10) | 0;
    for (const at of idsAt) bytes[at + digit] = code;
  }
}
