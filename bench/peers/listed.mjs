// Waits until a peer lists its server's tools: then that server is ready for a call. Knows no peer.

/** Peers that load a few hundred modules need some seconds on a busy machine; after that, one is taken as failed. */
const READY_MS = 60_000;
const POLL_MS = 50;

/**
 * Resolves when the peer lists every one of `names`.
 * @param {ReturnType<typeof import("../processes.mjs").startNode>} started
 */
export async function listed(started, url, era, names) {
  const { child, output } = started;
  const end = Date.now() + READY_MS;
  let headers;
  while (child.exitCode === null && child.signalCode === null && Date.now() < end) {
    try {
      headers ??= era === "modern" ? {} : await openSession(url);
      const tools = await (era === "modern" ? listModern(url) : listLegacy(url, headers));
      const there = new Set(tools.map(({ name }) => name));
      if (names.every((name) => there.has(name))) return headers;
    } catch {
      // It does not listen yet, or its server is not there yet.
    }
    await new Promise((resolve) => void setTimeout(resolve, POLL_MS));
  }
  throw new Error(`It ended by itself, or lists no ${names.join(", ")}: ${output()}`);
}

/** Some peers start a process for each session: the one of `listed` shall not be in the measurement. */
export async function closeSession(url, headers) {
  if (headers["mcp-session-id"] === undefined) return;
  await fetch(url, { method: "DELETE", headers }).catch(() => undefined);
}

const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const CLIENT = { name: "bench", version: "1" };

async function post(url, headers, message) {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  const signal = AbortSignal.timeout(READY_MS);
  const res = await fetch(url, { method: "POST", headers: { ...HEADERS, ...headers }, body, signal });
  const text = await res.text();
  const json = text.startsWith("{") ? text : /^data: ?(\{.*)$/m.exec(text)?.[1];
  return { session: res.headers.get("mcp-session-id"), result: json === undefined ? {} : JSON.parse(json).result };
}

async function openSession(url) {
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: CLIENT };
  const { session, result } = await post(url, {}, { id: 1, method: "initialize", params });
  const headers = { "mcp-protocol-version": result.protocolVersion, ...(session && { "mcp-session-id": session }) };
  await post(url, headers, { method: "notifications/initialized" });
  return headers;
}

async function listLegacy(url, headers) {
  const { result } = await post(url, headers, { id: 2, method: "tools/list", params: {} });
  return result.tools;
}

async function listModern(url) {
  const revision = "2026-07-28";
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": revision,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
  };
  const headers = { "mcp-protocol-version": revision, "mcp-method": "tools/list" };
  const { result } = await post(url, headers, { id: 1, method: "tools/list", params: { _meta } });
  return result.tools;
}
