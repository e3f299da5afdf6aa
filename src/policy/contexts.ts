// What is known of each principal's situation, by which menus are narrowed. Set by operators, programs and runs, never
// by what an agent sends. It does no I/O; whoever keeps it over restarts is elsewhere.

import { Fault } from "../protocol/errors.js";
import type { Context } from "./menus.js";

/** A handful of facts of a run: client, cwd, repo, branch, phase, and some of a team's own. */
const MAX_KEYS = 32;
/** A path or a branch fits; a document does not belong here. */
const MAX_CHARS = 256;
/** As many as there may be tokens and runs, and more. */
const MAX_PRINCIPALS = 10_000;

const KEY = /^[A-Za-z][\w.-]*$/;

/** A value to set, or null to unset its key. */
export type ContextChanges = Readonly<Record<string, string | null>>;

export class Contexts {
  readonly #contexts = new Map<string, Context>();

  of(principal: string): Context | undefined {
    return this.#contexts.get(principal);
  }

  get all(): ReadonlyMap<string, Context> {
    return this.#contexts;
  }

  /** The context as it is after the changes. Throws a Fault `invalid`, and then nothing has changed. */
  change(principal: string, changes: ContextChanges): Context {
    const context = new Map(this.#contexts.get(principal));
    for (const [key, value] of Object.entries(changes)) {
      if (!KEY.test(key) || key.length > MAX_CHARS) {
        throw invalid(
          `${JSON.stringify(key)} is no key of a context: it begins with a letter, has letters, digits, "_", "." and "-", and ${MAX_CHARS} at most.`,
        );
      }
      if (value === null) context.delete(key);
      else if (typeof value !== "string" || value.length > MAX_CHARS) {
        throw invalid(`The value of "${key}" is a text of at most ${MAX_CHARS} characters.`);
      } else context.set(key, value);
    }
    if (context.size > MAX_KEYS)
      throw invalid(`A context has at most ${MAX_KEYS} keys, and this would have ${context.size}.`);
    if (context.size === 0) this.#contexts.delete(principal);
    else {
      if (!this.#contexts.has(principal) && this.#contexts.size >= MAX_PRINCIPALS) {
        throw invalid(
          `${MAX_PRINCIPALS} principals have a context already, which is the limit: unset one that is gone.`,
        );
      }
      this.#contexts.set(principal, context);
    }
    return context;
  }

  /** Takes back what was kept. What no longer counts as a context is left out. */
  restore(principal: string, kept: unknown): void {
    try {
      if (typeof kept === "object" && kept !== null) this.change(principal, kept as ContextChanges);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
    }
  }
}

function invalid(message: string): Fault {
  return new Fault("invalid", message);
}
