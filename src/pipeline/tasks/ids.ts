// Ids of tasks as agents see them: sealed, so that nobody can make one up or read what is in it, and the same each time,
// so that an agent can compare them. Whether a task still is its agent's is owners.ts.

import type { OwnName, OwnToolName } from "../../contracts/names.js";

/** What seals them; the same value must become the same text. */
export interface TaskSeal {
  seal(value: unknown): string;
  /** Undefined for what is not ours. */
  unseal(text: string): unknown;
}

/** Whose a task is, and where. */
export interface OwnedTask {
  readonly server: string;
  /** The session that has a connection of its own to the server; empty where the connection is shared. */
  readonly place: string;
  readonly own: OwnName;
  /** Undefined for what is no tool's. */
  readonly tool: OwnToolName | undefined;
  readonly principal: string;
}

/** Where the next page of a list begins: behind this task. */
export interface ListPosition {
  readonly at: number;
  readonly key: string;
}

export class TaskIds {
  readonly #seal: TaskSeal;

  constructor(seal: TaskSeal) {
    this.#seal = seal;
  }

  /** Throws a RangeError for an id that is too long to be handed out. */
  expose({ server, place, own, tool, principal }: OwnedTask): string {
    return this.#seal.seal(["task", server, place, own, tool ?? null, principal]);
  }

  /** Undefined for an id that is not ours, or was given to somebody else. */
  open(exposed: string, principal: string): OwnedTask | undefined {
    const value = this.#seal.unseal(exposed);
    if (!Array.isArray(value) || value[0] !== "task" || value[5] !== principal) return undefined;
    const [, server, place, own, tool] = value as [string, string, string, OwnName, OwnToolName | null];
    return { server, place, own, tool: tool ?? undefined, principal };
  }

  /** Whether it was sealed here, for whomever. */
  isOurs(text: string): boolean {
    return this.#seal.unseal(text) !== undefined;
  }

  cursor({ at, key }: ListPosition, principal: string, scope: string | undefined): string {
    return this.#seal.seal(["list", at, key, principal, scope ?? null]);
  }

  /** Undefined for a cursor that is not ours, or is of another list. */
  position(cursor: string, principal: string, scope: string | undefined): ListPosition | undefined {
    const value = this.#seal.unseal(cursor);
    if (!Array.isArray(value) || value[0] !== "list") return undefined;
    const [, at, key, of, within] = value as [string, number, string, string, string | null];
    return of === principal && within === (scope ?? null) ? { at, key } : undefined;
  }
}
