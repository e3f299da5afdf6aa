// The mark of a state that was moved elsewhere, or whose move is not finished: whoever opens it is refused, because what is
// queued in it would be sent a second time. It is kept in the state itself, on disk or in an engine.

import type { DurableMap, Store } from "../../contracts/store.js";

export const MARK_MAP = "state-mark";
const MARK = "mark";
const ID = "id";

export interface StateMark {
  readonly v: 1;
  /**
   * `moved`: what is in it is elsewhere now. `leaving`, of an engine alone: it is being moved; on disk the lock says that.
   * `arriving`: a part of what is moved into it is there.
   */
  readonly state: "moved" | "leaving" | "arriving";
  /** Milliseconds since 1970. */
  readonly at: number;
  /** This state and the other one, for people. */
  readonly self: string;
  readonly other: string;
  /** Tells the other one from all others. */
  readonly otherId: string;
}

type MarkMap = DurableMap<StateMark | string>;

/** Undefined where there is none. One that a newer Toolway wrote counts as one, and is shown as what it is. */
export function markOf(store: Pick<Store, "map">): StateMark | undefined {
  const mark = (store.map(MARK_MAP) as MarkMap).get(MARK);
  return typeof mark === "object" ? mark : undefined;
}

export async function setMark(store: Pick<Store, "map">, mark: StateMark | undefined): Promise<void> {
  const map = store.map(MARK_MAP) as MarkMap;
  if (mark !== undefined) await map.put(MARK, mark);
  else if (map.get(MARK) !== undefined) await map.delete(MARK);
}

/** The id of a state, which is made when it is first moved. */
export function idOf(store: Pick<Store, "map">): string | undefined {
  const id = (store.map(MARK_MAP) as MarkMap).get(ID);
  return typeof id === "string" ? id : undefined;
}

export async function setId(store: Pick<Store, "map">, id: string): Promise<void> {
  await (store.map(MARK_MAP) as MarkMap).put(ID, id);
}

/** Throws what says where it went, and what to do. */
export async function demandUnmarked(store: Pick<Store, "map">): Promise<void> {
  const mark = markOf(store);
  if (mark === undefined) return;
  // Loaded by those alone who are refused.
  const { refusalOf, StateMarkedError } = await import("./mark-text.js");
  throw new StateMarkedError(refusalOf(mark));
}
