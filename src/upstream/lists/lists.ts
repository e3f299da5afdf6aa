// The lists of one server: each is read by one reading at a time, and again when it changes. server.ts decides when
// what failed is tried again; read.ts reads.

import type { Freshness, Listed, ListKind } from "../../contracts/upstream.js";
import { forgetCanonical } from "../../protocol/canonical.js";
import { Fault } from "../../protocol/errors.js";
import { ErrorCode, type JsonObject } from "../../protocol/jsonrpc.js";
import { backoffCeiling } from "../../runtime/backoff.js";
import { messageOf } from "../../runtime/expected-error.js";
import { sentence } from "../../runtime/words/sentence.js";
import { type CallSender, ServerError } from "../link/own-call.js";
import { LIST_MS, readList } from "./read.js";
import { FreshnessReader } from "./rereads.js";

export const EVERY_LIST: readonly ListKind[] = ["tools", "prompts", "resources", "resourceTemplates"];

/**
 * A list is not read more often than this, however often the server announces changes. An agent notices no such delay.
 */
const PAUSE_MS = 200;
/** A list that is announced anew whenever it was read is read at growing distances, up to this one. */
const MAX_PAUSE_MS = 10_000;

export interface ServerListsEvents {
  onBegin(kind: ListKind): void;
  /** Why there is no room for a list that was read, as a sentence: then it has failed. Absent where nobody counts. */
  refusal?(kind: ListKind, items: readonly Listed[]): string | undefined;
  /**
   * `freshness` is undefined for a list that the server does not have; `promisedMs` where it did not say how long the
   * list is good.
   */
  onList(
    kind: ListKind,
    items: readonly Listed[],
    freshness: Freshness | undefined,
    promisedMs: number | undefined,
  ): void;
  /** It is told each time. */
  onFailed(kind: ListKind): void;
  /** It is told once for each reason. */
  onFault(kind: ListKind, reason: string): void;
}

/** A reading that has not begun: whoever wants one meanwhile gets the same. */
interface Wanted {
  sender: CallSender;
  /** False where the server does not have this list, so that it is empty. */
  has: boolean;
  /** Somebody waits for it: it begins without a pause. */
  isAwaited: boolean;
  readonly done: Promise<void>;
  readonly resolve: () => void;
}

/** A list that is being read, or pauses after it. */
interface Busy {
  /** Undefined while it pauses. */
  now: Wanted | undefined;
  next: Wanted | undefined;
  /** Ends the pause. */
  goOn: () => void;
}

export class ServerLists {
  readonly #events: ServerListsEvents;
  readonly #busy = new Map<ListKind, Busy>();
  readonly #read = new Set<ListKind>();
  /** The entries of each list as it was read last. Whoever is told of the list holds the same texts. */
  readonly #texts = new Map<ListKind, readonly string[]>();
  readonly #faults = new Map<ListKind, string>();
  /** Those of the faults that are nobody's answer. */
  readonly #unreached = new Set<ListKind>();
  #stopped = false;

  constructor(events: ServerListsEvents) {
    this.#events = events;
  }

  /** Every list was read, and none has failed since. */
  get complete(): boolean {
    return this.#read.size === EVERY_LIST.length && this.#faults.size === 0;
  }

  /** It was read since the gateway started, and its last reading did not fail. */
  isRead(kind: ListKind): boolean {
    return this.#read.has(kind) && !this.#faults.has(kind);
  }

