// What is kept of a legacy session over restarts, beside what its sealed id says.

/** What a session asked for that outlives its requests. */
export interface SessionSettings {
  /** Set by logging/setLevel. */
  readonly level?: string | undefined;
  /** What it has subscribed to: URIs by server. */
  readonly subscribed?: Readonly<Record<string, readonly string[]>> | undefined;
}

/**
 * Under the session's key: that it has ended, or when it was used last and what it asked for. Under `before:` and a principal's id: that
 * sessions of the principal that began then or earlier are over, unless a record says that they were used.
 */
export interface SessionRecord extends SessionSettings {
  readonly principal: string;
  /** When the session began. Times are milliseconds since 1970. */
  readonly began: number;
  readonly ended?: true;
  readonly used?: number;
}
