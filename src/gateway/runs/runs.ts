// The runs of a gateway: agents that `toolway run` started, each with a secret of its own that ends with it. Keeps them
// on disk, lends their secrets to the tokens, and sweeps what a run that was killed has left in the state directory.

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { CallTally, Principal } from "../../contracts/caller.js";
import { GIVE_BACK_FILE, type ProcessMark } from "../../contracts/runs.js";
import { DEFAULT_ROLE } from "../../contracts/settings.js";
import type { SharedMap } from "../../contracts/store.js";
import { Fault } from "../../protocol/errors.js";
import { isGone } from "../../runtime/processes/life.js";
import { hashOf, newSecret, type TokenBook } from "../../tokens/tokens.js";
import { RunBook, type RunRecord } from "./run-book.js";

/** Below the state directory: a folder for each run that writes something, named by its id. */
const FOLDER = "runs";
const RUN_ID = /^[0-9a-f]{12}$/;
const RUN_BYTES = 6;
/** Runs that are away are looked at so often: over within 5 s of their time, also on a machine that is busy. */
const LOOK_MS = 1_000;

/** Runs whose secrets are good here, those of other gateways included: as many as there may be tokens. */
const MAX_LENT = 10_000;

/** Gives back what belongs to the user, and removes a run's folder. Returns what is to be said of what could not go back. */
export type SweepRun = (folder: string) => Promise<readonly string[]>;

interface RunsOptions {
  readonly map: SharedMap<RunRecord>;
  /** Names this gateway among those that have the same map: their runs are let in here too, and are theirs to end. */
  readonly home?: string | undefined;
  readonly tokens: TokenBook;
  /** Undefined where nothing outlives the process. */
  readonly stateDir: string | undefined;
  readonly now: () => number;
  readonly wall: () => number;
  /** Where a program embeds the gateway there is none: folders with something of the user's stay. */
  readonly sweep?: SweepRun | undefined;
  /** A principal that no later run will have is gone for good. */
  readonly onForgotten: (principal: string) => void;
  readonly log: (text: string) => void;
}

export interface NewRun {
  readonly as: string | undefined;
  readonly role: string;
  readonly client: string;
  /** The process whose run it is: when that is gone, the run is over. */
  readonly process?: ProcessMark | undefined;
}

export interface HeldRun {
  readonly run: string;
  readonly principal: Principal;
  readonly tally: CallTally;
}

export class Runs {
  readonly #options: RunsOptions;
  readonly #book = new RunBook();
  readonly #lent = new Map<string, { readonly principal: Principal; readonly tally: CallTally; takeBack(): void }>();
  readonly #onChange = new Set<() => void>();
  readonly #onClosing = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  /** Somebody has asked for a run, and waits for what it needs: the gateway does not end meanwhile. */
  #awaited = 0;
  #isClosing = false;

