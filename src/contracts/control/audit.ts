// What the control routes about the audit log are asked and answer: `GET /audit` and `GET /audit/head`.

/** What narrows the lines that are shown. */
export interface AuditFilter {
  /** Milliseconds since 1970. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
  readonly server?: string | undefined;
  readonly tool?: string | undefined;
  readonly principal?: string | undefined;
  /** A word of the outcomes, or `failed` for all that are neither `ok` nor `cancelled`. */
  readonly outcome?: string | undefined;
  /** Acts of operators alone. */
  readonly operator?: boolean | undefined;
}

/** A line of the log. What it has beside these goes by its kind. */
export interface AuditLine {
  readonly seq: number;
  readonly time: string;
  readonly kind: string;
  readonly [member: string]: unknown;
}

/** Where a search stopped, for who wants to search further back. */
export interface AuditCursor {
  readonly file: string;
  /** The search goes on with what is before this byte. */
  readonly before: number;
}

/** `GET /audit`: newest first, at most 200 lines or what is found in two seconds. */
export interface AuditAnswer {
  readonly lines: readonly AuditLine[];
  /** Undefined where all of the log was looked at. */
  readonly next: AuditCursor | undefined;
}

/** `GET /audit/head`: where the log is, and its last line as the store has it. */
export interface AuditHeadAnswer {
  readonly path: string;
  readonly seq: number;
  readonly hash: string;
  readonly written: number;
  readonly lost: number;
  /** Why nothing can be written now. */
  readonly problem: string | undefined;
  /** Whether calls are refused until something can be. */
  readonly refusing: boolean;
}
