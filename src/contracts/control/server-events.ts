// What `GET /servers/:server/events` answers: what the gateway itself said of a server, and when its breaker opened and closed.

export interface ServerEventLine {
  readonly at: string;
  readonly level: "info" | "warn" | "error";
  readonly text: string;
}

export interface ServerEventsAnswer {
  /** The last of them, the oldest first. */
  readonly lines: readonly ServerEventLine[];
  readonly breaker: readonly { readonly at: string; readonly circuit: "open" | "closed" }[];
}
