// Call budgets: at most so many calls in a window, for each principal of a role and for each server. The time is
// passed in. Who is denied is policy.ts's and guard.ts's; a denied call never comes here.
//
// What holds: in no span of `windowMs` are more than `calls` admitted. For that a window is cut into slots, and a call
// counts until its slot has left the window as a whole: it may count up to one slot (1/60 of the window) too long. Windows
// that several gateways count together are slices.ts's.

import type { Principal } from "../contracts/caller.js";
import type { BudgetScope, CallWindow, SharedWindows, WindowAsked, WindowFull } from "../contracts/engine/budgets.js";
import type { CallBudget } from "../contracts/settings.js";
import { Fault } from "../protocol/errors.js";

export interface BudgetConfig {
  readonly roles: Readonly<Record<string, { readonly budget?: CallBudget | undefined }>>;
  readonly servers: readonly { readonly name: string; readonly budget?: CallBudget | undefined }[];
}

export interface BudgetExceeded extends WindowFull {
  readonly scope: BudgetScope;
  readonly limit: number;
  readonly windowMs: number;
}

/** Half a kilobyte for each principal or server, whatever the budget; a window of an hour is exact to a minute. */
const SLOTS = 60;

/** How long a slot of such a window is, also of one that several gateways count together. */
export function slotMsOf(windowMs: number): number {
  return Math.max(1, Math.ceil(windowMs / SLOTS));
}

/** Principals are tokens, and the operator makes those. Beyond, new ones wait until an old one's window is over. */
const MAX_PRINCIPALS = 10_000;

/** A kept call whose budget is being asked for looks again so soon: several times as long as an engine takes. */
const ASKED_AGAIN_MS = 20;

/** What costs a server next to nothing, or belongs to a call that was charged already. */
const FREE: ReadonlySet<string> = new Set([
  "completion/complete",
  "logging/setLevel",
  "resources/subscribe",
  "resources/unsubscribe",
  "tasks/get",
  "tasks/list",
  "tasks/result",
  "tasks/update",
  "tasks/cancel",
]);

export function isCharged(method: string): boolean {
  return !FREE.has(method);
}

/** Counted by this gateway alone. */
class OwnWindow implements CallWindow {
  readonly #slotMs: number;
  /** Slots that a window can touch: one more than it is long. */
  readonly #counts: Uint32Array;
  readonly windowMs: number;
  calls: number;
  /** The newest slot, as a number since time 0. */
  #slot = 0;
  #spent = 0;

  constructor({ calls, windowMs }: CallBudget) {
    this.calls = calls;
    this.windowMs = windowMs;
    this.#slotMs = slotMsOf(windowMs);
    this.#counts = new Uint32Array(Math.ceil(windowMs / this.#slotMs) + 1);
  }

