// Executors as the endpoint lets them in and as `status` tells of them.

import type { Principal } from "./caller.js";

export type MemberState = "connecting" | "ready" | "stopping" | "lost" | "closed";

/**
 * How the executors of one name are at another gateway. `lost`: it may come back, and requests wait for it. `stopping`: another comes
 * in its place, as a rule at another gateway.
 */
export type PlaceState = Extract<MemberState, "ready" | "lost" | "stopping">;

/** Who dialled in. */
export interface Visitor {
  /** Of the conversation that it still has. */
  readonly sessionId: string | undefined;
  readonly address: string;
  /** The name of its machine, where it said it. */
  readonly machine: string | undefined;
  /** Its token's: the conversation of another id is not gone on with. */
  readonly principal: Principal;
}

export interface MemberStatus {
  /** Its URL, or the address that it dialled in from. */
  readonly where: string;
  readonly state: MemberState;
  readonly inFlight: number;
  readonly extended: boolean;
  /** When it came to this state. */
  readonly since: string;
  readonly lastError: string | undefined;
}

export interface ExecutorStatus {
  readonly name: string;
  /** A request can be made now. */
  readonly ready: boolean;
  /** Why none can, and what to do about it. Undefined where one can. */
  readonly problem: string | undefined;
  readonly members: readonly MemberStatus[];
}