  /** Lists whose last reading failed. */
  get failed(): ListKind[] {
    return [...this.#faults.keys()];
  }

  /** One of them failed because the server could not be reached, rather than by what it answered. */
  get isUnreachable(): boolean {
    return this.#unreached.size > 0;
  }

  /** Why the last reading of the list failed; undefined where it did not. */
  faultOf(kind: ListKind): string | undefined {
    return this.#faults.get(kind);
  }

  get fault(): string | undefined {
    for (const [kind, reason] of this.#faults) return sentence(`Its ${kind} could not be read: ${reason}`);
    return undefined;
  }

  /**
   * Resolves, never rejects, when a reading that began after this call has ended. `isAwaited`: somebody waits, so it
   * begins without a pause.
   */
  read(sender: CallSender, kind: ListKind, has = true, isAwaited = false): Promise<void> {
    const busy = this.#busy.get(kind);
    if (isAwaited) busy?.goOn();
    if (busy?.next !== undefined) {
      Object.assign(busy.next, { sender, has, isAwaited: busy.next.isAwaited || isAwaited });
      return busy.next.done;
    }
    let resolve = () => {};
    const done = new Promise<void>((settle) => {
      resolve = settle;
    });
    const wanted: Wanted = { sender, has, isAwaited, done, resolve };
    if (busy === undefined) void this.#loop(kind, wanted);
    else busy.next = wanted;
    return done;
  }

  /** The end of the last reading that is under way or wanted. It does not pause before it, since somebody waits. */
  pending(kind: ListKind): Promise<void> | undefined {
    const busy = this.#busy.get(kind);
    if (busy?.next !== undefined) {
      busy.next.isAwaited = true;
      busy.goOn();
    }
    return (busy?.next ?? busy?.now)?.done;
  }

  stop(): void {
    this.#stopped = true;
  }

  async #loop(kind: ListKind, first: Wanted): Promise<void> {
    const busy: Busy = { now: undefined, next: undefined, goOn: () => {} };
    this.#busy.set(kind, busy);
    let inARow = 0;
    for (let now: Wanted | undefined = first; now !== undefined; now = busy.next) {
      busy.now = now;
      busy.next = undefined;
      if (!this.#stopped) await this.#once(kind, now);
      busy.now = undefined;
      now.resolve();
      const pauseMs = backoffCeiling(inARow++, { baseMs: PAUSE_MS, maxMs: MAX_PAUSE_MS });
      if (!this.#stopped && !isAwaited(busy)) await pause(busy, pauseMs);
    }
    this.#busy.delete(kind);
  }

  async #once(kind: ListKind, { sender, has }: Wanted): Promise<void> {
    this.#events.onBegin(kind);
    try {
      if (!has) {
        this.#ended(kind, [], undefined, undefined);
        return;
      }
      const reader = new FreshnessReader();
      const signal = AbortSignal.timeout(LIST_MS);
      const onPage = (result: JsonObject) => reader.page(result);
      const items = await readList(sender, kind, signal, onPage, kind === "tools", this.#texts.get(kind));
      const refusal = this.#events.refusal?.(kind, items);
      if (refusal !== undefined) throw new Fault("limit", refusal);
      this.#ended(kind, items, reader.freshness, reader.promisedMs);
    } catch (error) {
      // Some servers declare `resources` and know nothing of templates: an empty list, not a fault.
      if (isUnknownMethod(error)) {
        this.#ended(kind, [], undefined, undefined);
      } else this.#failed(kind, error);
    }
  }

  #ended(
    kind: ListKind,
    items: readonly Listed[],
    freshness: Freshness | undefined,
    promisedMs: number | undefined,
  ): void {
    if (this.#stopped) return;
    this.#read.add(kind);
    this.#faults.delete(kind);
    this.#unreached.delete(kind);
    this.#texts.set(
      kind,
      items.map(({ json }) => json),
    );
    this.#events.onList(kind, items, freshness, promisedMs);
    for (const item of items) forgetCanonical(item);
  }

  #failed(kind: ListKind, error: unknown): void {
    const reason = messageOf(error);
    this.#events.onFailed(kind);
    if (error instanceof Fault && error.code === "unavailable") this.#unreached.add(kind);
    else this.#unreached.delete(kind);
    if (this.#stopped || this.#faults.get(kind) === reason) return;
    this.#faults.set(kind, reason);
    this.#events.onFault(kind, reason);
  }
}

function isAwaited({ next }: Busy): boolean {
  return next?.isAwaited === true;
}

/** The server has no such list, whatever it declared. */
export function isUnknownMethod(error: unknown): boolean {
  return error instanceof ServerError && error.code === ErrorCode.methodNotFound;
}

function pause(busy: Busy, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms).unref();
    busy.goOn = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}
