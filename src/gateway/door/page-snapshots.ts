// What open pages are shown of a gateway, in parts, of which those that changed are sent. A look is made twice a second, so
// that it must not cost more the more servers there are: one in another state is looked at at once, all others in turns.

import type { GatewayStatus, ServerStatus } from "../../contracts/status.js";

export interface SnapshotSource {
  /** Of the servers that are wanted, in the order of `glances`. */
  status(isWanted: (server: string) => boolean): GatewayStatus;
  /** All servers, each with a word that is another when it is in another state. */
  glances(): Iterable<readonly [server: string, glance: string]>;
}

/** What their rows say is a hundred times as much to work out as a glance. With so many, all are looked at each time. */
export const ROWS_A_SNAPSHOT = 100;

export class PageSnapshots {
  readonly #gateway: SnapshotSource;
  #glances: ReadonlyMap<string, string> = new Map();
  /** The rows as they were last looked at: the same object until then. */
  #rows: ReadonlyMap<string, unknown> = new Map();
  /** Where the next turn begins. */
  #at = 0;

  constructor(gateway: SnapshotSource) {
    this.#gateway = gateway;
  }

  /** `isWhole`: nobody has looked for a while, and what was seen then is old. */
  take(isWhole: boolean): Record<string, unknown> {
    const glances = new Map(this.#gateway.glances());
    const wanted = isWhole ? glances : this.#wantedOf(glances);
    const status = this.#gateway.status((name) => wanted.has(name));
    const { servers, outbox, mailboxes, shares, executors, conflicts, notes, config, memory, ...gateway } = status;
    const seen = new Map(servers.map((server) => [server.name, shownServer(server)]));
    const rows = new Map<string, unknown>();
    for (const name of glances.keys()) rows.set(name, seen.get(name) ?? this.#rows.get(name));
    this.#glances = glances;
    this.#rows = rows;
    const parts: Record<string, unknown> = {
      ...{ gateway, config, conflicts, notes, shares, executors, outbox, mailboxes },
      order: [...glances.keys()],
    };
    for (const [name, row] of rows) parts[`server/${name}`] = row;
    return parts;
  }

  #wantedOf(glances: ReadonlyMap<string, string>): ReadonlySet<string> {
    const names = [...glances.keys()];
    const wanted = new Set(names.filter((name) => glances.get(name) !== this.#glances.get(name)));
    const turn = Math.min(ROWS_A_SNAPSHOT, names.length);
    for (let n = 0; n < turn; n++) wanted.add(names[(this.#at + n) % names.length] as string);
    this.#at = names.length === 0 ? 0 : (this.#at + turn) % names.length;
    return wanted;
  }
}

/** Without what changes with each call and tells nobody anything: 500 servers in use would be sent anew all the time. */
function shownServer({ cache, ...server }: ServerStatus): Omit<ServerStatus, "cache"> & Partial<ServerStatus> {
  const hasAnswered = cache !== undefined && cache.hits + cache.coalesced > 0;
  return hasAnswered ? { ...server, cache } : server;
}
