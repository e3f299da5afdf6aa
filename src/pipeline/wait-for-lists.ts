// A request may ask for a list that is old, or name what nobody is known to have: then it waits, a short time, for
// lists that are being read, or for the first try of the servers that may bring it.

import type { ListEvents, ServerHandle, Servers } from "../contracts/servers.js";
import type { AgentCall } from "../contracts/service.js";
import type { ListKind } from "../contracts/upstream.js";
import { Fault } from "../protocol/errors.js";
import { faultReply } from "../protocol/reply.js";
import { resultWithin } from "../runtime/wait.js";
import { sentence } from "../runtime/words/sentence.js";

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

/**
 * So long after it was first asked for, an agent's list waits for servers of which nothing is known yet. On a fresh
 * machine the first list would else be empty, and some agents never ask again, whatever they are told. A child is up in a
 * few hundred milliseconds; the agent that waits longest for its first tools, Codex, gives a second.
 */
const FIRST_LIST_MS = 1_000;

/**
 * Where nothing that is counted has happened, the servers are asked again after so long: agents that ask together are
 * answered by one walk. What is not counted (a list that becomes old, a stream that breaks) is seen so much later, a hundredth of the
 * age that is borne of any list.
 */
const QUIET_MS = 10;

/** A walk over the servers that found nothing to wait for. */
interface QuietWalk {
  readonly servers: readonly ServerHandle[];
  readonly kind: ListKind;
  readonly count: number;
  readonly atMs: number;
}

/** Until when a first list is worth a wait: once for each server, so that one that hangs holds up nobody for long. */
export class FirstLists {
  /** At most an entry for each server that has not been read. */
  readonly #until = new Map<string, number>();

  readonly #isEmpty: (server: string, kind: ListKind) => boolean;

  /** The last one. Nearly all lists that agents ask for are of one kind, and of all servers. */
  #quiet: QuietWalk | undefined;

  /** `isEmpty` says of which servers nothing of a list is known. */
  constructor(isEmpty: (server: string, kind: ListKind) => boolean) {
    this.#isEmpty = isEmpty;
  }

  /**
   * What a list that an agent asks for waits for: readings of those that may be old, and first tries. Undefined where it can
   * be answered at once, as nearly always: that is seen in one walk over the servers, or none where `events` has counted nothing
   * since the last.
   */
  waitFor(servers: readonly ServerHandle[], kind: ListKind, nowMs: number, events?: ListEvents): ListWait | undefined {
    if (events !== undefined && this.#isQuiet(servers, kind, nowMs, events)) return undefined;
    let readings: Promise<void>[] | undefined;
    let isUnread = this.#until.size > 0;
    for (const server of servers) {
      const reading = server.renew?.(kind, "asked", nowMs);
      if (reading !== undefined) {
        readings ??= [];
        readings.push(reading);
      }
      if (!server.listed) isUnread = true;
    }
    const tries = isUnread ? this.tries(servers, kind, nowMs) : [];
    if (tries.length > 0) return { readings: [...(readings ?? []), ...tries], withinMs: FIRST_LIST_MS };
    if (readings !== undefined) return { readings, withinMs: RENEWAL_MS };
    if (events !== undefined) this.#quiet = { servers, kind, count: events.count, atMs: nowMs };
    return undefined;
  }

  #isQuiet(servers: readonly ServerHandle[], kind: ListKind, nowMs: number, { count }: ListEvents): boolean {
    const last = this.#quiet;
    if (last === undefined || last.servers !== servers || last.kind !== kind) return false;
    return last.count === count && nowMs - last.atMs < QUIET_MS;
  }

  /** The first tries that are worth a wait now, of those servers that are known to have nothing yet. */
  tries(servers: readonly FirstTried[], kind: ListKind, nowMs: number): Promise<void>[] {
    const tries: Promise<void>[] = [];
    for (const server of servers) {
      const { name, listed } = server;
      if (listed) {
        if (this.#until.size > 0) this.#until.delete(name);
        continue;
      }
      if (!this.#isEmpty(name, kind)) continue;
      const until = this.#until.get(name) ?? nowMs + FIRST_LIST_MS;
      this.#until.set(name, until);
      if (nowMs < until) tries.push(server.firstTry);
    }
    return tries;
  }
}

interface ListWait {
  readonly readings: readonly Promise<void>[];
  readonly withinMs: number;
}

type FirstTried = Pick<ServerHandle, "name" | "listed" | "firstTry">;

/** `act` is run when the readings have ended, or when that takes too long; not for a call that was taken back. */
export function afterRenewal(
  call: AgentCall,
  readings: readonly Promise<void>[],
  act: () => void,
  withinMs = RENEWAL_MS,
): void {
  afterFirstTry(call, [renewed(readings, withinMs)], act);
}

/** The readings that these servers begin, or have under way, since somebody asks. Nearly always there are none. */
export function renewalsOf(
  servers: readonly ServerHandle[],
  kinds: readonly ListKind[],
  why: "asked" | "missed",
): Promise<void>[] {
  const readings: Promise<void>[] = [];
  for (const server of servers) {
    for (const kind of kinds) {
      const reading = server.renew?.(kind, why);
      if (reading !== undefined) readings.push(reading);
    }
  }
  return readings;
}

/** Resolves when the readings have ended, or when that takes too long. */
export async function renewed(readings: readonly Promise<void>[], withinMs = RENEWAL_MS): Promise<void> {
  await resultWithin(Promise.all(readings), withinMs);
}

/** The servers' deadlines to connect bound the wait. `act` is not run for a call that was taken back meanwhile. */
export function afterFirstTry(call: AgentCall, tries: readonly Promise<void>[], act: () => void): void {
  let cancelled = false;
  call.onCancel = (reason) => {
    cancelled = true;
    call.reply(faultReply(new Fault("cancelled", reason ?? "Cancelled.")));
  };
  call.notes?.enter("starting");
  void Promise.all(tries).then(() => {
    if (cancelled) return;
    call.notes?.enter("own");
    call.onCancel = undefined;
    act();
  });
}

/** `server`: the only one that can have it, and whose list has not been read. */
export function unknownName(servers: Servers, noun: string, name: string, server: string | undefined): Fault {
  const handle = server === undefined ? undefined : servers.get(server);
  if (handle === undefined) return new Fault("not-found", `Unknown ${noun}: ${name}`);
  const { name: owner, trouble } = handle;
  const isStopped = handle.isStopped === true;
  if (trouble === undefined && !isStopped) return new Fault("not-found", `Unknown ${noun}: ${name}`);
  const why = isStopped
    ? `is stopped. \`toolway start ${owner}\` starts it.`
    : `is not available: ${sentence(trouble ?? "")} \`toolway doctor\` says what to fix.`;
  const message = `Unknown ${noun}: ${name}. Server "${owner}" ${why}`;
  return new Fault("unavailable", message, { data: { fault: "unavailable", server: owner } });
}
