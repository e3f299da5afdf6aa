// How much waits in the outbox, in all, by server and by principal, and whether there is room for one more.

import type { OutboxLimits } from "../../contracts/outbox.js";
import type { KeptWrite } from "./lane.js";
import { SHARE_OF_PRINCIPAL, SHARE_OF_SERVER } from "./limits.js";

interface Used {
  writes: number;
  bytes: number;
}

export class Room {
  limits: OutboxLimits;
  readonly #all: Used = { writes: 0, bytes: 0 };
  /** By server and by principal; one that has nothing here has no entry. */
  readonly #servers = new Map<string, Used>();
  readonly #principals = new Map<string, Used>();
  /** What waits, in the order in which it came, or came back. */
  readonly #waiting = new Set<KeptWrite>();

  constructor(limits: OutboxLimits) {
    this.limits = limits;
  }

  get writes(): number {
    return this.#all.writes;
  }

  /** Why there is none, with the bound's name; undefined where there is. */
  refusal(server: string, principal: string, bytes: number): string | undefined {
    const own = this.#principals.get(principal);
    const ofServer = this.#servers.get(server);
    return (
      over(this.#all, bytes, 1, this.limits, "the outbox holds") ??
      over(ofServer, bytes, SHARE_OF_SERVER, this.limits, `the outbox holds for server "${server}"`) ??
      over(own, bytes, SHARE_OF_PRINCIPAL, this.limits, "the outbox holds of one principal")
    );
  }

  get oldest(): KeptWrite | undefined {
    for (const write of this.#waiting) return write;
    return undefined;
  }

  take(write: KeptWrite): void {
    const { server, principal, bytes } = write.facts;
    this.#waiting.add(write);
    add(this.#all, bytes);
    add(usedOf(this.#servers, server), bytes);
    add(usedOf(this.#principals, principal.id), bytes);
  }

  leave(write: KeptWrite): void {
    const { server, principal, bytes } = write.facts;
    this.#waiting.delete(write);
    this.#all.writes--;
    this.#all.bytes -= bytes;
    leaveOne(this.#servers, server, bytes);
    leaveOne(this.#principals, principal.id, bytes);
  }
}

/** `share`: which part of the limits this is. */
function over(
  used: Used | undefined,
  bytes: number,
  share: number,
  { maxWrites, maxBytes }: OutboxLimits,
  what: string,
): string | undefined {
  const most = { writes: Math.floor(maxWrites * share), bytes: Math.floor(maxBytes * share) };
  const of = (key: string) => (share === 1 ? `("outbox.${key}")` : `(${share * 100} % of "outbox.${key}")`);
  if ((used?.writes ?? 0) + 1 > most.writes) return `${what} ${most.writes} writes at most ${of("maxWrites")}`;
  if ((used?.bytes ?? 0) + bytes > most.bytes) return `${what} ${most.bytes} bytes at most ${of("maxBytes")}`;
  return undefined;
}

function add(used: Used, bytes: number): void {
  used.writes++;
  used.bytes += bytes;
}

function usedOf(all: Map<string, Used>, name: string): Used {
  let used = all.get(name);
  if (used === undefined) {
    used = { writes: 0, bytes: 0 };
    all.set(name, used);
  }
  return used;
}

function leaveOne(all: Map<string, Used>, name: string, bytes: number): void {
  const used = all.get(name);
  if (used === undefined) return;
  used.bytes -= bytes;
  if (--used.writes === 0) all.delete(name);
}
