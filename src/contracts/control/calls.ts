// What the control routes about calls are asked and answer: `GET /calls`. Arguments and results are in none of it.

/** What narrows the calls that are shown. */
export interface CallFilter {
  readonly server?: string | undefined;
  /** By the server's own name of it. */
  readonly tool?: string | undefined;
  readonly principal?: string | undefined;
  readonly failed?: boolean | undefined;
  /** Those that took longer than this, or have until now. */
  readonly slowerMs?: number | undefined;
  /** A word of the outcomes. */
  readonly outcome?: string | undefined;
  /** What their agents did not have to notice: `restart`, `token`, `menu`. */
  readonly mended?: string | undefined;
}

/** The query of `GET /calls`. */
export interface CallsQuery extends CallFilter {
  /** Those that ended after the one with this number. */
  readonly after?: number | undefined;
  /** So many of the last that fit. */
  readonly limit: number;
  /** So many of those that took longest, the longest first, in place of the last. */
  readonly slowest?: boolean | undefined;
  /** Counts those that fit and failed by what they failed for. */
  readonly reasons?: boolean | undefined;
}

/** Who called what. */
interface CallFacts {
  readonly principal: string;
  readonly role: string;
  /** As the agent calls itself. */
  readonly client: string | undefined;
  readonly method: string;
  readonly server: string | undefined;
  readonly tool: string | undefined;
  /** The agent's own id of the request. */
  readonly id: string | number;
  readonly trace: string | undefined;
  readonly attempt: number;
}

/** A call that has ended, as the operator sees it. */
export interface KeptCall extends CallFacts {
  /** Counts the calls of this gateway, from 1. */
  readonly seq: number;
  readonly endedAt: string;
  readonly outcome: string;
  /** Whether it failed: a call that its agent took back did not. */
  readonly failed: boolean;
  readonly ms: number;
  readonly queuedMs: number;
  readonly startingMs: number;
  readonly credentialMs: number;
  readonly serverMs: number;
  readonly returningMs: number;
  /** What of `ms` was the gateway's own. */
  readonly ownMs: number;
  readonly cache: string | undefined;
  /** The rule of ours that refused it: `role`, `menu`, `guard`, `pin`, `budget`, `breaker`, `limit`. */
  readonly refusedBy: string | undefined;
  /** The JSON-RPC code of the error that its server answered with. */
  readonly errorCode: number | undefined;
  /** Of the write that the outbox kept, where its agent was given that in place of a result. */
  readonly receipt: string | undefined;
  /** What the agent did not have to notice. */
  readonly mended: string | undefined;
  readonly bytesIn: number;
  readonly bytes: number | undefined;
  /** A person recorded what it was given and gave: `GET /calls/:seq/bodies` has it, for operators. */
  readonly recorded?: true | undefined;
}

/** A call that has not ended yet. */
export interface CallUnderWay extends CallFacts {
  /** So long until now. */
  readonly ms: number;
  /** What it waits for. */
  readonly phase: string;
}

/** The answer of `GET /calls`. */
export interface CallsAnswer {
  /** Oldest first; the slowest first where those were asked for. */
  readonly calls: readonly KeptCall[];
  /** Oldest first. */
  readonly underWay: readonly CallUnderWay[];
  /** The number of the last that ended: what to ask `after` next. */
  readonly last: number;
  /** What those that failed did so for, the most frequent first. Absent where nobody asked. */
  readonly reasons?: readonly CallReason[];
}

/** Calls that failed for the same at the same server. */
export interface CallReason {
  readonly count: number;
  /** The last of them: its outcome, its server, its rule and its code are those of all. */
  readonly last: KeptCall;
}
