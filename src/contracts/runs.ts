// What `toolway run` and a gateway say to each other on the control socket, a line of JSON each. After its first line a
// run says `{"kind":"end"}` when its agent has ended, to be given the closing figures; in between it is told them as they
// change, since the gateway may be killed before that. Types, and one name.

/** In a run's folder: what of it is the user's and goes back. Only who knows how to give it back may remove such a folder. */
export const GIVE_BACK_FILE = "give-back.json";

/** The process of a run, by which a gateway that was started anew sees whether it still lives. */
export interface ProcessMark {
  readonly pid: number;
  /** When it began, as the system counts; undefined where it does not say. */
  readonly began?: string | undefined;
  /** Which processes it sees. */
  readonly space?: string | undefined;
}

/** The first line of a run. */
export type RunRequest =
  | {
      readonly kind: "begin";
      /** The id of its principal; undefined for one of its own, which ends with it. */
      readonly as?: string | undefined;
      readonly role?: string | undefined;
      /** What was started, for whoever looks. */
      readonly client: string;
      /** What is known of its situation; null unsets a key. */
      readonly context: Readonly<Record<string, string | null>>;
      readonly process?: ProcessMark | undefined;
    }
  /** A run whose gateway was started anew. */
  | { readonly kind: "resume"; readonly run: string; readonly secret: string };

export type RunLine =
  | {
      readonly kind: "held";
      readonly run: string;
      readonly principal: string;
      readonly role: string;
      /** Where the agent comes in. */
      readonly url: string;
      /** The gateway runs for runs alone, and ends after the last of them. */
      readonly forRuns: boolean;
      /** Tokens are not asked for at its endpoint, so that every agent is the same one. */
      readonly noAuth: boolean;
      /** Said once, to the run that was begun. */
      readonly secret?: string | undefined;
    }
  | ({ readonly kind: "figures" } & RunSummary)
  | ({ readonly kind: "ended" } & RunSummary)
  | { readonly kind: "error"; readonly code: string; readonly message: string };

export interface RunSummary {
  readonly calls: number;
  /** By rule, the most frequent first. */
  readonly refused: readonly { readonly rule: string; readonly count: number }[];
  /** Of servers, while the run was under way. */
  readonly restarts: number;
  /** Writes that the outbox kept, and that the agent has receipts of. */
  readonly queued: number;
}
