// The budgets of all gateways on one engine: takes slices of them ahead of need, so that a call asks nobody, and hands back
// what is not used. What a slice is, and what is written, is policy/slices.ts's.

import { createHash } from "node:crypto";
import type {
  BudgetScope,
  CallWindow,
  SharedWindows,
  WindowAsked,
  WindowFull,
} from "../../contracts/engine/budgets.js";
import type { EngineStatus } from "../../contracts/engine/engine.js";
import type { CallBudget } from "../../contracts/settings.js";
import type { SharedMap } from "../../contracts/store.js";
import { slotMsOf } from "../../policy/budget.js";
import { type BudgetGrants, Slice } from "../../policy/slices.js";
import { StoreError } from "../../store/store-error.js";

/** A slice that was not spent from for so long is handed back: it may be wanted elsewhere. */
const IDLE_MS = 1_000;
/** Each lost race means that another gateway took a slice of the same budget: whoever waits looks then what is left. */
const MAX_TRIES = 64;
/** After an engine that did not answer, calls are refused for so long before it is asked again. */
const RETRY_MS = 1_000;
/** Calls of one budget that wait for a slice at once: more than come during one answer; beyond, they are told to come again. */
const MAX_WAITING = 1_000;
/** What waits has its answer by then, where the engine answers. */
const CROWDED_MS = 1_000;
/** Records of windows that are long over are looked for this often, by one of the gateways. */
const SWEEP_MS = 10 * 60_000;
/** Keys of the engine are of bounded length, and ids of principals are anybody's. */
const NAME_HASH_CHARS = 32;

export interface SharedBudgetsOptions {
  readonly map: SharedMap<BudgetGrants>;
  /** The gateways that are there, ourselves among them. */
  readonly gateways: () => readonly string[];
  readonly self: string;
  readonly status: () => EngineStatus;
  readonly now: () => number;
  readonly wall: () => number;
}

export class SharedBudgets {
  readonly #options: SharedBudgetsOptions;
  /** Those that hold something, or wait for it: as many as there are principals and servers with a budget. */
  readonly #inUse = new Set<SharedWindow>();
  /** From the start: whoever sweeps may itself be called by nobody. */
  readonly #timer: NodeJS.Timeout;
  #sweptMs: number;

  constructor(options: SharedBudgetsOptions) {
    this.#options = options;
    this.#sweptMs = options.now();
    this.#timer = setInterval(() => this.#look(), IDLE_MS).unref();
  }

  readonly window: SharedWindows = (scope, name, budget) => {
    const key = keyOf(scope, name, budget.windowMs);
    return new SharedWindow(key, budget, this.#options, (window) => this.#uses(window));
  };

  /** Hands back all that is held, so that others have it at once. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#inUse].map((window) => window.handBack()));
  }

  #uses(window: SharedWindow): void {
    this.#inUse.add(window);
  }

  #look(): void {
    const nowMs = this.#options.now();
    for (const window of this.#inUse) {
      if (!window.isIdle(nowMs)) continue;
      this.#inUse.delete(window);
      // What the engine did not take back is still held: it is handed back at a later look.
      void window.handBack().then((isDone) => {
        if (!isDone) this.#inUse.add(window);
      });
    }
    if (nowMs - this.#sweptMs < SWEEP_MS) return;
    this.#sweptMs = nowMs;
    const { gateways, self } = this.#options;
    if (gateways().every((other) => self <= other)) this.#sweep();
  }

  /**
   * What is over for a whole window more than it counts: nobody holds a slice of it any more, so that what is taken of it at
   * the same moment and forgotten is the one slice too many that there may be.
   */
  #sweep(): void {
    const { map, wall } = this.#options;
    for (const [key, record] of map.entries()) {
      const windowMs = windowOf(key);
      const slotMs = slotMsOf(windowMs);
      const newest = record.slots.at(-1)?.[0] ?? 0;
      if ((newest + 2) * slotMs + 2 * windowMs < wall()) map.delete(key).catch(() => {});
    }
  }
}

class SharedWindow implements CallWindow {
  readonly #key: string;
  readonly #slice: Slice;
  readonly #options: SharedBudgetsOptions;
  readonly #used: (window: SharedWindow) => void;
  /** What is being written of the record now. */
  #asking: { readonly what: "exchange" | "give back"; readonly done: Promise<void> } | undefined;
  #waiting = 0;
  #unansweredUntilMs = Number.NEGATIVE_INFINITY;
  #usedMs = 0;

  constructor(key: string, budget: CallBudget, options: SharedBudgetsOptions, used: (window: SharedWindow) => void) {
    this.#key = key;
    this.#slice = new Slice(budget);
    this.#options = options;
    this.#used = used;
  }

  get windowMs(): number {
    return this.#slice.windowMs;
  }

  get calls(): number {
    return this.#slice.calls;
  }

