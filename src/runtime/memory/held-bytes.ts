// How many bytes the gateway holds for others at this moment, in all: bodies as they grow, half-read lines and replies
// of servers, what is kept for streams that may be resumed, what waits for a slow reader. It counts, and refuses what
// there is no room for; it does no I/O, holds no bytes itself, and does not know the time.

/**
 * What is shorter is not counted where there is one of it for each pipe (its half-read line, what waits to be written):
 * the number of pipes bounds it. And a reply that is shorter does not ask for room before it is passed on: it is
 * counted where it has to wait.
 */
export const SMALL_BYTES = 64 * 1024;

/**
 * The bound where nobody sets one. Copies on the way and what the collector has not yet freed come on top: with this,
 * resident memory stays within 256 MB of an idle gateway's. One result of the largest size fits twice.
 */
export const DEFAULT_HELD_BYTES = 128 * 1024 * 1024;

/**
 * An owner, a principal or a server, may hold so many times what it leaves free: one alone gets three quarters, and there
 * is always some room for the next, however many hold all they can. Servers share among them, in the same way, what one
 * principal could have.
 */
const HELD_TO_FREE = 3;

/**
 * How many times its bytes a message is counted while somebody keeps it: its text, what was parsed of it, and the text
 * that goes to its server.
 */
export const BODY_COST = 3;

/** So many owners that hold nothing are remembered, so that each call of one does not make its account anew. */
const MAX_IDLE_ACCOUNTS = 1_000;

/** What those are told who find no room, behind a sentence on what did not fit. */
export const NO_ROOM = "the memory for bodies and replies is in use (limits.heldBytes). Try again later.";

/** What is held for one owner. One that holds something is the only account of its owner. */
class Account {
  readonly owner: string;
  readonly isServer: boolean;
  used = 0;

  constructor(owner: string, isServer: boolean) {
    this.owner = owner;
    this.isServer = isServer;
  }
}

export class HeldBytes {
  #limit = 0;
  #used = 0;
  #usedByServers = 0;
  #refusals = 0;
  readonly #accounts = new Map<string, Account>();
  #reclaim: ((bytes: number) => void) | undefined;

  constructor(limit = DEFAULT_HELD_BYTES) {
    this.#limit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  /** What is held already stays, also where it is more than the new limit. */
  setLimit(limit: number): void {
    this.#limit = limit;
  }

  /** The most that one principal can have, when nobody else has anything. */
  get most(): number {
    return Math.floor((this.#limit * HELD_TO_FREE) / (HELD_TO_FREE + 1));
  }

  /** The largest message that it can have then: a quarter of the limit. */
  get largestBody(): number {
    return Math.floor(this.most / BODY_COST);
  }

  get used(): number {
    return this.#used;
  }

  /** It only grows: whoever looks twice sees whether there was room for all meanwhile. */
  get refusals(): number {
    return this.#refusals;
  }

  usedBy(owner: string): number {
    return this.#accounts.get(owner)?.used ?? 0;
  }

  /** Whether `bytes` more of a principal would fit. Counts as a refusal where they do not. */
  fits(principal: string, bytes: number): boolean {
    if (bytes < SMALL_BYTES) return true;
    const account = this.account(principal, false);
    const hasRoom = this.#makeRoom(account, bytes);
    if (!hasRoom) this.#refusals++;
    this.#forgetIdle(account);
    return hasRoom;
  }

  /** Takes nothing where it says no. */
  take(principal: string, bytes: number): boolean {
    return this.takeFor(this.account(principal, false), bytes);
  }

  giveBack(principal: string, bytes: number): void {
    this.giveBackFor(this.account(principal, false), bytes);
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

  /** It is good as long as something is held by it. */
  account(owner: string, isServer: boolean): Account {
    let account = this.#accounts.get(owner);
    if (account === undefined) {
      account = new Account(owner, isServer);
      this.#accounts.set(owner, account);
    }
    return account;
  }

  takeFor(account: Account, bytes: number): boolean {
    if (!this.#makeRoom(account, bytes)) {
      this.#refusals++;
      this.#forgetIdle(account);
      return false;
    }
    this.#used += bytes;
    account.used += bytes;
    if (account.isServer) this.#usedByServers += bytes;
    return true;
  }

  giveBackFor(account: Account, bytes: number): void {
    this.#used -= bytes;
    account.used -= bytes;
    if (account.isServer) this.#usedByServers -= bytes;
    this.#forgetIdle(account);
  }

  #forgetIdle({ owner, used }: Account): void {
    if (used === 0 && this.#accounts.size > MAX_IDLE_ACCOUNTS) this.#accounts.delete(owner);
  }

  #makeRoom(account: Account, bytes: number): boolean {
    const { used, isServer } = account;
    // Whoever has all that one can have makes no room at the cost of others.
    if (used + bytes > this.most) return false;
    if (isServer && lacking(used, bytes, this.most - this.#usedByServers) > 0) return false;
    const short = lacking(used, bytes, this.#limit - this.#used);
    if (short <= 0) return true;
    this.#reclaim?.(short);
    return lacking(account.used, bytes, this.#limit - this.#used) <= 0;
  }
}

/** How much `free` lacks for one that has `own` and wants `more`: afterwards it holds too much for what it leaves. */
function lacking(own: number, more: number, free: number): number {
  return Math.ceil((own + more) / HELD_TO_FREE) - (free - more);
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
  /** Undefined while it holds nothing. */
  #account: Account | undefined;
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
    if (bytes === 0) {
      this.release();
      return true;
    }
    const more = bytes - this.#bytes;
    this.#account ??= this.#held.account(this.#owner, this.#isServer);
    if (more < 0) this.#held.giveBackFor(this.#account, -more);
    else if (more > 0 && !this.#held.takeFor(this.#account, more)) {
      if (this.#bytes === 0) this.#account = undefined;
      return false;
    }
    this.#bytes = bytes;
    return true;
  }

  release(): void {
    if (this.#account !== undefined) this.#held.giveBackFor(this.#account, this.#bytes);
    this.#account = undefined;
    this.#bytes = 0;
  }
}
