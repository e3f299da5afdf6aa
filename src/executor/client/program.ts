// The client of an executor for programs: what they may use of it, loaded when it is first asked for. The client itself
// is executor/client.ts, which also knows sockets and who may give it one.

import type { ExecutorError, ExecutorRequest } from "../wire/types.js";
import type { StreamedAnswer, WaitOptions, WholeAnswer } from "./answers.js";
import type { ConnectOptions } from "./connect.js";
import type { Fetch } from "./fetch.js";

export type { ConnectOptions };

export interface ExecutorClient extends AsyncDisposable {
  /** `lost`: between two connections; what is under way goes on if the next one comes in time. */
  readonly state: "connecting" | "ready" | "lost" | "closed";
  /** The executor speaks our extensions: credit, cancel, uploads, resume. */
  readonly extended: boolean;
  /** Requests under way, and answers that are not read to their end. */
  readonly inFlight: number;
  /** Why there is no connection, or why there was none last. */
  readonly lastError: ExecutorError | undefined;
  /** Resolves when it is connected; rejects when it is closed, or `signal` says so. */
  ready(signal?: AbortSignal): Promise<void>;
  /** The whole answer; for bodies that fit into memory. */
  request(request: ExecutorRequest, options?: WaitOptions): Promise<WholeAnswer>;
  /** Resolves with the answer's head; its body is read as it comes, and sent no faster than it is read. */
  requestStream(request: ExecutorRequest, options?: WaitOptions): Promise<StreamedAnswer>;
  /** As the global fetch(), through the executor's network. */
  readonly fetch: Fetch;
  /** Every request that is not answered in full ends with `closed`. */
  close(): Promise<void>;
}

/** Rejects where the first connection fails; from then on the client dials again by itself, until it is closed. */
export async function connectExecutor(options: ConnectOptions): Promise<ExecutorClient> {
  const { connectExecutor: connect } = await import("./connect.js");
  return connect(options);
}
