// The other gateways behind the same balancer, as an endpoint sees them: what belongs to a session or to a call that waits is
// in the memory of one of them, its home, and is passed there.

import type { Duplex } from "node:stream";

export interface Homes {
  /** This gateway. */
  readonly self: string;
  /** Those that are there, ourselves among them. */
  gateways(): readonly string[];
  /** Those that were there a moment ago, and may still let calls end that wait for their agents. */
  left(): readonly string[];
  /** A connection on which that gateway's endpoint speaks HTTP, as to an agent. Rejects where it is not there. */
  connect(gateway: string): Promise<Duplex>;
  /** Something came that lives at a gateway which is not there any more. The log says so, once for each that was lost. */
  gone(gateway: string): void;
  /** Whether a request is for a server that has a process of its own for each session. */
  isOfSession(
    method: string,
    params: Readonly<Record<string, unknown>> | undefined,
    scope: string | undefined,
  ): boolean;
}
