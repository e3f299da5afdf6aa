// What the paths of the endpoint stand for.

interface Route {
  readonly kind: "mcp" | "sse" | "messages";
  readonly scope: string | undefined;
}

const MCP: Route = { kind: "mcp", scope: undefined };
const SSE: Route = { kind: "sse", scope: undefined };
const MESSAGES: Route = { kind: "messages", scope: undefined };

/** Undefined where nothing is. */
export function routeOf(path: string): Route | undefined {
  if (path === "/mcp" || path === "/mcp/") return MCP;
  if (path === "/sse" || path === "/sse/") return SSE;
  if (path === "/messages") return MESSAGES;
  const match = /^\/(mcp|sse)\/([^/]+)\/?$/.exec(path);
  if (match?.[2] === undefined) return undefined;
  try {
    return { kind: match[1] === "mcp" ? "mcp" : "sse", scope: decodeURIComponent(match[2]) };
  } catch {
    return undefined;
  }
}
