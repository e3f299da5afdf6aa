// Routes of the control socket about pins, and about one server: what they take and answer. What they do is given.

import { type OwnToolName, ownToolName } from "../contracts/names.js";
import type { AcceptedPin, PinDiff, PinLine } from "../contracts/pins.js";
import { ControlError, type ControlRequest, type ControlRoutes } from "../control/server.js";

interface Pins {
  list(): PinLine[];
  diff(server: string, tool?: OwnToolName): PinDiff[];
  accept(server: string, tool?: OwnToolName, hash?: string): Promise<AcceptedPin[]>;
}

/** `GET /pins`, `GET /pins/diff?server=…&tool=…`, `POST /pins/accept` with `{server, tool?, hash?}`. */
export function pinRoutes(pins: Pins): ControlRoutes {
  return {
    "GET /pins": () => ({ pins: pins.list() }),
    "GET /pins/diff": ({ query }) => {
      const server = query.get("server");
      if (server === null) throw new ControlError("invalid", '"server" is missing.');
      return { diffs: pins.diff(server, toolOrNone(query.get("tool") ?? undefined)) };
    },
    "POST /pins/accept": async ({ body }) => {
      const { server, tool, hash } = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
      if (typeof server !== "string") throw new ControlError("invalid", '"server" is a string.');
      return { accepted: await pins.accept(server, toolOrNone(textOrNone(tool, "tool")), textOrNone(hash, "hash")) };
    },
  };
}

interface Servers {
  readonly names: readonly string[];
  /** Each resolves when it is under way; `status` says what came of it. */
  reload(name: string): void | Promise<void>;
  stopServer(name: string): void | Promise<void>;
  startServer(name: string): void | Promise<void>;
}

/** `POST /servers/:server/reload`, `…/stop`, `…/start`. */
export function serverRoutes(servers: Servers): ControlRoutes {
  const route = (act: (name: string) => void | Promise<void>) => async (request: ControlRequest) => {
    const server = request.params["server"] ?? "";
    if (!servers.names.includes(server)) throw new ControlError("not-found", `There is no server "${server}".`);
    await act(server);
    return { server };
  };
  return {
    "POST /servers/:server/reload": route((name) => servers.reload(name)),
    "POST /servers/:server/stop": route((name) => servers.stopServer(name)),
    "POST /servers/:server/start": route((name) => servers.startServer(name)),
  };
}

function toolOrNone(name: string | undefined): OwnToolName | undefined {
  return name === undefined ? undefined : ownToolName(name);
}

function textOrNone(value: unknown, key: string): string | undefined {
  if (value !== undefined && typeof value !== "string") throw new ControlError("invalid", `"${key}" is a string.`);
  return value;
}
