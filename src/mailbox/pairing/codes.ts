// Which pairing codes are open, for what and how long, and how often somebody may guess. A state machine without clock,
// chance or hash: the time is passed in, and codes are known by what their driver made of them.

export interface PairingLimits {
  /** How long a code is good. */
  readonly codeMs: number;
  /** Codes that are open at a time. */
  readonly maxOpen: number;
  /** Codes of one mailbox that are open at a time: no sharer takes them all. */
  readonly maxOfOne: number;
  /** Wrong tries of all who try, within `windowMs`, until nobody may try for `pauseMs`. */
  readonly maxWrong: number;
  readonly windowMs: number;
  readonly pauseMs: number;
}

export const PAIRING_LIMITS: PairingLimits = {
  // To read it out, walk over and type it.
  codeMs: 10 * 60_000,
  // A person pairs one machine at a time; a program that asks in a loop fills nothing.
  maxOpen: 64,
  maxOfOne: 8,
  // People mistype; whoever guesses 60 bits needs longer than codes last, by far.
  maxWrong: 5,
  windowMs: 60_000,
  pauseMs: 60_000,
};

/** What a code gives: a token that sends to this mailbox, with this role. */
export interface Pairing {
  readonly mailbox: string;
  readonly role: string;
}

export type Redeemed =
  | { readonly kind: "paired"; readonly pairing: Pairing }
  /** Unknown, used, or too old: which of them is nobody's business. */
  | { readonly kind: "wrong" }
  /** Too many wrong tries: this one was not even looked at. */
  | { readonly kind: "paused"; readonly leftMs: number };

interface OpenCode extends Pairing {
  readonly endMs: number;
}

export class PairingCodes {
  readonly #limits: PairingLimits;
  /** By the hash of the code, the oldest first. */
  readonly #open = new Map<string, OpenCode>();
  /** When the last wrong ones were tried; at most `maxWrong`. */
  #wrongAt: number[] = [];
  #pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(limits: PairingLimits = PAIRING_LIMITS) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#open.size;
  }

  /** What it is where too many are open: all, or those of this mailbox. */
  open(hash: string, { mailbox, role }: Pairing, nowMs: number): "open" | "full" | "full-of-one" {
    const { maxOpen, maxOfOne, codeMs } = this.#limits;
    this.#forgetOld(nowMs);
    if (this.#open.size >= maxOpen) return "full";
    let own = 0;
    for (const one of this.#open.values()) if (one.mailbox === mailbox) own++;
    if (own >= maxOfOne) return "full-of-one";
    this.#open.set(hash, { mailbox, role, endMs: nowMs + codeMs });
    return "open";
  }

  isOpen(hash: string, nowMs: number): boolean {
    this.#forgetOld(nowMs);
    return this.#open.has(hash);
  }

  isPaused(nowMs: number): boolean {
    return nowMs < this.#pausedUntil;
  }

  redeem(hash: string, nowMs: number): Redeemed {
    if (nowMs < this.#pausedUntil) return { kind: "paused", leftMs: this.#pausedUntil - nowMs };
    this.#forgetOld(nowMs);
    const found = this.#open.get(hash);
    if (found === undefined) {
      this.#wasWrong(nowMs);
      return { kind: "wrong" };
    }
    this.#open.delete(hash);
    return { kind: "paired", pairing: { mailbox: found.mailbox, role: found.role } };
  }

  #wasWrong(nowMs: number): void {
    const { maxWrong, windowMs, pauseMs } = this.#limits;
    this.#wrongAt = [...this.#wrongAt.filter((at) => at > nowMs - windowMs), nowMs];
    if (this.#wrongAt.length < maxWrong) return;
    this.#wrongAt = [];
    this.#pausedUntil = nowMs + pauseMs;
  }

  #forgetOld(nowMs: number): void {
    for (const [hash, { endMs }] of this.#open) {
      if (endMs > nowMs) return;
      this.#open.delete(hash);
    }
  }
}
