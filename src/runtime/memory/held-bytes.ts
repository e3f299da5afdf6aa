// How many bytes the gateway holds for others at this moment, in all: bodies as they grow, half-read lines and replies
// of servers, what is kept for streams that may be resumed, what waits for a slow reader. It counts, and refuses what
// there is no room for; it does no I/O, holds no bytes itself, and does not know the time.

/**
 * What is shorter is not counted: the bounds on connections and calls hold it, and it is most of all that comes. From
 * here on a thing is counted whole.
 */
export const SMALL_BYTES = 64 * 1024;

/**
 * The bound where nobody sets one. Copies on the way and what the collector has not yet freed come on top: with this,
 * resident memory stays within 256 MB of an idle gateway's. One result of the largest size fits twice.
 */
export const DEFAULT_HELD_BYTES = 128 * 1024 * 1024;

/**
 * One principal alone never has more than this share, and neither have all servers together, so that there is room for
 * others. Of the servers' share one server has the same part, which its largest answer fits into.
 */
const OWN_SHARE = 3 / 4;

/** What those are told who find no room, behind a sentence on what did not fit. */
export const NO_ROOM = "the memory for bodies and replies is in use (limits.heldBytes). Try again later.";

export class HeldBytes {
  #limit = 0;
  #share = 0;
  #serverShare = 0;
  #used = 0;
  #usedByServers = 0;
  #refusals = 0;
  /** An owner that holds nothing has no entry. */
  readonly #owners = new Map<string, number>();
  #reclaim: ((bytes: number) => void) | undefined;

  constructor(limit = DEFAULT_HELD_BYTES) {
    this.setLimit(limit);
  }

  get limit(): number {
    return this.#limit;
  }

  /** What is held already stays, also where it is more than the new limit. */
  setLimit(limit: number): void {
    this.#limit = limit;
    this.#share = Math.floor(limit * OWN_SHARE);
    this.#serverShare = Math.floor(this.#share * OWN_SHARE);
  }

  get used(): number {
    return this.#used;
  }

  /** It only grows: whoever looks twice sees whether there was room for all meanwhile. */
  get refusals(): number {
    return this.#refusals;
  }

  usedBy(owner: string): number {
    return this.#owners.get(owner) ?? 0;
  }

  /** Whether `bytes` more would fit. Counts as a refusal where they do not. */
  fits(owner: string, bytes: number): boolean {
    if (bytes < SMALL_BYTES || this.#makeRoom(owner, bytes, false)) return true;
    this.#refusals++;
    return false;
  }

  /** An owner is a principal, or a server. Takes nothing where it says no. */
  take(owner: string, bytes: number, isServer = false): boolean {
    if (!this.#makeRoom(owner, bytes, isServer)) {
      this.#refusals++;
      return false;
    }
    this.#used += bytes;
    if (isServer) this.#usedByServers += bytes;
    this.#owners.set(owner, this.usedBy(owner) + bytes);
    return true;
  }

  giveBack(owner: string, bytes: number, isServer = false): void {
    const left = this.usedBy(owner) - bytes;
    this.#used -= bytes;
    if (isServer) this.#usedByServers -= bytes;
    if (left > 0) this.#owners.set(owner, left);
    else this.#owners.delete(owner);
  }

  /** For one thing of a principal, which grows and goes. */
  holder(principal: string): Holder {
    return new Holder(this, principal, false);
  }

  /** The same of a server. */
  serverHolder(server: string): Holder {
    // No principal has such an id: a server and a principal of one name are two owners.
    return new Holder(this, `server ${server}`, true);
  }

  /** `reclaim` is asked to give back so many bytes where there is no room for what is needed now. */
  onShortage(reclaim: (bytes: number) => void): void {
    this.#reclaim = reclaim;
  }

  #makeRoom(owner: string, bytes: number, isServer: boolean): boolean {
    if (this.usedBy(owner) + bytes > (isServer ? this.#serverShare : this.#share)) return false;
    if (isServer && this.#usedByServers + bytes > this.#share) return false;
    const short = this.#used + bytes - this.#limit;
    if (short <= 0) return true;
    this.#reclaim?.(short);
    return this.#used + bytes <= this.#limit;
  }
}

/** For those who hold things outside a gateway, where nothing else is counted. */
export function ownHolder(): Holder {
  return new HeldBytes().holder("");
}

/** One thing that is held: it says how large it is now, and is told whether there is room for that. */
export class Holder {
  readonly #held: HeldBytes;
  readonly #owner: string;
  readonly #isServer: boolean;
  #bytes = 0;
  #claims = 0;

  constructor(held: HeldBytes, owner: string, isServer: boolean) {
    this.#held = held;
    this.#owner = owner;
    this.#isServer = isServer;
  }

  /** Somebody keeps the thing; it is released when all who do have dropped it. */
  claim(): void {
    this.#claims++;
  }

  drop(): void {
    if (--this.#claims <= 0) this.release();
  }

  /** Releases what nobody has claimed: it was looked at, and goes. */
  releaseUnclaimed(): void {
    if (this.#claims === 0) this.release();
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** It has `bytes` now. False where there is no room for them; then it is counted as it was before. */
  hold(bytes: number): boolean {
    const counted = bytes < SMALL_BYTES ? 0 : bytes;
    const more = counted - this.#bytes;
    if (more === 0) return true;
    if (more < 0) this.#held.giveBack(this.#owner, -more, this.#isServer);
    else if (!this.#held.take(this.#owner, more, this.#isServer)) return false;
    this.#bytes = counted;
    return true;
  }

  release(): void {
    if (this.#bytes > 0) this.#held.giveBack(this.#owner, this.#bytes, this.#isServer);
    this.#bytes = 0;
  }
}
