// Sends finished spans to an OpenTelemetry collector over HTTP, in batches. Telemetry never harms what it tells of:
// the queue is bounded, what does not fit or cannot be delivered is dropped and counted.

import type { Pool } from "undici";
import { fullJitter } from "../runtime/backoff.js";
import { within } from "../runtime/wait.js";
import { type Origin, otlpBody } from "./otlp-json.js";
import type { FinishedSpan, SpanSink } from "./traces.js";

/** Spans that wait; about 1 kB each. Room for a burst, or for a collector that is away for a moment. */
const MAX_QUEUED = 8_192;
/** Spans of one request: half a megabyte of JSON. */
const MAX_BATCH = 512;
/** A batch that is not full waits so long: soon enough for somebody who looks for the call just made. */
const BATCH_AFTER_MS = 1_000;
/** A collector that takes longer than this is overloaded. */
const SEND_TIMEOUT_MS = 10_000;
/** Attempts at one batch. With the waits between them, a collector may be away for about a minute. */
const MAX_ATTEMPTS = 8;
const BACKOFF = { baseMs: 1_000, maxMs: 15_000 };
/** Longest that a collector may make us wait by Retry-After. */
const MAX_RETRY_AFTER_MS = 60_000;
/** How long closing waits for the last spans. */
const CLOSE_MS = 2_000;
/** So much of an answer's body is read; it says at most how many spans were refused. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** What OTLP allows to send again. */
const RETRYABLE = new Set([429, 502, 503, 504]);

export interface OtlpOptions {
  /** Where the collector takes traces, path and all: `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string;
  /** What the collector wants to be shown. Never logged. */
  readonly headers?: Readonly<Record<string, string>>;
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

type Delivery = { readonly kind: "done"; readonly refused: number } | Undelivered;
interface Undelivered {
  readonly kind: "again" | "never";
  readonly why: string;
  readonly afterMs?: number;
}

export class OtlpExporter implements SpanSink {
  readonly #options: OtlpOptions;
  readonly #maxQueued: number;
  #queue: FinishedSpan[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #pool: Pool | undefined;
  #wake = () => {};
  #closing = false;
  readonly #aborted = new AbortController();
  #sent = 0;
  #dropped = 0;
  /** A failure is told once, until a batch arrives again. */
  #troubled = false;

  constructor(options: OtlpOptions) {
    this.#options = options;
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
    await this.#pool?.destroy();
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#queue.length === 0) return;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  async #sendAll(): Promise<void> {
    // What came while a batch was on its way goes with the next one, however small.
    while (this.#queue.length > 0 && !this.#aborted.signal.aborted) {
      const batch = this.#queue.slice(0, MAX_BATCH);
      const refused = await this.#deliver(otlpBody(batch, this.#options.origin));
      // Only now: what is being sent counts against the bound too.
      this.#queue = this.#queue.slice(batch.length);
      const lost = Math.min(refused ?? batch.length, batch.length);
      this.#dropped += lost;
      this.#sent += batch.length - lost;
    }
  }

  /** How many spans of it the collector refused; undefined where it has none of them. */
  async #deliver(body: string): Promise<number | undefined> {
    for (let attempt = 0; ; attempt++) {
      const delivery = await this.#post(body);
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

  async #post(body: string): Promise<Delivery> {
    const { url, headers } = this.#options;
    try {
      // Loaded with the first span.
      const undici = await import("undici");
      const { origin, pathname, search } = new URL(url);
      this.#pool ??= new undici.Pool(origin, { connections: 1, pipelining: 1 });
      const { statusCode, ...answer } = await this.#pool.request({
        method: "POST",
        path: pathname + search,
        headers: { ...headers, "content-type": "application/json" },
        body,
        signal: within(SEND_TIMEOUT_MS, this.#aborted.signal),
      });
      const text = await readSome(answer.body);
      if (statusCode >= 200 && statusCode < 300) return { kind: "done", refused: refusedOf(text) };
      const why = `the collector answered with status ${statusCode}`;
      if (!RETRYABLE.has(statusCode)) return { kind: "never", why };
      const afterMs = retryAfterMs(answer.headers["retry-after"]);
      return { kind: "again", why, ...(afterMs === undefined ? {} : { afterMs }) };
    } catch (error) {
      return { kind: "again", why: `the collector cannot be reached: ${reason(error)}` };
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

async function readSome(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** A collector may take a part. Nothing that it can say makes sending again right. */
function refusedOf(text: string): number {
  try {
    const answer = JSON.parse(text) as { partialSuccess?: { rejectedSpans?: unknown } } | null;
    const refused = Number(answer?.partialSuccess?.rejectedSpans ?? 0);
    return Number.isSafeInteger(refused) && refused > 0 ? refused : 0;
  } catch {
    return 0;
  }
}

function retryAfterMs(header: string | string[] | undefined): number | undefined {
  const seconds = typeof header === "string" && /^\d{1,6}$/.test(header) ? Number(header) : undefined;
  return seconds === undefined ? undefined : Math.min(seconds * 1000, MAX_RETRY_AFTER_MS);
}

/** A code such as ECONNREFUSED: messages may quote the address, and that may hold a password. */
function reason(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown };
  return String(code ?? name ?? "unknown");
}
