// A request may ask for a list that is old, or name what nobody is known to have: then it waits, a short time, for
// lists that are being read, or for the first try of the servers that may bring it.

import type { Servers } from "../contracts/servers.js";
import type { AgentCall } from "../contracts/service.js";
import { Fault } from "../protocol/errors.js";
import { faultReply } from "../protocol/reply.js";

/** The first tries of those of these servers whose lists may yet bring what is asked for. */
export function unreadLists(servers: Servers, names: readonly string[]): Promise<void>[] {
  return names.flatMap((name) => {
    const server = servers.get(name);
    return server === undefined || server.listed ? [] : [server.firstTry];
  });
}

/**
 * Whoever asks waits no longer than this for lists that are being read again, and is then told what is known: agents
 * notice no such delay, and one slow server must not hold up the lists of the others.
 */
const RENEWAL_MS = 250;

/** `act` is run when the readings have ended, or when that takes too long; not for a call that was taken back. */
export function afterRenewal(call: AgentCall, readings: readonly Promise<void>[], act: () => void): void {
  afterFirstTry(call, [renewed(readings)], act);
}

/** Resolves when the readings have ended, or when that takes too long. */
export function renewed(readings: readonly Promise<void>[]): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, RENEWAL_MS);
  });
  const inTime = Promise.all(readings).then(() => clearTimeout(timer));
  return Promise.race([inTime, late]);
}

/** The servers' deadlines to connect bound the wait. `act` is not run for a call that was taken back meanwhile. */
export function afterFirstTry(call: AgentCall, tries: readonly Promise<void>[], act: () => void): void {
  let cancelled = false;
  call.onCancel = (reason) => {
    cancelled = true;
    call.reply(faultReply(new Fault("cancelled", reason ?? "Cancelled.")));
  };
  void Promise.all(tries).then(() => {
    if (cancelled) return;
    call.onCancel = undefined;
    act();
  });
}

/** `server`: the only one that can have it, and whose list has not been read. */
export function unknownName(servers: Servers, noun: string, name: string, server: string | undefined): Fault {
  const trouble = server === undefined ? undefined : servers.get(server)?.trouble;
  if (trouble === undefined) return new Fault("not-found", `Unknown ${noun}: ${name}`);
  return new Fault("unavailable", `Unknown ${noun}: ${name}. Server "${server}" is not available: ${trouble}`);
}
