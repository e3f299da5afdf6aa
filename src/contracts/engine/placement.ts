// A server that one of several gateways runs for all of them, as whoever connects to it sees that.

import type { Duplex } from "node:stream";
import type { Caller } from "../caller.js";

/** The way to a server that another gateway runs. */
export interface PassedServer {
  readonly stream: Duplex;
  /** Only the gateway at the other end knows it, and no server: what it says itself begins with it. */
  readonly secret: string;
  /** Of the server itself. Undefined where the other gateway did not say. */
  readonly serverEra: Caller["era"] | undefined;
  /** Replies of a legacy server come as it wrote them. An older gateway adds what the modern era has. */
  readonly isAsWritten: boolean;
}

export interface ServerPlace {
  /** Whether it may run here. The one question that counts, to be asked right before each act. */
  mayRun(): boolean;
  /** Waits until it is known where it runs: here, or at another gateway. Rejects with a Fault. */
  find(signal: AbortSignal): Promise<"here" | PassedServer>;
  /**
   * It runs here from now on. `end` is called when it may not any more: `isInTime` where nobody else may run it yet, and
   * whoever is next waits until what it returns has resolved, or for a few seconds. The returned function tells that nothing
   * of it runs any more.
   */
  runs(end: (isInTime: boolean) => Promise<void>): () => void;
}
