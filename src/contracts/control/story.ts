// What `GET /servers/:server/story` answers: what the gateway itself said of a server, and when its breaker opened and closed.

export interface StoryLine {
  readonly at: string;
  readonly level: "info" | "warn" | "error";
  readonly text: string;
}

export interface ServerStoryAnswer {
  /** The last of them, the oldest first. */
  readonly lines: readonly StoryLine[];
  readonly breaker: readonly { readonly at: string; readonly circuit: "open" | "closed" }[];
}
