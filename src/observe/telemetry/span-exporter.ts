// Sends finished spans to an OpenTelemetry collector over HTTP, in batches. Telemetry never harms what it tells of:
// the queue is bounded, what does not fit or cannot be delivered is dropped and counted.

import { fullJitter } from "../../runtime/backoff.js";
import type { FinishedSpan, SpanSink } from "../traces.js";
import { Collector, type CollectorOptions } from "./collector.js";
import type { Origin } from "./json.js";
import { otlpBody } from "./json.js";

/** Spans that wait; about 1 kB each. Room for a burst, or for a collector that is away for a moment. */
const MAX_QUEUED = 8_192;
/** Spans of one request: half a megabyte of JSON. */
const MAX_BATCH = 512;
/** A batch that is not full waits so long: soon enough for somebody who looks for the call just made. */
const BATCH_AFTER_MS = 1_000;
/** Attempts at one batch. With the waits between them, a collector may be away for about a minute. */
const MAX_ATTEMPTS = 8;
const BACKOFF = { baseMs: 1_000, maxMs: 15_000 };
/** How long closing waits for the last spans. */
const CLOSE_MS = 2_000;

export interface OtlpOptions extends CollectorOptions {
  readonly origin: Origin;
  readonly log: (level: "info" | "warn", text: string) => void;
  readonly random?: () => number;
  /** For tests. */
  readonly batchAfterMs?: number;
  readonly maxQueued?: number;
  readonly backoff?: { readonly baseMs: number; readonly maxMs: number };
}

export interface OtlpStats {
  readonly sent: number;
  readonly dropped: number;
  readonly queued: number;
}

export class OtlpExporter implements SpanSink {
  readonly #options: OtlpOptions;
  readonly #maxQueued: number;
  readonly #collector: Collector;
  #queue: FinishedSpan[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #wake = () => {};
  #closing = false;
  readonly #aborted = new AbortController();
  #sent = 0;
  #dropped = 0;
  /** A failure is told once, until a batch arrives again. */
  #troubled = false;

  constructor(options: OtlpOptions) {
    this.#options = options;
    this.#collector = new Collector(options);
    this.#maxQueued = options.maxQueued ?? MAX_QUEUED;
  }

  get stats(): OtlpStats {
    return { sent: this.#sent, dropped: this.#dropped, queued: this.#queue.length };
  }

  end(span: FinishedSpan): void {
    if (this.#queue.length >= this.#maxQueued || this.#closing) {
      this.#dropped++;
      if (!this.#closing) this.#trouble(`more than ${this.#maxQueued} spans wait`);
      return;
    }
    this.#queue.push(span);
    this.#plan();
  }

  /** A full batch is sent at once; one that is not waits for more. */
  #plan(): void {
    if (this.#queue.length >= MAX_BATCH) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), this.#options.batchAfterMs ?? BATCH_AFTER_MS).unref();
  }

  /** Sends what waits, as far as the collector takes it at once. What is left is dropped. */
  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    this.#wake();
    this.#send();
    const late = setTimeout(() => this.#aborted.abort(), CLOSE_MS);
    await this.#sending;
    clearTimeout(late);
    this.#dropped += this.#queue.length;
    this.#queue = [];
    await this.#collector.close();
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#queue.length === 0) return;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
      if (this.#queue.length > 0 && !this.#closing) this.#plan();
    });
  }

  async #sendAll(): Promise<void> {
    // What came while a batch was on its way waits for a batch of its own: under load each would have a few spans, and a
    // request for them costs more than the spans.
    do {
      const batch = this.#queue.slice(0, MAX_BATCH);
      const refused = await this.#deliver(otlpBody(batch, this.#options.origin));
      // Only now: what is being sent counts against the bound too.
      this.#queue = this.#queue.slice(batch.length);
      const lost = Math.min(refused ?? batch.length, batch.length);
      this.#dropped += lost;
      this.#sent += batch.length - lost;
    } while (this.#queue.length >= (this.#closing ? 1 : MAX_BATCH) && !this.#aborted.signal.aborted);
  }

  /** How many spans of it the collector refused; undefined where it has none of them. */
  async #deliver(body: string): Promise<number | undefined> {
    for (let attempt = 0; ; attempt++) {
      const delivery = await this.#collector.post(body, this.#aborted.signal);
      if (delivery.kind === "done") {
        if (this.#troubled) this.#options.log("info", "traces: the collector takes spans again");
        this.#troubled = false;
        return delivery.refused;
      }
      this.#trouble(delivery.why);
      if (delivery.kind === "never" || attempt + 1 >= MAX_ATTEMPTS || this.#closing) return undefined;
      const { random = Math.random, backoff = BACKOFF } = this.#options;
      await this.#pause(delivery.afterMs ?? fullJitter(attempt, random(), backoff));
    }
  }

  /** Ends early when we close. */
  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      timer.unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = () => {};
  }

  #trouble(why: string): void {
    if (this.#troubled) return;
    this.#troubled = true;
    this.#options.log("warn", `traces: ${why}. Spans that do not get through are dropped; calls are not affected.`);
  }
}
