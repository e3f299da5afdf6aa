// The door of executors: what one says of itself in the headers of its upgrade, and who takes it over.

import type { Visitor } from "../../contracts/executors.js";
import { EXECUTOR_ROLE } from "../../contracts/settings.js";
import { DENIED } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import { MAX_CONNECTIONS } from "../../sockets/limits.js";
import { MACHINE_HEADER, SESSION_HEADER } from "../../sockets/protocol.js";
import type { Socket } from "../../sockets/socket.js";
import { type Door, type Refused, refused, type Visit } from "./upgrade-door.js";

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
    hasNames: true,
    takesTokenLater: false,
    maxConnections: MAX_CONNECTIONS,
    judge: (visit) => judge(visit, registry),
    howToGetIn,
    adopt: (name, socket, { req, principal, address }) => {
      if (principal === undefined) return;
      const session = req.headers[SESSION_HEADER];
      const sessionId = typeof session === "string" && session.length <= MAX_SESSION_CHARS ? session : undefined;
      const machine = machineOf(req.headers[MACHINE_HEADER]);
      registry.adopt(name, socket, { sessionId, address, machine, principal });
    },
  };
}

function judge({ name, principal, isEverybody, isFor }: Visit, registry: ExecutorRegistry): Refused | undefined {
  const key = JSON.stringify(name);
  if (!isEverybody && principal.role !== EXECUTOR_ROLE) {
    const why = `This token is for ${isFor} (its role is ${JSON.stringify(principal.role)}).`;
    return refused(403, DENIED, `${why} ${howToGetIn(name)}`);
  }
  if (!registry.has(name)) {
    const why = `There is no executor ${key} in the config ("executors": { ${key}: {} }).`;
    return refused(404, ErrorCode.invalidRequest, why);
  }
  const names = principal.names ?? [principal.id];
  if (!isEverybody && !names.includes(name)) {
    const good = names.map((one) => JSON.stringify(one)).join(", ");
    return refused(403, DENIED, `This token is good for ${good}, and not for ${key}. ${howToGetIn(name)}`);
  }
  if (isEverybody && !registry.isOpen(name)) {
    const why = "Nobody is asked for a token here (--no-auth), so that anybody could be this executor.";
    const setting = `"executors": { ${key}: { "noAuth": true } }`;
    return refused(
      403,
      DENIED,
      `${why} Start the gateway with tokens, or say in the config that it may be so: ${setting}.`,
    );
  }
  return undefined;
}

function howToGetIn(name: string): string {
  const id = /^[\w.-]+$/.test(name) ? name : "office";
  return `Make one with "toolway token create --id ${id} --role ${EXECUTOR_ROLE}", and give it to the executor as TOOLWAY_TOKEN.`;
}

function machineOf(header: string | string[] | undefined): string | undefined {
  try {
    const name = typeof header === "string" ? decodeURIComponent(header) : "";
    return MACHINE_NAME.test(name) ? name : undefined;
  } catch {
    return undefined;
  }
}
