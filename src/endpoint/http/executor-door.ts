// The door of executors: what one says of itself in the headers of its upgrade, and who takes it over.

import type { Visitor } from "../../contracts/executors.js";
import { MAX_CONNECTIONS } from "../../sockets/limits.js";
import { MACHINE_HEADER, SESSION_HEADER } from "../../sockets/protocol.js";
import type { Socket } from "../../sockets/socket.js";
import type { Door } from "./upgrade-door.js";

/** The role of a token that lets an executor in, and nobody else. */
export const EXECUTOR_ROLE = "executor";

export const EXECUTOR_PATH = "executors";

/** No id of a conversation is longer. */
const MAX_SESSION_CHARS = 256;

/** Names of machines look like host names; what else is said there is shown to nobody. */
const MACHINE_NAME = /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,252}$/u;

/** Who knows the executors of the config, and takes in those who come. */
export interface ExecutorRegistry {
  has(name: string): boolean;
  /** Whether the config lets it in without a token, where nobody is asked for one. */
  isOpen(name: string): boolean;
  adopt(name: string, socket: Socket, visitor: Visitor): void;
}

export function executorDoor(registry: ExecutorRegistry): Door {
  return {
    path: EXECUTOR_PATH,
    role: EXECUTOR_ROLE,
    maxConnections: MAX_CONNECTIONS,
    has: (name) => registry.has(name),
    isOpen: (name) => registry.isOpen(name),
    adopt: (name, socket, { req, principal, address }) => {
      const session = req.headers[SESSION_HEADER];
      const sessionId = typeof session === "string" && session.length <= MAX_SESSION_CHARS ? session : undefined;
      const machine = machineOf(req.headers[MACHINE_HEADER]);
      registry.adopt(name, socket, { sessionId, address, machine, principal });
    },
  };
}

function machineOf(header: string | string[] | undefined): string | undefined {
  try {
    const name = typeof header === "string" ? decodeURIComponent(header) : "";
    return MACHINE_NAME.test(name) ? name : undefined;
  } catch {
    return undefined;
  }
}
