// What the control routes about recordings are asked and answer: `GET /record`, `POST /record`, `POST /record/stop` and
// `GET /calls/:seq/bodies`.

/** What a person records now: arguments and results of a server's calls, or of one tool's. */
export interface RecordingShown {
  readonly server: string;
  /** By the server's own name of it. Undefined where all of the server is recorded. */
  readonly tool?: string | undefined;
  readonly until: string;
  /** How many calls were recorded, those included that had to make room. */
  readonly calls: number;
}

export interface RecordAnswer {
  readonly recordings: readonly RecordingShown[];
}

/** What was recorded of a call. Secrets of its server's entry are taken out. */
export interface RecordedBodies {
  /** JSON. */
  readonly arguments: string;
  /** JSON: the result, or the error. Empty where it was too large to be held by anybody. */
  readonly result: string;
  /** What had more than is kept of a side. */
  readonly cut: readonly ("arguments" | "result")[];
}
