// Holds back what is sent right after the handshake until the server has taken its last message,
// `notifications/initialized`: each message has a connection of its own here and could overtake it, and there
// are servers that refuse requests which come before it.

import type { Ticket } from "../link/link.js";

/** A server that does not take it in this time gets its requests nevertheless. */
const BARRIER_MS = 5_000;

export interface HeldMessage {
  readonly text: string;
  readonly ticket: Ticket | undefined;
}

export class InitializedBarrier {
  #state: "open" | "armed" | "shut" = "open";
  #held: HeldMessage[] = [];
  #carrier: object | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #onOpened: (held: readonly HeldMessage[]) => void;

  constructor(onOpened: (held: readonly HeldMessage[]) => void) {
    this.#onOpened = onOpened;
  }

  /** The handshake is done; its last message is the notification that is sent next, if one is sent at once. */
  arm(): void {
    this.#state = "armed";
    queueMicrotask(() => {
      if (this.#state === "armed") this.#open();
    });
  }

  /** True where the message waits here. */
  holds(text: string, ticket: Ticket | undefined): boolean {
    if (this.#state !== "shut") return false;
    this.#held.push({ text, ticket });
    return true;
  }

  get heldCount(): number {
    return this.#held.length;
  }

  /** `carrier` has just been sent. */
  sent(carrier: object, ticket: Ticket | undefined): void {
    if (this.#state !== "armed" || ticket !== undefined) return;
    this.#state = "shut";
    this.#carrier = carrier;
    this.#timer = setTimeout(() => this.#open(), BARRIER_MS);
  }

  finished(carrier: object): void {
    if (this.#carrier !== carrier) return;
    // Whoever finished it has something to say first: that the session is gone, for example.
    queueMicrotask(() => {
      if (this.#carrier === carrier) this.#open();
    });
  }

  forget(ticket: Ticket): void {
    if (this.#held.length > 0) this.#held = this.#held.filter((message) => message.ticket !== ticket);
  }

  /** Hands over what was held, and forgets it. */
  clear(): readonly HeldMessage[] {
    clearTimeout(this.#timer);
    const held = this.#held;
    this.#held = [];
    this.#carrier = undefined;
    this.#state = "open";
    return held;
  }

  #open(): void {
    this.#onOpened(this.clear());
  }
}