  full(nowMs: number): WindowFull | undefined {
    this.#advance(nowMs);
    if (this.#spent < this.calls) return undefined;
    return { spent: this.#spent, resetsInMs: this.#resetsInMs(nowMs) };
  }

  isEmpty(nowMs: number): boolean {
    this.#advance(nowMs);
    return this.#spent === 0;
  }

  add(): void {
    const at = this.#slot % this.#counts.length;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#spent++;
  }

  /**
   * Takes back a call of then. The oldest one is taken in its place: what is left counts for no less time than it ought
   * to.
   */
  remove(thenMs: number, nowMs: number): void {
    this.#advance(nowMs);
    const { length } = this.#counts;
    const oldest = Math.max(0, this.#slot - length + 1);
    if (Math.floor(thenMs / this.#slotMs) < oldest) return;
    for (let slot = oldest; slot <= this.#slot; slot++) {
      const count = this.#counts[slot % length] ?? 0;
      if (count === 0) continue;
      this.#counts[slot % length] = count - 1;
      this.#spent--;
      return;
    }
  }

  /** Until the slots that stand in the way of one more call are over. */
  #resetsInMs(nowMs: number): number {
    const { length } = this.#counts;
    // More than one where the limit was lowered meanwhile.
    let tooMany = this.#spent - this.calls + 1;
    for (let slot = Math.max(0, this.#slot - length + 1); slot <= this.#slot; slot++) {
      tooMany -= this.#counts[slot % length] ?? 0;
      if (tooMany <= 0) return Math.max(1, Math.ceil((slot + length) * this.#slotMs - nowMs));
    }
    // A budget of none is never free.
    return this.windowMs;
  }

  #advance(nowMs: number): void {
    const slot = Math.floor(nowMs / this.#slotMs);
    // A clock that went back frees nothing.
    if (slot <= this.#slot) return;
    const { length } = this.#counts;
    const passed = Math.min(slot - this.#slot, length);
    for (let i = 1; i <= passed; i++) {
      const at = (this.#slot + i) % length;
      this.#spent -= this.#counts[at] ?? 0;
      this.#counts[at] = 0;
    }
    // After a long rest all is cleared, and the slots are numbered from here.
    this.#slot = slot;
  }
}

export class Budgets {
  readonly #roles = new Map<string, CallBudget>();
  readonly #servers = new Map<string, CallWindow>();
  readonly #principals = new Map<string, CallWindow>();
  readonly #shared: SharedWindows | undefined;

  /**
   * `before`: what was spent goes on counting where the window is as long as it was. `shared` makes windows that several
   * gateways count together; without it they are our own.
   */
  constructor(config: BudgetConfig, before: Budgets | undefined, shared?: SharedWindows) {
    this.#shared = shared;
    for (const [role, { budget }] of Object.entries(config.roles)) {
      if (budget !== undefined) this.#roles.set(role, budget);
    }
    for (const { name, budget } of config.servers) {
      const spent = before === undefined ? undefined : before.#servers.get(name);
      if (budget !== undefined) this.#servers.set(name, this.#takeOver(spent, name, budget));
    }
    if (before !== undefined) this.#principals = before.#principals;
  }

  get isEmpty(): boolean {
    return this.#roles.size === 0 && this.#servers.size === 0;
  }

  /** Charges one call to both, or to none and says which is spent. Ask again when what is being asked is answered. */
  charge(principal: Principal, server: string, nowMs: number): BudgetExceeded | WindowAsked | undefined {
    const budget = this.#roles.get(principal.role);
    const ofServer = this.#servers.get(server);
    if (budget === undefined && ofServer === undefined) return undefined;
    const own = budget === undefined ? undefined : this.#windowOf(principal, budget, nowMs);
    if (own === null) {
      const { calls: limit = 0, windowMs = 0 } = budget ?? {};
      return { scope: "principal", limit, spent: 0, windowMs, resetsInMs: windowMs };
    }
    const over = exceeded("principal", own, nowMs) ?? exceeded("server", ofServer, nowMs);
    if (over !== undefined) return over;
    own?.add();
    ofServer?.add();
    return undefined;
  }

  /**
   * Of a kept call whose turn has come: how long it has to wait for its server's budget; 0 where it may go, and is charged
   * to the server. `chargedMs`: it was charged when it was taken, which may still count.
   */
  pace(server: string, chargedMs: number | undefined, nowMs: number): number {
    const window = this.#servers.get(server);
    if (window === undefined) return 0;
    if (chargedMs !== undefined && nowMs - chargedMs < window.windowMs) return 0;
    const over = window.full(nowMs);
    if (over !== undefined) return "answered" in over ? ASKED_AGAIN_MS : over.resetsInMs;
    window.add();
    return 0;
  }

  /** Gives back a call that was charged then, and was not sent. */
  refund(principal: Principal, server: string, thenMs: number, nowMs: number): void {
    if (this.#roles.has(principal.role)) this.#principals.get(principal.id)?.remove(thenMs, nowMs);
    this.#servers.get(server)?.remove(thenMs, nowMs);
  }

  /** Null where there are too many principals. */
  #windowOf({ id }: Principal, budget: CallBudget, nowMs: number): CallWindow | null {
    const known = this.#principals.get(id);
    if (known !== undefined && known.windowMs === budget.windowMs) {
      known.calls = budget.calls;
      return known;
    }
    if (known === undefined && this.#principals.size >= MAX_PRINCIPALS) {
      for (const [other, window] of this.#principals) {
        if (window.isEmpty(nowMs)) this.#principals.delete(other);
      }
      if (this.#principals.size >= MAX_PRINCIPALS) return null;
    }
    const made = this.#make("principal", id, budget);
    this.#principals.set(id, made);
    return made;
  }

  #takeOver(before: CallWindow | undefined, server: string, budget: CallBudget): CallWindow {
    if (before?.windowMs !== budget.windowMs) return this.#make("server", server, budget);
    before.calls = budget.calls;
    return before;
  }

  #make(scope: BudgetScope, name: string, budget: CallBudget): CallWindow {
    return this.#shared?.(scope, name, budget) ?? new OwnWindow(budget);
  }
}

/** Undefined where nothing has a budget, so that a call then costs one check. */
export function compileBudgets(
  config: BudgetConfig,
  before: Budgets | undefined,
  shared?: SharedWindows,
): Budgets | undefined {
  const budgets = new Budgets(config, before, shared);
  return budgets.isEmpty ? undefined : budgets;
}

function exceeded(
  scope: BudgetScope,
  window: CallWindow | undefined,
  nowMs: number,
): BudgetExceeded | WindowAsked | undefined {
  const full = window?.full(nowMs);
  if (window === undefined || full === undefined) return undefined;
  if ("answered" in full) return full;
  const { calls: limit, windowMs } = window;
  return { scope, limit, windowMs, ...full };
}

export function budgetFault(over: BudgetExceeded, server: string): Fault {
  const whose = over.scope === "principal" ? "Your" : `Server "${server}"'s`;
  const span = `${over.limit} calls in ${seconds(over.windowMs)}, ${over.spent} made`;
  const message = `${whose} call budget ${why(over, span)}. Nothing was sent. Try again in ${seconds(over.resetsInMs)}.`;
  return new Fault("limit", message, { data: { fault: "budget", ...over }, rule: "budget" });
}

function why({ isUnanswered, waiting }: BudgetExceeded, span: string): string {
  if (isUnanswered === true) return `(${span}) cannot be asked for: the engine that counts it does not answer`;
  if (waiting !== undefined) return `(${span}) has ${waiting} calls that wait for what is left of it`;
  return `is spent: ${span}`;
}

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.ceil(ms)} ms` : `${Math.ceil(ms / 1000)} s`;
}
