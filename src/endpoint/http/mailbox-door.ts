// The door of mailboxes: sharers, and those whose tokens may send to some, dial in at /mailboxes. A token may come with
// the upgrade or with the first frame; what is said there is the broker's.

import type { Principal } from "../../contracts/caller.js";
import { SHARER_ROLE } from "../../contracts/settings.js";
import { DENIED } from "../../protocol/errors.js";
import type { Socket } from "../../sockets/socket.js";
import type { Pair } from "./pair-door.js";
import { type Door, refused, type Upgrade } from "./upgrade-door.js";

export const MAILBOX_PATH = "mailboxes";

/** Each costs about as much as an idle agent. One token has three quarters of them. */
const MAX_MAILBOX_CONNECTIONS = 16_000;

/** Who takes in those who come to their mailboxes. */
export interface MailboxRegistry {
  /** Whether this one has a mailbox to offer tools in, or some to send to. */
  mayCome(principal: Principal): boolean;
  adopt(socket: Socket, principal: Principal | undefined, claim: Upgrade["claim"]): void;
  readonly pair: Pair;
}

export function mailboxDoor(registry: MailboxRegistry): Door {
  return {
    path: MAILBOX_PATH,
    role: SHARER_ROLE,
    hasNames: false,
    // An address without a path is what people type.
    isAtRoot: true,
    takesTokenLater: true,
    maxConnections: MAX_MAILBOX_CONNECTIONS,
    judge: ({ principal, isEverybody, isFor }) =>
      isEverybody || registry.mayCome(principal)
        ? undefined
        : refused(403, DENIED, `This token is for ${isFor}, and may send to no mailbox. ${howToGetIn()}`),
    howToGetIn,
    adopt: (_name, socket, { principal, claim }) => registry.adopt(socket, principal, claim),
  };
}

function howToGetIn(): string {
  return (
    'Make one with "toolway token create --id studio --role sharer" for a machine that shares its tools, or with ' +
    '"--may-send-to studio" for whoever uses them.'
  );
}
