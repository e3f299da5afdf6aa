// What gateways on one engine ask of each other while they live: a question to one of them by name, and its answer; or a
// stream of bytes both ways. Nothing of it is kept; whoever needs more than an answer or an error writes it down first.

import type { Duplex } from "node:stream";

export type PeerErrorCode =
  /** Nobody of that name is there, or the engine is away: it was not asked. */
  | "away"
  /** It was asked, and no answer came: what became of it is unknown. */
  | "late"
  /** It was asked, and could not do it. */
  | "failed"
  /** It is more than gateways ask each other; it was not asked. */
  | "large"
  /** Too much is under way here; it was not asked. */
  | "busy";

export class PeerError extends Error {
  override readonly name = "PeerError";
  readonly code: PeerErrorCode;

  constructor(code: PeerErrorCode, text: string) {
    super(text);
    this.code = code;
  }
}

export interface PeerAsk {
  readonly timeoutMs: number;
  /** Gives the question up: it ends as `late`. */
  readonly signal?: AbortSignal;
}

export interface Peers {
  /** Rejects with a PeerError. */
  ask(peer: string, kind: string, body: Uint8Array, options: PeerAsk): Promise<Uint8Array>;
  /** Answers questions of a kind from now on. What the handler throws is told to whoever asked, in its words. */
  answer(kind: string, handler: (from: string, body: Uint8Array) => Promise<Uint8Array>): () => void;
  /** Rejects with a PeerError. A stream that loses something ends with an error at both ends: there is never a hole in it. */
  connect(peer: string, kind: string): Promise<Duplex>;
  /** Takes streams of a kind from now on. */
  accept(kind: string, taken: (stream: Duplex, from: string) => void): () => void;
  close(): Promise<void>;
}
