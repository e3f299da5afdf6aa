// What a store of several gateways needs of the engine under it: a stream of messages, each on a subject. One try a call:
// what is tried again, and for how long, is writer.ts's to say.

import type { StoreError } from "../store-error.js";

export interface StreamMessage {
  readonly subject: string;
  /** Its place in the stream, which rises over all subjects. */
  readonly sequence: number;
  readonly body: string;
  /** As its writer gave it; undefined where that is not known. */
  readonly id?: string | undefined;
  /** When the engine stored it, in milliseconds since 1970. */
  readonly atMs: number;
}

export interface NewMessage {
  readonly subject: string;
  /** The same at each try, so that the engine knows a message that it has. */
  readonly id: string;
  readonly body: string;
  /** The sequence of the last message on the subject, 0 where there is none; undefined: whatever there is. */
  readonly expected: number | undefined;
}

export type PublishOutcome =
  | { readonly kind: "stored"; readonly sequence: number }
  /** The last message of the subject is another. */
  | { readonly kind: "conflict" }
  /** It cannot be stored, now or ever. */
  | { readonly kind: "refused"; readonly error: StoreError }
  /** Nobody answered: it may have been stored. */
  | { readonly kind: "silent" }
  /** The engine has nobody to store it, for now: it was not. */
  | { readonly kind: "nobody" }
  /** It did not leave. `retryInMs`: when somebody is dialled again, where that is known. */
  | { readonly kind: "unsent"; readonly retryInMs?: number | undefined };

/** Undefined where nobody answered. */
export type LastMessage = { readonly message: StreamMessage | undefined } | undefined;

export interface StreamFollower {
  /** In the order of the stream, or some of them again. */
  message(message: StreamMessage): void;
  /** All that was stored when the following began has been told. Again whenever it had to begin from the start. */
  current(): void;
  /** It begins from the start, and the stream had come to this place: what is before it and not told until `current` is gone. */
  restarted(sequence: number): void;
}

export interface CommitStream {
  /** The largest body that a message may have. */
  readonly maxBodyBytes: number;
  /** What to do where that is too little; nothing is said where it is not known. */
  readonly moreRoom?: string;
  publish(message: NewMessage): Promise<PublishOutcome>;
  /** From whoever decides what is stored, never from a copy. */
  last(subject: string): Promise<LastMessage>;
  /** False where nobody answered. What is gone already is removed. */
  remove(sequence: number): Promise<boolean>;
  /** Removes what is on the subject up to this place, itself included. False where nobody answered. */
  clear(subject: string, sequence: number): Promise<boolean>;
  /** All subjects that begin with `prefix`, until it is ended. */
  follow(prefix: string, follower: StreamFollower): () => Promise<void>;
}

/** The time, as the store needs it. */
export interface TryPace {
  /** Milliseconds that only go forward. */
  now(): number;
  sleep(ms: number): Promise<void>;
  /** From 0 to 1. */
  random(): number;
}
