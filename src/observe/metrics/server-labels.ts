// Names of servers as labels: made once for each, and within a bound.

import { visible } from "../../runtime/visible.js";
import { OTHER } from "./series.js";

/** So many servers have samples of their own. */
export const MAX_SERVERS = 500;
/** Of a label's value. */
const MAX_CHARACTERS = 128;

export class ServerLabels {
  readonly #labels = new Map<string, string>();
  /** How often a server had no label of its own. */
  folded = 0;

  /** Whether it has a label of its own, or gets one. */
  has(server: string): boolean {
    return this.#labels.has(server) || this.#labels.size < MAX_SERVERS;
  }

  of(server: string): string {
    const known = this.#labels.get(server);
    if (known !== undefined) return known;
    if (this.#labels.size >= MAX_SERVERS) {
      this.folded++;
      return OTHER;
    }
    const made = label(server);
    this.#labels.set(server, made);
    return made;
  }

  /** Servers of another config have room again; what was counted stays. */
  forget(): void {
    this.#labels.clear();
  }
}

/** One line of visible characters, and not too many. */
export function label(text: string): string {
  const shown = visible(text);
  return shown.length > MAX_CHARACTERS ? `${shown.slice(0, MAX_CHARACTERS - 1)}…` : shown;
}
