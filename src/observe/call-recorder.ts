// The one place where calls end: fills a record for each, and hands the records of a moment on together, off the calls'
// own turn. What is made of them is a sink's business.

import { replySize } from "../protocol/arrived.js";
import { isObject } from "../protocol/jsonrpc.js";
import type { Reply } from "../protocol/reply.js";
import type { Clock } from "../runtime/clock.js";
import { type CallRecord, CallRing } from "./call-record.js";
import { outcomeOf } from "./outcome.js";
import type { CallEnds, RecordedCall } from "./recorded-call.js";

/** Makes something of the records of a moment. */
export interface CallSink {
  /** The record is used again when this returns. */
  take(record: CallRecord): void;
  /** All records of the moment were given; `dropped` calls besides found no room. */
  batchEnded(dropped: number): void;
}

/**
 * Twice what a core can pass on in `GATHER_MS`, so that nothing is dropped while the loop turns; at some 200 bytes each
 * it is half a megabyte.
 */
const RING_SIZE = 2_048;

/**
 * Records are gathered so long. One write for many lines costs far less than one for each, and a person who watches
 * does not see the difference.
 */
const GATHER_MS = 25;

export class CallRecorder implements CallEnds {
  readonly #clock: Clock;
  readonly #sink: CallSink;
  readonly #ring: CallRing;
  readonly #take: (record: CallRecord) => void;
  readonly #timed = () => this.flush();
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock, sink: CallSink, size: number = RING_SIZE) {
    this.#clock = clock;
    this.#sink = sink;
    this.#ring = new CallRing(size);
    this.#take = (record) => sink.take(record);
  }

  now(): number {
    return this.#clock.now();
  }

  ended(call: RecordedCall, reply: Reply): void {
    const record = this.#ring.next();
    if (record !== undefined) {
      const { caller, message } = call;
      record.endedAt = this.#clock.wall();
      record.ms = this.#clock.now() - call.startMs;
      record.principal = caller.principal;
      record.clientInfo = caller.clientInfo;
      record.method = message.method;
      record.server = call.server;
      record.tool = call.tool ?? namedTool(call);
      record.outcome = outcomeOf(reply);
      record.cache = call.cache;
      record.bytes = reply.kind === "bytes" ? replySize(reply) : undefined;
      record.id = message.id;
    }
    // One for many calls. It keeps no process alive: close() reads what waits.
    this.#timer ??= setTimeout(this.#timed, GATHER_MS).unref();
  }

  /** Hands on what waits, now. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const dropped = this.#ring.takeDropped();
    if (this.#ring.waiting === 0 && dropped === 0) return;
    this.#ring.read(this.#take);
    this.#sink.batchEnded(dropped);
  }
}

/** What the agent called it, where no server has it. */
function namedTool({ message: { method, params } }: RecordedCall): string | undefined {
  if (method !== "tools/call" || !isObject(params)) return undefined;
  const { name } = params;
  return typeof name === "string" ? name : undefined;
}
