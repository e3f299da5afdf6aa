// The broker's side of pairing: makes codes for those who share, and tokens for those who bring one. Codes are kept as
// hashes, in memory alone: a restart ends them.

import { hash, randomBytes } from "node:crypto";
import type { EXECUTOR_ROLE, SHARER_ROLE } from "../../contracts/settings.js";
import { ExpectedError } from "../../runtime/expected-error.js";
import { visible } from "../../runtime/visible.js";
import type { ElapsedClock } from "../elapsed-clock.js";
import { CODE_BYTES, codeText, readCode } from "./code-text.js";
import { PAIRING_LIMITS, PairingCodes } from "./codes.js";

/** The role of whoever comes by a code, where the sharer does not say. */
const USUAL_ROLE = "default";
/** Roles that open more than a mailbox: a code never gives one. */
const OWN_ROLES = new Set<string>(["sharer", "executor"] satisfies [typeof SHARER_ROLE, typeof EXECUTOR_ROLE]);
const MAX_ROLE_CHARS = 128;

export interface NewWorker {
  readonly id: string;
  readonly role: string;
  readonly maySendTo: readonly [string];
}

export interface PairingsOptions {
  readonly clock: ElapsedClock;
  /** Makes a token that opens mailboxes and nothing else. */
  createToken(worker: NewWorker): Promise<string>;
}

/** Why no code was made, in words for whoever asked. */
export class PairingRefusal extends ExpectedError {
  override readonly name = "PairingRefusal";
  override readonly kind = "failed";
}

export type Paired =
  | { readonly kind: "paired"; readonly id: string; readonly token: string; readonly mailbox: string }
  | { readonly kind: "wrong" }
  | { readonly kind: "paused"; readonly leftMs: number };

export class Pairings {
  readonly #clock: ElapsedClock;
  readonly #createToken: PairingsOptions["createToken"];
  readonly #codes = new PairingCodes();

  constructor({ clock, createToken }: PairingsOptions) {
    this.#clock = clock;
    this.#createToken = createToken;
  }

  /** A code of one use for a mailbox. Throws a PairingRefusal. */
  open(mailbox: string, role = USUAL_ROLE): { code: string; expiresInMs: number } {
    if (OWN_ROLES.has(role) || !canBeRole(role)) {
      const said = visible(role.slice(0, MAX_ROLE_CHARS));
      throw new PairingRefusal(`a code gives no token of the role "${said}"; say another one`);
    }
    const code = codeText(randomBytes(CODE_BYTES));
    const opened = this.#codes.open(hashOf(code), { mailbox, role }, this.#clock.now());
    if (opened !== "open") {
      const { maxOpen, maxOfOne } = PAIRING_LIMITS;
      const many = opened === "full" ? `${maxOpen} codes are` : `${maxOfOne} codes for "${mailbox}" are`;
      throw new PairingRefusal(`${many} open: use one of them, or wait until they end`);
    }
    return { code, expiresInMs: PAIRING_LIMITS.codeMs };
  }

  /** Whether it is one of ours. Asked for codes that were made at another broker, and counts to no limit of tries. */
  knows(code: string): boolean {
    return this.#codes.isOpen(hashOf(code), this.#clock.now());
  }

  /** Too many wrong ones were tried. */
  get isPaused(): boolean {
    return this.#codes.isPaused(this.#clock.now());
  }

  /** Makes the token of whoever brings a code. `name` is what they call themselves: the token's id begins with it. */
  async redeem(code: string, name: string | undefined): Promise<Paired> {
    // By hashes, which nobody can choose: how long the search takes tells nothing.
    const found = this.#codes.redeem(hashOf(code), this.#clock.now());
    if (found.kind !== "paired") return found;
    const { mailbox, role } = found.pairing;
    const id = `${/^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$/.test(name ?? "") ? name : "worker"}-${shortRandom()}`;
    const token = await this.#createToken({ id, role, maySendTo: [mailbox] });
    return { kind: "paired", id, token, mailbox };
  }
}

/** As tokens want roles: whoever brings the code could not be given one of another kind. */
function canBeRole(role: string): boolean {
  return role !== "" && role === role.trim() && role.length <= MAX_ROLE_CHARS && visible(role) === role;
}

function hashOf(code: string): string {
  return hash("sha256", readCode(code) ?? "", "base64url");
}

/** So that two of one name have two tokens. */
function shortRandom(): string {
  return randomBytes(4).toString("hex");
}
