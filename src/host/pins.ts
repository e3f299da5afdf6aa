// The pins of a host's servers, for the program: what is hidden, why, what changed, to accept it, and to forget what is gone.

import { ownToolName } from "../contracts/names.js";
import type { AcceptedPin, PinDiff, PinLine } from "../contracts/pins.js";
import type { PinChange, StoredPins } from "../gateway/state/stored-pins.js";

export class HostPins {
  readonly #pins: StoredPins;

  constructor(pins: StoredPins) {
    this.#pins = pins;
  }

  /** Every tool that was seen of servers that are not trusted, with its state. */
  list(): PinLine[] {
    return this.#pins.list();
  }

  /** What changed, of one tool or of all of the server. Throws a Fault where nothing of the server is pinned. */
  diff(server: string, tool?: string): PinDiff[] {
    return this.#pins.diff(server, tool === undefined ? undefined : ownToolName(tool));
  }

  /**
   * Takes what is there now, of one tool or of all of the server. `hash`: only if it is still the one whose hash begins
   * so, as `diff` showed it. Resolves when it is kept; then the tools are listed and called again.
   */
  accept(server: string, tool?: string, hash?: string): Promise<AcceptedPin[]> {
    return this.#pins.accept(server, tool === undefined ? undefined : ownToolName(tool), hash);
  }

  /**
   * Forgets the pins of a server that is no longer there or is trusted, and of others those of tools that are gone: a pin
   * that is in use is what a change is known by. Resolves with the names of the tools when that is kept. Rejects with a
   * Fault where there is nothing to forget.
   */
  forget(server: string, tool?: string): Promise<string[]> {
    return this.#pins.forget(server, tool === undefined ? undefined : ownToolName(tool));
  }

  /** Tells when tools are hidden, or are there again. Returns what ends it. */
  onChange(listener: (change: PinChange) => void): () => void {
    return this.#pins.watch(listener);
  }
}
