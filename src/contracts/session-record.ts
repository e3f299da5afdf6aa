// What is kept of a legacy session over restarts, beside what its sealed id says.

/**
 * Under the session's key: that it has ended, or when it was used last. Under `before:` and a principal's id: that
 * sessions of the principal that began then or earlier are over, unless a record says that they were used.
 */
export interface SessionRecord {
  readonly principal: string;
  /** When the session began. Times are milliseconds since 1970. */
  readonly began: number;
  readonly ended?: true;
  readonly used?: number;
}
