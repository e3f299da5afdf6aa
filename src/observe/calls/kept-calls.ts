// The last calls, for who wants to look back: their records, in objects that are made as they are used and used again. What
// is shown of them is shown-calls.ts, which is loaded when somebody asks.

import type { JsonObject } from "../../protocol/jsonrpc.js";
import { type CallRecord, copyRecord, emptyRecord } from "../call-record.js";
import type { CallSink } from "../call-recorder.js";
import { cutName, MAX_NAME_CHARACTERS, MAX_NAME_READ, type RedactName } from "../safe-names.js";

/** So many are kept: some minutes of a busy gateway, 2.9 MB. */
export const MAX_KEPT_CALLS = 5_000;

export class KeptCalls implements CallSink {
  readonly #redact: RedactName;
  readonly #records: CallRecord[] = [];
  readonly #size: number;
  /** How many there were in all: the number of the last. */
  #count = 0;

  constructor(redact: RedactName, size: number = MAX_KEPT_CALLS) {
    this.#redact = redact;
    this.#size = size;
  }

  take(record: CallRecord): void {
    const at = this.#count++ % this.#size;
    let kept = this.#records[at];
    if (kept === undefined) {
      kept = emptyRecord();
      this.#records[at] = kept;
    }
    copyRecord(record, kept);
    const { tool, method, clientInfo, server, id } = record;
    // Redacted before it is cut: half of a secret is not found.
    if (tool !== undefined && tool.length > MAX_NAME_CHARACTERS) {
      kept.tool = copied(this.#redact(server, tool.slice(0, MAX_NAME_READ)));
    }
    if (method.length > MAX_NAME_CHARACTERS) kept.method = copied(method);
    if (typeof id === "string" && id.length > MAX_NAME_CHARACTERS) kept.id = copied(id);
    kept.clientInfo = shortInfo(clientInfo);
  }

  batchEnded(): void {}

  /** The number of the last. */
  get last(): number {
    return this.#count;
  }

  /** The number of the oldest that is kept; one more than the last where none is. */
  get first(): number {
    return Math.max(0, this.#count - this.#size) + 1;
  }

  /** Of a number from `first` to `last`. It is used again: whoever wants to keep it copies what is needed. */
  at(seq: number): CallRecord {
    return this.#records[(seq - 1) % this.#size] as CallRecord;
  }

  /** A tool's name without the secrets of its server's entry. */
  safeName(server: string | undefined, tool: string): string {
    return this.#redact(server, tool);
  }
}

const NAMELESS: JsonObject = {};

/** An agent may say as much of itself as it likes: what is shown is its name. Most are kept as they are, without a copy. */
function shortInfo(clientInfo: JsonObject): JsonObject {
  const { name, version } = clientInfo;
  if (typeof name !== "string") return NAMELESS;
  const isShort = name.length <= MAX_NAME_CHARACTERS && Object.keys(clientInfo).length <= 2;
  if (isShort && (version === undefined || (typeof version === "string" && version.length <= MAX_NAME_CHARACTERS))) {
    return clientInfo;
  }
  return { name: name.length > MAX_NAME_CHARACTERS ? copied(name) : name };
}

/** A part of a long text holds all of it, unless its characters are copied. */
function copied(text: string): string {
  return text.length > MAX_NAME_CHARACTERS ? Buffer.from(cutName(text)).toString() : text;
}
