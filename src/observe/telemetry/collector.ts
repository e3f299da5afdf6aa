// An OpenTelemetry collector: where it takes spans and where metrics, and one of these places, which takes a body by POST and says what
// came of it. Whether and when to send again is the business of who sends.

import type { Pool } from "undici";
import { within } from "../../runtime/wait.js";

/** A collector that takes longer than this is overloaded. */
const SEND_TIMEOUT_MS = 10_000;
/** Longest that a collector may make us wait by Retry-After. */
const MAX_RETRY_AFTER_MS = 60_000;
/** So much of an answer's body is read; it says at most how much was refused. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** What OTLP allows to send again. */
const RETRYABLE = new Set([429, 502, 503, 504]);

const TRACES = "/v1/traces";
const METRICS = "/v1/metrics";

interface CollectorPlaces {
  readonly traces: string;
  /** Undefined where the address does not say: it has a path of its own, which is meant for spans. */
  readonly metrics: string | undefined;
}

/** From the one address of the config, which was checked. */
export function placesOf(otlp: string): CollectorPlaces {
  const url = new URL(otlp);
  const at = (path: string) => {
    const place = new URL(url);
    place.pathname = path;
    return place.href;
  };
  const { pathname } = url;
  if (pathname === "" || pathname === "/") return { traces: at(TRACES), metrics: at(METRICS) };
  if (!pathname.endsWith(TRACES)) return { traces: otlp, metrics: undefined };
  return { traces: otlp, metrics: at(pathname.slice(0, -TRACES.length) + METRICS) };
}

export interface CollectorOptions {
  /** Path and all: `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string;
  /** What the collector wants to be shown. Never logged. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export type CollectorAnswer = { readonly kind: "done"; readonly refused: number } | Undelivered;
interface Undelivered {
  readonly kind: "again" | "never";
  readonly why: string;
  readonly afterMs?: number;
}

export class Collector {
  readonly #options: CollectorOptions;
  #pool: Pool | undefined;

  constructor(options: CollectorOptions) {
    this.#options = options;
  }

  async post(body: string, signal: AbortSignal): Promise<CollectorAnswer> {
    const { url, headers } = this.#options;
    try {
      // Loaded with the first body.
      const undici = await import("undici");
      const { origin, pathname, search } = new URL(url);
      this.#pool ??= new undici.Pool(origin, { connections: 1, pipelining: 1 });
      const { statusCode, ...answer } = await this.#pool.request({
        method: "POST",
        path: pathname + search,
        headers: { ...headers, "content-type": "application/json" },
        body,
        signal: within(SEND_TIMEOUT_MS, signal),
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

  async close(): Promise<void> {
    await this.#pool?.destroy();
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
    const answer = JSON.parse(text) as { partialSuccess?: Record<string, unknown> } | null;
    const { rejectedSpans, rejectedDataPoints } = answer?.partialSuccess ?? {};
    const refused = Number(rejectedSpans ?? rejectedDataPoints ?? 0);
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
