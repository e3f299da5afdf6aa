// The contexts of principals as they are kept: what changes one changes it at once, and then on disk, on what is there by then:
// another gateway may have changed another key of it meanwhile.

import type { SharedMap } from "../../contracts/store.js";
import type { ContextChanges, Contexts } from "../../policy/contexts.js";

/** Each lost race means that another gateway has changed the same principal's context. */
const MAX_TRIES = 16;

interface ContextOwner {
  readonly contexts: Contexts;
  /** Throws a Fault where it cannot be one. */
  changeContext(principal: string, changes: ContextChanges): void;
}

export class KeptContexts {
  readonly #owner: ContextOwner;
  readonly #map: SharedMap<ContextChanges>;
  readonly #warn: (text: string) => void;

  constructor(owner: ContextOwner, map: SharedMap<ContextChanges>, warn: (text: string) => void) {
    this.#owner = owner;
    this.#map = map;
    this.#warn = warn;
  }

  of(principal: string): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#owner.contexts.of(principal) ?? []);
  }

  /** Resolves when it is on disk, with the whole of it. */
  async set(principal: string, changes: ContextChanges): Promise<Readonly<Record<string, string>>> {
    this.#owner.changeContext(principal, changes);
    const context = this.of(principal);
    for (let n = 0; n < MAX_TRIES && !(await this.#write(principal, context, changes)); n++);
    return context;
  }

  /** Of a principal that nobody will be again. */
  async forget(principal: string): Promise<void> {
    const keys = Object.keys(this.of(principal));
    if (keys.length === 0) return;
    await this.set(principal, Object.fromEntries(keys.map((key) => [key, null]))).catch((error: unknown) =>
      this.#warn(`the context of a run that ended could not be removed: ${(error as Error).message}`),
    );
  }

  async #write(principal: string, context: ContextChanges, changes: ContextChanges): Promise<boolean> {
    const found = this.#map.read(principal);
    if (found === undefined) {
      if (Object.keys(context).length === 0) return true;
      return (await this.#map.create(principal, context)) !== undefined;
    }
    const merged = Object.fromEntries(
      Object.entries({ ...found.value, ...changes }).filter(([, value]) => value !== null),
    );
    if (Object.keys(merged).length > 0)
      return (await this.#map.update(principal, merged, found.revision)) !== undefined;
    await this.#map.delete(principal);
    return true;
  }
}
