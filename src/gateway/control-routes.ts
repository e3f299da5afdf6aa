// What the operator can ask of a running gateway: the routes behind the control socket.

import type { Duplex } from "node:stream";
import { ControlError, type ControlRoutes, type ControlServer, jsonLines, serveControl } from "../control/server.js";
import { claimSocketPath } from "../control/socket-path.js";
import { Fault, toRpcError } from "../protocol/errors.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { systemClock } from "../runtime/clock.js";
import { parseExpires } from "../tokens/tokens.js";
import type { Gateway } from "./gateway.js";
import { pinRoutes, serverRoutes } from "./operator-routes.js";
import { CallError } from "./program-call.js";

/** Joined by `toolway stdio`: the socket then carries an agent's lines. */
export const STDIO_UPGRADE = "toolway-stdio";

export function openControl(gateway: Gateway, stateDir: string, env: NodeJS.ProcessEnv): Promise<ControlServer> {
  return serveControl({
    path: claimSocketPath(stateDir, env),
    routes: routesOf(gateway),
    upgrades: {
      // The socket is half-open once the agent has gone: its other half is ours to end.
      [STDIO_UPGRADE]: (socket: Duplex) => void gateway.serveStdio(socket, socket).finally(() => socket.end()),
    },
  });
}

function routesOf(gateway: Gateway): ControlRoutes {
  const { tokens } = gateway.state;
  return {
    ...pinRoutes(gateway.pins),
    ...serverRoutes({
      get names() {
        return gateway.servers.names;
      },
      reload: (name) => gateway.reloadServer(name),
      startServer: (name) => gateway.startServer(name),
      stopServer: (name) => gateway.stopServer(name),
    }),
    "GET /status": () => gateway.status(),
    "GET /tools": () => ({ tools: gateway.tools() }),
    "POST /call": ({ body, signal }) => call(gateway, fields(body), signal),
    "POST /reload": async () => {
      await gateway.reload();
      return gateway.status();
    },
    "GET /tokens": () => ({
      tokens: tokens.list().map(({ id, role, source, created, expires }) => ({
        id,
        role,
        source,
        createdAt: isoTime(created),
        expiresAt: isoTime(expires),
      })),
    }),
    "GET /tokens/default": () => ({ token: tokens.defaultToken() }),
    "POST /tokens": async ({ body }) => {
      const { id, role, expires } = fields(body);
      const nowMs = systemClock.wall();
      const end = expires === undefined ? undefined : parseExpires(text(expires, "expires"), nowMs);
      return { token: await tokens.create({ id: text(id, "id"), role: text(role, "role"), expires: end }, nowMs) };
    },
    "DELETE /tokens/:id": async ({ params }) => {
      await tokens.revoke(params["id"] ?? "");
      return { revoked: params["id"] };
    },
    "GET /state/dump": () => jsonLines(gateway.state.dump()),
  };
}

/** A call's own failure is an answer, not a failure of the control request. */
async function call(gateway: Gateway, { tool, arguments: args }: JsonObject, signal: AbortSignal): Promise<JsonObject> {
  if (args !== undefined && !isObject(args)) throw new ControlError("invalid", '"arguments" is an object.');
  try {
    return { result: await gateway.call(text(tool, "tool"), args, { signal }) };
  } catch (error) {
    if (error instanceof CallError) return { error: { code: error.code, message: error.message, data: error.data } };
    if (error instanceof Fault) return { error: toRpcError(error) };
    throw error;
  }
}

function fields(body: unknown): JsonObject {
  if (!isObject(body)) throw new ControlError("invalid", "The body is a JSON object.");
  return body;
}

function text(value: unknown, key: string): string {
  if (typeof value !== "string") throw new ControlError("invalid", `"${key}" is a string.`);
  return value;
}

function isoTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
