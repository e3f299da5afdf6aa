// The way in for programs: a client of the executor at a URL, connected.

import { dialSocket } from "../../sockets/dial.js";
import type { ExecutorLog } from "../wire/types.js";
import { ExecutorClient } from "./client.js";

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

/** Rejects where the first connection fails; from then on the client dials again by itself, until it is closed. */
export async function connectExecutor(options: ConnectOptions): Promise<ExecutorClient> {
  const { url, token, signal, ...rest } = options;
  signal?.throwIfAborted();
  let look: (() => void) | undefined;
  const client = new ExecutorClient({
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
