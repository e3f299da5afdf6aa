// A program's own say in who may use what, beside the rules of roles (policy.ts). Owns what counts as an answer:
// whatever is not a clear "allow" is a "deny". It does not know roles, and role rules do not know it.

import type { Principal } from "../contracts/caller.js";
import type { OwnToolName } from "../contracts/names.js";
import type { Decision } from "./policy.js";

export type GuardVerdict = { readonly kind: "allow" } | { readonly kind: "deny"; readonly reason: string };

/**
 * Asked before the budget, the cache and the network, and answers at once. Without `tool` it is asked for the server
 * itself: may it be started, listed, its prompts and resources used? A denied server has no allowed tools.
 */
export type Guard = (principal: Principal, server: string, tool?: string) => GuardVerdict;

/** A reason is shown to agents; what is longer is no reason. */
const MAX_REASON = 500;

const ALLOW: Decision = { kind: "allow" };

export class ProgramGuard {
  readonly #onFailure: (text: string, error?: unknown) => void;
  #guard: Guard | undefined;

  /** `onFailure` is told of a guard that threw or answered nonsense: what it threw is for the log, not for agents. */
  constructor(onFailure: (text: string, error?: unknown) => void) {
    this.#onFailure = onFailure;
  }

  /** True where lists may differ between principals of one role, and from one moment to the next. */
  get isSet(): boolean {
    return this.#guard !== undefined;
  }

  /** `undefined` leaves the rules of roles, and nothing else: it never allows what they deny. */
  set(guard: Guard | undefined): void {
    // Thrown before anything is changed: a mistake here leaves the guard that was there.
    if (guard !== undefined && typeof guard !== "function") throw new TypeError("A guard is a function, or undefined.");
    this.#guard = guard;
  }

  /** To be asked after the rules of roles have allowed it: either may deny. */
  decide(principal: Principal, server: string, tool: OwnToolName | undefined): Decision {
    const guard = this.#guard;
    if (guard === undefined) return ALLOW;
    const whole = this.#ask(guard, principal, server, undefined);
    return tool === undefined || whole.kind === "deny" ? whole : this.#ask(guard, principal, server, tool);
  }

  #ask(guard: Guard, principal: Principal, server: string, tool: OwnToolName | undefined): Decision {
    let verdict: unknown;
    try {
      verdict = tool === undefined ? guard(principal, server) : guard(principal, server, tool);
    } catch (error) {
      this.#onFailure("the guard failed; what it was asked about is denied", error);
      return { kind: "deny", rule: "the guard could not decide" };
    }
    if (typeof verdict === "object" && verdict !== null) {
      const { kind, reason } = verdict as { kind?: unknown; reason?: unknown };
      if (kind === "allow") return ALLOW;
      if (kind === "deny") return { kind: "deny", rule: reasonText(reason) };
      swallow(verdict);
    }
    this.#onFailure("the guard gave no decision (it answers at once, with allow or deny); that is denied");
    return { kind: "deny", rule: "the guard could not decide" };
  }
}

function reasonText(reason: unknown): string {
  return typeof reason === "string" && reason !== "" ? reason.slice(0, MAX_REASON) : "the guard denies it";
}

/** An async guard is a mistake that is told of; its rejection must not end the process besides. */
function swallow(verdict: object): void {
  if (verdict instanceof Promise) verdict.catch(() => {});
}
