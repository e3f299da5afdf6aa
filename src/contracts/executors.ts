// Executors as the endpoint lets them in and as `status` tells of them.

export type MemberState = "connecting" | "ready" | "lost" | "closed";

/** Who dialled in. */
export interface Visitor {
  /** Of the conversation that it still has. */
  readonly sessionId: string | undefined;
  readonly address: string;
  /** The name of its machine, where it said it. */
  readonly machine: string | undefined;
  /** The id of its token's principal: another token's conversation is not gone on with. */
  readonly principal: string;
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
  readonly members: readonly MemberStatus[];
}
