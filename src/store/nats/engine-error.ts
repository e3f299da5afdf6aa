// What can go wrong between us and the engine, as a closed set of codes.

import { ExpectedError } from "../../runtime/expected-error.js";

export type EngineErrorCode =
  /** Nobody answers. What was asked was not sent. */
  | "away"
  /** More is under way than we are willing to hold in memory. What was asked was not sent. */
  | "busy"
  /** Our secret, certificate or rights are not accepted, or there is none. */
  | "refused"
  /** A node is too old. */
  | "old"
  | "closed";

export class EngineError extends ExpectedError {
  override readonly name = "EngineError";
  override readonly kind = "failed";
  readonly code: EngineErrorCode;
  /** In how long the engine is tried again; undefined where nobody tries. */
  readonly retryInMs: number | undefined;

  constructor(code: EngineErrorCode, message: string, options: { cause?: unknown; retryInMs?: number } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryInMs = options.retryInMs;
  }
}
