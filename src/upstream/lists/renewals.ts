// Reads the lists of one server again when somebody asks for one that may be old. age.ts decides; lists.ts reads.

import type { ListKind } from "../../contracts/upstream.js";
import type { CallSender } from "../link/own-call.js";
import { ListAge, type ListFacts } from "./age.js";
import type { ServerLists } from "./lists.js";

export interface RenewalsOptions {
  readonly lists: ServerLists;
  readonly now: () => number;
  /** Counts the calls of agents that have ended at the server; the connection counts. `listEvents` counts for all servers. */
  readonly calls: { readonly ended: number; readonly listEvents?: { count: number } | undefined };
  /** Where to read from, without anything being started; undefined where that cannot be, or the list is not had. */
  reader(kind: ListKind): CallSender | undefined;
  read(reader: CallSender, kind: ListKind, isAwaited: boolean): Promise<void>;
  isAnnounced(kind: ListKind): boolean;
  /** Whether a gateway of ours is at the other end, which tells of each change. */
  readonly isGateway: boolean;
  /** Counts the times in which a change could have been announced and not be heard. */
  gaps(kind: ListKind): number;
}

interface KnownList {
  readonly age: ListAge;
  /** What the server said of how long it is good. */
  ttlMs: number | undefined;
}

export class Renewals {
  readonly #options: RenewalsOptions;
  readonly #known = new Map<ListKind, KnownList>();
  /** Calls that had ended at the last tick, and at the one before it. */
  #endedAtTick = 0;
  #endedBefore = 0;

  constructor(options: RenewalsOptions) {
    this.#options = options;
  }

  /** The reading that is worth a wait before the list is answered; undefined where it can be answered at once. */
  renew(kind: ListKind, why: "asked" | "missed", nowMs = this.#options.now()): Promise<void> | undefined {
    const { lists, calls, gaps } = this.#options;
    const known = this.#known.get(kind);
    if (why === "asked" && known?.age.isSurelyKnown(nowMs, calls.ended, gaps(kind), known.ttlMs)) return undefined;
    const reader = this.#options.reader(kind);
    if (reader === undefined) return undefined;
    const verdict = this.#knownOf(kind).age[why](nowMs, this.#facts(kind));
    if (verdict === "known") return undefined;
    this.#happened();
    return verdict === "wait" ? lists.pending(kind) : this.#options.read(reader, kind, true);
  }

  /** The server announces a change of the list. */
  changed(kind: ListKind): void {
    this.#happened();
    this.#knownOf(kind).age.changed();
  }

  begun(kind: ListKind): void {
    this.#happened();
    this.#knownOf(kind).age.begun(this.#options.now(), this.#options.calls.ended, this.#options.gaps(kind));
  }

  /** `ttlMs` is undefined where the server said nothing of the kind. */
  ended(kind: ListKind, isNew: boolean, ttlMs: number | undefined): void {
    this.#happened();
    const known = this.#knownOf(kind);
    known.ttlMs = ttlMs;
    known.age.ended(isNew);
  }

  failed(kind: ListKind): void {
    this.#happened();
    this.#knownOf(kind).age.ended(false);
  }

  /** Agents are told of changes by us, also where their server does not: so what calls may have changed is looked at. */
  tick(nowMs: number): void {
    this.#endedBefore = this.#endedAtTick;
    this.#endedAtTick = this.#options.calls.ended;
    for (const [kind, { age }] of this.#known) {
      const reader = this.#options.reader(kind);
      if (reader !== undefined && age.isDue(nowMs, this.#facts(kind))) void this.#options.read(reader, kind, false);
    }
  }

  #happened(): void {
    const { listEvents } = this.#options.calls;
    if (listEvents !== undefined) listEvents.count++;
  }

  #facts(kind: ListKind): ListFacts {
    const endedCalls = this.#options.calls.ended;
    const isAnnounced = this.#options.isAnnounced(kind);
    return {
      isAnnounced,
      isPushed: isAnnounced && this.#options.isGateway,
      ttlMs: this.#known.get(kind)?.ttlMs,
      endedCalls,
      calledLately: endedCalls !== this.#endedBefore,
      gaps: this.#options.gaps(kind),
    };
  }

  #knownOf(kind: ListKind): KnownList {
    let known = this.#known.get(kind);
    if (known === undefined) {
      known = { age: new ListAge(), ttlMs: undefined };
      this.#known.set(kind, known);
    }
    return known;
  }
}
