// Delays what is sent right after the handshake until the server has taken its last message,
// `notifications/initialized`, and then until it has answered the GET stream: each message has a connection of its own
// here and could overtake them. There are servers that refuse requests which come before the one, and the SDK's drop
// what they ask within a call before the other.

import type { Ticket } from "../link/link.js";

/** A server that does not take it in this time gets its requests nevertheless. */
const BARRIER_MS = 5_000;

/** Some servers answer the GET stream with their first event only, which may never come. */
const LISTEN_MS = 250;

export interface DelayedMessage {
  readonly text: string;
  readonly ticket: Ticket | undefined;
}

export class InitializedBarrier {
  #state: "open" | "armed" | "shut" = "open";
  #delayed: DelayedMessage[] = [];
  #carrier: object | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #onTaken: () => void;
  readonly #onOpened: (delayed: readonly DelayedMessage[]) => void;

  /** `onTaken`: the handshake is over, and the GET stream may be opened; `onOpened`: so may all that was delayed. */
  constructor(onTaken: () => void, onOpened: (delayed: readonly DelayedMessage[]) => void) {
    this.#onTaken = onTaken;
    this.#onOpened = onOpened;
  }

  /** The handshake is done; its last message is the notification that is sent next, if one is sent at once. */
  arm(): void {
    this.#state = "armed";
    queueMicrotask(() => {
      if (this.#state === "armed") this.#taken();
    });
  }

  /** True where the message waits here. */
  delays(text: string, ticket: Ticket | undefined): boolean {
    if (this.#state !== "shut") return false;
    this.#delayed.push({ text, ticket });
    return true;
  }

  get delayedCount(): number {
    return this.#delayed.length;
  }

  /** `carrier` has just been sent. */
  sent(carrier: object, ticket: Ticket | undefined): void {
    if (this.#state !== "armed" || ticket !== undefined) return;
    this.#state = "shut";
    this.#carrier = carrier;
    this.#timer = setTimeout(() => this.#taken(), BARRIER_MS);
  }

  finished(carrier: object): void {
    if (this.#carrier !== carrier) return;
    // Whoever finished it has something to say first: that the session is gone, for example.
    queueMicrotask(() => {
      if (this.#carrier === carrier) this.#taken();
    });
  }

  /** The GET stream was answered, or cannot be had. True where all that is sent after the handshake has waited for it. */
  listening(): boolean {
    if (this.#state !== "shut" || this.#carrier !== undefined) return false;
    this.#open();
    return true;
  }

  forget(ticket: Ticket): void {
    if (this.#delayed.length > 0) this.#delayed = this.#delayed.filter((message) => message.ticket !== ticket);
  }

  /** Hands over what was delayed, and forgets it. */
  clear(): readonly DelayedMessage[] {
    clearTimeout(this.#timer);
    const delayed = this.#delayed;
    this.#delayed = [];
    this.#carrier = undefined;
    this.#state = "open";
    return delayed;
  }

  #taken(): void {
    clearTimeout(this.#timer);
    this.#carrier = undefined;
    this.#state = "shut";
    this.#timer = setTimeout(() => this.#open(), LISTEN_MS);
    this.#onTaken();
  }

  #open(): void {
    this.#onOpened(this.clear());
  }
}
