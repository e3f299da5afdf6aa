// What counts the calls of a budget: in the memory of one gateway, or by slices that several of them take of one.

import type { CallBudget } from "../settings.js";

/** Why a call may not be made now. */
export interface WindowFull {
  readonly spent: number;
  /** When the next call would be admitted, if nobody else takes it. */
  readonly resetsInMs: number;
  /** Set where it is not known whether it is spent: the engine that counts it does not answer. */
  readonly isUnanswered?: true;
  /** Set where it is not spent yet, and so many calls wait for what is left that no more may. */
  readonly waiting?: number;
}

/** Whether it may be made is being asked. */
export interface WindowAsked {
  /** Never rejects; then it is to be tried again. */
  readonly answered: Promise<void>;
}

/** The calls of one principal, or to one server, in the last window. */
export interface CallWindow {
  readonly windowMs: number;
  calls: number;
  /** Undefined where one more call may be made. */
  full(nowMs: number): WindowFull | WindowAsked | undefined;
  /** One more call, right after `full` said that it may be made. */
  add(): void;
  /** Takes back a call of then, which was not made. */
  remove(thenMs: number, nowMs: number): void;
  /** Whether nothing would be lost if it were forgotten. */
  isEmpty(nowMs: number): boolean;
}

export type BudgetScope = "principal" | "server";

/** Makes windows that several gateways count together. */
export type SharedWindows = (scope: BudgetScope, name: string, budget: CallBudget) => CallWindow;
