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

/** `GET /audit/verify`: whether all lines are as they were written, up to the last that the gateway's store knows of. */
export interface AuditCheckAnswer {
  readonly lines: number;
  /** The number of the first line that is still there. */
  readonly first: number;
  readonly last: { readonly seq: number; readonly hash: string };
  /** The first that is wrong; undefined where none is. */
  readonly wrong: { readonly file: string; readonly line: number; readonly why: string } | undefined;
  /** What is remarkable and not wrong: lines torn by a kill. */
  readonly notes: readonly string[];
}

/** What a table for spreadsheets has of a line. */
export const AUDIT_COLUMNS = [
  "seq",
  "time",
  "kind",
  "principal",
  "role",
  "client",
  "method",
  "server",
  "tool",
  "outcome",
  "rule",
  "ms",
  "bytesIn",
  "bytes",
  "by",
  "act",
  "target",
  "address",
  "path",
  "why",
  "trace",
  "arguments",
  "receipt",
] as const;

/** `GET /audit/head`: where the log is, and its last line as the store has it. */
export interface AuditHeadAnswer {
  readonly path: string;
  readonly seq: number;
  readonly hash: string;
  readonly written: number;
  readonly lost: number;
  /** When the last of them was lost; absent where none was since the start. */
  readonly lostAt?: string | undefined;
  /** Why nothing can be written now. */
  readonly problem: string | undefined;
  /** Since when; absent where something can. */
  readonly problemAt?: string | undefined;
  /** Whether calls are refused until something can be. */
  readonly refusing: boolean;
}
