// The messages that failed too often, and those of which nobody knows what became: the last ones of each mailbox, for as long as
// somebody may look into them.

import type { Appended, Batch, OrderedLog } from "../../contracts/store.js";
import { DEAD_LETTER_MS, MAX_DEAD_LETTERS } from "./limits.js";
import type { Ended } from "./queue-terms.js";
import { REQUEST } from "./record.js";

/**
 * Whether a person may want to see to it. What was never handed out has had no effect, and its sender is told to try again; a read
 * whose machine died is asked for again by whoever wants it.
 */
export function isDeadLetter({ message, why, mayHaveRun, isRepeatable }: Ended): boolean {
  if (why === "failed") return true;
  return why === "expired" && mayHaveRun && !isRepeatable && message.kind.endsWith(REQUEST);
}

/** As it is stored, before the record that it was: why it is here, and since when. */
interface DeadLetter {
  readonly mailbox: string;
  readonly why: string;
  readonly at: number;
}

interface KnownLetter {
  readonly entry: Appended;
  readonly at: number;
}

export class DeadLetters {
  readonly #log: OrderedLog;
  /** By mailbox, the oldest first: where each is in the store, and since when. */
  readonly #known = new Map<string, KnownLetter[]>();

  constructor(log: OrderedLog) {
    this.#log = log;
    for (const [sequence, json] of log.entries()) {
      const { mailbox, at } = headOf(json);
      this.#of(mailbox).push({ entry: { sequence }, at });
    }
  }

  /** Adds one in a batch, and drops what is too many or too old. What it returns is for a batch that was not written. */
  add(batch: Batch, mailbox: string, record: string, why: string, atMs: number): () => void {
    const head: DeadLetter = { mailbox, why, at: atMs };
    const entry = batch.append(this.#log, `${JSON.stringify(head).slice(0, -1)}${RECORD_MARK}${record}}`);
    const known = this.#of(mailbox);
    known.push({ entry, at: atMs });
    const dropped: KnownLetter[] = [];
    for (let [first] = known; first !== undefined; [first] = known) {
      if (known.length <= MAX_DEAD_LETTERS && first.at > atMs - DEAD_LETTER_MS) break;
      known.shift();
      dropped.push(first);
      batch.remove(this.#log, first.entry.sequence);
    }
    return () => {
      const left = this.#of(mailbox).filter((one) => one.entry !== entry);
      this.#keep(mailbox, [...dropped, ...left]);
    };
  }

  /** Those that are too old, by mailbox. */
  old(nowMs: number): ReadonlyMap<string, readonly number[]> {
    const found = new Map<string, number[]>();
    for (const [mailbox, known] of this.#known) {
      const old = known.filter(({ at }) => at <= nowMs - DEAD_LETTER_MS);
      if (old.length > 0) {
        found.set(
          mailbox,
          old.map(({ entry }) => entry.sequence),
        );
      }
    }
    return found;
  }

  /** The mailboxes that have some. */
  mailboxes(): Iterable<string> {
    return this.#known.keys();
  }

  /** When the oldest of all became one; undefined where there is none. */
  get sinceMs(): number | undefined {
    let firstMs: number | undefined;
    for (const [oldest] of this.#known.values()) {
      if (oldest !== undefined && (firstMs === undefined || oldest.at < firstMs)) firstMs = oldest.at;
    }
    return firstMs;
  }

  count(mailbox: string): number {
    return this.#known.get(mailbox)?.length ?? 0;
  }

  /** Where those of a mailbox are in the store, the oldest first. */
  of(mailbox: string): readonly number[] {
    return (this.#known.get(mailbox) ?? []).map(({ entry }) => entry.sequence);
  }

  /** Undefined where it is not there, or not yet. */
  read(sequence: number): { readonly why: string; readonly at: number; readonly record: string } | undefined {
    const json = this.#log.get(sequence);
    return json === undefined ? undefined : deadLetterOf(json);
  }

  /** Takes one out in a batch; once that is committed it is forgotten. */
  remove(batch: Batch, sequence: number): void {
    batch.remove(this.#log, sequence);
  }

  forget(mailbox: string, sequences: readonly number[]): void {
    const gone = new Set(sequences);
    this.#keep(
      mailbox,
      (this.#known.get(mailbox) ?? []).filter(({ entry }) => !gone.has(entry.sequence)),
    );
  }

  #keep(mailbox: string, left: KnownLetter[]): void {
    if (left.length === 0) this.#known.delete(mailbox);
    else this.#known.set(mailbox, left);
  }

  #of(mailbox: string): KnownLetter[] {
    let known = this.#known.get(mailbox);
    if (known === undefined) {
      known = [];
      this.#known.set(mailbox, known);
    }
    return known;
  }
}

/** The reason before it is JSON, in which a quote is escaped: this stands nowhere before the record. */
const RECORD_MARK = ',"record":';

/** A dead letter from what is stored of it. */
export function deadLetterOf(json: string): DeadLetter & { readonly record: string } {
  return { ...headOf(json), record: json.slice(json.indexOf(RECORD_MARK) + RECORD_MARK.length, -1) };
}

/** What stands before the record, which may be long and is not parsed for it. */
function headOf(json: string): DeadLetter {
  return JSON.parse(`${json.slice(0, json.indexOf(RECORD_MARK))}}`) as DeadLetter;
}
