// The outbox on disk: what each write is and what became of it, the text that goes to its server, the result that came
// back, and the lanes that an operator holds. What follows from it is lanes.ts's to say.

import type { DurableMap, Store } from "../contracts/store.js";
import { hashText } from "../protocol/canonical.js";
import { parseMessage, type RequestMessage } from "../protocol/message.js";
import { withoutAgent } from "./key.js";
import type { WriteRecord } from "./lanes/write.js";

/** Sequence numbers as text that sorts. */
const DIGITS = 15;

/** The server's answer, as JSON text: one of the two. */
export interface KeptResult {
  readonly result?: string | undefined;
  readonly error?: string | undefined;
}

/** A write that is taken from the disk. */
export interface Forgotten {
  readonly sequence: number;
  /** Its text may still be there: that of what was done went with its end. */
  readonly hasText: boolean;
}

export class OutboxJournal {
  readonly #store: Store;
  readonly #records: DurableMap<WriteRecord>;
  readonly #messages: DurableMap<string>;
  readonly #results: DurableMap<KeptResult>;
  readonly #holds: DurableMap<{ readonly server: string; readonly lane: string | undefined }>;

  constructor(store: Store) {
    this.#store = store;
    this.#records = store.map("outbox");
    this.#messages = store.map("outbox-messages");
    this.#results = store.map("outbox-results");
    this.#holds = store.map("outbox-holds");
  }

  /** Whatever is kept, in the order of sequence: some of it may be of another version. */
  *records(): Iterable<[sequence: number, record: unknown]> {
    for (const [key, record] of this.#records.entries()) yield [Number(key), record];
  }

  /** Resolves when it is on disk, with the text that goes to its server. */
  take(sequence: number, record: WriteRecord, text: string): Promise<void> {
    const key = keyOf(sequence);
    return this.#store.batch((batch) => {
      batch.put(this.#records, key, record);
      batch.put(this.#messages, key, text);
    });
  }

  /** Resolves when it is on disk as it is now. */
  save(sequence: number, record: WriteRecord, result: KeptResult | undefined): Promise<void> {
    const key = keyOf(sequence);
    // What was done is never sent again.
    const isDone = record.state === "done";
    const isLost = record.lostBytes !== undefined;
    if (result === undefined && !isDone && !isLost) return this.#records.put(key, record);
    return this.#store.batch((batch) => {
      batch.put(this.#records, key, record);
      if (result !== undefined) batch.put(this.#results, key, result);
      else if (isLost) batch.delete(this.#results, key);
      if (isDone) batch.delete(this.#messages, key);
    });
  }

  forget(gone: readonly Forgotten[]): Promise<void> {
    return this.#store.batch((batch) => {
      for (const { sequence, hasText } of gone) {
        const key = keyOf(sequence);
        batch.delete(this.#records, key);
        if (hasText) batch.delete(this.#messages, key);
        batch.delete(this.#results, key);
      }
    });
  }

  /** As it goes out where its agent does not wait any more. */
  message(sequence: number): RequestMessage | undefined {
    const text = this.#messages.get(keyOf(sequence));
    if (text === undefined) return undefined;
    const message = parseMessage(text);
    return message.kind === "request" ? withoutAgent(message) : undefined;
  }

  result(sequence: number): KeptResult | undefined {
    return this.#results.get(keyOf(sequence));
  }

  *holds(): Iterable<{ readonly server: string; readonly lane: string | undefined }> {
    for (const [, hold] of this.#holds.entries()) yield hold;
  }

  hold(server: string, lane: string | undefined): Promise<void> {
    return this.#holds.put(hashText(JSON.stringify([server, lane ?? null])), { server, lane });
  }

  /** Of one lane, or of the server and all its lanes. */
  release(server: string, lane: string | undefined): Promise<void> {
    const gone = [...this.#holds.entries()].filter(
      ([, hold]) => hold.server === server && (lane === undefined || hold.lane === lane),
    );
    return this.#store.batch((batch) => {
      for (const [key] of gone) batch.delete(this.#holds, key);
    });
  }
}

function keyOf(sequence: number): string {
  return String(sequence).padStart(DIGITS, "0");
}
