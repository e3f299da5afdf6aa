// What the control routes about questions to a person are asked and answer: `GET /asks`, and `POST /asks/:id` with an answer.

/** A call that waits for a person's word, as everybody who looks is shown it. */
export interface AskShown {
  readonly id: number;
  /** Who wants it. */
  readonly worker: string;
  readonly role: string;
  readonly server: string;
  /** By the server's own name of it. */
  readonly tool: string;
  readonly askedAt: string;
  /** It is refused then. */
  readonly until: string;
}

/** The same with what it would be called with, for who answers. */
export interface AskedCall extends AskShown {
  /** JSON, as it was sent; a long one is cut. */
  readonly arguments: string;
}

/** `always`: for this worker and this tool, until the gateway ends. */
export type AskAnswer = "yes" | "no" | "always";

export interface AsksAnswer {
  readonly asks: readonly AskedCall[];
}