  set calls(calls: number) {
    this.#slice.calls = calls;
  }

  full(nowMs: number): WindowFull | WindowAsked | undefined {
    const wallMs = this.#options.wall();
    // What is being given back is not spent any more.
    if (this.#asking?.what !== "give back" && this.#slice.rest(wallMs) > 0) {
      if (this.#asking === undefined && this.#slice.isLow() && nowMs >= this.#unansweredUntilMs) this.#exchange();
      return undefined;
    }
    const { map, status } = this.#options;
    const record = map.get(this.#key);
    const spent = this.#slice.spent(record, wallMs);
    if (this.#asking === undefined && spent >= this.calls) {
      return { spent, resetsInMs: this.#slice.resetsInMs(record, wallMs) };
    }
    const { state, nextTryMs, mute } = status();
    const isAway = state !== "connected" || mute !== undefined;
    if (isAway || nowMs < this.#unansweredUntilMs) {
      const againMs = isAway ? (nextTryMs ?? nowMs + RETRY_MS) : this.#unansweredUntilMs;
      const resetsInMs = Math.ceil(Math.max(1, againMs - nowMs));
      return { spent, resetsInMs, isUnanswered: true };
    }
    if (this.#waiting >= MAX_WAITING) return { spent, resetsInMs: CROWDED_MS, waiting: this.#waiting };
    if (this.#asking === undefined) this.#exchange();
    return { answered: this.#wait() };
  }

  add(): void {
    this.#slice.spend();
    this.#usedMs = this.#options.now();
    this.#used(this);
  }

  remove(thenMs: number, nowMs: number): void {
    this.#slice.refund(this.#options.wall() - (nowMs - thenMs));
  }

  isEmpty(): boolean {
    const wallMs = this.#options.wall();
    const record = this.#options.map.get(this.#key);
    return this.#asking === undefined && this.#slice.rest(wallMs) === 0 && this.#slice.spent(record, wallMs) === 0;
  }

  isIdle(nowMs: number): boolean {
    return this.#asking === undefined && nowMs - this.#usedMs >= IDLE_MS;
  }

  /** Resolves when it is done, or could not be: with whether nothing is held any more. */
  async handBack(): Promise<boolean> {
    await this.#asking?.done;
    if (this.#slice.rest(this.#options.wall()) === 0) return true;
    if (this.#asking === undefined) await this.#begin("give back", () => this.#giveBack());
    return this.#slice.rest(this.#options.wall()) === 0;
  }

  async #wait(): Promise<void> {
    this.#waiting++;
    try {
      await this.#asking?.done;
    } finally {
      this.#waiting--;
    }
  }

  #exchange(): void {
    this.#used(this);
    void this.#begin("exchange", () => this.#take());
  }

  #begin(what: "exchange" | "give back", act: () => Promise<void>): Promise<void> {
    const done = act()
      .catch((error: unknown) => {
        this.#unansweredUntilMs = this.#options.now() + RETRY_MS;
        // Where it may have been written, nobody knows whether what we hold still counts: it is as good as spent.
        if (!(error instanceof StoreError && error.code === "away")) this.#slice.forfeit();
      })
      .finally(() => {
        this.#asking = undefined;
      });
    this.#asking = { what, done };
    return done;
  }

  /** Takes nothing where others were always faster. */
  async #take(): Promise<void> {
    const { map, gateways, wall } = this.#options;
    for (let n = 0; n < MAX_TRIES; n++) {
      const found = map.read(this.#key);
      const plan = this.#slice.exchange({
        record: found?.value,
        gateways: gateways().length,
        // Whoever began it is about to wait.
        waiting: this.#waiting,
        wallMs: wall(),
      });
      if (plan === undefined) return;
      if (!(await this.#write(plan.record, found?.revision))) continue;
      this.#slice.taken(plan);
      return;
    }
  }

  async #giveBack(): Promise<void> {
    const { map, wall } = this.#options;
    for (let n = 0; n < MAX_TRIES; n++) {
      const found = map.read(this.#key);
      const left = this.#slice.giveBack(found?.value, wall());
      if (left !== undefined && !(await this.#write(left, found?.revision))) continue;
      this.#slice.forfeit();
      return;
    }
  }

  async #write(record: BudgetGrants, revision: number | undefined): Promise<boolean> {
    const { map } = this.#options;
    const written =
      revision === undefined ? await map.create(this.#key, record) : await map.update(this.#key, record, revision);
    return written !== undefined;
  }
}

/** The window is in it: gateways whose configs differ in that count apart. */
function keyOf(scope: BudgetScope, name: string, windowMs: number): string {
  const hash = createHash("sha256").update(name).digest("base64url").slice(0, NAME_HASH_CHARS);
  return `${windowMs}-${scope === "principal" ? "p" : "s"}-${hash}`;
}

function windowOf(key: string): number {
  return Number(key.slice(0, key.indexOf("-")));
}
