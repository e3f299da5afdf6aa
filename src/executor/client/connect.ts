// The client of an executor for programs: what they may use of it, and how they get one that is connected. The client
// itself, which also knows sockets, is client.ts; it is loaded when it is first asked for.

import type { ExecutorError, ExecutorLog, ExecutorRequest } from "../wire/types.js";
import type { StreamedAnswer, WaitOptions, WholeAnswer } from "./answers.js";
import type { Fetch } from "./fetch.js";

export interface ConnectOptions {
  /** `ws://` or `wss://`; `http(s)://` means the same. */
  readonly url: string;
  /** Sent as `Authorization: Bearer`. */
  readonly token?: string | undefined;
  /** What the executor knows the client by. */
  readonly clientName?: string | undefined;
  /** How long requests wait for an executor that was lost, where it keeps them as long. */
  readonly retentionMs?: number | undefined;
  readonly log?: ExecutorLog | undefined;
  /** Ends the waiting for the first connection. */
  readonly signal?: AbortSignal | undefined;
}

export interface ExecutorClient extends AsyncDisposable {
  /**
   * `stopping`: what is under way ends, and the executor takes nothing more. `lost` is between two connections: what is
   * under way goes on if the next one comes in time.
   */
  readonly state: "connecting" | "ready" | "stopping" | "lost" | "closed";
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
  const { url, token, signal, ...rest } = options;
  const [{ SocketClient }, { dialSocket }] = await Promise.all([
    import("./client.js"),
    import("../../sockets/dial.js"),
  ]);
  // After the loading: nobody listens to it before.
  signal?.throwIfAborted();
  let look: (() => void) | undefined;
  const client = new SocketClient({
    ...rest,
    dial: (ended) => dialSocket(url, { token, signal: ended }),
    onState: () => look?.(),
  });
  try {
    await new Promise<void>((resolve, reject) => {
      const abort = (): void => reject(signal?.reason);
      signal?.addEventListener("abort", abort, { once: true });
      look = () => {
        if (client.state !== "ready" && client.lastError === undefined) return;
        look = undefined;
        signal?.removeEventListener("abort", abort);
        if (client.lastError === undefined) resolve();
        else reject(client.lastError);
      };
    });
  } catch (error) {
    await client.close();
    throw error;
  }
  return client;
}
