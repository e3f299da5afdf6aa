// What passes between the state machine of the outbox and its driver: what is to be done, and what came of it.

import type { WriteOutcome } from "./classify.js";
import type { KeptWrite } from "./lane.js";

/** What becomes of a call that is to be kept. */
export type Accepted =
  | { readonly kind: "taken"; readonly write: KeptWrite }
  /** The key is known: the same call again. */
  | { readonly kind: "known"; readonly write: KeptWrite }
  | { readonly kind: "conflict" }
  | { readonly kind: "full"; readonly why: string };

/** What the driver is to do, in this order. */
export type Step =
  /** To be sent. `mark`: that it is being sent must be on disk first. */
  | { readonly do: "send"; readonly write: KeptWrite; readonly mark: boolean }
  /** The server is to be asked whether it took effect. */
  | { readonly do: "confirm"; readonly write: KeptWrite }
  /** It is to be written down as it is now; then whoever waits for it is told, unless it goes on at once. */
  | { readonly do: "save"; readonly write: KeptWrite }
  /** Whoever waits for it is told how it stands: what is before it does not move. */
  | { readonly do: "tell"; readonly write: KeptWrite }
  | { readonly do: "forget"; readonly write: KeptWrite }
  /** Its result makes room for newer ones: it is taken from the disk, and the receipt stays. */
  | { readonly do: "thin"; readonly write: KeptWrite };

/** What came of a step: an answer of the way to the server, or why it was not sent after all. */
export type Result =
  | WriteOutcome
  /** That it is being sent could not be written down, so that it was not. */
  | { readonly kind: "unmarked"; readonly why: string; readonly retryAfterMs?: undefined }
  /** A role lost the tool, or the server is gone from the config. */
  | { readonly kind: "denied"; readonly why: string }
  /** The token of its principal was revoked: a person must say whether it may go. */
  | { readonly kind: "revoked"; readonly why: string };

type Kinds = ReadonlySet<Result["kind"]>;

const LEFT: Kinds = new Set(["answered", "maybe", "taken-back", "not-done", "conflict"]);
const AGAIN: Kinds = new Set(["unmarked", "not-sent", "not-done", "login", "forbidden", "quarantine", "revoked"]);
const THERE: Kinds = new Set(["answered", "refused", "not-done", "conflict", "forbidden"]);

/** A byte of the call may have reached the server. */
export function mayHaveLeft({ kind }: Result): boolean {
  return LEFT.has(kind);
}

/** By itself it would be sent once more. */
export function goesAgain({ kind }: Result): boolean {
  return AGAIN.has(kind);
}

/** The server is there, whatever it said. */
export function isFromServer({ kind }: Result): boolean {
  return THERE.has(kind);
}
