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
 * The bound where nobody sets one. Copies on the way, connections, and what the collector or the C library has not given
 * back come on top: with this, resident memory stays within 256 MB of an idle gateway's, also where it is filled with
 * bodies, calls and replies in turn. One result of the largest size fits twice.
 */
export const DEFAULT_HELD_BYTES = 128 * 1024 * 1024;

/**
 * An owner, a principal or a server, may hold so many times what it leaves free: one alone gets three quarters, and there
 * is always some room for the next, however many hold all they can. Servers share among them, in the same way, what one
 * principal could have.
 */
const HELD_TO_FREE = 3;

/**
 * What a principal has that is shorter counts as small, and all of that together has half of the limit: by the thousand
 * such things bring connections with them, and leave holes in the memory where they were. The other half is for what is
 * large, of which there are few. A limit of 64 MiB or less is not parted: that is what small things may have anyway.
 */
const LARGE_BYTES = 1024 * 1024;
const SHARE_OF_SMALL = 1 / 2;
const LEAST_FOR_SMALL = 64 * 1024 * 1024;

/**
 * How many times its bytes a message is counted while somebody keeps it: its text, what was parsed of it, and the text
 * that goes to its server.
 */
export const BODY_COST = 3;

/**
 * From an eighth of the limit on, much is held; it no longer is below a sixteenth, so that one body more or less is not
 * told each time.
 */
const MUCH = 1 / 8;
const NOT_MUCH = 1 / 16;

/**
 * While much is held: after so many bytes that were taken or refused, as much has become garbage as is worth collecting
 * by itself. With the buffers that connections are read into, it is less than a tenth of what may be resident.
 */
const TURNOVER_BYTES = 16 * 1024 * 1024;

/** Is told how much is held, so that it can see to what lies beside it and waits for the collector. */
export interface HeldWatcher {
  /** Much of the limit begins to be in use, or no longer is. */
  onMuchHeld(isMuch: boolean): void;
  /** While much is held: as much as is held by many has come and gone. */
  onTurnover(): void;
}

/** So many owners that hold nothing are remembered, so that each call of one does not make its account anew. */
const MAX_IDLE_ACCOUNTS = 1_000;

/** What those are told who find no room, behind a sentence on what did not fit. */
export const NO_ROOM = "the memory for bodies and replies is in use (limits.heldBytes). Try again later.";

/** What is held for one owner. One that holds something is the only account of its owner. */
class Account {
  readonly owner: string;
  readonly isServer: boolean;
  used = 0;
  /** How much of it is in things that are small. */
  small = 0;

  constructor(owner: string, isServer: boolean) {
    this.owner = owner;
    this.isServer = isServer;
  }
}

export class HeldBytes {
  #limit = 0;
  #used = 0;
  #usedByServers = 0;
  #small = 0;
  #refusals = 0;
  readonly #accounts = new Map<string, Account>();
  #reclaim: ((bytes: number) => void) | undefined;
  #isMuch = false;
  #turnover = 0;
  readonly #watcher: HeldWatcher | undefined;

  constructor(limit = DEFAULT_HELD_BYTES, watcher?: HeldWatcher) {
    this.#limit = limit;
    this.#watcher = watcher;
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
    if (this.#isMuch) this.#turnOver(bytes);
    if (!this.#makeRoom(account, bytes)) {
      this.#refusals++;
      this.#forgetIdle(account);
      return false;
    }
    this.#used += bytes;
    account.used += bytes;
    if (account.isServer) this.#usedByServers += bytes;
    if (!this.#isMuch && this.#used >= this.#limit * MUCH) this.#setMuch(true);
    return true;
  }

  /** A thing of `before` bytes has `after` now, and both are counted. False where there is no room for it among the small. */
  sizeFor(account: Account, before: number, after: number): boolean {
    if (account.isServer) return true;
    const more = (after < LARGE_BYTES ? after : 0) - (before < LARGE_BYTES ? before : 0);
    // What was large and is small now has its room already.
    const limit = Math.max(this.#limit * SHARE_OF_SMALL, LEAST_FOR_SMALL);
    if (more > 0 && before < after && lacking(account.small, more, limit - this.#small) > 0) {
      this.#refusals++;
      return false;
    }
    account.small += more;
    this.#small += more;
    return true;
  }

  giveBackFor(account: Account, bytes: number): void {
    this.#used -= bytes;
    account.used -= bytes;
    if (account.isServer) this.#usedByServers -= bytes;
    if (this.#isMuch && this.#used < this.#limit * NOT_MUCH) this.#setMuch(false);
    this.#forgetIdle(account);
  }

  #setMuch(isMuch: boolean): void {
    this.#isMuch = isMuch;
    this.#turnover = 0;
    this.#watcher?.onMuchHeld(isMuch);
  }

  #turnOver(bytes: number): void {
    this.#turnover += bytes;
    if (this.#turnover < TURNOVER_BYTES) return;
    this.#turnover = 0;
    this.#watcher?.onTurnover();
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
    if (more < 0) {
      this.#held.sizeFor(this.#account, this.#bytes, bytes);
      this.#held.giveBackFor(this.#account, -more);
    } else if (more > 0 && !this.#grow(this.#account, bytes)) {
      if (this.#bytes === 0) this.#account = undefined;
      return false;
    }
    this.#bytes = bytes;
    return true;
  }

  #grow(account: Account, bytes: number): boolean {
    const before = this.#bytes;
    if (!this.#held.takeFor(account, bytes - before)) return false;
    if (this.#held.sizeFor(account, before, bytes)) return true;
    this.#held.giveBackFor(account, bytes - before);
    return false;
  }

  release(): void {
    if (this.#account !== undefined) {
      this.#held.sizeFor(this.#account, this.#bytes, 0);
      this.#held.giveBackFor(this.#account, this.#bytes);
    }
    this.#account = undefined;
    this.#bytes = 0;
  }
}
