// Who listens to which resource of one server, by its URI: an update costs what those who hear of it cost, however many
// others are subscribed to something else. It does not know who they are.

import { lengthsAbove } from "../protocol/resource-uris.js";

export class Listeners<T> {
  readonly #byUri = new Map<string, Set<T>>();
  /** How many of the URIs are so long: a beginning of another length is not looked for. */
  readonly #lengths = new Map<number, number>();

  get isEmpty(): boolean {
    return this.#byUri.size === 0;
  }

  add(uri: string, one: T): void {
    const known = this.#byUri.get(uri);
    if (known !== undefined) {
      known.add(one);
      return;
    }
    this.#byUri.set(uri, new Set([one]));
    this.#lengths.set(uri.length, (this.#lengths.get(uri.length) ?? 0) + 1);
  }

  delete(uri: string, one: T): void {
    const known = this.#byUri.get(uri);
    if (known?.delete(one) !== true || known.size > 0) return;
    this.#byUri.delete(uri);
    const left = (this.#lengths.get(uri.length) ?? 1) - 1;
    if (left > 0) this.#lengths.set(uri.length, left);
    else this.#lengths.delete(uri.length);
  }

  /** Those who listen to exactly this. */
  of(uri: string): ReadonlySet<T> | undefined {
    return this.#byUri.get(uri);
  }

  /** Those who hear of an update of `uri`: each once, also where it lies under several of its own. */
  hearing(uri: string): ReadonlySet<T> | undefined {
    let found = this.#byUri.get(uri);
    let isOwn = false;
    for (const length of lengthsAbove(uri)) {
      if (!this.#lengths.has(length)) continue;
      const above = this.#byUri.get(uri.slice(0, length));
      if (above === undefined) continue;
      if (found !== undefined && !isOwn) {
        found = new Set(found);
        isOwn = true;
      }
      if (found === undefined) found = above;
      else for (const one of above) found.add(one);
    }
    return found;
  }
}
