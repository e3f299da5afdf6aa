// Which runs there are, which of them hold their connection, and which have until when to come back. A state machine
// without I/O or clock: the driver is runs.ts.

import type { ProcessMark } from "../../contracts/runs.js";
import { Fault } from "../../protocol/errors.js";

/** A terminal has a few, a machine that runs agents for a team some hundred; each costs a connection and a token. */
const MAX_RUNS = 1_000;
/** A gateway that is started anew is up within seconds, and the run looks for it several times a second. */
const COME_BACK_MS = 60_000;

/** As it is kept on disk, under the run's id. */
export interface RunRecord {
  readonly principal: string;
  readonly role: string;
  /** SHA-256 of its secret, hexadecimal. */
  readonly hash: string;
  readonly client: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** The principal was named by `--as`: what is known of it outlives the run. */
  readonly isNamed: boolean;
  /** The gateway that it runs at, by its state directory; the others only let it in. Absent in records from before. */
  readonly home?: string;
  /** The process that holds it, as far as it said. */
  readonly process?: ProcessMark | undefined;
}

interface Entry {
  readonly record: RunRecord;
  /** Until when it may come back; undefined while it holds its connection. */
  awayUntil: number | undefined;
}

export class RunBook {
  readonly #runs = new Map<string, Entry>();

  get size(): number {
    return this.#runs.size;
  }

  get(run: string): RunRecord | undefined {
    return this.#runs.get(run)?.record;
  }

  entries(): { readonly run: string; readonly record: RunRecord; readonly isHeld: boolean }[] {
    return [...this.#runs].map(([run, { record, awayUntil }]) => ({ run, record, isHeld: awayUntil === undefined }));
  }

  /**
   * A new run, which holds its connection. Throws a Fault, and then nothing has changed. Returns the runs that it takes
   * the place of: those of the same principal that are away, of which nobody knows whether they live.
   */
  begin(run: string, record: RunRecord): string[] {
    const same = [...this.#runs].filter(([, other]) => other.record.principal === record.principal);
    if (same.some(([, { awayUntil }]) => awayUntil === undefined)) {
      throw new Fault(
        "denied",
        `A run called "${record.principal}" is under way. Two would change one context: choose another id.`,
      );
    }
    if (this.#runs.size - same.length >= MAX_RUNS) {
      throw new Fault("limit", `There are ${MAX_RUNS} runs already, which is the limit. Wait until one has ended.`);
    }
    const replaced = same.map(([id]) => id);
    for (const id of replaced) this.#runs.delete(id);
    this.#runs.set(run, { record, awayUntil: undefined });
    return replaced;
  }

  /** One that is known from before the gateway was started anew. */
  restore(run: string, record: RunRecord, nowMs: number): void {
    if (this.#runs.size < MAX_RUNS) this.#runs.set(run, { record, awayUntil: nowMs + COME_BACK_MS });
  }

  /** It is back. False where there is no such run, its secret is another, or it never went. */
  resume(run: string, hash: string): boolean {
    const entry = this.#runs.get(run);
    if (entry === undefined || entry.record.hash !== hash || entry.awayUntil === undefined) return false;
    entry.awayUntil = undefined;
    return true;
  }

  /** It has ended. False where it had before. */
  end(run: string): boolean {
    return this.#runs.delete(run);
  }

  /** Whether any is awaited. */
  get isAwaiting(): boolean {
    for (const { awayUntil } of this.#runs.values()) if (awayUntil !== undefined) return true;
    return false;
  }

  /** Those whose time to come back is over. They are to be ended. */
  due(nowMs: number): string[] {
    return [...this.#runs].flatMap(([run, { awayUntil }]) =>
      awayUntil !== undefined && nowMs >= awayUntil ? [run] : [],
    );
  }
}
