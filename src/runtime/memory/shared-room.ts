// Room for what several parts of one process keep in memory together, by whom it is of: in all, and so that no owner has more than
// half. It counts, and says what there is no room for; it holds nothing itself.

/** No owner has more of it: whoever fills its half leaves the other to the rest. */
const SHARE = 1 / 2;

/** It is full, or the owner's half of it is. */
export type NoSharedRoom = "room" | "half";

export class SharedRoom {
  readonly #limit: () => number;
  #used = 0;
  readonly #byOwner = new Map<string, number>();

  /** `limit` is asked each time: it may be changed while something is held. */
  constructor(limit: () => number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  usedBy(owner: string): number {
    return this.#byOwner.get(owner) ?? 0;
  }

  get limit(): number {
    return this.#limit();
  }

  get half(): number {
    return this.#limit() * SHARE;
  }

  /** For one part, whose things may all be gone at once. */
  open(): RoomAccount {
    return new RoomAccount(this);
  }

  /** Undefined where there is room. `isOwed`: it was asked for, and does not count as its owner's alone. */
  refusal(owner: string, bytes: number, isOwed: boolean): NoSharedRoom | undefined {
    if (this.#used + bytes > this.limit) return "room";
    return !isOwed && this.usedBy(owner) + bytes > this.half ? "half" : undefined;
  }

  change(owner: string, bytes: number): void {
    this.#used += bytes;
    add(this.#byOwner, owner, bytes);
  }
}

/** What one part has of it. */
export class RoomAccount {
  readonly room: SharedRoom;
  readonly #byOwner = new Map<string, number>();
  #isClosed = false;

  constructor(room: SharedRoom) {
    this.room = room;
  }

  /** So many bytes more, or less. */
  change(owner: string, bytes: number): void {
    if (this.#isClosed) return;
    add(this.#byOwner, owner, bytes);
    this.room.change(owner, bytes);
  }

  /** Nothing of it is held here any more, whatever is said of it later. */
  close(): void {
    this.#isClosed = true;
    for (const [owner, bytes] of this.#byOwner) this.room.change(owner, -bytes);
    this.#byOwner.clear();
  }
}

function add(counts: Map<string, number>, owner: string, bytes: number): void {
  const count = (counts.get(owner) ?? 0) + bytes;
  if (count === 0) counts.delete(owner);
  else counts.set(owner, count);
}