  constructor(options: RunsOptions) {
    this.#options = options;
    const nowMs = options.now();
    if (options.home !== undefined) options.map.watch((run, record) => this.#told(run, record));
    for (const [run, record] of [...options.map.entries()]) {
      if (this.#isElsewhere(record)) {
        this.#told(run, record);
        continue;
      }
      if (hasDied(record)) {
        // It was killed with the gateway: nobody will come back for its secret.
        this.#forget(run, record);
        continue;
      }
      try {
        this.#lend(run, record);
        this.#book.restore(run, record, nowMs);
      } catch (error) {
        // A token was made with its id meanwhile.
        options.log(`a run of before is not known any more: ${(error as Error).message}`);
        this.#forget(run, record);
      }
    }
    if (this.#book.isAwaiting) this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
    void this.#sweepStrangers();
  }

  /** How many there are, those included that may come back. */
  get size(): number {
    return this.#book.size;
  }

  list(): { readonly principal: Principal; readonly record: RunRecord; readonly isHeld: boolean }[] {
    return this.#book.entries().map(({ record, isHeld }) => ({
      principal: principalOf(record),
      record,
      isHeld,
    }));
  }

  /** One is about to begin, and counts as if it had until the returned function is called. */
  expect(): () => void {
    this.#awaited++;
    this.#changed();
    return () => {
      this.#awaited--;
      this.#changed();
    };
  }

  /** Resolves when there has been none for so long, nor one that was about to begin. */
  absent(ms: number): Promise<void> {
    return new Promise((done) => {
      let timer: NodeJS.Timeout | undefined;
      const look = () => {
        clearTimeout(timer);
        timer = this.size + this.#awaited > 0 ? undefined : setTimeout(end, ms);
      };
      const end = () => {
        this.#onChange.delete(look);
        done();
      };
      this.#onChange.add(look);
      look();
    });
  }

  /** Resolves when it is on disk. Rejects with a Fault or a TokenError. */
  async begin({ as, role, client, process }: NewRun): Promise<HeldRun & { readonly secret: string }> {
    if (this.#isClosing) throw new Fault("closing", "The gateway is closing.");
    const run = randomBytes(RUN_BYTES).toString("hex");
    if (as !== undefined && /[/#]/.test(as)) {
      throw new Fault("invalid", `The id of a run has no "/" and no "#" in it: ${JSON.stringify(as)}.`);
    }
    const { token, hash } = newSecret();
    const { map, wall } = this.#options;
    const isNamed = as !== undefined;
    const { home } = this.#options;
    const facts = { principal: as ?? `run-${run}`, role, hash, client, startedAt: wall(), isNamed, process };
    const record: RunRecord = home === undefined ? facts : { ...facts, home };
    for (const [other, lent] of this.#lent) {
      if (lent.principal.id !== record.principal || this.#book.get(other) !== undefined) continue;
      throw new Fault(
        "denied",
        `A run called "${record.principal}" is under way at another gateway. Two would change one context: choose another id.`,
      );
    }
    for (const replaced of this.#book.begin(run, record)) this.#ended(replaced);
    try {
      const held = this.#lend(run, record);
      await map.put(run, record);
      this.#changed();
      return { run, ...held, secret: token };
    } catch (error) {
      this.#book.end(run);
      this.#ended(run);
      throw error;
    }
  }

  /** A run of a gateway before this one is back. Rejects with a Fault where it is not known, or its time was over. */
  async resume(run: string, secret: string): Promise<HeldRun> {
    if (this.#isClosing) throw new Fault("closing", "The gateway is closing.");
    const lent = this.#lent.get(run);
    if (lent === undefined || !this.#book.resume(run, hashOf(secret))) {
      throw new Fault("not-found", "The gateway does not know this run: it came back too late, or was replaced.");
    }
    return { run, principal: lent.principal, tally: lent.tally };
  }

  /** Its connection is gone, and so is the run: its secret is good for nothing from now on. */
  release(run: string): void {
    // Its run waits for the next gateway.
    if (this.#isClosing) return;
    if (this.#book.end(run)) this.#ended(run);
  }

  /** Called once, before the gateway lets its runs go. The returned function ends it. */
  onClosing(listener: () => void): () => void {
    this.#onClosing.add(listener);
    return () => void this.#onClosing.delete(listener);
  }

  /** What is known of the runs stays on disk, for the gateway that comes next. */
  close(): void {
    this.#isClosing = true;
    clearInterval(this.#timer);
    for (const listener of this.#onClosing) listener();
    this.#onClosing.clear();
  }

  #look(): void {
    const dead = this.#book.entries().filter(({ record, isHeld }) => !isHeld && hasDied(record));
    for (const run of [...this.#book.due(this.#options.now()), ...dead.map((one) => one.run)]) {
      if (this.#book.end(run)) this.#ended(run);
    }
    if (!this.#book.isAwaiting) clearInterval(this.#timer);
  }

  #lend(run: string, record: RunRecord): { principal: Principal; tally: CallTally } {
    const tally: CallTally = { calls: 0, refused: new Map(), queued: 0 };
    const principal: Principal = { ...principalOf(record), tally };
    const takeBack = this.#options.tokens.lend(principal, record.hash);
    this.#lent.set(run, { principal, tally, takeBack });
    return { principal, tally };
  }

  #isElsewhere({ home }: RunRecord): boolean {
    return this.#options.home !== undefined && home !== undefined && home !== this.#options.home;
  }

  /** A run of another gateway has begun, or ended. Of our own we know. */
  #told(run: string, record: RunRecord | undefined): void {
    if (this.#book.get(run) !== undefined || (record !== undefined && !this.#isElsewhere(record))) return;
    const lent = this.#lent.get(run);
    if (record === undefined) {
      this.#lent.delete(run);
      lent?.takeBack();
      return;
    }
    if (lent !== undefined || this.#lent.size >= MAX_LENT) return;
    try {
      this.#lend(run, record);
    } catch (error) {
      this.#options.log(`a run of another gateway is not let in here: ${(error as Error).message}`);
    }
  }

  #ended(run: string): void {
    this.#lent.get(run)?.takeBack();
    this.#lent.delete(run);
    const record = this.#options.map.get(run);
    this.#forget(run, record);
    void this.#sweep(run);
    this.#changed();
  }

  #forget(run: string, record: RunRecord | undefined): void {
    this.#options.map
      .delete(run)
      .catch((error: unknown) =>
        this.#options.log(`the end of a run could not be written: ${(error as Error).message}`),
      );
    if (record?.isNamed === false) this.#options.onForgotten(record.principal);
  }

  #changed(): void {
    for (const listener of this.#onChange) listener();
  }

  async #sweep(run: string): Promise<void> {
    const { stateDir, sweep, log } = this.#options;
    if (stateDir === undefined) return;
    const folder = join(stateDir, FOLDER, run);
    try {
      if (sweep !== undefined) {
        for (const text of await sweep(folder)) log(text);
      } else if (existsSync(join(folder, GIVE_BACK_FILE))) {
        log(
          `${folder} stays: what is the user's in it goes back by \`toolway run\`, or where \`toolway\` is started next`,
        );
      } else await removeFolder(folder);
    } catch (error) {
      log(`what a run left at ${folder} could not be removed: ${(error as Error).message}`);
    }
  }

  /** Of runs that nobody knows any more: gateway and run were killed together, long ago. */
  async #sweepStrangers(): Promise<void> {
    const { stateDir } = this.#options;
    if (stateDir === undefined) return;
    const names = await readdir(join(stateDir, FOLDER)).catch(() => []);
    for (const name of names) if (RUN_ID.test(name) && this.#book.get(name) === undefined) await this.#sweep(name);
  }
}

function hasDied({ process }: RunRecord): boolean {
  return process !== undefined && isGone(process);
}

async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

/** The role that it was started with narrows it, whatever becomes of the config. */
function principalOf({ principal: id, role }: RunRecord): Principal {
  return role === DEFAULT_ROLE ? { id, role } : { id, role, needsRole: true };
}
